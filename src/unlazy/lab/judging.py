"""Compute verdicts: the statement and the published numbers of a claim, tested on its records.

A statement holds if all its checks hold, and fails if one fails (`checking`). It "holds under
reading" if the judged reading is not the first one, which is what the text states, and "holds,
loosely" if every bound of the paper is satisfied by a factor of at least `LOOSE`. If an assumption
of its theorem is not met, the outcome is "assumptions not met"; if the statement is asymptotic,
"not testable at finite size"; a row of this package is "ours". Then the results of the checks are
reported. Published numbers are compared twice: within printed precision (`checking`), and as draws
(`draws`).

*Interim analysis.* If seeds are added until the outcome is conclusive, the j-th analysis spends a
fraction 2^−j of the error, so that the total error stays at its level.
"""

from __future__ import annotations

import dataclasses
import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from unlazy.lab.checking import (
    CheckResult,
    Numbers,
    Ruling,
    judge_checks,
    judge_numbers,
    ruling,
)
from unlazy.lab.claims import Claim
from unlazy.lab.conditions import Met
from unlazy.lab.controls import ControlVerdict, finite, judge_control
from unlazy.lab.draws import Draw, Tally, draws
from unlazy.lab.provenance import summary
from unlazy.lab.rules import Quantity, Scale
from unlazy.lab.showing import Shown
from unlazy.lab.statistics import LEVEL, Estimate, estimate
from unlazy.lab.trials import Record

Outcome = Literal[
    "holds",
    "holds, loosely",
    "holds after correction",
    "holds under reading",
    "fails",
    "undecided",
    "assumptions not met",
    "not testable at finite size",
    "definition checked",
    "ours",
    "not run",
]
#: Outcomes as earlier versions wrote them.
FORMER_OUTCOMES: Mapping[str, Outcome] = {"outside hypotheses": "assumptions not met"}
#: Outcomes of a statement that is confirmed.
STANDING: tuple[Outcome, ...] = (
    "holds",
    "holds, loosely",
    "holds after correction",
    "holds under reading",
    "definition checked",
)
#: Factor from which a bound of the paper is called loose.
LOOSE = 10.0


@dataclasses.dataclass(frozen=True)
class TriedReading:
    """A reading that was run on development seeds, with its results for one claim."""

    name: str
    consistent: int
    of: int
    statement: Ruling


