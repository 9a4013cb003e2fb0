"""Recursive feature machines as estimators."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import numpy as np
from sklearn.utils import check_random_state

from unlazy.core.errors import require, unknown
from unlazy.estimators.base import Classifier, Regressor
from unlazy.estimators.kernel import KernelMachine, named_kernel
from unlazy.kernels.base import Kernel
from unlazy.kernels.stationary import Stationary
from unlazy.solvers.gradient_outer_product import recursive_fits
from unlazy.solvers.policy import fit_stored, require_memory
from unlazy.solvers.ridge import RidgeFit

#: The metric is learned from at most so many samples; then the kernel with this metric is fitted to all of them.
METRIC_POINTS = 4_000


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class _RecursiveFeatureMachine(KernelMachine):
    """A kernel whose metric is learned from the gradients of its own predictions.

    Parameters
    ----------
    iterations : int
        How often the metric is learned anew; 0 is the plain kernel.
    kernel : "laplace" or "rbf"
        The kernel of the learned distance.
    gamma : float, optional
        By default 1/√d for "laplace" and 1/d for "rbf", with d features; the metric has the trace d.
    diagonal : bool
        Whether the metric only weighs the columns.
    centred : bool
        Whether the mean gradient is subtracted: a linear trend then does not count as a feature.
    metric_samples : int
        The metric is learned from at most so many samples, drawn by `random_state`; the last fit is to all samples.
    random_state : int, RandomState instance or None
        Draws the samples of the metric where there are more than `metric_samples`.

    With `ridge="loo"` the iteration of the least leave-one-out error is kept, otherwise the last one. `metric_` is its metric,
    `loo_errors_` are the errors of all, on the samples from which the metric was learned.
    """

    iterations: int = 4
    kernel: Literal["laplace", "rbf"] = "laplace"
    gamma: float | None = None
    diagonal: bool = False
    centred: bool = False
    metric_samples: int = METRIC_POINTS
    random_state: Any = None

    def _kernel(self, d: int) -> Kernel:
        return self._stationary(d)

    def _stationary(self, d: int) -> Stationary:
        if self.kernel not in ("laplace", "rbf"):
            raise unknown("kernel", str(self.kernel), ["laplace", "rbf"])
        kernel = named_kernel(self.kernel, d, {"gamma": self.gamma})
        assert isinstance(kernel, Stationary)
        return kernel

    def _fit_scores(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> None:
        if self.solver not in ("auto", "exact"):
            raise unknown("solver", str(self.solver), ["auto", "exact"])
        require(
            isinstance(self.metric_samples, int | np.integer) and self.metric_samples > 1,
            f"metric_samples must be a whole number > 1, but is {self.metric_samples!r}.",
        )
        kernel, X = self._stationary(X.shape[1]), X.astype(np.float64)
        some = slice(None)
        if len(X) > self.metric_samples:
            some = np.sort(check_random_state(self.random_state).permutation(len(X))[: self.metric_samples])  # type: ignore[assignment]
        points, targets, mass = X[some], Y[some], weight[some]
        require_memory(len(points), self.memory, "Lower metric_samples, or use a KernelRidge estimator with solver='cg'.")
        ridges = self._ridges()

        def solve(moved: np.ndarray) -> RidgeFit:
            return fit_stored(kernel, moved, targets, ridges, weight=mass, intercept=self.fit_intercept, looks=1, originals=points)

        fits = list(
            recursive_fits(kernel, points, solve, self.iterations, weight=mass, centred=bool(self.centred), diagonal=bool(self.diagonal))
        )
        self.loo_errors_ = np.array([step.fit.error for step in fits])
        self.best_iteration_ = int(np.argmin(self.loo_errors_)) if self.ridge == "loo" else int(self.iterations)
        best = fits[self.best_iteration_]
        self.metric_, self._root = best.metric, best.root
        if len(points) < len(X):
            self._fit_points(kernel, X @ self._root, Y, weight)
            return
        self.kernel_, self.X_fit_, self._precision, self.solver_ = kernel, X @ self._root, "float64", "exact"
        self.dual_coef_, self.intercept_, self.ridge_ = best.fit.coefficients, best.fit.intercept, best.fit.ridge

    def _scores(self, X: np.ndarray) -> np.ndarray:
        return KernelMachine._scores(self, X.astype(np.float64) @ self._root)


class RecursiveFeatureMachineRegressor(Regressor, _RecursiveFeatureMachine):
    """Regression by a recursive feature machine."""


class RecursiveFeatureMachineClassifier(Classifier, _RecursiveFeatureMachine):
    """Classification by a recursive feature machine: least squares to labels of ±1, each class against the rest."""
