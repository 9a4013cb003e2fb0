"""Ridge regression on tens of thousands of points in the span of the kernel at landmarks (Nyström).

With landmarks z and K_zz = L·Lᵀ, kernel ridge regression within the span of k(·, z) is ridge
regression on the features φ(x) = L⁻¹·k(z, x). The sums of k(z, x)·k(z, x)ᵀ and k(z, x)·y over all
points x are computed by blocks in double precision, so memory is that of a few matrices of the
landmarks. Leave-one-out on `CHOOSING_POINTS` points selects a first ridge. Held-out points then
search for a minimum among ridges near it, and the final fit uses all points.

Reference: Rudi, Camoriano and Rosasco, Less is more: Nyström computational regularization, 2015.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import numpy as np
import scipy.linalg
from jaxtyping import Float

from unlazy.core.errors import require
from unlazy.kernels.base import Kernel
from unlazy.kernels.gram import gram
from unlazy.solvers.exact import Matrix
from unlazy.solvers.ridge import RidgeFit, double_gram, fit_gram
from unlazy.solvers.single import CHOOSING_POINTS

#: Number of landmarks, and points per block.
LANDMARKS, BLOCK = 5_000, 2_048
#: Maximum number and fraction of points held out to select a ridge.
MAX_HELD_OUT, HELD_OUT_FRACTION = 2_000, 0.1
#: Added to the diagonal of K_zz, in units of its mean, against rounding errors of close landmarks.
JITTER = 1e-10


def landmark_bytes(n: int) -> int:
    """Return the bytes of a fit to n points: six matrices of the landmarks, and a block."""
    m = min(n, LANDMARKS)
    return 8 * m * (6 * m + 2 * BLOCK)


def fit_landmarks(
    kernel: Kernel,
    x: Matrix,
    Y: Matrix,
    ridges: float | Sequence[float] | None = None,
    *,
    weight: Float[np.ndarray, " n"] | None = None,
    intercept: bool = True,
    landmarks: int = LANDMARKS,
    seed: int = 0,
) -> tuple[Matrix, RidgeFit]:
    """Return landmarks z, drawn from distinct points, and a fit f(·) = Σ_j k(·, z_j)·α_j + c.

    `ridges` and `weight` as in `fit_gram`. `errors` of the fit are mean squared errors on held-out
    points, or NaN for ridges that were not tried.
    """
    x, n = np.asarray(x, np.float64), len(x)
    weight = np.ones(n) if weight is None else weight
    draw = np.random.default_rng(seed)
    _, first, same = np.unique(x, axis=0, return_index=True, return_inverse=True)
    same = same.ravel()
    z = x[np.sort(draw.permutation(first)[:landmarks])]
    span = _Span(kernel, z)
    if isinstance(ridges, int | float):
        require(0 < ridges < np.inf, f"ridge must be finite and > 0, got {ridges}.")
        sums = _Sums(span, Y.shape[1], intercept).add(x, Y, weight)
        return z, RidgeFit(
            *sums.solver()(float(ridges)),
            float(ridges),
            np.array([float(ridges)]),
            np.array([np.nan]),
        )
    some = draw.permutation(first)[:CHOOSING_POINTS]
    few = fit_gram(
        double_gram(kernel, x[some]), Y[some], ridges, weight=weight[some], intercept=intercept
    )
    order = np.argsort(few.ridges)
    grid, index = few.ridges[order], int(np.argmin(few.errors[order]))
    # Equal points are held out together, or else the smallest ridge would be the best.
    groups = draw.permutation(len(first))
    limit = min(MAX_HELD_OUT, HELD_OUT_FRACTION * n)
    held = np.isin(same, groups[np.cumsum(np.bincount(same)[groups]) <= limit])
    sums = _Sums(span, Y.shape[1], intercept).add(x[~held], Y[~held], weight[~held])
    errors = np.full(len(grid), np.nan)
    if held.any():
        solve, columns = sums.solver(), span.columns(x[held])
        while index >= 0:
            alpha, constant = solve(float(grid[index]))
            wrong = np.square(Y[held] - columns @ alpha - constant).sum(axis=1)
            errors[index] = weight[held] @ wrong / weight[held].sum()
            best = int(np.nanargmin(errors))
            index = next(
                (i for i in (best + 1, best - 1) if 0 <= i < len(grid) and np.isnan(errors[i])), -1
            )
        index = best
        sums.add(x[held], Y[held], weight[held])
    return z, RidgeFit(*sums.solver()(float(grid[index])), float(grid[index]), grid, errors)


class _Span:
    """The functions k(·, z) with the factor L of K_zz."""

    def __init__(self, kernel: Kernel, z: Matrix) -> None:
        self.kernel, self.z = kernel, z
        K = double_gram(kernel, z)
        K.flat[:: len(K) + 1] += JITTER * np.trace(K) / len(K)
        self.factor = scipy.linalg.cholesky(K, lower=True, overwrite_a=True, check_finite=False)

    def columns(self, x: Matrix) -> Matrix:
        """Return k(x, z), one row per point."""
        with jax.enable_x64(True):
            return np.asarray(gram(self.kernel, x, self.z))


class _Sums:
    """Weighted sums of k(z, x)·k(z, x)ᵀ (its lower half), k(z, x), k(z, x)·yᵀ, y and 1."""

    def __init__(self, span: _Span, outputs: int, intercept: bool) -> None:
        m = len(span.z)
        self.span, self.intercept = span, intercept
        self.squares, self.firsts, self.with_targets = (
            np.zeros((m, m), order="F"),
            np.zeros(m),
            np.zeros((m, outputs)),
        )
        self.targets, self.weight = np.zeros(outputs), 0.0

    def add(self, x: Matrix, Y: Matrix, weight: Float[np.ndarray, " n"]) -> _Sums:
        """Add points to the sums."""
        for start in range(0, len(x), BLOCK):
            rows = slice(start, start + BLOCK)
            columns, root = self.span.columns(x[rows]), np.sqrt(weight[rows])[:, None]
            scaled = root * columns
            self.squares = scipy.linalg.blas.dsyrk(
                1.0, scaled.T, beta=1.0, c=self.squares, lower=1, overwrite_c=1
            )
            self.firsts += columns.T @ weight[rows]
            self.with_targets += scaled.T @ (root * Y[rows])
            self.targets += weight[rows] @ Y[rows]
            self.weight += float(weight[rows].sum())
        return self

    def solver(self) -> Callable[[float], tuple[Matrix, Float[np.ndarray, " o"]]]:
        """Return a function from a ridge to coefficients of the landmarks and intercepts."""
        mean_k = self.firsts / self.weight if self.intercept else np.zeros_like(self.firsts)
        mean_y = self.targets / self.weight if self.intercept else np.zeros_like(self.targets)
        centered = self.squares - np.outer(self.weight * mean_k, mean_k)
        factor = self.span.factor
        transformed, _ = scipy.linalg.lapack.dsygst(
            np.asfortranarray(centered), factor, itype=1, lower=1, overwrite_a=1
        )
        right = scipy.linalg.solve_triangular(
            factor,
            self.with_targets - np.outer(self.weight * mean_k, mean_y),
            lower=True,
            check_finite=False,
        )

        def solve(ridge: float) -> tuple[Matrix, Float[np.ndarray, " o"]]:
            shifted = transformed.copy(order="F")
            shifted.flat[:: len(shifted) + 1] += ridge
            chosen = scipy.linalg.cho_factor(
                shifted, lower=True, overwrite_a=True, check_finite=False
            )
            inner = scipy.linalg.cho_solve(chosen, right, check_finite=False)
            alpha = scipy.linalg.solve_triangular(
                factor, inner, lower=True, trans=1, check_finite=False
            )
            return alpha, mean_y - mean_k @ alpha

        return solve
