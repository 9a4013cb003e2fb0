"""Exact kernel ridge regression in double precision: ridge paths, leave-one-out, learning curves.

For a Gram matrix K and a ridge λ, the coefficients are α = (K + λI)⁻¹·Y and the prediction at z is
Σ_i k(z, x_i)·α_i. λ is `alpha` of scikit-learn, not divided by the number of points.
`unlazy.solvers.policy` selects between these and other solvers.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import scipy.linalg
from jaxtyping import Float
from threadpoolctl import ThreadpoolController

from unlazy.core.errors import BadInput, require
from unlazy.kernels.base import Kernel
from unlazy.kernels.gram import gram

Matrix = Float[np.ndarray, "_ _"]
#: Targets or predictions of one output, without an axis for it, or of several outputs.
Targets = Float[np.ndarray, "n"] | Float[np.ndarray, "n o"]


@dataclasses.dataclass(frozen=True)
class RidgePath:
    """Kernel ridge regressions with many ridges from one tridiagonal reduction K = Q·T·Qᵀ.

    The reduction takes about half the time of an eigendecomposition, and each ridge n² operations:
    T + λI = L·D·Lᵀ with a bidiagonal L, and G = (K + λI)⁻¹ = Zᵀ·D⁻¹·Z with Z = L⁻¹·Qᵀ. The first
    axis of results are the ridges; there is an axis of outputs if Y has one.
    """

    ridges: Float[np.ndarray, " r"]
    Y: Targets
    diagonal: Float[np.ndarray, " n"]
    subdiagonal: Float[np.ndarray, " n-1"]
    rotation: Matrix

    @property
    def _targets(self) -> Matrix:
        return self.Y.reshape(len(self.Y), -1)

    def _shaped(self, result: Float[np.ndarray, "r n o"]) -> np.ndarray:
        return result.reshape(*result.shape[:2], *self.Y.shape[1:])

    def _factors(self) -> tuple[Float[np.ndarray, "n r"], Float[np.ndarray, "n r"]]:
        """Return D and the subdiagonal of L (the last row is unused) for all ridges."""
        n = len(self.diagonal)
        D, below = np.empty((n, len(self.ridges))), np.zeros((n, len(self.ridges)))
        D[0] = self.diagonal[0] + self.ridges
        for i in range(1, n):
            below[i - 1] = self.subdiagonal[i - 1] / D[i - 1]
            D[i] = self.diagonal[i] + self.ridges - self.subdiagonal[i - 1] * below[i - 1]
        return D, below

    def _solved(self) -> Float[np.ndarray, "r n o"]:
        """Return α for all ridges."""
        inside = self.rotation.T @ self._targets
        solutions = [
            scipy.linalg.solveh_banded(
                np.stack([self.diagonal + ridge, np.r_[self.subdiagonal, 0]]),
                inside,
                lower=True,
                check_finite=False,
            )
            for ridge in self.ridges
        ]
        n, o = inside.shape
        together = self.rotation @ np.stack(solutions, axis=1).reshape(n, -1)
        result: np.ndarray = together.reshape(n, len(self.ridges), o).swapaxes(0, 1)
        return result

    @property
    def coefficients(self) -> np.ndarray:
        """α = (K + λI)⁻¹·Y for each ridge."""
        return self._shaped(self._solved())

    def leave_one_out(self) -> np.ndarray:
        """Return the leave-one-out predictions y_i − α_i/G_ii for each ridge."""
        D, below = self._factors()
        rows = self.rotation.T
        Z = np.repeat(rows[:1], len(self.ridges), axis=0)
        inverse = np.square(Z) / D[0][:, None]
        for i in range(1, len(D)):
            # The next row of Z, for all ridges; previous rows are not needed.
            Z *= -below[i - 1][:, None]
            Z += rows[i]
            inverse += np.square(Z) / D[i][:, None]
        return self._shaped(self._targets - self._solved() / inverse[:, :, None])


def ridge_path(K: Matrix, Y: Targets, ridges: Sequence[float]) -> RidgePath:
    """Factorize the Gram matrix K once for all `ridges`, reading only its lower triangle.

    Duplicated points require ridges > 0. Raises `BadInput` if an eigenvalue is negative by more
    than the smallest ridge.
    """
    K, Y = _regression(K, Y)
    values = finite_array("ridges", np.atleast_1d(ridges), 1)
    require(
        values.size > 0 and bool(np.all(values >= 0)),
        f"ridges must be ≥ 0, got {list(values)}.",
    )
    diagonal, subdiagonal, rotation = tridiagonal(K)
    ends = [
        float(
            scipy.linalg.eigvalsh_tridiagonal(
                diagonal, subdiagonal, select="i", select_range=(index, index)
            )[0]
        )
        for index in (0, len(K) - 1)
    ]
    floor = min_eigenvalue(ends[0], ends[1], len(K), float(values.min()))
    return RidgePath(values, Y, diagonal + max(floor - ends[0], 0.0), subdiagonal, rotation)


def min_eigenvalue(smallest: float, largest: float, n: int, ridge: float) -> float:
    """Return the smallest of n eigenvalues, or 0 if it is negative only by rounding.

    Raises `BadInput` unless adding the ridge makes it positive.
    """
    noise = n * np.finfo(np.float64).eps * max(largest, 0)
    floor = smallest if smallest < -noise else max(smallest, 0.0)
    if floor + ridge <= (noise if ridge == 0 else 0):
        raise _indefinite(ridge, smallest)
    return floor


def tridiagonal(K: Matrix) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n-1"], Matrix]:
    """Return the diagonal and subdiagonal of T, and Q, in K = Q·T·Qᵀ for a symmetric K.

    Only the lower triangle is read. One thread is used, because half of the work is memory-bound
    and several threads wait for each other on a busy machine.
    """
    n = len(K)
    with one_thread():
        size = int(scipy.linalg.lapack.dsytrd_lwork(n, lower=1)[0])
        reflectors, diagonal, subdiagonal, scales, _ = scipy.linalg.lapack.dsytrd(
            np.asfortranarray(K), lower=1, lwork=max(size, 1)
        )
        rotation = np.eye(n)
        if n > 1:
            # LAPACK's dorgtr, which SciPy lacks, is dorgqr on the part below the diagonal.
            rotation[1:, 1:] = scipy.linalg.lapack.dorgqr(
                reflectors[1:, :-1], scales, lwork=64 * n
            )[0]
    return diagonal, subdiagonal, rotation


@functools.cache
def _controller() -> ThreadpoolController:
    """Return the BLAS controller, cached because finding the libraries is slow."""
    return ThreadpoolController().select(user_api="blas")


def one_thread() -> Any:
    """Return a context in which BLAS uses one thread."""
    return _controller().limit(limits=1)


def _threads(n: int, small: int) -> Any:
    """Return a context with one thread for small matrices, where more threads gain little."""
    return one_thread() if n <= small else contextlib.nullcontext()


def eigh(K: Matrix) -> tuple[Float[np.ndarray, " n"], Matrix]:
    """Return the eigenvalues and eigenvectors of a symmetric matrix."""
    with _threads(len(K), 1500):
        return np.linalg.eigh(K)


def prefix_coefficients(K: Matrix, Y: Targets, ridge: float, sizes: Sequence[int]) -> np.ndarray:
    """Return α of the fits to the first n points for every n in `sizes` (the first axis).

    Entries of other points are zero. With L·Lᵀ = K + λI and z = L⁻¹·Y, the solution satisfies
    Lᵀ·α_n = z with entries beyond n set to 0. So one factorization serves all sizes.
    """
    K, Y = _regression(K, Y)
    n = len(K)
    wanted = _prefixes(sizes, n)
    with _threads(n, 3000):
        L = cholesky(K, ridge)
        z = scipy.linalg.solve_triangular(
            L, Y.reshape(n, -1), lower=True, check_finite=False
        )  # n o
        cut = (np.arange(n)[:, None] < wanted)[:, :, None] * z[:, None]  # n s o
        alpha = scipy.linalg.solve_triangular(
            L, cut.reshape(n, -1), lower=True, trans="T", overwrite_b=True, check_finite=False
        )
    return np.moveaxis(alpha.reshape(n, len(wanted), *Y.shape[1:]), 1, 0)


def _prefixes(sizes: Sequence[int], n: int) -> np.ndarray:
    wanted = np.asarray(sizes)
    require(
        bool(
            wanted.ndim == 1
            and wanted.size > 0
            and np.all(np.diff(wanted) > 0)
            and 1 <= wanted[0]
            and wanted[-1] <= n
        ),
        f"sizes must be increasing and between 1 and {n}, got {sizes}.",
    )
    return wanted


@dataclasses.dataclass(frozen=True)
class Solution:
    """A fitted kernel ridge regression f(z) = Σ_i k(z, x_i)·α_i.

    `precision` is that of the kernel. Iterative solvers report the number of `iterations`, the
    relative `residuals` after each, and whether they `converged`.
    """

    kernel: Kernel
    x: Matrix
    coefficients: Targets
    precision: str
    iterations: int = 0
    residuals: tuple[float, ...] = ()
    converged: bool = True

    def predict(self, z: Float[np.ndarray, "t d"]) -> np.ndarray:
        """Return f(z_i), computing the kernel by blocks of rows."""
        z = finite_array("z", z, 2)
        rows = max(1, 2**24 // len(self.x))
        with jax.enable_x64(self.precision == "float64"):
            parts = [
                np.asarray(
                    gram(
                        self.kernel,
                        z[i : i + rows].astype(self.precision),
                        self.x.astype(self.precision),
                    ),
                    np.float64,
                )
                @ self.coefficients
                for i in range(0, len(z), rows)
            ]
        return np.concatenate(parts)


def machine_memory() -> int:
    """Return the memory of this machine in bytes, or 8 GB if unknown."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 8 * 10**9


