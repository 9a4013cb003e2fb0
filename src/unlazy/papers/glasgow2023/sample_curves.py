"""Where two learners' sample sizes cross, and sample sizes from theory alone."""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.core.errors import require
from unlazy.lab.power_laws import crossing, slope
from unlazy.lab.trials import Instrument
from unlazy.papers.glasgow2023.sample_size import KernelRidge, SampleSizes
from unlazy.tasks.multi_index import MultiIndex


class Crossover(Instrument):
    """`crossover`: the dimension above which the first of two contenders needs fewer examples than the second."""

    first: SampleSizes
    second: SampleSizes

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Measure both rows. A crossing outside of the measured dimensions counts with their end: the least or the greatest."""
        one, other = (row.measure(key=key)["samples"] for row in (self.first, self.second))
        found = crossing(np.array(self.first.dimensions), one, np.array(self.second.dimensions), other)
        if found is None:
            found = float(self.first.dimensions[0] if one[0] <= other[0] else self.first.dimensions[-1])
        return {"crossover": found}

    @property
    def work(self) -> float:
        """Both rows."""
        return self.first.work + self.second.work


class PredictedSizes(Instrument):
    """Sample sizes of a kernel from theory alone, at any dimension: `samples`, and the `exponent` of the row."""

    family: MultiIndex
    contender: KernelRidge
    dimensions: tuple[int, ...] = eqx.field(static=True)
    target: float = eqx.field(converter=float, default=0.05, kw_only=True)

    @property
    def steps(self) -> tuple[int, ...]:
        """The dimensions."""
        return self.dimensions

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Compute."""
        samples = [self.contender.predicted(dataclasses.replace(self.family, d=d), self.target) for d in self.dimensions]
        require(all(value is not None for value in samples), "Theory predicts the sample sizes of dot-product kernels on the cube alone.")
        d = np.array(self.dimensions, float)
        exponent = slope(np.log(d), np.log(np.array(samples, float)))
        return {"samples": np.array(samples, float), "exponent": np.full(len(d), exponent)}

    @property
    def work(self) -> float:
        """Little."""
        return 1e7 * len(self.dimensions)
