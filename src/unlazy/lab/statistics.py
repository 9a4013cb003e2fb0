"""Confidence intervals of means and fractions over seeds, sample sizes, and multiple testing.

Reference: Clopper, Pearson (1934) for fractions; Holm (1979) for multiple tests.
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
#: Power for which numbers of seeds are planned.
POWER = 0.9
#: Ranges of measures, by the ends of their names.
RANGES = {
    "accuracy": (0.0, 100.0),
    "cosine": (-1.0, 1.0),
    "loss": (0.0, math.inf),
    "squared_error": (0.0, math.inf),
}


def range_of(measure: str) -> tuple[float, float]:
    """Return the smallest and largest possible value of a measure."""
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
    """Return the mean of `values` and Student's interval, clipped to `within`.

    All are NaN if a value is NaN or infinite. The interval of one value is `within`, or of width 0
    if the value is `exact`.
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
    """Return `estimate` within the range of the measure; the interval of one value is infinite."""
    return estimate(values, within=range_of(measure)) if len(values) > 1 else estimate(values)


def p_value_of_mean(measured: Estimate, bound: float) -> float:
    """Return the two-sided p-value of Student's test that the mean equals `bound`."""
    error = measured.deviation / math.sqrt(measured.seeds)
    if not error > 0:
        return 1.0 if measured.mean == bound else 0.0
    return float(2 * scipy.stats.t.sf(abs(measured.mean - bound) / error, measured.seeds - 1))


def share_interval(successes: int, runs: int, level: float = LEVEL) -> tuple[float, float]:
    """Return the one-sided Clopper-Pearson bounds of a probability, each at `level`."""
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
    """Return the number of runs, all successful, that show a success rate above `share`."""
    return math.ceil(math.log(1 - level) / math.log(share) - 1e-9)


def seeds_for(
    distance: float, *, power: float = POWER, level: float = LEVEL, max_seeds: int = 10_000
) -> int:
    """Return the number of seeds for this power, if the mean is `distance` SDs inside a bound.

    Student's test with its noncentral distribution: 5 seeds for 2 SDs, 13 seeds for 1 SD.
    """
    return _seeds_for(float(f"{distance:.2g}"), power, level, max_seeds)


@functools.lru_cache(maxsize=4096)
def _seeds_for(distance: float, power: float, level: float, max_seeds: int) -> int:
    def enough(count: int) -> bool:
        critical = scipy.stats.t.ppf((1 + level) / 2, count - 1)
        return bool(scipy.stats.nct.sf(critical, count - 1, distance * math.sqrt(count)) >= power)

    low, high = 1, 2
    while high < max_seeds and not enough(high):
        low, high = high, 2 * high
    if high >= max_seeds:
        return max_seeds
    while high - low > 1:  # power increases with the count
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Holm's method, which controls the familywise error rate."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, largest = [1.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted
