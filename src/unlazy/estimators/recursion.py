"""Recursive feature machines as estimators."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from sklearn.utils import check_random_state

from unlazy.core.deprecation import renamed_parameters
from unlazy.core.errors import require, unknown
from unlazy.estimators.base import Classifier, Regressor
from unlazy.estimators.kernel import KernelMachine, named_kernel
from unlazy.kernels.base import Kernel
from unlazy.kernels.stationary import Stationary
from unlazy.solvers.gradient_outer_product import MetricFit, metric_scores, recursive_fits
from unlazy.solvers.policy import fit_stored, require_memory
from unlazy.solvers.ridge import RidgeFit
from unlazy.solvers.single import QUICK_POINTS

#: Maximum number of samples for learning the metric. The final fit uses all samples.
METRIC_POINTS = 4_000
#: Number of held-out parts that select the iteration. Beyond `MANY` samples one of them is enough;
#: below `MIN_SAMPLES` distinct samples no metric is learned.
HELD_OUT_PARTS, MANY, MIN_SAMPLES = 5, 400, 20
#: If at least `MANY` samples are not used for the metric, at most this many of them select the
#: iteration instead, and nothing is fitted twice.
MAX_HELD_OUT = 1_000

#: Points, targets and weights.
Sample = tuple[np.ndarray, np.ndarray, np.ndarray]


@renamed_parameters(centred="centered")
@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class _RecursiveFeatureMachine(KernelMachine):
    """A kernel machine whose metric is learned from the gradients of its own predictions.

    Parameters
    ----------
    iterations : int
        Number of updates of the metric; 0 is the kernel without a learned metric.
    kernel : "laplace" or "rbf"
        The kernel, as a function of the learned distance.
    gamma : float, optional
        By default 1/√d for "laplace" and 1/d for "rbf", with d features. The metric has trace d.
    diagonal : bool
        Whether the metric is diagonal.
    centered : bool
        Whether to subtract the mean gradient, so that linear trends do not affect the metric.
    metric_samples : int
        Maximum number of samples for learning the metric. The final fit uses all samples.
    random_state : int, RandomState instance or None
        Random state for drawing the samples of the metric, if there are more than
        `metric_samples`.

    `ridge="loo"` selects the iteration of the smallest error on held-out samples; otherwise the
    last one is used. `metric_` is its metric. `held_out_errors_` are the errors of all iterations,
    or None if nothing was held out.
    """

    iterations: int = 4
    kernel: Literal["laplace", "rbf"] = "laplace"
    gamma: float | None = None
    diagonal: bool = False
    centered: bool = False
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
            f"metric_samples must be an integer > 1, got {self.metric_samples!r}.",
        )
        kernel, X = self._stationary(X.shape[1]), X.astype(np.float64)
        require_memory(
            min(len(X), self.metric_samples),
            self.memory,
            "Lower metric_samples, or use a KernelRidge estimator with solver='cg'.",
        )
        best = self._learned(kernel, X, Y, weight)
        self.metric_, self._root = best.metric, best.root
        chosen_quickly = self.ridge == "loo" and len(X) > QUICK_POINTS
        if len(X) > self.metric_samples or chosen_quickly:
            # With many samples the ridge is kept: selecting it again would take most of the time.
            self._fit_points(
                kernel,
                X @ self._root,
                Y,
                weight,
                best.fit.ridge if len(X) > self.metric_samples else self._ridges(),
            )
            return
        self.kernel_, self.X_fit_, self._precision, self.solver_ = (
            kernel,
            X @ self._root,
            "float64",
            "exact",
        )
        self.dual_coef_, self.intercept_, self.ridge_ = (
            best.fit.coefficients,
            best.fit.intercept,
            best.fit.ridge,
        )

    def _learned(
        self, kernel: Stationary, X: np.ndarray, Y: np.ndarray, weight: np.ndarray
    ) -> MetricFit[RidgeFit]:
        """Return the selected iteration of fits to at most `metric_samples` samples."""
        order = np.arange(len(X))
        if len(X) > self.metric_samples:
            order = check_random_state(self.random_state).permutation(len(X))
        some, rest = np.sort(order[: self.metric_samples]), order[self.metric_samples :]
        sample = X[some], Y[some], weight[some]
        if self.ridge == "loo" and self.iterations > 0 and len(rest) >= MANY:
            same = np.unique(X, axis=0, return_inverse=True)[1].ravel()
            apart = rest[~np.isin(same[rest], same[some])][:MAX_HELD_OUT]
            if len(apart) >= MANY:
                return self._best_on(kernel, sample, (X[apart], Y[apart], weight[apart]))
        self.held_out_errors_ = self._held_out_errors(kernel, *sample)
        chosen = 0 if self.held_out_errors_ is None else int(np.argmin(self.held_out_errors_))
        self.best_iteration_ = chosen if self.ridge == "loo" else int(self.iterations)
        return next(itertools.islice(self._fits(kernel, *sample), self.best_iteration_, None))

    def _best_on(self, kernel: Stationary, sample: Sample, held_out: Sample) -> MetricFit[RidgeFit]:
        """Return the iteration of the smallest error on other samples."""
        errors, best = [], None
        for step in self._fits(kernel, *sample):
            errors.append(_squared_error(kernel, sample, step, held_out) / float(held_out[2].sum()))
            if best is None or errors[-1] < min(errors[:-1]):
                best, self.best_iteration_ = step, len(errors) - 1
        self.held_out_errors_ = np.array(errors)
        assert best is not None
        return best

    def _fits(
        self, kernel: Stationary, x: np.ndarray, Y: np.ndarray, weight: np.ndarray
    ) -> Iterator[MetricFit[RidgeFit]]:
        ridges = self._ridges()

        def solve(moved: np.ndarray) -> RidgeFit:
            return fit_stored(
                kernel,
                moved,
                Y,
                ridges,
                weight=weight,
                intercept=self.fit_intercept,
                quick=True,
                originals=x,
            )

        return recursive_fits(
            kernel,
            x,
            solve,
            self.iterations,
            weight=weight,
            centered=bool(self.centered),
            diagonal=bool(self.diagonal),
        )

    def _held_out_errors(
        self, kernel: Stationary, x: np.ndarray, Y: np.ndarray, weight: np.ndarray
    ) -> np.ndarray | None:
        """Return the held-out mean squared error of each iteration, or None if none is selected.

        Leave-one-out would be biased towards later iterations, whose metric depends on the label
        left out. Equal samples are held out together.
        """
        distinct, same = np.unique(x, axis=0, return_inverse=True)
        if self.ridge != "loo" or not self.iterations > 0 or len(distinct) < MIN_SAMPLES:
            return None
        part = np.random.default_rng(0).permutation(np.arange(len(distinct)) % HELD_OUT_PARTS)[
            same.ravel()
        ]
        errors = np.zeros(int(self.iterations) + 1)
        for held in range(HELD_OUT_PARTS if len(x) <= MANY else 1):
            out = part == held
            learned_from, held_out = (x[~out], Y[~out], weight[~out]), (x[out], Y[out], weight[out])
            for index, step in enumerate(self._fits(kernel, *learned_from)):
                errors[index] += _squared_error(kernel, learned_from, step, held_out)
        result: np.ndarray | None = errors / weight.sum()
        return result

    def _scores(self, X: np.ndarray) -> np.ndarray:
        return KernelMachine._scores(self, X.astype(np.float64) @ self._root)


def _squared_error(
    kernel: Stationary, sample: Sample, step: MetricFit[RidgeFit], held_out: Sample
) -> float:
    """Return the weighted sum of squared errors on the held-out samples."""
    x, Y, weight = held_out
    scores = (
        metric_scores(kernel, sample[0], step.root, step.fit.coefficients, x) + step.fit.intercept
    )
    return float(weight @ np.sum(np.square(scores - Y), axis=1))


class RecursiveFeatureMachineRegressor(Regressor, _RecursiveFeatureMachine):
    """Regression by a recursive feature machine."""


class RecursiveFeatureMachineClassifier(Classifier, _RecursiveFeatureMachine):
    """One-vs-rest classification by a recursive feature machine, fitted to labels ±1."""
