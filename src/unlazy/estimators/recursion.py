"""Recursive feature machines as estimators."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np

from unlazy.core.errors import unknown
from unlazy.estimators.base import Classifier, Regressor
from unlazy.estimators.kernel import KernelMachine, named_kernel
from unlazy.kernels.base import Kernel
from unlazy.kernels.stationary import Stationary
from unlazy.solvers.gradient_outer_product import metric_scores, recursive_fits
from unlazy.solvers.policy import require_memory
from unlazy.solvers.ridge import RidgeFit, double_gram, fit_gram


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class _RecursiveFeatureMachine(KernelMachine):
    """A kernel whose metric is learned from the gradients of its own predictions; always solved exactly.

    Parameters
    ----------
    iterations : int
        How often the metric is learned anew; 0 is the plain kernel.
    kernel : "laplace" or "rbf"
        The kernel of the learned distance.
    gamma : float, optional
        By default 1/√d for "laplace" and 1/d for "rbf", with d features; the metric has the trace d.

    With `ridge="loo"` the iteration of the least leave-one-out error is kept, otherwise the last one. `metric_` is its metric,
    `loo_errors_` are the errors of all.
    """

    iterations: int = 4
    kernel: Literal["laplace", "rbf"] = "laplace"
    gamma: float | None = None

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
        require_memory(len(X), self.memory, "Fit to a part of the samples, or use a KernelRidge estimator with solver='cg'.")
        self.kernel_, self.X_fit_ = kernel, X = self._stationary(X.shape[1]), X.astype(np.float64)
        ridges = self._ridges()

        def solve(points: np.ndarray) -> RidgeFit:
            return fit_gram(double_gram(kernel, points, X), Y, ridges, weight=weight, intercept=self.fit_intercept)

        fits = list(recursive_fits(kernel, X, solve, self.iterations, weight=weight))
        self.loo_errors_ = np.array([step.fit.error for step in fits])
        self.best_iteration_ = int(np.argmin(self.loo_errors_)) if self.ridge == "loo" else int(self.iterations)
        best = fits[self.best_iteration_]
        self.metric_, self._root = best.metric, best.root
        self.dual_coef_, self.intercept_, self.ridge_ = best.fit.coefficients, best.fit.intercept, best.fit.ridge

    def _scores(self, X: np.ndarray) -> np.ndarray:
        return metric_scores(self.kernel_, self.X_fit_, self._root, self.dual_coef_, X) + self.intercept_


class RecursiveFeatureMachineRegressor(Regressor, _RecursiveFeatureMachine):
    """Regression by a recursive feature machine."""


class RecursiveFeatureMachineClassifier(Classifier, _RecursiveFeatureMachine):
    """Classification by a recursive feature machine: least squares to labels of ±1, each class against the rest."""
