"""Apply checks to records, and compare published numbers within their printed precision.

*Checks.* A check compares the mean of a measurement over seeds with bounds.

- It holds if the whole confidence interval of the mean lies within the bounds.
- It fails if the mean lies outside the bounds and the p-value is below the level. Holm's method
  corrects the p-values for the number of checks of the claim.
- If all seeds give the same value of a random quantity, or if a check is about a fraction of seeds,
  the Clopper-Pearson bound of that fraction is used instead of the mean.

*The numbers.* A published value is reproduced if the whole 90 % interval of the mean lies within
its margin (two one-sided tests at 5 %).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Literal

import scipy.stats

from unlazy.lab.claims import Claim
from unlazy.lab.rules import SCALES, Check, Published, Scale
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
        for check in claim.checks_at(scale)
        if all(arm in records for arm in check.quantity.arms)
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


def ruling(claim: Claim, scale: Scale, check_results: Sequence[CheckResult]) -> tuple[Ruling, str]:
    """Combine the results of the checks into an outcome and its reason.

    A check that only refutes cannot leave the outcome undecided, and the outcome cannot rest on it.
    A claim with random quantities cannot hold at the smoke scale, at which only its exact
    quantities are judged.
    """
    broken = [j for j in check_results if not j.check.counts and j.outcome == "fails"]
    failed = [j for j in check_results if j.check.counts and j.outcome == "fails"]
    supporting = [j for j in check_results if j.check.supports]
    unsure = [j for j in supporting if j.outcome == "undecided"]
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
    everywhere = [each for each in claim.checks if each.supports and not each.scales]
    if not supporting or any(not each.applies(scale, exact=claim.exact) for each in everywhere):
        return (
            "undecided",
            f"the {scale} scale only tests that everything runs; the acceptance criteria are for "
            f"{_scales(claim, but=scale)}",
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


def _scales(claim: Claim, *, but: Scale) -> str:
    return " and ".join(
        scale
        for scale in SCALES
        if scale != but and any(check.supports for check in claim.checks_at(scale))
    )
