"""Kernel machines: ridge regression and support vectors on kernels, those of wide networks among them."""

from __future__ import annotations

import dataclasses
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from unlazy.core.errors import require, unknown
from unlazy.estimators.base import Classifier, Regressor, Scoring
from unlazy.kernels.base import Kernel
from unlazy.kernels.products import ArcCosine, ArcSine, Linear, Polynomial
from unlazy.kernels.stationary import RBF, Laplace
from unlazy.kernels.wide import NNGP, NTK
from unlazy.solvers.conjugate import conjugate_gradients
from unlazy.solvers.exact import Solution, machine_memory
from unlazy.solvers.ridge import double_gram, fit_gram, without_penalty_on_constant

#: Above this number of points an eigendecomposition takes longer than conjugate gradients, and `solver="auto"` changes over.
EXACT_POINTS = 10_000
#: Points from which conjugate gradients have their ridge chosen by leave-one-out.
CHOOSING_POINTS = 2_000


class _Weighted(Kernel):
    """k(x, z)·√w(x)·√w(z), where √w is the last coordinate of a point: weights for a solver that knows none."""

    kernel: Kernel

    def __call__(self, x: Any, z: Any) -> Any:
        """The scaled kernel."""
        return self.kernel(x[:, :-1], z[:, :-1]) * x[:, -1:] * z[:, -1]

    def diagonal(self, x: Any) -> Any:
        """The scaled diagonal."""
        return self.kernel.diagonal(x[:, :-1]) * x[:, -1] ** 2


def exact_kernel_bytes(n: int) -> int:
    """Memory of a fit that holds the Gram matrix of n points, its scaled copy and its eigenvectors with their work space."""
    return 6 * 8 * n * n


