"""Negative controls: their outcome, and the power of the acceptance criteria on them.

A rule whose checks cannot fail with its number of seeds tests nothing. The power of a rule is the
probability that it fails on its claim's negative control. It is computed from mean and standard
deviation of each quantity on the control, before the seeds of a verdict are run. It is a lower
bound: the largest power of a single check at level 5 %/m, where m is the number of checks
(Bonferroni); Holm's method rejects whenever this does, and several checks may fail.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import scipy.stats

from unlazy.lab.checking import Ruling, judge_checks, ruling
from unlazy.lab.claims import Claim
from unlazy.lab.rules import Check, Scale
from unlazy.lab.statistics import LEVEL
from unlazy.lab.trials import Record

#: Smallest accepted power of a rule on its negative control.
MIN_POWER = 0.8


@dataclasses.dataclass(frozen=True)
class ControlCheck:
    """A check on the negative control: its result, and mean and SD of the quantity over seeds."""

    check: str
    outcome: Ruling
    mean: float | None
    deviation: float | None


@dataclasses.dataclass(frozen=True)
class ControlVerdict:
    """Outcome of the negative control, and the results of the checks that count.

    `power`: probability that the criteria fail on the control, see `power`.
    """

    what: str
    outcome: Ruling | Literal["not run"]
    checks: tuple[ControlCheck, ...] = ()
    seeds: int = 0
    power: float | None = None

    @property
    def held(self) -> tuple[str, ...]:
        """Checks that hold on the control, too."""
        return tuple(each.check for each in self.checks if each.outcome == "holds")

    def to_json(self) -> dict[str, Any]:
        """Return the control as JSON data."""
        return {
            "what": self.what,
            "verdict": self.outcome,
            "held": list(self.held),
            "checks": [dataclasses.asdict(each) for each in self.checks],
            "seeds": self.seeds,
            "power": self.power,
        }


def judge_control(
    claim: Claim, scale: Scale, records: Mapping[str, Sequence[Record]]
) -> ControlVerdict:
    """Apply the acceptance criteria to the records of the negative control."""
    assert claim.control is not None
    check_results = judge_checks(claim, scale, records)
    outcome, _ = ruling(claim, scale, check_results)
    checks = tuple(
        ControlCheck(str(j.check), j.outcome, finite(j.measured.mean), finite(j.measured.deviation))
        for j in check_results
        if j.check.counts
    )
    seeds = max((j.measured.seeds for j in check_results), default=0)
    return ControlVerdict(
        claim.control.what, outcome, checks, seeds, finite(power(claim, checks, seeds))
    )


def power(claim: Claim, control: Sequence[ControlCheck], seeds: int) -> float:
    """Return a lower bound of the probability that a claim's rule fails on its control.

    `control`: the checks on a run of the control. `seeds`: number of seeds of the verdict.
    """
    checks = {str(check): check for check in claim.checks}
    return max(
        (
            _power(checks[each.check], each, seeds, len(control), claim.exact)
            for each in control
            if each.check in checks
        ),
        default=0.0,
    )


def seeds_for_power(
    claim: Claim, control: Sequence[ControlCheck], *, min_power: float = MIN_POWER, most: int = 100
) -> int | None:
    """Return the smallest number of seeds with this power; None if it is above `most`."""
    counts = range(claim.min_seeds, most + 1)
    return next((n for n in counts if power(claim, control, n) >= min_power), None)


def _power(check: Check, control: ControlCheck, seeds: int, checks: int, exact: bool) -> float:
    level = (1 - LEVEL) / checks
    mean, deviation = control.mean, control.deviation
    if mean is None:  # a value that is not finite fails its check
        return 1.0
    constant = not deviation or deviation <= 1e-12 * max(1.0, abs(mean))
    if (exact or check.exact) and constant:
        return float(not check.allows(mean))
    if constant or check.share is not None:
        return _power_of_fraction(check, mean, deviation or 0.0, seeds, level)
    assert deviation is not None
    bound = check.lower if mean < check.lower else check.upper
    if check.allows(mean) or seeds < 2:
        return 0.0
    critical = scipy.stats.t.ppf(1 - level / 2, seeds - 1)
    distance = abs(mean - bound) / deviation * math.sqrt(seeds)
    found = float(scipy.stats.nct.sf(critical, seeds - 1, distance))
    return 1.0 if math.isnan(found) else found  # SciPy has no value for large distances


def _power_of_fraction(
    check: Check, mean: float, deviation: float, seeds: int, level: float
) -> float:
    """Return the power of a check by the number of seeds within the bounds."""
    fraction = 0.5 if check.share is None else check.share
    if deviation:
        inside = float(
            scipy.stats.norm.cdf(check.upper, mean, deviation)
            - scipy.stats.norm.cdf(check.lower, mean, deviation)
        )
    else:
        inside = float(check.allows(mean))
    refuted = [n for n in range(seeds + 1) if scipy.stats.binom.cdf(n, seeds, fraction) <= level]
    return float(scipy.stats.binom.cdf(max(refuted), seeds, inside)) if refuted else 0.0


def finite(value: float) -> float | None:
    """Round to seven digits; JSON has no NaN and no infinity."""
    return float(f"{value:.7g}") if math.isfinite(value) else None
