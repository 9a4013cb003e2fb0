"""Single-direction baselines: a histogram of the label along one direction.

If they outperform kernels, the task needs only the simplest feature learning.
"""

from __future__ import annotations

import dataclasses
from typing import Literal, Self

import equinox as eqx
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.core.metrics import Outputs
from unlazy.learners.base import Learner, Trace, keys_of
from unlazy.learners.path import PathLearner, PathModel
from unlazy.solvers.exact import eigh
from unlazy.tasks.base import Sampler, draw

#: Numbers of bins for tuning, in order of priority.
BINS = (20, 50, 10, 100, 6, 200, 3, 30, 15, 70, 150, 300)


class Histogram(PathModel):
    """The mean label in the bin of ⟨direction, x⟩; the models of a path differ in their bins."""

    direction: np.ndarray
    edges: tuple[np.ndarray, ...]
    values: tuple[np.ndarray, ...]

    def at(self, index: int) -> Self:
        return dataclasses.replace(self, edges=(self.edges[index],), values=(self.values[index],))

    def path_scores(self, x: Float[np.ndarray, "n d"]) -> np.ndarray:
        projection = np.asarray(x, np.float64) @ self.direction
        return np.stack(
            [
                values[np.searchsorted(edges, projection)]
                for edges, values in zip(self.edges, self.values, strict=True)
            ]
        )


class DirectionHistogram(PathLearner):
    """A histogram of the label along the direction E[y·x] or the first principal component.

    `direction` is "mean" or "principal". Bins of equal width divide the range of the middle 99.8 %
    of the examples; the first and last are unbounded. A bin's value is its mean label after adding
    one example of each label. `bins` is a path; recorded steps are indices into it.
    """

    path, setting = "bins", "bins"
    direction: Literal["mean", "principal"] = eqx.field(static=True)
    bins: tuple[int, ...] = eqx.field(static=True, default=(20,))

    def __check_init__(self) -> None:
        require(
            self.direction in ("mean", "principal"),
            f"direction must be 'mean' or 'principal', got {self.direction!r}.",
        )
        require(
            bool(self.bins) and min(self.bins) >= 1,
            f"bins must be positive integers, got {self.bins}.",
        )

    def suits(self, outputs: Outputs) -> bool:
        return outputs.count is None

    def tuning(self, budget: int) -> tuple[Learner, ...]:
        return (dataclasses.replace(self, bins=BINS[:budget]),)

    def work(self, n: int, r: int) -> float:
        """Estimate the second moment of the inputs and its decomposition."""
        return float(n) * r**2 + 9.0 * r**3 if self.direction == "principal" else float(n) * r

    def prediction_work(self, d: int) -> float:
        return float(d)

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        sample = draw(sampler, n, keys_of(key)[1])
        z, y = np.asarray(sample.x, np.float64).reshape(n, -1), np.asarray(sample.y, np.float64)
        inside = z.T @ y / n if self.direction == "mean" else _top_direction(z)
        direction = (
            inside if sampler.basis is None else inside @ np.asarray(sampler.basis, np.float64)
        )
        edges, values, losses = [], [], []
        projection = z @ inside
        for bins in self.bins:
            low, high = np.quantile(projection, (0.001, 0.999))
            edge = np.linspace(low, high, bins + 1)[1:-1]
            bin_of = np.searchsorted(edge, projection)
            total, size = (
                np.bincount(bin_of, weights, minlength=len(edge) + 1) for weights in (y, np.ones(n))
            )
            edges.append(edge)
            values.append(total / (size + 2))
            losses.append(0.5 * np.mean(np.square(values[-1][bin_of] - y)))
        model = Histogram(direction, tuple(edges), tuple(values))
        return self.traced(model, losses, sample)


def _top_direction(z: Float[np.ndarray, "n r"]) -> Float[np.ndarray, " r"]:
    centered = z - z.mean(axis=0)
    return eigh(centered.T @ centered)[1][:, -1]
