"""The trivial rivals: one direction that the data point out, and a histogram of the label along it.

They learn one feature, in the cheapest way there is. Where they win, feature learning is easy and
fixed features are the problem.
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

#: Numbers of bins to choose among, the likeliest first.
BINS = (20, 50, 10, 100, 6, 200, 3, 30, 15, 70, 150, 300)


class Histogram(PathModel):
    """The mean label in the bin into which ⟨direction, x⟩ falls.

    A path has tables of several numbers of bins.
    """

    direction: np.ndarray
    edges: tuple[np.ndarray, ...]
    values: tuple[np.ndarray, ...]

    def at(self, index: int) -> Self:
        return dataclasses.replace(self, edges=(self.edges[index],), values=(self.values[index],))

    def path_scores(self, x: Float[np.ndarray, "n d"]) -> np.ndarray:
        place = np.asarray(x, np.float64) @ self.direction
        return np.stack(
            [
                values[np.searchsorted(edges, place)]
                for edges, values in zip(self.edges, self.values, strict=True)
            ]
        )


class DirectionHistogram(PathLearner):
    """The direction is E[y·x] ("mean") or the top principal direction of the inputs ("principal");
    bins are equally wide.

    They cut the middle 99.8 % of the examples; the first and last are open. A bin's value is its
    mean label, drawn towards zero as if one more example of each label had been seen. `bins` is a
    path, whose places are the recorded steps.
    """

    path, setting = "bins", "bins"
    direction: Literal["mean", "principal"] = eqx.field(static=True)
    bins: tuple[int, ...] = eqx.field(static=True, default=(20,))

    def __check_init__(self) -> None:
        require(
            self.direction in ("mean", "principal"),
            f"direction must be 'mean' or 'principal', but is {self.direction!r}.",
        )
        require(
            bool(self.bins) and min(self.bins) >= 1,
            f"bins must be positive whole numbers, but are {self.bins}.",
        )

    def suits(self, outputs: Outputs) -> bool:
        return outputs.count is None

    def tuning(self, budget: int) -> tuple[Learner, ...]:
        return (dataclasses.replace(self, bins=BINS[:budget]),)

    def work(self, n: int, r: int) -> float:
        """The second moment of the inputs, and its decomposition."""
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
        place = z @ inside
        for bins in self.bins:
            low, high = np.quantile(place, (0.001, 0.999))
            edge = np.linspace(low, high, bins + 1)[1:-1]
            bin_of = np.searchsorted(edge, place)
            total, size = (
                np.bincount(bin_of, weights, minlength=len(edge) + 1) for weights in (y, np.ones(n))
            )
            edges.append(edge)
            values.append(total / (size + 2))
            losses.append(0.5 * np.mean(np.square(values[-1][bin_of] - y)))
        model = Histogram(direction, tuple(edges), tuple(values))
        return self.traced(model, losses, sample)


def _top_direction(z: Float[np.ndarray, "n r"]) -> Float[np.ndarray, " r"]:
    centred = z - z.mean(axis=0)
    return eigh(centred.T @ centred)[1][:, -1]
