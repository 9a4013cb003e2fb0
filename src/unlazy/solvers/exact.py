"""Exact solvers of kernel ridge regression, on the host in double precision: whole ridge paths,
leave-one-out, learning curves.

For a Gram matrix K and a ridge λ the coefficients are α = (K + λI)⁻¹·Y and the prediction at z is
Σ_i k(z, x_i)·α_i; λ is scikit-learn's `alpha`, not divided by the number of points.
`unlazy.solvers.policy` says when these are used, and when not.
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
#: Targets or predictions: of one output without an axis for it, or of several.
Targets = Float[np.ndarray, "n"] | Float[np.ndarray, "n o"]


@dataclasses.dataclass(frozen=True)
class RidgePath:
    """Kernel ridge regressions on the same points with many ridges, all from one reduction K =
    Q·T·Qᵀ to a tridiagonal T.

    It takes about half of the time of an eigendecomposition, and each ridge then costs n²
    operations: T + λI = L·D·Lᵀ with a bidiagonal L, and G = (K + λI)⁻¹ = Zᵀ·D⁻¹·Z with Z = L⁻¹·Qᵀ.

    Results have the ridges as their first axis, and an axis of outputs if Y had one.
    """

    ridges: Float[np.ndarray, " r"]
    Y: Targets
    diagonal: Float[np.ndarray, " n"]
    beside: Float[np.ndarray, " n-1"]
    rotation: Matrix

    @property
    def _targets(self) -> Matrix:
        return self.Y.reshape(len(self.Y), -1)

    def _shaped(self, result: Float[np.ndarray, "r n o"]) -> np.ndarray:
        return result.reshape(*result.shape[:2], *self.Y.shape[1:])

    def _factors(self) -> tuple[Float[np.ndarray, "n r"], Float[np.ndarray, "n r"]]:
        """D, and the entries of L below its diagonal (the last row is unused), for all ridges."""
        n = len(self.diagonal)
        D, below = np.empty((n, len(self.ridges))), np.zeros((n, len(self.ridges)))
        D[0] = self.diagonal[0] + self.ridges
        for i in range(1, n):
            below[i - 1] = self.beside[i - 1] / D[i - 1]
            D[i] = self.diagonal[i] + self.ridges - self.beside[i - 1] * below[i - 1]
        return D, below

    def _solved(self) -> Float[np.ndarray, "r n o"]:
        """α for all ridges."""
        inside = self.rotation.T @ self._targets
        found = [
            scipy.linalg.solveh_banded(
                np.stack([self.diagonal + ridge, np.r_[self.beside, 0]]),
                inside,
                lower=True,
                check_finite=False,
            )
            for ridge in self.ridges
        ]
        n, o = inside.shape
        together = self.rotation @ np.stack(found, axis=1).reshape(n, -1)
        result: np.ndarray = together.reshape(n, len(self.ridges), o).swapaxes(0, 1)
        return result

    @property
    def coefficients(self) -> np.ndarray:
        """α = (K + λI)⁻¹·Y for each ridge."""
        return self._shaped(self._solved())

    def leave_one_out(self) -> np.ndarray:
        """The prediction at each point by a fit to all others, y_i − α_i/G_ii, for each ridge."""
        D, below = self._factors()
        rows = self.rotation.T
        Z = np.repeat(rows[:1], len(self.ridges), axis=0)
        inverse = np.square(Z) / D[0][:, None]
        for i in range(1, len(D)):
            # Z of the next row, for all ridges at once; rows before are not needed any more.
            Z *= -below[i - 1][:, None]
            Z += rows[i]
            inverse += np.square(Z) / D[i][:, None]
        return self._shaped(self._targets - self._solved() / inverse[:, :, None])


def ridge_path(K: Matrix, Y: Targets, ridges: Sequence[float]) -> RidgePath:
    """Factorise the Gram matrix K once for all `ridges`. Only its lower triangle is read.

    Duplicated points are fine with ridges > 0. A K that lost its definiteness to rounding by more
    than the smallest ridge is refused.
    """
    K, Y = _regression(K, Y)
    values = finite_array("ridges", np.atleast_1d(ridges), 1)
    require(
        values.size > 0 and bool(np.all(values >= 0)),
        f"ridges must be numbers ≥ 0, but are {list(values)}.",
    )
    diagonal, beside, rotation = tridiagonal(K)
    ends = [
        float(
            scipy.linalg.eigvalsh_tridiagonal(
                diagonal, beside, select="i", select_range=(place, place)
            )[0]
        )
        for place in (0, len(K) - 1)
    ]
    floor = min_eigenvalue(ends[0], ends[1], len(K), float(values.min()))
    return RidgePath(values, Y, diagonal + max(floor - ends[0], 0.0), beside, rotation)


def min_eigenvalue(least: float, greatest: float, n: int, ridge: float) -> float:
    """The least eigenvalue of n: 0 where it is negative by rounding only.

    One that the ridge does not make positive is refused.
    """
    noise = n * np.finfo(np.float64).eps * max(greatest, 0)
    floor = least if least < -noise else max(least, 0.0)
    if floor + ridge <= (noise if ridge == 0 else 0):
        raise _indefinite(ridge, least)
    return floor


def tridiagonal(K: Matrix) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n-1"], Matrix]:
    """The diagonal and subdiagonal of T, and Q, in K = Q·T·Qᵀ for a symmetric K, of which the lower
    triangle is read.

    By one thread: half of it waits for the memory, and on a machine with other work several threads
    wait for each other.
    """
    n = len(K)
    with one_thread():
        size = int(scipy.linalg.lapack.dsytrd_lwork(n, lower=1)[0])
        reflectors, diagonal, beside, scales, _ = scipy.linalg.lapack.dsytrd(
            np.asfortranarray(K), lower=1, lwork=max(size, 1)
        )
        rotation = np.eye(n)
        if n > 1:
            # LAPACK's dorgtr, which SciPy lacks, is dorgqr on the part below the diagonal.
            rotation[1:, 1:] = scipy.linalg.lapack.dorgqr(
                reflectors[1:, :-1], scales, lwork=64 * n
            )[0]
    return diagonal, beside, rotation


@functools.cache
def _controller() -> ThreadpoolController:
    """Found once: looking for the libraries takes longer than factorising a small matrix."""
    return ThreadpoolController().select(user_api="blas")


def one_thread() -> Any:
    """A context in which linear algebra takes one thread."""
    return _controller().limit(limits=1)


def _threads(n: int, small: int) -> Any:
    """One thread for small matrices: several gain little there, and lose much on a busy machine,
    where they wait for each other.
    """
    return one_thread() if n <= small else contextlib.nullcontext()


def eigh(K: Matrix) -> tuple[Float[np.ndarray, " n"], Matrix]:
    """Eigenvalues and eigenvectors of a symmetric matrix."""
    with _threads(len(K), 1500):
        return np.linalg.eigh(K)


def prefix_coefficients(K: Matrix, Y: Targets, ridge: float, sizes: Sequence[int]) -> np.ndarray:
    """α of the fits to the first n points, for every n in `sizes` (the first axis), with zeros for
    the points beyond.

    With L·Lᵀ = K + λI and z = L⁻¹·Y, the prefixes of z are those of the prefixes' own systems, so
    that Lᵀ·α_n = z cut off at n: one factorisation and one triangular solve for all sizes.
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
        found = scipy.linalg.solve_triangular(
            L, cut.reshape(n, -1), lower=True, trans="T", overwrite_b=True, check_finite=False
        )
    return np.moveaxis(found.reshape(n, len(wanted), *Y.shape[1:]), 1, 0)


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
        f"sizes must increase from 1 or more to {n} or less, but are {sizes}.",
    )
    return wanted