@dataclasses.dataclass(frozen=True)
class Verdict(Shown):
    """The outcome of a claim, with everything it is based on.

    `draws`: published numbers compared as draws of the judged reading. `tried`: all readings that
    were run on development seeds, if the store or the results have them.
    `seen`: outcome of the checks alone, regardless of the assumptions of the theorem. `look`:
    number of the interim analysis, or 0 if the number of seeds was fixed. `older`: number of
    records made by other code, libraries or data. `older_than_rule`: number of records made before
    the acceptance criteria were registered in the store.
    """

    claim: Claim
    scale: Scale
    outcome: Outcome
    seen: Ruling
    reason: str
    check_results: tuple[CheckResult, ...]
    numbers: Numbers
    conditions: tuple[Met, ...]
    control: ControlVerdict | None
    measured: dict[Quantity, Estimate]
    seeds: tuple[int, ...]
    look: int
    diverged: int
    trials: int
    seconds: float
    older: int
    older_than_rule: int
    provenance: dict[str, list[str]]
    draws: tuple[Draw, ...] = ()
    tried: tuple[TriedReading, ...] = ()

    @property
    def tally(self) -> Tally:
        """Counts of published numbers, compared as draws."""
        return Tally.of_draws(self.draws)

    @property
    def stands(self) -> bool:
        """Whether the statement holds, as printed or after correction."""
        return self.outcome in STANDING

    @property
    def slack(self) -> float | None:
        """Smallest factor by which a bound of the paper is satisfied; None if there is none."""
        factors = [
            j.check.slack(j.measured.mean)
            for j in self.check_results
            if j.check.supports and j.check.origin == "paper"
        ]
        return min((each for each in factors if math.isfinite(each)), default=None)

    @property
    def command(self) -> str:
        """The command that reproduces this verdict."""
        words = ["unlazy", "reproduce", self.claim.id, "--scale", self.scale]
        words += ["--seeds", str(len(self.seeds)), "--first-seed", str(self.seeds[0])]
        if self.claim.reading:
            words += ["--reading", self.claim.reading]
        return shlex.join(words)

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as JSON data."""
        return {
            "id": self.claim.id,
            "where": self.claim.where,
            "statement": self.claim.statement,
            "verdict": self.outcome,
            "reason": self.reason,
            "seen": self.seen,
            "numbers": {"reproduced": self.numbers.reproduced, "of": self.numbers.of},
            "hypotheses": [
                {
                    "condition": met.condition.text,
                    "value": finite(met.value),
                    "sense": met.condition.sense,
                    "needed": finite(met.needed),
                    "met": met.met,
                    "factor": finite(met.factor),
                    "constants": met.constants,
                }
                for met in self.conditions
            ],
            "control": self.control.to_json() if self.control else None,
            "corrections": list(self.claim.corrections),
            "scale": self.scale,
            "rule": self.claim.rule,
            "checks": [
                {
                    "check": str(j.check),
                    "bounds": j.check.origin,
                    "verdict": j.outcome,
                    "measured": finite(j.measured.mean),
                    "reason": j.reason,
                }
                for j in self.check_results
            ],
            "published": {str(p.quantity): p.value for p in self.claim.published},
            "published_outcomes": {
                str(p.quantity): outcome for p, outcome in self.numbers.outcomes.items()
            },
            "measured": {str(q): finite(e.mean) for q, e in self.measured.items()},
            "interval": {str(q): [finite(e.low), finite(e.high)] for q, e in self.measured.items()},
            "seeds": list(self.seeds),
            "look": self.look,
            "seconds": round(self.seconds, 3),
            "deviations": list(self.claim.deviations),
            "history": [dataclasses.asdict(change) for change in self.claim.history],
            "not_reproduced": list(self.numbers.lines),
            "diverged": self.diverged,
            "trials": self.trials,
            "older": self.older,
            "older_than_rule": self.older_than_rule,
            "command": self.command,
            "provenance": self.provenance,
            "reading": self.claim.judged.to_json() if self.claim.readings else None,
            "draws": [dataclasses.asdict(draw) for draw in self.draws],
            "tried": [dataclasses.asdict(each) for each in self.tried],
            "discrepancies": list(self.claim.discrepancies),
        }


def level_of(look: int) -> float:
    """Return the confidence level of an interim analysis.

    It is 1 − 0.05·2^−look; `look` = 0 is the only analysis of a fixed number of seeds.
    """
    return 1 - (1 - LEVEL) / 2.0**look


def judge(
    claim: Claim,
    scale: Scale,
    records: Mapping[str, Sequence[Record]],
    *,
    registered: str | None = None,
    look: int = 0,
    control: Mapping[str, Sequence[Record]] | None = None,
    older: int = 0,
    tried: Sequence[TriedReading] = (),
) -> Verdict:
    """Compute the verdict on a claim from the records of each arm.

    A diverged run counts with its measured values; it is never dropped. `registered`: time at which
    the acceptance criteria were registered. `older`: number of records made by other code,
    libraries or data. Neither changes the outcome. `control`: records of the negative control, if
    it was run. `tried`: readings that were run on development seeds.
    """
    all_records = [record for arm in records.values() for record in arm]
    level = level_of(look)
    measured = {
        q: estimate(q.values(records), exact=claim.exact, level=level, within=q.range)
        for q in claim.quantities
        if q.measured(records)
    }
    check_results = judge_checks(claim, scale, records, level)
    seen, reason = ruling(claim, scale, check_results)
    conditions = tuple(condition.at(scale, records) for condition in claim.conditions)
    missed = [met for met in conditions if not met.met]
    if seen == "fails" and tried:
        held = [each.name for each in tried if each.statement == "holds"]
        reason += f". Readings tried on development seeds: {len(tried)}; " + (
            f"it holds under {', '.join(held)}" if held else "it holds under none"
        )
    found = f"Checks: {reason}" if reason else "Despite this, all checks hold"
    if missed and any(j.check.counts for j in check_results):
        reason = f"{'; '.join(map(str, missed))}. {found}"
    elif claim.asymptotic and any(j.check.counts for j in check_results):
        reason = f"{claim.asymptotic}. {found.replace('Despite this, all', 'All')}"
    without = ControlVerdict(claim.control.what, "not run") if claim.control else None
    verdict = Verdict(
        claim=claim,
        scale=scale,
        outcome=seen,
        seen=seen,
        reason=reason,
        check_results=check_results,
        numbers=judge_numbers(claim, records),
        conditions=conditions,
        control=without if control is None else judge_control(claim, scale, control),
        measured=measured,
        seeds=tuple(sorted({record.seed for record in all_records})),
        look=look,
        diverged=sum(record.status == "diverged" for record in all_records),
        trials=len(all_records),
        seconds=sum(record.seconds for record in all_records),
        older=older,
        older_than_rule=sum(
            registered is not None and record.created < registered for record in all_records
        ),
        provenance=summary(record.provenance for record in all_records),
        draws=draws(claim.published, records, claim.judged.evaluation, exact=claim.exact),
        tried=tuple(tried),
    )
    return dataclasses.replace(verdict, outcome=_outcome(verdict))


def _outcome(verdict: Verdict) -> Outcome:
    """Return the word for a verdict from the result of its checks."""
    claim = verdict.claim
    if not any(j.check.counts for j in verdict.check_results):
        return verdict.seen
    if claim.source == "ours":
        return "ours"
    if any(not met.met for met in verdict.conditions):
        return "assumptions not met"
    if claim.asymptotic:
        return "not testable at finite size"
    if verdict.seen != "holds":
        return verdict.seen
    if claim.source == "definition":
        return "definition checked"
    if claim.readings and claim.judged != claim.readings[0]:
        return "holds under reading"
    if claim.corrections:
        return "holds after correction"
    return "holds, loosely" if (verdict.slack or 1.0) >= LOOSE else "holds"
