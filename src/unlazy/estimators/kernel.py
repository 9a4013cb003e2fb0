"""Kernel ridge regression and support vector machines, also with kernels of wide networks."""

from __future__ import annotations

import dataclasses
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from unlazy.core.errors import require, unknown
from unlazy.estimators.base import Classifier, Regressor, Scoring
from unlazy.kernels.base import Kernel
from unlazy.kernels.catalog import kernel_named
from unlazy.kernels.wide import NNGP, NTK
from unlazy.solvers.exact import Solution
from unlazy.solvers.policy import Solver, fit_kernel, require_memory
from unlazy.solvers.ridge import double_gram

#: One ridge, candidates, or None for `unlazy.solvers.ridge.RIDGES`.
Ridges = float | Sequence[float] | None


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class KernelMachine(Scoring):
    """A kernel machine f(x) = Σ_i k(x, x_i)·dual_coef_[i] + intercept_.

    The intercept is not penalized. Inputs are not standardized.

    Parameters
    ----------
    ridge : float or "loo"
        λ of the penalty λ·‖f‖², `alpha` in scikit-learn. "loo" selects from `ridges` by
        leave-one-out cross-validation.
    ridges : sequence of float, optional
        Candidates for "loo". By default 17 values from 1e-7 to 10 times the mean squared norm of
        a centered feature vector.
    fit_intercept : bool
        Whether to fit an intercept. Otherwise targets are not centered.
    solver : "auto", "exact", "landmarks" or "cg"
        "exact" stores the Gram matrix. With more than a few thousand samples it is factorized in
        single precision and refined, and "loo" only tries ridges near the best one on a random
        subset of the samples. "landmarks" fits all samples by functions spanned by the kernel at
        5,000 of them, `X_fit_`. "cg" computes the matrix again in each iteration of conjugate
        gradients and takes the best ridge on the subset. "auto" is "exact" if memory and time
        allow, otherwise "landmarks" (see `unlazy.solvers.policy`).
    memory : float, optional
        Memory limit in bytes, by default the memory of the machine.
    """

    ridge: float | Literal["loo"] = "loo"
    ridges: Sequence[float] | None = None
    fit_intercept: bool = True
    solver: Solver = "auto"
    memory: float | None = None

    @abstractmethod
    def _kernel(self, d: int) -> Kernel:
        """Return the kernel for d features."""

    def _ridges(self) -> Ridges:
        if isinstance(self.ridge, str):
            if self.ridge != "loo":
                raise unknown("ridge", self.ridge, ["loo"])
            return self.ridges
        require(
            bool(np.isfinite(self.ridge) and self.ridge >= 0),
            f"ridge must be finite and ≥ 0, or 'loo', got {self.ridge!r}.",
        )
        return float(self.ridge)

    def _fit_scores(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> None:
        self._fit_points(self._kernel(X.shape[1]), X, Y, weight, self._ridges())

    def _fit_points(
        self, kernel: Kernel, X: np.ndarray, Y: np.ndarray, weight: np.ndarray, ridges: Ridges
    ) -> None:
        self.kernel_ = kernel
        solved = fit_kernel(
            self.kernel_,
            X,
            Y,
            ridges,
            weight=weight,
            intercept=self.fit_intercept,
            solver=self.solver,
            memory=self.memory,
        )
        if not solved.converged:
            message = (
                "Conjugate gradients did not converge (relative residual "
                f"{solved.residual:.1e}). Use a larger ridge."
            )
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        self.X_fit_, self.solver_, self._precision = (
            solved.points,
            solved.choice.method,
            solved.choice.precision,
        )
        self.dual_coef_, self.intercept_, self.ridge_ = (
            solved.fit.coefficients,
            solved.fit.intercept,
            solved.fit.ridge,
        )

    def _scores(self, X: np.ndarray) -> np.ndarray:
        result: np.ndarray = (
            Solution(self.kernel_, self.X_fit_, self.dual_coef_, self._precision).predict(X)
            + self.intercept_
        )
        return result


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class KernelClassifier(Classifier, KernelMachine):
    """A one-vs-rest kernel classifier.

    Parameters
    ----------
    loss : "ridge" or "hinge"
        Least squares on labels ±1, or support vector machines (scikit-learn's `SVC` on the Gram
        matrix), which use `C` instead of `ridge`.
    C : float
        Weight of the hinge loss.
    """

    loss: Literal["ridge", "hinge"] = "ridge"
    C: float = 1.0

    def _fit_scores(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> None:
        if self.loss not in ("ridge", "hinge"):
            raise unknown("loss", str(self.loss), ["ridge", "hinge"])
        if self.loss == "ridge":
            KernelMachine._fit_scores(self, X, Y, weight)
            return
        require(
            bool(np.isfinite(self.C) and self.C > 0),
            f"C must be finite and > 0, got {self.C!r}.",
        )
        require_memory(len(X), self.memory, "loss='ridge' with solver='cg' stores no Gram matrix.")
        self.kernel_, self.X_fit_, self._precision = self._kernel(X.shape[1]), X, "float64"
        K = double_gram(self.kernel_, X)
        self.dual_coef_, self.intercept_ = np.zeros(Y.shape), np.zeros(Y.shape[1])
        for column in range(Y.shape[1]):
            machine = SVC(C=self.C, kernel="precomputed").fit(K, Y[:, column], sample_weight=weight)
            self.dual_coef_[machine.support_, column] = machine.dual_coef_[0]
            self.intercept_[column] = machine.intercept_[0]


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class _WideNetwork(KernelMachine):
    """A kernel machine with the kernel of an infinitely wide network.

    Parameters
    ----------
    depth : int
        Number of hidden layers.
    activation : str or callable
        A name in `unlazy.core.activations.ACTIVATIONS`, or a function (see
        `unlazy.kernels.wide.WideNetwork`).
    w_variance, b_variance : float
        Variances of weights and biases in NTK parametrization.
    """

    depth: int = 1
    activation: str | Callable[..., Any] = "relu"
    w_variance: float = 2.0
    b_variance: float = 0.1


class _TangentKernel(_WideNetwork):
    def _kernel(self, d: int) -> Kernel:
        return NTK(self.depth, self.activation, self.w_variance, self.b_variance)


class _ConjugateKernel(_WideNetwork):
    def _kernel(self, d: int) -> Kernel:
        return NNGP(self.depth, self.activation, self.w_variance, self.b_variance)


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class NamedKernel(KernelMachine):
    """A kernel machine with a kernel given by name.

    Parameters
    ----------
    kernel : str or Kernel
        A name in `unlazy.kernels.catalog.KERNELS`: "linear", "polynomial" (degree, offset),
        "quadratic", "rbf" or "laplace" (gamma), "arc-cosine" (order), "arcsine" (w_variance,
        b_variance), "nngp" or "ntk" (depth, activation, w_variance, b_variance); or an
        `unlazy.kernels.base.Kernel`.
    gamma, degree, offset, order, depth, activation, w_variance, b_variance : optional
        Parameters of the named kernel; others are ignored. Defaults are those of the catalog,
        except `gamma`: 1/d for "rbf" and 1/√d for "laplace" with d features.
    """

    kernel: str | Kernel = "rbf"
    gamma: float | None = None
    degree: int | None = None
    offset: float | None = None
    order: int | None = None
    depth: int | None = None
    activation: str | Callable[..., Any] | None = None
    w_variance: float | None = None
    b_variance: float | None = None

    def _kernel(self, d: int) -> Kernel:
        if isinstance(self.kernel, Kernel):
            return self.kernel
        names = (
            "gamma",
            "degree",
            "offset",
            "order",
            "depth",
            "activation",
            "w_variance",
            "b_variance",
        )
        return named_kernel(self.kernel, d, {name: getattr(self, name) for name in names})


def named_kernel(name: str, d: int, parameters: Mapping[str, Any]) -> Kernel:
    """Return the kernel of that name for d features; parameters it does not have are ignored."""
    known = {field.name for field in dataclasses.fields(kernel_named(str(name)))}
    given = {key: value for key, value in parameters.items() if value is not None and key in known}
    return kernel_named(
        name,
        **{"gamma": d ** {"rbf": -1.0, "laplace": -0.5}[name]} | given
        if "gamma" in known
        else given,
    )


class NTKRegressor(Regressor, _TangentKernel):
    """Ridge regression with the neural tangent kernel of an infinitely wide network."""


class ConjugateKernelRegressor(Regressor, _ConjugateKernel):
    """Ridge regression with the conjugate kernel (NNGP) of an infinitely wide network.

    It equals training only the last layer.
    """


class KernelRidgeRegressor(Regressor, NamedKernel):
    """Ridge regression with a kernel given by name."""


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class NTKClassifier(KernelClassifier, _TangentKernel):
    """Classification with the neural tangent kernel of an infinitely wide network."""


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class ConjugateKernelClassifier(KernelClassifier, _ConjugateKernel):
    """Classification with the conjugate kernel (NNGP) of an infinitely wide network.

    It equals training only the last layer.
    """


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class KernelRidgeClassifier(KernelClassifier, NamedKernel):
    """Classification with a kernel given by name."""
