"""Sample sizes from errors, exponents of power laws from sample sizes, with bootstrap intervals;
and where two curves cross.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

#: Bootstrap replicates, and the seed of their choice.
REPLICATES = 2000
#: An error that is looked at often must stay at or below the target for so many looks in a row.
STABLE = 3


def first_stable_crossing(
    sizes: Float[np.ndarray, " n"], errors: Float[np.ndarray, " n"], target: float
) -> float | None:
    """The size at which the error reaches the target, between the looks by linear interpolation;
    None if it does not, or not for long.
    """
    below = errors <= target
    for i in range(len(errors) - STABLE + 1):
        if np.all(below[i : i + STABLE]):
            if i == 0 or not math.isfinite(errors[i - 1]):
                return float(sizes[i])
            share = (errors[i - 1] - target) / (errors[i - 1] - errors[i])
            return float(sizes[i - 1] + share * (sizes[i] - sizes[i - 1]))
    return None


def last_crossing(errors: Mapping[int, float], target: float) -> float | None:
    """The size from which on every measured error is at or below the target, interpolated in log n;
    None where the last one is not.
    """
    sizes = sorted(errors)
    if not errors[sizes[-1]] <= target:
        return None
    above = [i for i, size in enumerate(sizes) if not errors[size] <= target]
    if not above:
        return float(sizes[0])
    low, high = sizes[above[-1]], sizes[above[-1] + 1]
    if not math.isfinite(errors[low]):
        return float(high)
    share = (errors[low] - target) / (errors[low] - errors[high])
    return float(low * (high / low) ** share)


def slope(x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]) -> float:
    """The least-squares slope of y in x."""
    x = x - np.mean(x)
    return float(np.sum(x * (y - np.mean(y))) / np.sum(x * x))


@dataclasses.dataclass(frozen=True)
class PowerLaw:
    """samples ≈ factor·d^exponent, fitted to the mean logarithms over seeds, with 95 % bootstrap
    intervals over seeds.

    `with_log` is the exponent where one factor log d is granted: samples ≈ factor·d^exponent·log d.
    It is NaN where log d is not positive. The intervals of one seed are infinitely wide.
    """

    exponent: float
    interval: tuple[float, float]
    with_log: float
    interval_with_log: tuple[float, float]
    factor: float

    def __call__(self, d: np.ndarray) -> np.ndarray:
        """The fitted number of samples."""
        return self.factor * np.asarray(d, float) ** self.exponent


def _replicates(logs: Float[np.ndarray, "s n"]) -> Float[np.ndarray, "b n"]:
    """Mean logarithms with seeds drawn anew, per dimension: their runs are independent."""
    seeds, sizes = logs.shape
    chosen = np.random.default_rng(0).integers(0, seeds, (REPLICATES, seeds, sizes))
    means: np.ndarray = np.mean(np.take_along_axis(logs[None], chosen, axis=1), axis=1)
    return means


def fit(dimensions: Float[np.ndarray, " n"], samples: Float[np.ndarray, "s n"]) -> PowerLaw:
    """Fit a power law to sample sizes, one row a seed."""
    x, logs = np.log(np.asarray(dimensions, float)), np.log(np.asarray(samples, float))
    mean, drawn = np.mean(logs, axis=0), _replicates(logs)
    exponent = slope(x, mean)

    def interval(less: np.ndarray | float) -> tuple[float, float]:
        if len(logs) < 2:
            return -math.inf, math.inf
        low, high = np.quantile([slope(x, row - less) for row in drawn], [0.025, 0.975])
        return float(low), float(high)

    factor = float(np.exp(np.mean(mean) - exponent * np.mean(x)))
    if np.min(x) <= 0:
        return PowerLaw(exponent, interval(0.0), math.nan, (math.nan, math.nan), factor)
    return PowerLaw(
        exponent, interval(0.0), slope(x, mean - np.log(x)), interval(np.log(x)), factor
    )


def crossing(d1: np.ndarray, n1: np.ndarray, d2: np.ndarray, n2: np.ndarray) -> float | None:
    """The dimension above which the first curve lies below the second, straight between the
    measured points in log-log; None without one.

    Only dimensions that both curves cover count.
    """
    x1, x2 = np.log(np.asarray(d1, float)), np.log(np.asarray(d2, float))
    low, high = max(x1[0], x2[0]), min(x1[-1], x2[-1])
    places = np.unique(np.concatenate([x1, x2]))
    places = places[(places >= low) & (places <= high)]
    gap = np.interp(places, x1, np.log(n1)) - np.interp(places, x2, np.log(n2))
    for i in range(len(gap) - 1, 0, -1):
        if gap[i - 1] > 0 >= gap[i]:
            share = gap[i - 1] / (gap[i - 1] - gap[i])
            return float(np.exp(places[i - 1] + share * (places[i] - places[i - 1])))
    return None
