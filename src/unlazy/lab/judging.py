"""Judging: rules fixed before the run, and the verdict of two parts that records lead to.

*The statement.* A check compares the mean of a measurement over seeds with bounds. It holds where
the whole confidence interval of the mean lies within the bounds. It fails where the mean is outside
beyond chance, at a level that Holm's method shares among all checks of a claim, so that one of many
does not fail it by luck. A quantity without spread over seeds that are no exact computation tells
how often it lies within the bounds, no more: then, and where a check speaks of a share of seeds,
Clopper and Pearson's bound decides. A statement holds where all its checks hold, and fails where
one fails; where a condition of its theorem is not met, it is not judged, and what was seen is told
all the same.

*The numbers.* A published value is reproduced where the whole 90 % interval of the mean lies within
its margin: two one-sided tests at 5 %.

Looking again and again at more seeds until a claim is decided gives chance more than one occasion:
the j-th look takes the (2^j)-th part of the error, so that all looks together stay within it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import scipy.stats

from unlazy.lab.claims import Claim
from unlazy.lab.provenance import summary
from unlazy.lab.rules import SCALES, Check, Met, Published, Quantity, Scale
from unlazy.lab.showing import Shown
from unlazy.lab.statistics import (
    LEVEL,
    Estimate,
    chance_of_mean,
    estimate,
    holm,
    runs_for_share,
    seeds_for,
    share_interval,
)
from unlazy.lab.trials import Record

Ruling = Literal["holds", "fails", "undecided"]
Outcome = Literal[
    "holds", "holds after correction", "fails", "undecided", "outside hypotheses", "not run"
]
#: The outcomes with which a statement stands.
STANDING: tuple[Outcome, ...] = ("holds", "holds after correction")


@dataclasses.dataclass(frozen=True)
class CheckResult:
    """A check and what became of it."""

    check: Check
    outcome: Ruling
    measured: Estimate
    reason: str = ""


@dataclasses.dataclass(frozen=True)
class Numbers:
    """What became of the published values: each is met, missed, or open."""

    outcomes: Mapping[Published, Ruling]
    lines: tuple[str, ...]

    @property
    def of(self) -> int:
        """How many the paper prints."""
        return len(self.outcomes)

    @property
    def reproduced(self) -> int:
        """How many are met."""
        return sum(outcome == "holds" for outcome in self.outcomes.values())

    def __str__(self) -> str:
        if not self.of:
            return "–"
        if self.reproduced == self.of:
            return f"reproduced ({self.of} of {self.of})"
        return (
            f"partly ({self.reproduced} of {self.of})"
            if self.reproduced
            else f"not reproduced (0 of {self.of})"
        )


@dataclasses.dataclass(frozen=True)
class ControlVerdict:
    """What the rule says in the world where the statement is false; `held` are the checks that
    cannot tell the worlds apart.
    """

    what: str
    outcome: Outcome
    held: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The control as plain data."""
        return {"what": self.what, "verdict": self.outcome, "held": list(self.held)}


@dataclasses.dataclass(frozen=True)
class Verdict(Shown):
    """The outcome of a claim, with all that led to it.

    `seen` is what the checks say, whether or not the theorem's conditions are met. `look` is the
    number of the look where seeds were added until the claim was decided, 0 where their number was
    fixed. `older` counts records made by other code, libraries or data; `older_than_rule`
    counts records that were there before the store first saw the rule, for which the rule was not
    written before the run.
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

    @property
    def stands(self) -> bool:
        """Whether the statement holds, as it is printed or corrected."""
        return self.outcome in STANDING

    @property
    def command(self) -> str:
        """The command that makes these records and this verdict."""
        seeds = f"--seeds {len(self.seeds)} --first-seed {self.seeds[0]}"
        return f"unlazy reproduce {self.claim.id} --scale {self.scale} {seeds}"

    def to_json(self) -> dict[str, Any]:
        """The verdict as plain data."""
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
                    "value": _plain(met.value),
                    "sense": met.condition.sense,
                    "needed": _plain(met.needed),
                    "met": met.met,
                    "factor": _plain(met.factor),
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
                    "measured": _plain(j.measured.mean),
                    "reason": j.reason,
                }
                for j in self.check_results
            ],
            "published": {str(p.quantity): p.value for p in self.claim.published},
            "published_outcomes": {
                str(p.quantity): outcome for p, outcome in self.numbers.outcomes.items()
            },
            "measured": {str(q): _plain(e.mean) for q, e in self.measured.items()},
            "interval": {str(q): [_plain(e.low), _plain(e.high)] for q, e in self.measured.items()},
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
        }


def _plain(value: float) -> float | None:
    """Seven digits, so that small gaps stay visible; JSON has no NaN and no infinity."""
    return float(f"{value:.7g}") if math.isfinite(value) else None


def level_of(look: int) -> float:
    """The confidence level of a look: 95 % where there is one; the j-th of several takes the
    (2^j)-th part of the error.
    """
    return 1 - (1 - LEVEL) / 2.0**look


@dataclasses.dataclass(frozen=True)
class _Tried:
    """A check on values: its outcome unless it fails, and the chance of them if it were true."""

    judgement: CheckResult
    chance: float


def _try(
    check: Check, values: Sequence[float], *, exact: bool, min_seeds: int, level: float
) -> _Tried:
    measured = estimate(values, exact=exact, level=level, within=check.quantity.range)

    def said(outcome: Ruling, reason: str = "", chance: float = 1.0) -> _Tried:
        return _Tried(CheckResult(check, outcome, measured, reason), chance)

    if math.isnan(measured.mean):
        return said("undecided", "some runs gave no finite value", 0.0)
    if len(values) < min_seeds:
        return said("undecided", f"{len(values)} of at least {min_seeds} seeds")
    still = measured.deviation <= 1e-12 * max(1.0, abs(measured.mean))
    if exact and still:
        return said("holds") if check.allows(measured.mean) else said("undecided", chance=0.0)
    if still or check.share is not None:
        return _try_share(check, values, measured, still, level)
    if check.lower <= measured.low and measured.high <= check.upper:
        return said("holds")
    gaps = {
        bound: abs(measured.mean - bound)
        for bound in (check.lower, check.upper)
        if math.isfinite(bound)
    }
    nearest = min(gaps, key=gaps.__getitem__)
    more = seeds_for(gaps[nearest] / measured.deviation, level=level)
    reason = (
        f"the interval crosses a bound: about {more:,} seeds would decide"
        if more < 10_000
        else "the mean lies at a bound"
    )
    return said(
        "undecided",
        reason,
        1.0 if check.allows(measured.mean) else chance_of_mean(measured, nearest),
    )


def _try_share(
    check: Check, values: Sequence[float], measured: Estimate, still: bool, level: float
) -> _Tried:
    """By how many seeds lie within the bounds."""
    share = 0.5 if check.share is None else check.share
    inside = sum(check.allows(value) for value in values)
    if share_interval(inside, len(values), level)[0] > share:
        return _Tried(
            CheckResult(
                check, "holds", measured, f"{inside} of {len(values)} seeds" if check.share else ""
            ),
            1.0,
        )
    enough = runs_for_share(share, level)
    reason = (
        f"{inside} of {len(values)} seeds within the bounds; {enough} that all are would show "
        f"that {share:.0%} are"
    )
    if still and inside:
        reason = f"{len(values)} equal values; {enough} would decide"
    return _Tried(
        CheckResult(check, "undecided", measured, reason),
        float(scipy.stats.binom.cdf(inside, len(values), share)),
    )


def judge_checks(
    claim: Claim, scale: Scale, records: Mapping[str, Sequence[Record]], level: float = LEVEL
) -> tuple[CheckResult, ...]:
    """Apply the checks of a scale whose arms are there.

    Those that count share the error of failing.
    """
    checks = [
        check
        for check in claim.checks
        if scale in check.scales and all(arm in records for arm in check.quantity.arms)
    ]
    tried = [
        _try(
            check,
            check.quantity.values(records),
            exact=claim.exact or check.exact,
            min_seeds=claim.min_seeds,
            level=level,
        )
        for check in checks
    ]
    counted = [place for place, check in enumerate(checks) if check.counts]
    chances = dict(zip(counted, holm([tried[place].chance for place in counted]), strict=True))
    check_results = []
    for place, each in enumerate(tried):
        judgement, chance = each.judgement, chances.get(place, each.chance)
        if chance <= 1 - level:
            told = judgement.reason if math.isnan(judgement.measured.mean) else ""
            judgement = dataclasses.replace(judgement, outcome="fails", reason=told)
        elif each.chance <= 1 - level:
            judgement = dataclasses.replace(
                judgement, reason=f"outside, but not beyond chance among {len(counted)} checks"
            )
        check_results.append(judgement)
    return tuple(check_results)


def _ruling(claim: Claim, scale: Scale, check_results: Sequence[CheckResult]) -> tuple[Ruling, str]:
    """What the checks say together, and why."""
    broken = [j for j in check_results if not j.check.counts and j.outcome == "fails"]
    counted = [j for j in check_results if j.check.counts]
    failed = [j for j in counted if j.outcome == "fails"]
    unsure = [j for j in counted if j.outcome == "undecided"]
    if not counted:
        return (
            "undecided",
            f"the {scale} scale only shows that everything runs; the rule speaks of "
            f"{_scales(claim)}",
        )
    if broken:
        told = "; ".join(f"{j.check}, but {j.measured.mean:.4g} was measured" for j in broken)
        return (
            "undecided",
            f"an identity of the construction is broken ({told}), so the measurements cannot be "
            "trusted",
        )
    if failed:
        return "fails", "; ".join(
            f"{j.check}, but {j.reason or f'{j.measured.mean:.4g} was measured'}" for j in failed
        )
    if unsure:
        return "undecided", "; ".join(f"{j.check}: {j.reason}" for j in unsure)
    return "holds", ""


def judge_numbers(claim: Claim, records: Mapping[str, Sequence[Record]]) -> Numbers:
    """Hold every published value against what was measured.

    An arm that a scale does not have, such as a larger network, is not counted.
    """
    outcomes: dict[Published, Ruling] = {}
    lines = []
    for number in claim.published:
        if number.quantity.arm not in records:
            continue
        within = Check(number.quantity, number.value - number.margin, number.value + number.margin)
        values = number.quantity.values(records)
        tried = _try(
            within, values, exact=claim.exact, min_seeds=claim.min_seeds, level=2 * LEVEL - 1
        )
        outcome: Ruling = "fails" if tried.chance <= 1 - LEVEL else tried.judgement.outcome
        outcomes[number] = outcome
        if outcome != "holds":
            found = tried.judgement.measured
            told = (
                f"{number.quantity}: published {number.printed} ± {number.margin:.2g}, measured "
                f"{found.mean:.4g}"
            )
            lines.append(
                told
                + (f" [{found.low:.4g}, {found.high:.4g}]: open" if outcome == "undecided" else "")
            )
    return Numbers(outcomes, tuple(lines))


def judge_control(
    claim: Claim, scale: Scale, records: Mapping[str, Sequence[Record]]
) -> ControlVerdict:
    """What the rule says of the records of the claim's control."""
    assert claim.control is not None
    check_results = judge_checks(claim, scale, records)
    outcome, _ = _ruling(claim, scale, check_results)
    return ControlVerdict(
        claim.control.what,
        outcome,
        tuple(str(j.check) for j in check_results if j.check.counts and j.outcome == "holds"),
    )


