"""Means over seeds and their intervals."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import scipy.stats

#: Confidence level of all intervals.
LEVEL = 0.95


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Mean over seeds with its confidence interval."""

    mean: float
    low: float
    high: float
    seeds: int

    @property
    def half(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


def estimate(values: Sequence[float], *, exact: bool = False) -> Estimate:
    """Mean of `values` and Student's interval at `LEVEL`; NaN where a value is not finite.

    For one value it is infinitely wide, unless the value is `exact`: then it has no width.
    """
    array = np.asarray(values, float)
    if not np.all(np.isfinite(array)):
        return Estimate(math.nan, math.nan, math.nan, len(array))
    mean = float(np.mean(array))
    if len(array) < 2:
        return Estimate(mean, mean, mean, 1) if exact else Estimate(mean, -math.inf, math.inf, len(array))
    half = float(scipy.stats.t.ppf((1 + LEVEL) / 2, len(array) - 1) * np.std(array, ddof=1) / math.sqrt(len(array)))
    return Estimate(mean, mean - half, mean + half, len(array))