@dataclasses.dataclass(frozen=True)
class Solution:
    """A fitted kernel ridge regression f(z) = Σ_i k(z, x_i)·α_i, and how it was found.

    `precision` is that in which the kernel was computed. An iterative solver tells its number of
    `iterations`, the relative `residuals` after each, and whether it `converged` to its tolerance.
    """

    kernel: Kernel
    x: Matrix
    coefficients: Targets
    precision: str
    iterations: int = 0
    residuals: tuple[float, ...] = ()
    converged: bool = True

    def predict(self, z: Float[np.ndarray, "t d"]) -> np.ndarray:
        """f(z_i), with the kernel made by blocks of rows and never stored."""
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
    """Bytes of memory of this machine; 8 GB where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 8 * 10**9


def finite_array(name: str, value: Any, ndim: int) -> np.ndarray:
    """An array of doubles, or an error that says what is wrong with it."""
    array = np.asarray(value, np.float64)
    require(array.ndim == ndim, f"{name} must have {ndim} axes, but has the shape {array.shape}.")
    bad = int(np.sum(~np.isfinite(array)))
    require(
        bad == 0,
        f"{name} must be finite, but {bad} of its {array.size} entries are NaN or infinite.",
    )
    return array


def targets_of(Y: Any, n: int) -> np.ndarray:
    """Targets of n points in double precision."""
    Y = np.asarray(Y, np.float64)
    require(
        Y.ndim in (1, 2) and len(Y) == n,
        f"Y must have one row for each of the {n} points, but has the shape {Y.shape}.",
    )
    return finite_array("Y", Y, Y.ndim)


def _regression(K: Any, Y: Any) -> tuple[np.ndarray, np.ndarray]:
    K = finite_array("K", K, 2)
    require(
        bool(K.shape[0] == K.shape[1] > 0),
        f"K must be a square Gram matrix, but has the shape {K.shape}.",
    )
    return K, targets_of(Y, len(K))


def points_and_targets(x: Any, Y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Points in their own precision and targets in double precision."""
    x = np.asarray(x)
    finite_array("x", x, 2)
    return x if x.dtype == np.float32 else x.astype(np.float64), targets_of(Y, len(x))


def cholesky(K: Matrix, ridge: float) -> Matrix:
    """The lower factor of K + λI, or an error that says what to do."""
    require(0 <= ridge < np.inf, f"ridge must be a finite number ≥ 0, but is {ridge}.")
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
    seen = "" if eigenvalue is None else f" (its least eigenvalue is {eigenvalue:.2e})"
    return BadInput(
        f"K + {ridge:g}·I is not positive definite{seen}. Use a greater ridge, compute K in "
        "double precision, within "
        "`jax.enable_x64(True)`, or check that K is the Gram matrix of a kernel."
    )
