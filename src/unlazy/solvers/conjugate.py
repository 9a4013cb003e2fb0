"""Kernel ridge regression without a stored Gram matrix, by preconditioned conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from unlazy.core.errors import BadInput, require
from unlazy.core.threads import in_threads
from unlazy.kernels.base import Kernel
from unlazy.kernels.gram import gram
from unlazy.solvers.exact import Matrix, Solution, Targets, points_and_targets

#: Rows and columns per block of the kernel.
BLOCK = 1024
#: Iterations in which the residual must halve in single precision.
STALL_ITERATIONS = 20


def default_rank(n: int) -> int:
    """Return the number of points of the preconditioner, min(n, 5·√n)."""
    return min(n, max(1, int(5 * n**0.5)))


def product(
    kernel: Kernel, x: Matrix, V: Float[np.ndarray, "n o"], *, block: int = BLOCK
) -> Float[np.ndarray, "n o"]:
    """Return K·V for the Gram matrix K of x, in the precision of x, without storing K."""
    n = len(x)
    block = min(block, n)
    pad = ((0, -n % block), (0, 0))
    points = np.pad(x, pad).reshape(-1, block, x.shape[1])
    vectors = np.pad(V.astype(x.dtype), pad).reshape(-1, block, V.shape[1])
    result = np.zeros(vectors.shape)

    def work(pair: tuple[int, int]) -> Any:
        i, j = pair
        with jax.enable_x64(x.dtype == np.float64):
            if i == j:
                return np.asarray(_diagonal_product(kernel, points[i], vectors[i])), None
            first, second = _two_products(kernel, points[i], points[j], vectors[i], vectors[j])
            return np.asarray(first), np.asarray(second)

    pairs = [(i, j) for i in range(len(points)) for j in range(i, len(points))]
    # Added in the order of the pairs, so that the sum does not depend on the threads.
    for (i, j), (first, second) in zip(pairs, in_threads(work, pairs), strict=True):
        result[i] += first
        if second is not None:
            result[j] += second
    return result.reshape(-1, V.shape[1])[:n]


@eqx.filter_jit
def _two_products(kernel: Kernel, x: Any, z: Any, of_x: Any, of_z: Any) -> Any:
    K = kernel(x, z)
    return K @ of_z, K.T @ of_x


@eqx.filter_jit
def _diagonal_product(kernel: Kernel, x: Any, of_x: Any) -> Any:
    return gram(kernel, x) @ of_x


class Nystroem:
    """The preconditioner P⁻¹ = I + U·diag((s_k + λ)/(s + λ) − 1)·Uᵀ.

    U·diag(s)·Uᵀ is the Nyström approximation of the kernel from k random points. It maps the k
    largest eigenvalues of K + λI approximately to s_k + λ, the smallest of them.

    Reference: Frangella, Tropp and Udell, Randomized Nyström preconditioning, 2023.
    """

    def __init__(self, kernel: Kernel, x: Matrix, ridge: float, rank: int, seed: int) -> None:
        chosen = x[np.random.default_rng(seed).choice(len(x), rank, replace=False)]
        with jax.enable_x64(x.dtype == np.float64):
            columns = np.asarray(gram(kernel, x, chosen), np.float64)
            values, vectors = np.linalg.eigh(np.asarray(gram(kernel, chosen), np.float64))
        # Directions below the rounding errors, such as those of duplicated points, are dropped.
        keep = values > rank * np.finfo(x.dtype).eps * values[-1]
        self.factor = columns @ (vectors[:, keep] / np.sqrt(values[keep]))
        del columns
        spectrum, turn = np.linalg.eigh(self.factor.T @ self.factor)
        keep = spectrum > rank * np.finfo(np.float64).eps * spectrum[-1]
        spectrum, turn = spectrum[keep], turn[:, keep]
        self.core = (turn * (((spectrum[0] + ridge) / (spectrum + ridge) - 1) / spectrum)) @ turn.T

    def __call__(self, V: Float[np.ndarray, "n o"]) -> Float[np.ndarray, "n o"]:
        """Return P⁻¹·V."""
        result: np.ndarray = V + self.factor @ (self.core @ (self.factor.T @ V))
        return result


def conjugate_gradients(
    kernel: Kernel,
    x: Matrix,
    Y: Targets,
    ridge: float,
    *,
    tolerance: float = 1e-6,
    iterations: int = 200,
    rank: int | None = None,
    block: int = BLOCK,
    seed: int = 0,
) -> Solution:
    """Solve (K + λI)·α = Y without storing K, by preconditioned conjugate residuals.

    Each iteration minimizes the residual in the norm of the preconditioner (Hestenes and Stiefel).
    Conjugate gradients minimize the error of α instead, and their early iterations fit noise.

    It stops if the residual of every output is at most `tolerance` times its norm, or after
    `iterations`. `rank` is the number of points of the preconditioner (`Nystroem`), by default
    5·√n.

    The kernel has the precision of `x`. If K + λI is indefinite in single precision, or the true
    residual exceeds the iterated one, the iteration continues in double precision.
    """
    x, Y = points_and_targets(x, Y)
    n = len(x)
    require(0 < ridge < np.inf, f"ridge must be finite and > 0, got {ridge}.")
    require(0 < tolerance < 1, f"tolerance must be in (0, 1), got {tolerance}.")
    require(iterations > 0 and block > 0, "iterations and block must be positive.")
    rank = default_rank(n) if rank is None else rank
    require(0 <= rank <= n, f"rank must be between 0 and {n}, the number of points, got {rank}.")
    state = _State(Y.reshape(n, -1))
    for precision in ("float32", "float64") if x.dtype == np.float32 else ("float64",):
        points = x.astype(precision)
        precondition: Callable[[np.ndarray], np.ndarray] = (
            Nystroem(kernel, points, ridge, rank, seed) if rank else lambda V: V
        )
        outcome = _iterate(kernel, points, ridge, state, precondition, tolerance, iterations, block)
        if outcome != "too coarse":
            break
    else:
        raise BadInput(
            "K + ridge·I is not positive definite in double precision. Use a larger ridge, or "
            "check that the kernel is positive semidefinite."
        )
    return Solution(
        kernel,
        x,
        state.alpha.reshape(Y.shape),
        precision,
        iterations=len(state.residuals),
        residuals=tuple(state.residuals),
        converged=outcome == "converged",
    )


class _State:
    """The state that is kept if the precision changes."""

    def __init__(self, targets: Float[np.ndarray, "n o"]) -> None:
        self.targets = targets
        self.alpha = np.zeros_like(targets)
        self.residuals: list[float] = []


def _iterate(
    kernel: Kernel,
    x: Matrix,
    ridge: float,
    state: _State,
    precondition: Callable[[np.ndarray], np.ndarray],
    tolerance: float,
    iterations: int,
    block: int,
) -> str:
    """Iterate from `state`; return "converged", "exhausted" or "too coarse"."""

    def apply(V: np.ndarray) -> np.ndarray:
        return product(kernel, x, V, block=block) + ridge * V

    norms = np.maximum(np.linalg.norm(state.targets, axis=0), np.finfo(np.float64).tiny)
    single = x.dtype == np.float32
    begin = len(state.residuals)
    fresh = True  # whether to restart from the true residual
    while len(state.residuals) < iterations:
        if fresh:
            R = state.targets - apply(state.alpha) if state.alpha.any() else state.targets.copy()
            if (
                len(state.residuals) > begin
                and float(np.max(np.linalg.norm(R, axis=0) / norms)) <= 2 * tolerance
            ):
                return "converged"
            if len(state.residuals) > begin and single:
                # The iterated residual does not include the rounding errors of the products.
                return "too coarse"
            Z = precondition(R)
            AZ = apply(Z)
            P, AP, curvature = Z, AZ, np.sum(Z * AZ, axis=0)
        moving = np.any(R != 0, axis=0)
        if np.any(moving & ~(curvature > 0)):
            return "too coarse"
        Q = precondition(AP)
        step = np.where(moving, curvature / np.where(moving, np.sum(AP * Q, axis=0), 1), 0)
        state.alpha, R, Z = state.alpha + step * P, R - step * AP, Z - step * Q
        residual = float(np.max(np.linalg.norm(R, axis=0) / norms))
        state.residuals.append(residual)
        recent = state.residuals[begin:]
        if (
            single
            and len(recent) > STALL_ITERATIONS
            and min(recent) > min(recent[:-STALL_ITERATIONS]) / 2
        ):
            return "too coarse"
        fresh = residual <= tolerance
        if not fresh:
            AZ = apply(Z)
            before, curvature = curvature, np.sum(Z * AZ, axis=0)
            ratio = np.where(moving, curvature / np.where(moving, before, 1), 0)
            P, AP = Z + ratio * P, AZ + ratio * AP
    return "exhausted"