def finite_array(name: str, value: Any, ndim: int) -> np.ndarray:
    """Return the value as a float64 array, or raise `BadInput`."""
    array = np.asarray(value, np.float64)
    require(array.ndim == ndim, f"{name} must have {ndim} axes, got shape {array.shape}.")
    bad = int(np.sum(~np.isfinite(array)))
    require(
        bad == 0,
        f"{name} must be finite; {bad} of its {array.size} entries are NaN or infinite.",
    )
    return array


def targets_of(Y: Any, n: int) -> np.ndarray:
    """Return the targets of n points in double precision."""
    Y = np.asarray(Y, np.float64)
    require(
        Y.ndim in (1, 2) and len(Y) == n,
        f"Y must have {n} rows, one per point, got shape {Y.shape}.",
    )
    return finite_array("Y", Y, Y.ndim)


def _regression(K: Any, Y: Any) -> tuple[np.ndarray, np.ndarray]:
    K = finite_array("K", K, 2)
    require(
        bool(K.shape[0] == K.shape[1] > 0),
        f"K must be square, got shape {K.shape}.",
    )
    return K, targets_of(Y, len(K))


def points_and_targets(x: Any, Y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the points in their own precision and the targets in double precision."""
    x = np.asarray(x)
    finite_array("x", x, 2)
    return x if x.dtype == np.float32 else x.astype(np.float64), targets_of(Y, len(x))


def cholesky(K: Matrix, ridge: float) -> Matrix:
    """Return the lower Cholesky factor of K + λI, or raise `BadInput`."""
    require(0 <= ridge < np.inf, f"ridge must be finite and ≥ 0, got {ridge}.")
    shifted = np.array(K, order="F")
    shifted.flat[:: len(K) + 1] += ridge
    try:
        result: Matrix = scipy.linalg.cholesky(
            shifted, lower=True, overwrite_a=True, check_finite=False
        )
        return result
    except np.linalg.LinAlgError:
        raise _indefinite(ridge) from None


def _indefinite(ridge: float, eigenvalue: float | None = None) -> BadInput:
    detail = "" if eigenvalue is None else f" (smallest eigenvalue of K: {eigenvalue:.2e})"
    return BadInput(
        f"K + {ridge:g}·I is not positive definite{detail}. Use a larger ridge, compute K in "
        "double precision (`jax.enable_x64(True)`), or check that K is a Gram matrix."
    )
