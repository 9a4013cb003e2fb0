"""Recursive feature machines: kernel machines that learn a metric, and thus features."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import NamedTuple, Self

import equinox as eqx
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.kernels.stationary import Laplace, Stationary
from unlazy.learners.base import Learner, Trace
from unlazy.learners.path import PathLearner, PathModel, drawn
from unlazy.solvers.gradient_outer_product import metric_scores, recursive_fits
from unlazy.solvers.policy import kernel_path
from unlazy.tasks.base import Sampler

#: Candidate numbers of iterations for tuning.
ITERATIONS = (0, 1, 2, 3, 4, 5)


class MetricModel(PathModel):
    """f(x) = Σ_i k(R·x, R·x_i)·α_i + offset with the square root R of a metric, after scaling x.

    The models of a path differ in R and α.
    """

    kernel: Stationary
    points: np.ndarray
    scale: float
    roots: np.ndarray
    coefficients: np.ndarray
    offset: np.ndarray

    def at(self, index: int) -> Self:
        return dataclasses.replace(
            self, roots=self.roots[index][None], coefficients=self.coefficients[index][None]
        )

    def path_scores(self, x: Float[np.ndarray, "n d"]) -> np.ndarray:
        z = np.asarray(x, np.float64) * self.scale
        pairs = zip(self.roots, self.coefficients, strict=True)
        scores = [metric_scores(self.kernel, self.points, root, alpha, z) for root, alpha in pairs]
        result: np.ndarray = np.stack(scores) + self.offset
        return result


class _Coefficients(NamedTuple):
    coefficients: np.ndarray


class RecursiveFeatureMachine(PathLearner):
    """Ridge regression with a kernel whose metric is learned from the gradients of the last fit.

    The metric is the average gradient outer product (`unlazy.solvers.gradient_outer_product`).
    `iterations` are increasing numbers of metric updates, and recorded steps are indices into it;
    0 updates are the kernel without a learned metric. `ridge` is a multiple of k(x, x) = 1.
    """

    path, setting = "iterations", "iterations"
    kernel: Stationary = eqx.field(default_factory=lambda: Laplace(0.5))
    ridge: float = eqx.field(static=True, default=1.0, converter=float)
    iterations: tuple[int, ...] = eqx.field(static=True, default=(3,))

    def __check_init__(self) -> None:
        increasing = all(a < b for a, b in zip(self.iterations, self.iterations[1:], strict=False))
        require(
            bool(self.iterations) and self.iterations[0] >= 0 and increasing,
            f"iterations must be increasing and ≥ 0, got {self.iterations}.",
        )
        require(0 < self.ridge < math.inf, f"ridge must be finite and > 0, got {self.ridge}.")

    def tuning(self, budget: int) -> tuple[Learner, ...]:
        iterations = ITERATIONS[: min(budget, len(ITERATIONS))]
        ridges = (1.0, 0.03, 30.0, 1e-3, 0.3, 100.0)[: max(1, budget // len(ITERATIONS))]
        return tuple(
            dataclasses.replace(self, ridge=ridge, iterations=iterations) for ridge in ridges
        )

    @property
    def settings(self) -> Mapping[str, float | str]:
        return {"gamma": self.kernel.gamma, "ridge": self.ridge, **super().settings}

    def work(self, n: int, r: int) -> float:
        """Estimate, per iteration, two Gram matrices, gradients, and memory-bound products."""
        return (self.iterations[-1] + 1) * (4.0 * n * n * (r + 30) + 200.0 * n * n)

    def prediction_work(self, d: int) -> float:
        """Return 0, because `work` includes predictions, whose cost depends on n."""
        return 0.0

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        sample, x, norm, y = drawn(sampler, n, key)
        offset = np.asarray(np.mean(y, axis=0))

        def solve(points: Float[np.ndarray, "n d"]) -> _Coefficients:
            return _Coefficients(kernel_path(self.kernel, points, y - offset, (self.ridge,))[0])

        fits = [
            step
            for i, step in enumerate(recursive_fits(self.kernel, x, solve, self.iterations[-1]))
            if i in self.iterations
        ]
        coefficients = np.stack([step.fit.coefficients for step in fits])
        # The residual of a ridge regression is λ·α.
        losses = [
            0.5 * float(np.sum(np.mean(np.square(self.ridge * alpha), axis=0)))
            for alpha in coefficients
        ]
        return self.traced(
            MetricModel(
                self.kernel,
                x,
                1 / norm,
                np.stack([step.root for step in fits]),
                coefficients,
                offset,
            ),
            losses,
            sample,
        )
