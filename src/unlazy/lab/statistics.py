"""Means over seeds and their intervals, shares of seeds, how many seeds decide, and many checks at
once.

Reference: Clopper, Pearson (1934) for shares; Holm (1979) for many checks.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence

import numpy as np
import scipy.stats

#: Confidence level of all intervals.
LEVEL = 0.95
#: The chance of deciding that a number of seeds is planned for.
POWER = 0.9
#: Ends of what measures can be, by how their names end.
RANGES = {
    "accuracy": (0.0, 100.0),
    "cosine": (-1.0, 1.0),
    "loss": (0.0, math.inf),
    "squared_error": (0.0, math.inf),
}


def range_of(measure: str) -> tuple[float, float]:
    """Between which ends a measure can lie at all."""
    return next(
        (ends for name, ends in RANGES.items() if f"_{measure}".endswith(f"_{name}")),
        (-math.inf, math.inf),
    )


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Mean over seeds with its confidence interval, and the standard deviation between seeds."""

    mean: float
    low: float
    high: float
    seeds: int
    deviation: float = math.nan

    @property
    def half(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


def estimate(
    values: Sequence[float],
    *,
    exact: bool = False,
    level: float = LEVEL,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> Estimate:
    """Mean of `values` and Student's interval, cut off where the quantity cannot lie; NaN where a
    value is not finite.

    For one value it is as wide as it can be, unless the value is `exact`: then it has no width.
    """
    array = np.asarray(values, float)
    if not np.all(np.isfinite(array)):
        return Estimate(math.nan, math.nan, math.nan, len(array))
    mean = float(np.mean(array))
    if exact and np.ptp(array) == 0:
        return Estimate(mean, mean, mean, len(array), 0.0)
    if len(array) < 2:
        return Estimate(mean, *within, len(array))
    deviation = float(np.std(array, ddof=1))
    half = (
        float(scipy.stats.t.ppf((1 + level) / 2, len(array) - 1))
        * deviation
        / math.sqrt(len(array))
    )
    low, high = max(mean - half, min(within[0], mean)), min(mean + half, max(within[1], mean))
    return Estimate(mean, low, high, len(array), deviation)


def estimate_of(measure: str, values: Sequence[float]) -> Estimate:
    """As `estimate`, within the ends of the measure; of one value alone the interval stays without
    ends.
    """
    return estimate(values, within=range_of(measure)) if len(values) > 1 else estimate(values)


def chance_of_mean(measured: Estimate, bound: float) -> float:
    """Student's two-sided chance of a mean at least so far from `bound`, if the true mean were
    there.
    """
    error = measured.deviation / math.sqrt(measured.seeds)
    if not error > 0:
        return 1.0 if measured.mean == bound else 0.0
    return float(2 * scipy.stats.t.sf(abs(measured.mean - bound) / error, measured.seeds - 1))


def share_interval(successes: int, runs: int, level: float = LEVEL) -> tuple[float, float]:
    """Clopper and Pearson's one-sided bounds of a probability, from below and from above, each at
    `level`.
    """
    low = (
        0.0
        if successes == 0
        else float(scipy.stats.beta.ppf(1 - level, successes, runs - successes + 1))
    )
    high = (
        1.0
        if successes == runs
        else float(scipy.stats.beta.ppf(level, successes + 1, runs - successes))
    )
    return low, high


def runs_for_share(share: float, level: float = LEVEL) -> int:
    """How many runs, all of them successful, show that more than `share` of all runs succeed."""
    return math.ceil(math.log(1 - level) / math.log(share) - 1e-9)


def seeds_for(
    distance: float, *, power: float = POWER, level: float = LEVEL, most: int = 10_000
) -> int:
    """How many seeds decide with this power where the true mean lies `distance` standard deviations
    inside a bound.

    Student's test at its non-central distribution: 2 deviations inside take 5 seeds, 1 deviation
    13.
    """
    return _seeds_for(float(f"{distance:.2g}"), power, level, most)


@functools.lru_cache(maxsize=4096)
def _seeds_for(distance: float, power: float, level: float, most: int) -> int:
    def enough(count: int) -> bool:
        critical = scipy.stats.t.ppf((1 + level) / 2, count - 1)
        return bool(scipy.stats.nct.sf(critical, count - 1, distance * math.sqrt(count)) >= power)

    low, high = 1, 2
    while high < most and not enough(high):
        low, high = high, 2 * high
    if high >= most:
        return most
    while high - low > 1:  # power grows with the number
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def holm(chances: Sequence[float]) -> list[float]:
    """Chances of many tests, adjusted so that one below α is found by error in at most a share α of
    all cases.
    """
    order = sorted(range(len(chances)), key=lambda place: chances[place])
    adjusted, greatest = [1.0] * len(chances), 0.0
    for rank, place in enumerate(order):
        greatest = max(greatest, min(1.0, (len(chances) - rank) * chances[place]))
        adjusted[place] = greatest
    return adjusted