def require_memory(n: int, memory: float | None, instead: str) -> None:
    """Raise `BadInput` if n points do not fit exactly, and say what does."""
    need, have = exact_kernel_bytes(n), machine_memory() if memory is None else memory
    require(
        need <= have, f"An exact fit to {n:,} samples needs {need / 1e9:.3g} GB of memory, but {have / 1e9:.3g} GB may be used. {instead}"
    )


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class KernelMachine(Scoring):
    """f(x) = Σ_i k(x, x_i)·dual_coef_[i] + intercept_, with an intercept that is not penalised. Inputs are taken as they are.

    Parameters
    ----------
    ridge : float or "loo"
        λ of the penalty λ·‖f‖², scikit-learn's `alpha`. "loo" takes the best of `ridges` by leave-one-out.
    ridges : sequence of float, optional
        By default 17 ridges from 1e-7 to 10 times the mean square of a centred feature vector.
    fit_intercept : bool
        Whether there is an intercept. Without, targets are not centred.
    solver : "auto", "exact" or "cg"
        "exact" holds the Gram matrix in memory. "cg" computes it anew in each iteration of conjugate gradients, and chooses a ridge by
        leave-one-out on a random part of the samples. "auto" is exact where this fits into memory and time.
    memory : float, optional
        Bytes that may be used; by default all that the machine has.
    """

    ridge: float | Literal["loo"] = "loo"
    ridges: Sequence[float] | None = None
    fit_intercept: bool = True
    solver: Literal["auto", "exact", "cg"] = "auto"
    memory: float | None = None

    @abstractmethod
    def _kernel(self, d: int) -> Kernel:
        """The kernel for d features."""

    def _ridges(self) -> float | Sequence[float] | None:
        if isinstance(self.ridge, str):
            if self.ridge != "loo":
                raise unknown("ridge", self.ridge, ["loo"])
            return self.ridges
        require(bool(np.isfinite(self.ridge) and self.ridge >= 0), f"ridge must be a finite number ≥ 0 or 'loo', but is {self.ridge!r}.")
        return float(self.ridge)

    def _fit_scores(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> None:
        if self.solver not in ("auto", "exact", "cg"):
            raise unknown("solver", str(self.solver), ["auto", "exact", "cg"])
        self.kernel_ = self._kernel(X.shape[1])
        self.X_fit_ = X
        ridges = self._ridges()
        have = machine_memory() if self.memory is None else self.memory
        fits = len(X) <= EXACT_POINTS and exact_kernel_bytes(len(X)) <= have
        self.solver_ = self.solver if self.solver != "auto" else ("exact" if fits else "cg")
        if self.solver_ == "cg":
            self._fit_iteratively(X, Y, weight, ridges)
            return
        require_memory(len(X), self.memory, "solver='cg' needs no Gram matrix.")
        fit = fit_gram(double_gram(self.kernel_, X), Y, ridges, weight=weight, intercept=self.fit_intercept)
        self.dual_coef_, self.intercept_, self.ridge_ = fit.coefficients, fit.intercept, fit.ridge
        self._precision = "float64"

    def _fit_iteratively(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray, ridges: float | Sequence[float] | None) -> None:
        if not isinstance(ridges, float):
            part = np.random.default_rng(0).permutation(len(X))[:CHOOSING_POINTS]
            chosen = fit_gram(double_gram(self.kernel_, X[part]), Y[part], ridges, weight=weight[part], intercept=self.fit_intercept)
            ridges = chosen.ridge
        root = np.sqrt(weight)
        equal = bool(np.all(weight == 1))
        points = X if equal else np.column_stack([X, root]).astype(X.dtype)
        targets = np.column_stack([root[:, None] * Y, root]) if self.fit_intercept else root[:, None] * Y
        found = conjugate_gradients(self.kernel_ if equal else _Weighted(self.kernel_), points, targets, ridges)
        if not found.converged:
            message = f"Conjugate gradients ended at a relative residual of {found.residuals[-1]:.1e}. Use a greater ridge."
            warnings.warn(message, ConvergenceWarning, stacklevel=4)
        solved = found.coefficients
        if self.fit_intercept:
            constant = (root @ solved[:, :-1]) / (root @ solved[:, -1])
            solved = without_penalty_on_constant(solved[:, :-1], solved[:, -1], root)
        self.dual_coef_, self.ridge_ = root[:, None] * solved, ridges
        self.intercept_ = constant if self.fit_intercept else np.zeros(Y.shape[1])
        self._precision = found.precision

    def _scores(self, X: np.ndarray) -> np.ndarray:
        return Solution(self.kernel_, self.X_fit_, self.dual_coef_, self._precision).predict(X) + self.intercept_


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class KernelClassifier(Classifier, KernelMachine):
    """A kernel machine for classes, each against the rest.

    Parameters
    ----------
    loss : "ridge" or "hinge"
        Least squares to labels of ±1, or support vectors (scikit-learn's `SVC` on the Gram matrix), for which `C` takes the place of
        `ridge`.
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
        require(bool(np.isfinite(self.C) and self.C > 0), f"C must be a finite number > 0, but is {self.C!r}.")
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
        See `unlazy.kernels.wide.WideNetwork`.
    w_variance, b_variance : float
        Variances of weights and biases, in NTK parametrisation.
    """

    depth: int = 1
    activation: str | Callable = "relu"
    w_variance: float = 2.0
    b_variance: float = 0.1


class _TangentKernel(_WideNetwork):
    def _kernel(self, d: int) -> Kernel:
        return NTK(self.depth, self.activation, self.w_variance, self.b_variance)


class _ConjugateKernel(_WideNetwork):
    def _kernel(self, d: int) -> Kernel:
        return NNGP(self.depth, self.activation, self.w_variance, self.b_variance)


NAMES = ("linear", "polynomial", "rbf", "laplace", "arc-cosine", "arcsine")


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class _NamedKernel(KernelMachine):
    """A kernel by its name.

    Parameters
    ----------
    kernel : str or Kernel
        "linear", "polynomial" (degree, offset), "rbf" or "laplace" (gamma), "arc-cosine" (order), "arcsine" (w_variance, b_variance), or an
        `unlazy.kernels.base.Kernel`.
    gamma : float, optional
        By default 1/d for "rbf" and 1/√d for "laplace", with d features.
    """

    kernel: str | Kernel = "rbf"
    gamma: float | None = None
    degree: int = 3
    offset: float = 1.0
    order: int = 1
    w_variance: float = 1.0
    b_variance: float = 0.0

    def _kernel(self, d: int) -> Kernel:
        if isinstance(self.kernel, Kernel):
            return self.kernel
        makers: dict[str, Callable[[], Kernel]] = {
            "linear": Linear,
            "polynomial": lambda: Polynomial(self.degree, self.offset),
            "rbf": lambda: RBF(1 / d if self.gamma is None else self.gamma),
            "laplace": lambda: Laplace(d**-0.5 if self.gamma is None else self.gamma),
            "arc-cosine": lambda: ArcCosine(self.order),
            "arcsine": lambda: ArcSine(self.w_variance, self.b_variance),
        }
        if self.kernel not in makers:
            raise unknown("kernel", str(self.kernel), makers)
        return makers[self.kernel]()


class NTKRegressor(Regressor, _TangentKernel):
    """Ridge regression with the neural tangent kernel of an infinitely wide network."""


class ConjugateKernelRegressor(Regressor, _ConjugateKernel):
    """Ridge regression with the conjugate kernel (NNGP) of an infinitely wide network: only its last layer learns."""


class KernelRidgeRegressor(Regressor, _NamedKernel):
    """Ridge regression with a kernel by name."""


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class NTKClassifier(KernelClassifier, _TangentKernel):
    """Classification with the neural tangent kernel of an infinitely wide network."""


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class ConjugateKernelClassifier(KernelClassifier, _ConjugateKernel):
    """Classification with the conjugate kernel (NNGP) of an infinitely wide network: only its last layer learns."""


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class KernelRidgeClassifier(KernelClassifier, _NamedKernel):
    """Classification with a kernel by name."""
