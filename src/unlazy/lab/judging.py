"""Compute verdicts: the statement and the published numbers of a claim, tested on its records.

*The statement.* A check compares the mean of a measurement over seeds with bounds.

- It holds if the whole confidence interval of the mean lies within the bounds.
- It fails if the mean lies outside the bounds and the p-value is below the level. Holm's method
  corrects the p-values for the number of checks of the claim.
- If all seeds give the same value of a random quantity, or if a check is about a fraction of seeds,
  the Clopper-Pearson bound of that fraction is used instead of the mean.

A statement holds if all its checks hold, and fails if one fails. If an assumption of its theorem is
not met, the outcome is "assumptions not met", and the results of the checks are reported.

*The numbers.* A published value is reproduced if the whole 90 % interval of the mean lies within
its margin (two one-sided tests at 5 %).

*Interim analysis.* If seeds are added until the outcome is conclusive, the j-th analysis spends a
fraction 2^−j of the error, so that the total error stays at its level.
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
    estimate,
    holm,
    p_value_of_mean,
    runs_for_share,
    seeds_for,
    share_interval,
)
from unlazy.lab.trials import Record

Ruling = Literal["holds", "fails", "undecided"]
Outcome = Literal[
    "holds", "holds after correction", "fails", "undecided", "assumptions not met", "not run"
]
#: Outcomes as earlier versions wrote them.
FORMER_OUTCOMES: Mapping[str, Outcome] = {"outside hypotheses": "assumptions not met"}
#: Outcomes of a statement that is confirmed.
STANDING: tuple[Outcome, ...] = ("holds", "holds after correction")


@dataclasses.dataclass(frozen=True)
class CheckResult:
    """A check and its result."""

    check: Check
    outcome: Ruling
    measured: Estimate
    reason: str = ""


@dataclasses.dataclass(frozen=True)
class Numbers:
    """Results of the published values: reproduced, not reproduced, or undecided."""

    outcomes: Mapping[Published, Ruling]
    lines: tuple[str, ...]

    @property
    def of(self) -> int:
        """Number of published values."""
        return len(self.outcomes)

    @property
    def reproduced(self) -> int:
        """Number of reproduced values."""
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
    """Outcome of the negative control, with the checks that hold on it (`held`)."""

    what: str
    outcome: Outcome
    held: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the control as JSON data."""
        return {"what": self.what, "verdict": self.outcome, "held": list(self.held)}


@dataclasses.dataclass(frozen=True)
class Verdict(Shown):
    """The outcome of a claim, with everything it is based on.

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

    @property
    def stands(self) -> bool:
        """Whether the statement holds, as printed or after correction."""
        return self.outcome in STANDING

    @property
    def command(self) -> str:
        """The command that reproduces this verdict."""
        seeds = f"--seeds {len(self.seeds)} --first-seed {self.seeds[0]}"
        return f"unlazy reproduce {self.claim.id} --scale {self.scale} {seeds}"

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
    """Round to seven digits; JSON has no NaN and no infinity."""
    return float(f"{value:.7g}") if math.isfinite(value) else None


def level_of(look: int) -> float:
    """Return the confidence level of an interim analysis.

    It is 1 − 0.05·2^−look; `look` = 0 is the only analysis of a fixed number of seeds.
    """
    return 1 - (1 - LEVEL) / 2.0**look


@dataclasses.dataclass(frozen=True)
class _Tried:
    """The result of a check unless it fails, and the p-value of its failure."""

    result: CheckResult
    p_value: float


def _try(
    check: Check, values: Sequence[float], *, exact: bool, min_seeds: int, level: float
) -> _Tried:
    measured = estimate(values, exact=exact, level=level, within=check.quantity.range)

    def result(outcome: Ruling, reason: str = "", p_value: float = 1.0) -> _Tried:
        return _Tried(CheckResult(check, outcome, measured, reason), p_value)

    if math.isnan(measured.mean):
        return result("undecided", "some values are NaN or infinite", 0.0)
    if len(values) < min_seeds:
        seeds = f"{len(values)} seed{'s' * (len(values) != 1)}, at least {min_seeds} required"
        return result("undecided", seeds)
    constant = measured.deviation <= 1e-12 * max(1.0, abs(measured.mean))
    if exact and constant:
        return result("holds") if check.allows(measured.mean) else result("undecided", p_value=0.0)
    if constant or check.share is not None:
        return _try_fraction(check, values, measured, constant, level)
    if check.lower <= measured.low and measured.high <= check.upper:
        return result("holds")
    gaps = {
        bound: abs(measured.mean - bound)
        for bound in (check.lower, check.upper)
        if math.isfinite(bound)
    }
    nearest = min(gaps, key=gaps.__getitem__)
    more = seeds_for(gaps[nearest] / measured.deviation, level=level)
    reason = (
        f"a bound lies inside the interval; about {more:,} seeds would be conclusive"
        if more < 10_000
        else "the mean equals a bound within its precision"
    )
    return result(
        "undecided",
        reason,
        1.0 if check.allows(measured.mean) else p_value_of_mean(measured, nearest),
    )


def _try_fraction(
    check: Check, values: Sequence[float], measured: Estimate, constant: bool, level: float
) -> _Tried:
    """Apply a check by the number of seeds within the bounds."""
    fraction = 0.5 if check.share is None else check.share
    inside = sum(check.allows(value) for value in values)
    if share_interval(inside, len(values), level)[0] > fraction:
        return _Tried(
            CheckResult(
                check, "holds", measured, f"{inside} of {len(values)} seeds" if check.share else ""
            ),
            1.0,
        )
    enough = runs_for_share(fraction, level)
    reason = (
        f"{inside} of {len(values)} seeds are within the bounds, which does not show a fraction "
        f"above {100 * fraction:.3g} %; {enough} of {enough} would"
    )
    if constant and inside:
        reason = f"{len(values)} equal values; {enough} would be conclusive"
    return _Tried(
        CheckResult(check, "undecided", measured, reason),
        float(scipy.stats.binom.cdf(inside, len(values), fraction)),
    )


def judge_checks(
    claim: Claim, scale: Scale, records: Mapping[str, Sequence[Record]], level: float = LEVEL
) -> tuple[CheckResult, ...]:
    """Apply the checks of a scale whose arms have records.

    The p-values of the checks that count are corrected together.
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
    counted = [i for i, check in enumerate(checks) if check.counts]
    corrected = dict(zip(counted, holm([tried[i].p_value for i in counted]), strict=True))
    check_results = []
    for i, each in enumerate(tried):
        result, p_value = each.result, corrected.get(i, each.p_value)
        if p_value <= 1 - level:
            reason = result.reason if math.isnan(result.measured.mean) else ""
            result = dataclasses.replace(result, outcome="fails", reason=reason)
        elif each.p_value <= 1 - level:
            reason = f"outside the bounds, but not significantly (Holm, {len(counted)} checks)"
            result = dataclasses.replace(result, reason=reason)
        check_results.append(result)
    return tuple(check_results)


