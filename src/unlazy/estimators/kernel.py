"""Kernel machines: ridge regression and support vectors on kernels, those of wide networks among
them.
"""

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

#: One ridge, several to choose from, or those of `unlazy.solvers.ridge.RIDGES`.
Ridges = float | Sequence[float] | None


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class KernelMachine(Scoring):
    """f(x) = Σ_i k(x, x_i)·dual_coef_[i] + intercept_, with an intercept that is not penalised.
    Inputs are taken as they are.

    Parameters
    ----------
    ridge : float or "loo"
        λ of the penalty λ·‖f‖², scikit-learn's `alpha`. "loo" takes the best of `ridges` by
        leave-one-out.
    ridges : sequence of float, optional
        By default 17 ridges from 1e-7 to 10 times the mean square of a centred feature vector.
    fit_intercept : bool
        Whether there is an intercept. Without, targets are not centred.
    solver : "auto", "exact", "landmarks" or "cg"
        "exact" holds the Gram matrix in memory; with more than a few thousand samples its factor is
        in single precision with refinement, and leave-one-out looks at the ridges near the best one
        of a random part of the samples. "landmarks" fits all samples by functions that are spanned
        by the kernel at 5,000 of them, `X_fit_`. "cg" computes the matrix anew in each iteration of
        conjugate gradients, with the best ridge of that part. "auto" is exact where this fits into
        memory and time, else with landmarks (`unlazy.solvers.policy`).
    memory : float, optional
        Bytes that may be used; by default all that the machine has.
    """

    ridge: float | Literal["loo"] = "loo"
    ridges: Sequence[float] | None = None
    fit_intercept: bool = True
    solver: Solver = "auto"
    memory: float | None = None

    @abstractmethod
    def _kernel(self, d: int) -> Kernel:
        """The kernel for d features."""

    def _ridges(self) -> Ridges:
        if isinstance(self.ridge, str):
            if self.ridge != "loo":
                raise unknown("ridge", self.ridge, ["loo"])
            return self.ridges
        require(
            bool(np.isfinite(self.ridge) and self.ridge >= 0),
            f"ridge must be a finite number ≥ 0 or 'loo', but is {self.ridge!r}.",
        )
        return float(self.ridge)

    def _fit_scores(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> None:
        self._fit_points(self._kernel(X.shape[1]), X, Y, weight, self._ridges())

    def _fit_points(
        self, kernel: Kernel, X: np.ndarray, Y: np.ndarray, weight: np.ndarray, ridges: Ridges
    ) -> None:
        self.kernel_ = kernel
        found = fit_kernel(
            self.kernel_,
            X,
            Y,
            ridges,
            weight=weight,
            intercept=self.fit_intercept,
            solver=self.solver,
            memory=self.memory,
        )
        if not found.converged:
            message = (
                f"Conjugate gradients ended at a relative residual of {found.residual:.1e}. Use "
                "a greater ridge."
            )
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        self.X_fit_, self.solver_, self._precision = (
            found.points,
            found.choice.method,
            found.choice.precision,
        )
        self.dual_coef_, self.intercept_, self.ridge_ = (
            found.fit.coefficients,
            found.fit.intercept,
            found.fit.ridge,
        )

    def _scores(self, X: np.ndarray) -> np.ndarray:
        result: np.ndarray = (
            Solution(self.kernel_, self.X_fit_, self.dual_coef_, self._precision).predict(X)
            + self.intercept_
        )
        return result


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class KernelClassifier(Classifier, KernelMachine):
    """A kernel machine for classes, each against the rest.

    Parameters
    ----------
    loss : "ridge" or "hinge"
        Least squares to labels of ±1, or support vectors (scikit-learn's `SVC` on the Gram matrix),
        for which `C` takes the place of `ridge`.
    C : float
        Weight of the hinge losses.
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
            f"C must be a finite number > 0, but is {self.C!r}.",
        )
        require_memory(len(X), self.memory, "loss='ridge' with solver='cg' needs no Gram matrix.")
        self.kernel_, self.X_fit_, self._precision = self._kernel(X.shape[1]), X, "float64"
        K = double_gram(self.kernel_, X)
        self.dual_coef_, self.intercept_ = np.zeros(Y.shape), np.zeros(Y.shape[1])
        for column in range(Y.shape[1]):
            machine = SVC(C=self.C, kernel="precomputed").fit(K, Y[:, column], sample_weight=weight)
            self.dual_coef_[machine.support_, column] = machine.dual_coef_[0]
            self.intercept_[column] = machine.intercept_[0]


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class _WideNetwork(KernelMachine):
    """A kernel of an infinitely wide network.

    Parameters
    ----------
    depth : int
        Number of hidden layers.
    activation : str or callable
        Any of `unlazy.core.activations.ACTIVATIONS`, or a function: see
        `unlazy.kernels.wide.WideNetwork`.
    w_variance, b_variance : float
        Variances of weights and biases, in NTK parametrisation.
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
    """A kernel by its name.

    Parameters
    ----------
    kernel : str or Kernel
        A name of `unlazy.kernels.catalog.KERNELS`: "linear", "polynomial" (degree, offset),
        "quadratic", "rbf" or "laplace" (gamma), "arc-cosine" (order), "arcsine" (w_variance,
        b_variance), "nngp" or "ntk" (depth, activation, w_variance, b_variance); or an
        `unlazy.kernels.base.Kernel`.
    gamma, degree, offset, order, depth, activation, w_variance, b_variance : optional
        The numbers of the named kernel; those that it does not have are not used. By default they
        are those of the shelf, except `gamma`, which follows the number d of features: 1/d for
        "rbf" and 1/√d for "laplace".
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


def named_kernel(name: str, d: int, numbers: Mapping[str, Any]) -> Kernel:
    """The kernel of that name for d features, with those of the numbers that are given and that it
    has.
    """
    known = {field.name for field in dataclasses.fields(kernel_named(str(name)))}
    given = {
        number: value for number, value in numbers.items() if value is not None and number in known
    }
    return kernel_named(
        name,
        **{"gamma": d ** {"rbf": -1.0, "laplace": -0.5}[name]} | given
        if "gamma" in known
        else given,
    )


class NTKRegressor(Regressor, _TangentKernel):
    """Ridge regression with the neural tangent kernel of an infinitely wide network."""


class ConjugateKernelRegressor(Regressor, _ConjugateKernel):
    """Ridge regression with the conjugate kernel (NNGP) of an infinitely wide network: only its
    last layer learns.
    """


class KernelRidgeRegressor(Regressor, NamedKernel):
    """Ridge regression with a kernel by name."""


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class NTKClassifier(KernelClassifier, _TangentKernel):
    """Classification with the neural tangent kernel of an infinitely wide network."""


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class ConjugateKernelClassifier(KernelClassifier, _ConjugateKernel):
    """Classification with the conjugate kernel (NNGP) of an infinitely wide network: only its last
    layer learns.
    """


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class KernelRidgeClassifier(KernelClassifier, NamedKernel):
    """Classification with a kernel by name."""
