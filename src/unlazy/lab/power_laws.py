"""Sample complexities from errors, power laws with bootstrap intervals, and crossings of curves."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

#: Number of bootstrap replicates.
REPLICATES = 2000
#: Number of consecutive recorded errors that must be at or below the target.
STABLE = 3


def first_stable_crossing(
    sizes: Float[np.ndarray, " n"], errors: Float[np.ndarray, " n"], target: float
) -> float | None:
    """Return the size at which the error reaches the target and stays there, or None.

    It is linearly interpolated between recorded sizes.
    """
    below = errors <= target
    for i in range(len(errors) - STABLE + 1):
        if np.all(below[i : i + STABLE]):
            if i == 0 or not math.isfinite(errors[i - 1]):
                return float(sizes[i])
            fraction = (errors[i - 1] - target) / (errors[i - 1] - errors[i])
            return float(sizes[i - 1] + fraction * (sizes[i] - sizes[i - 1]))
    return None


def last_crossing(errors: Mapping[int, float], target: float) -> float | None:
    """Return the size from which every measured error is at or below the target, or None.

    It is interpolated in log n.
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
    fraction = (errors[low] - target) / (errors[low] - errors[high])
    return float(low * (high / low) ** fraction)


def slope(x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]) -> float:
    """Return the least-squares slope of y in x."""
    x = x - np.mean(x)
    return float(np.sum(x * (y - np.mean(y))) / np.sum(x * x))


@dataclasses.dataclass(frozen=True)
class PowerLaw:
    """samples ≈ factor·d^exponent, fitted to the mean logarithms over seeds, with 95 % bootstrap
    intervals over seeds.

    `with_log`: exponent of the model samples ≈ factor·d^exponent·log d; NaN if log d ≤ 0. The
    intervals of one seed are infinite.
    """

    exponent: float
    interval: tuple[float, float]
    with_log: float
    interval_with_log: tuple[float, float]
    factor: float

    def __call__(self, d: np.ndarray) -> np.ndarray:
        """Return the fitted number of samples."""
        return self.factor * np.asarray(d, float) ** self.exponent


def _replicates(logs: Float[np.ndarray, "s n"]) -> Float[np.ndarray, "b n"]:
    """Return bootstrap means of the logarithms; seeds are resampled independently per dimension."""
    seeds, sizes = logs.shape
    chosen = np.random.default_rng(0).integers(0, seeds, (REPLICATES, seeds, sizes))
    means: np.ndarray = np.mean(np.take_along_axis(logs[None], chosen, axis=1), axis=1)
    return means


def fit(dimensions: Float[np.ndarray, " n"], samples: Float[np.ndarray, "s n"]) -> PowerLaw:
    """Fit a power law to sample sizes, one row per seed."""
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
    """Return the dimension above which the first curve lies below the second, or None.

    Curves are linear between measured points in log-log, over the dimensions that both cover.
    """
    x1, x2 = np.log(np.asarray(d1, float)), np.log(np.asarray(d2, float))
    low, high = max(x1[0], x2[0]), min(x1[-1], x2[-1])
    grid = np.unique(np.concatenate([x1, x2]))
    grid = grid[(grid >= low) & (grid <= high)]
    gap = np.interp(grid, x1, np.log(n1)) - np.interp(grid, x2, np.log(n2))
    for i in range(len(gap) - 1, 0, -1):
        if gap[i - 1] > 0 >= gap[i]:
            fraction = gap[i - 1] / (gap[i - 1] - gap[i])
            return float(np.exp(grid[i - 1] + fraction * (grid[i] - grid[i - 1])))
    return None