def _ruling(claim: Claim, scale: Scale, check_results: Sequence[CheckResult]) -> tuple[Ruling, str]:
    """Combine the results of the checks into an outcome and its reason."""
    broken = [j for j in check_results if not j.check.counts and j.outcome == "fails"]
    counted = [j for j in check_results if j.check.counts]
    failed = [j for j in counted if j.outcome == "fails"]
    unsure = [j for j in counted if j.outcome == "undecided"]
    if not counted:
        return (
            "undecided",
            f"the {scale} scale only tests that everything runs; the acceptance criteria are for "
            f"{_scales(claim)}",
        )
    if broken:
        violated = "; ".join(f"{j.check}, but measured {j.measured.mean:.4g}" for j in broken)
        return (
            "undecided",
            f"an identity of the construction is violated ({violated}), so the measurements are "
            "not reliable",
        )
    if failed:
        return "fails", "; ".join(
            f"{j.check}, but {j.reason or f'measured {j.measured.mean:.4g}'}" for j in failed
        )
    if unsure:
        return "undecided", "; ".join(f"{j.check}: {j.reason}" for j in unsure)
    return "holds", ""


def judge_numbers(claim: Claim, records: Mapping[str, Sequence[Record]]) -> Numbers:
    """Compare every published value with the measured mean.

    Values of arms that a scale does not run, such as a larger network, are not counted.
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
        outcome: Ruling = "fails" if tried.p_value <= 1 - LEVEL else tried.result.outcome
        outcomes[number] = outcome
        if outcome != "holds":
            e = tried.result.measured
            interval = f" [{e.low:.4g}, {e.high:.4g}] (undecided)"
            lines.append(
                f"{number.quantity}: published {number.printed} ± {number.margin:.2g}, measured "
                f"{e.mean:.4g}{interval if outcome == 'undecided' else ''}"
            )
    return Numbers(outcomes, tuple(lines))


def judge_control(
    claim: Claim, scale: Scale, records: Mapping[str, Sequence[Record]]
) -> ControlVerdict:
    """Apply the acceptance criteria to the records of the negative control."""
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
    """Compute the verdict on a claim from the records of each arm.

    A diverged run counts with its measured values; it is never dropped. `registered`: time at which
    the acceptance criteria were registered. `older`: number of records made by other code,
    libraries or data. Neither changes the outcome. `control`: records of the negative control, if
    it was run.
    """
    all_records = [record for arm in records.values() for record in arm]
    level = level_of(look)
    measured = {
        q: estimate(q.values(records), exact=claim.exact, level=level, within=q.range)
        for q in claim.quantities
        if q.measured(records)
    }
    check_results = judge_checks(claim, scale, records, level)
    seen, reason = _ruling(claim, scale, check_results)
    conditions = tuple(condition.at(scale, records) for condition in claim.conditions)
    missed = [met for met in conditions if not met.met]
    outcome: Outcome = "holds after correction" if seen == "holds" and claim.corrections else seen
    if missed and any(j.check.counts for j in check_results):
        outcome = "assumptions not met"
        found = f"Checks: {reason}" if reason else "Despite this, all checks hold"
        reason = f"{'; '.join(map(str, missed))}. {found}"
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
    )


def _scales(claim: Claim) -> str:
    return " and ".join(
        scale for scale in SCALES if any(scale in check.scales for check in claim.checks)
    )