def judge(
    claim: Claim,
    scale: Scale,
    records: Mapping[str, Sequence[Record]],
    *,
    registered: str | None = None,
    look: int = 0,
    control: Mapping[str, Sequence[Record]] | None = None,
    older: int = 0,
) -> Verdict:
    """The verdict on a claim from the records of each arm. A diverged run counts with what it
    measured; it is never dropped.

    `registered`: when the rule was first seen; `older`: records made by other code, libraries or
    data. Both only serve to point out what differs. `control`: the records of the claim's control,
    if it was run.
    """
    everything = [record for arm in records.values() for record in arm]
    level = level_of(look)
    there = [q for q in claim.quantities if q.measured(records)]
    measured = {
        q: estimate(q.values(records), exact=claim.exact, level=level, within=q.range)
        for q in there
    }
    check_results = judge_checks(claim, scale, records, level)
    seen, reason = _ruling(claim, scale, check_results)
    conditions = tuple(condition.at(scale, records) for condition in claim.conditions)
    missed = [met for met in conditions if not met.met]
    outcome: Outcome = "holds after correction" if seen == "holds" and claim.corrections else seen
    if missed and any(j.check.counts for j in check_results):
        outcome = "outside hypotheses"
        reason = (
            "; ".join(map(str, missed)) + f". Seen all the same: {reason or 'every check holds'}"
        )
    without = ControlVerdict(claim.control.what, "not run") if claim.control else None
    return Verdict(
        claim=claim,
        scale=scale,
        outcome=outcome,
        seen=seen,
        reason=reason,
        check_results=check_results,
        numbers=judge_numbers(claim, records),
        conditions=conditions,
        control=without if control is None else judge_control(claim, scale, control),
        measured=measured,
        seeds=tuple(sorted({record.seed for record in everything})),
        look=look,
        diverged=sum(record.status == "diverged" for record in everything),
        trials=len(everything),
        seconds=sum(record.seconds for record in everything),
        older=older,
        older_than_rule=sum(
            registered is not None and record.created < registered for record in everything
        ),
        provenance=summary(record.provenance for record in everything),
    )


def _scales(claim: Claim) -> str:
    return " and ".join(
        scale for scale in SCALES if any(scale in check.scales for check in claim.checks)
    )
