"""Select a ridge solver, and fit with it.

A "path" are the coefficients for given ridges, to a residual of `TOLERANCE`:

- up to `FACTORED_POINTS` points, by a factorization of the Gram matrix K in double precision;
- if K fits into a third of the memory, by a Krylov space of products with K, in single precision if
  the ridges allow it;
- otherwise the same, with the kernel computed again for each product.

A "choice" is the best of several ridges by leave-one-out, with weights and an intercept:

- up to `DECOMPOSED` points, by one eigendecomposition in double precision, exact for all ridges;
- up to `EXACT_POINTS` points, if memory allows, by Cholesky factorizations in single precision with
  refinement; all points or some thousands of them select the ridge (`unlazy.solvers.single`);
- beyond, within the span of some thousands of points (`unlazy.solvers.landmarks`);
- if this does not fit into memory, by conjugate gradients without K; `CHOOSING_POINTS` points
  select the ridge.

An eigendecomposition costs about 9n³ operations, a Krylov space of k products 2k·n².
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Float

from unlazy.core.errors import require, unknown
from unlazy.kernels.base import Kernel
from unlazy.kernels.gram import gram
from unlazy.solvers.conjugate import conjugate_gradients, product
from unlazy.solvers.exact import Matrix, Targets, cholesky, machine_memory, ridge_path
from unlazy.solvers.krylov import krylov_path
from unlazy.solvers.landmarks import fit_landmarks, landmark_bytes
from unlazy.solvers.ridge import RidgeFit, double_gram, fit_gram, without_penalty_on_constant
from unlazy.solvers.single import CHOOSING_POINTS, QUICK_POINTS, fit_factored

#: Maximum number of points for paths by factorization.
FACTORED_POINTS = 400
#: Relative residual to which paths are solved by products.
TOLERANCE = 1e-5
#: Smaller ridges, as multiples of eps·√n·k(x, x), are below the rounding errors of a kernel in
#: single precision.
MIN_SINGLE_RIDGE = 16.0
#: Up to this many points, an eigendecomposition is as fast as factorizations for a few ridges.
DECOMPOSED = 2_500
#: Beyond this many points, factorizations take minutes.
EXACT_POINTS = 16_000

Purpose = Literal["path", "choice"]
Method = Literal["exact", "krylov", "landmarks", "cg"]
#: Valid values of `solver`.
Solver = Literal["auto", "exact", "landmarks", "cg"]


class SolverChoice(NamedTuple):
    """The method, whether the Gram matrix is stored, and the precision of the kernel."""

    method: Method
    stored: bool
    precision: str  #: "float32" or "float64"


_EXACT, _LANDMARKS = (
    SolverChoice("exact", True, "float64"),
    SolverChoice("landmarks", False, "float64"),
)


def choose(
    n: int,
    purpose: Purpose,
    *,
    dtype: Any = np.float64,
    ridge: float = math.inf,
    memory: float | None = None,
) -> SolverChoice:
    """Select a solver for n points of precision `dtype`.

    `ridge` is the smallest one, in units of the largest k(x, x). `memory` is the limit in bytes, by
    default the memory of the machine, or a third of it for a path, as several may run in parallel.
    """
    if purpose == "choice":
        allowed = machine_memory() if memory is None else memory
        if n <= EXACT_POINTS and exact_bytes(n) <= allowed:
            return _EXACT
        return (
            _LANDMARKS
            if n > EXACT_POINTS and landmark_bytes(n) <= allowed
            else SolverChoice("cg", False, np.dtype(dtype).name)
        )
    too_coarse = ridge < MIN_SINGLE_RIDGE * float(np.finfo(np.float32).eps) * math.sqrt(n)
    precision = np.dtype(np.float64 if n <= FACTORED_POINTS or too_coarse else dtype)
    stored = n * n * precision.itemsize <= path_memory(memory)
    return SolverChoice(
        "exact" if stored and n <= FACTORED_POINTS else "krylov", stored, precision.name
    )


def path_memory(memory: float | None) -> float:
    """Return the memory limit of a path in bytes."""
    return machine_memory() // 3 if memory is None else memory


def exact_bytes(n: int) -> int:
    """Return the bytes of an exact fit to n points.

    These are the Gram matrix, a scaled copy, and eigenvectors with work space, or beyond
    `DECOMPOSED` points a factor.
    """
    return (6 if n <= DECOMPOSED else 3) * 8 * n * n


def require_memory(n: int, memory: float | None, instead: str) -> None:
    """Raise `BadInput` with the advice `instead` if an exact fit to n points exceeds the memory."""
    required, available = exact_bytes(n), machine_memory() if memory is None else memory
    require(
        required <= available,
        f"An exact fit to {n:,} samples needs {required / 1e9:.3g} GB of memory; the limit is "
        f"{available / 1e9:.3g} GB. {instead}",
    )


def kernel_path(
    kernel: Kernel, x: Matrix, y: Targets, ridges: Sequence[float], *, memory: float | None = None
) -> np.ndarray:
    """Return (K + λI)⁻¹·y for each ridge (the first axis) and the Gram matrix K of the points x."""
    n = len(x)
    with jax.enable_x64(x.dtype == np.float64):
        top = float(jnp.max(kernel.diagonal(jnp.asarray(x))))
    smallest = min(ridges) / top if top > 0 else math.inf
    choice = choose(n, "path", dtype=x.dtype, ridge=smallest, memory=memory)
    points = x.astype(choice.precision)
    if choice.stored:
        with jax.enable_x64(points.dtype == np.float64):
            return matrix_path(np.asarray(gram(kernel, points)), y, ridges)

    def solve(column: Float[np.ndarray, " n"]) -> Float[np.ndarray, "r n"]:
        solution = krylov_path(
            lambda v: product(kernel, points, v[:, None])[:, 0], column, ridges, tolerance=TOLERANCE
        )
        worst = float(np.max(solution.residuals))
        require(
            worst <= 10 * TOLERANCE,
            f"The ridge {min(ridges):.2g} is too small for {n:,} points without a stored Gram "
            f"matrix, which exceeds the limit of {path_memory(memory) / 1e9:.1f} GB (relative "
            f"residual {worst:.1e} after {solution.products} products). Use larger ridges or more "
            "memory.",
        )
        return solution.coefficients

    return _by_column(solve, y)


def matrix_path(K: Float[np.ndarray, "n n"], y: Targets, ridges: Sequence[float]) -> np.ndarray:
    """Return (K + λI)⁻¹·y for each ridge (the first axis) and a stored matrix K.

    Small matrices are factorized, large ones multiplied in their own precision. Ridges too small
    for products to converge are solved by a factorization.
    """
    if choose(len(K), "path", dtype=K.dtype, memory=math.inf).method == "exact":
        return ridge_path(K, y, ridges).coefficients

    def solve(column: Float[np.ndarray, " n"]) -> Float[np.ndarray, "r n"]:
        solution = krylov_path(lambda v: K @ v.astype(K.dtype), column, ridges, tolerance=TOLERANCE)
        for index in np.flatnonzero(~(solution.residuals <= 10 * TOLERANCE)):
            factor = cholesky(np.asarray(K, np.float64), float(ridges[int(index)]))
            solution.coefficients[index] = scipy.linalg.cho_solve((factor, True), column)
        return solution.coefficients

    return _by_column(solve, y)


def feature_path(phi: Float[np.ndarray, "n f"], y: Targets, ridges: Sequence[float]) -> np.ndarray:
    """Return argmin_w ‖Φw − y‖² + λ‖w‖² for each ridge, by the smaller of ΦᵀΦ and ΦΦᵀ."""
    n, f = phi.shape
    if f <= n:
        return matrix_path(phi.T @ phi, phi.T @ y, ridges)
    return np.moveaxis(np.tensordot(phi, matrix_path(phi @ phi.T, y, ridges), axes=(0, 1)), 1, 0)


def _by_column(solve: Callable[[np.ndarray], np.ndarray], y: Targets) -> np.ndarray:
    return solve(y) if y.ndim == 1 else np.stack([solve(column) for column in y.T], axis=2)


@dataclasses.dataclass(frozen=True)
class KernelFit:
    """A kernel ridge regression at `points`, its solver, and the final relative residual."""

    points: Matrix
    fit: RidgeFit
    choice: SolverChoice
    residual: float = 0.0
    converged: bool = True


def fit_kernel(
    kernel: Kernel,
    x: Matrix,
    Y: Matrix,
    ridges: float | Sequence[float] | None = None,
    *,
    weight: Float[np.ndarray, " n"] | None = None,
    intercept: bool = True,
    solver: Solver = "auto",
    memory: float | None = None,
) -> KernelFit:
    """Fit a ridge regression with weights and an intercept (see `unlazy.solvers.ridge`)."""
    if solver not in get_args(Solver):
        raise unknown("solver", str(solver), get_args(Solver))
    method = (
        choose(len(x), "choice", dtype=x.dtype, memory=memory).method
        if solver == "auto"
        else solver
    )
    if method == "exact":
        require_memory(len(x), memory, "solver='cg' stores no Gram matrix.")
        return KernelFit(
            x, fit_stored(kernel, x, Y, ridges, weight=weight, intercept=intercept), _EXACT
        )
    if method == "landmarks":
        return KernelFit(
            *fit_landmarks(kernel, x, Y, ridges, weight=weight, intercept=intercept), _LANDMARKS
        )
    return _fit_without_gram(
        kernel, x, Y, ridges, np.ones(len(x)) if weight is None else weight, intercept
    )


def fit_stored(
    kernel: Kernel,
    x: Matrix,
    Y: Matrix,
    ridges: float | Sequence[float] | None = None,
    *,
    weight: Float[np.ndarray, " n"] | None = None,
    intercept: bool = True,
    quick: bool = False,
    originals: Matrix | None = None,
) -> RidgeFit:
    """Fit with a stored Gram matrix, for all ridges or, with many points, only a few of them."""
    if len(x) > (QUICK_POINTS if quick else DECOMPOSED):
        return fit_factored(
            kernel,
            x,
            Y,
            ridges,
            weight=weight,
            intercept=intercept,
            quick=quick,
            originals=originals,
        )
    return fit_gram(
        double_gram(kernel, x, originals), Y, ridges, weight=weight, intercept=intercept
    )


class _Weighted(Kernel):
    """k(x, z)·√w(x)·√w(z) with √w as the last coordinate, for solvers without weights."""

    kernel: Kernel

    def __call__(self, x: Any, z: Any) -> Any:
        return self.kernel(x[:, :-1], z[:, :-1]) * x[:, -1:] * z[None, :, -1]

    def diagonal(self, x: Any) -> Any:
        return self.kernel.diagonal(x[:, :-1]) * x[:, -1] ** 2


def _fit_without_gram(
    kernel: Kernel,
    x: Matrix,
    Y: Matrix,
    ridges: float | Sequence[float] | None,
    weight: Float[np.ndarray, " n"],
    intercept: bool,
) -> KernelFit:
    """Fit by conjugate gradients, with the constant as one more column of targets."""
    if isinstance(ridges, int | float):
        ridge, grid, errors = float(ridges), np.array([ridges], float), np.array([np.nan])
    else:
        part = np.random.default_rng(0).permutation(len(x))[:CHOOSING_POINTS]
        chosen = fit_gram(
            double_gram(kernel, x[part]), Y[part], ridges, weight=weight[part], intercept=intercept
        )
        ridge, grid, errors = chosen.ridge, chosen.ridges, chosen.errors
    root = np.sqrt(weight)
    equal = bool(np.all(weight == 1))
    points = x if equal else np.column_stack([x, root]).astype(x.dtype)
    targets = np.column_stack([root[:, None] * Y, root]) if intercept else root[:, None] * Y
    solution = conjugate_gradients(kernel if equal else _Weighted(kernel), points, targets, ridge)
    solved, constant = solution.coefficients, np.zeros(Y.shape[1])
    if intercept:
        constant = (root @ solved[:, :-1]) / (root @ solved[:, -1])
        solved = without_penalty_on_constant(solved[:, :-1], solved[:, -1], root)
    fit = RidgeFit(root[:, None] * solved, constant, ridge, grid, errors)
    return KernelFit(
        x,
        fit,
        SolverChoice("cg", False, solution.precision),
        solution.residuals[-1],
        solution.converged,
    )
