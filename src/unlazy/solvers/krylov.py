"""Ridge paths on many points: one Krylov space, found by products with the kernel, solves for all
ridges at once.

After k products, Lanczos' method has an orthonormal basis Q of span{y, Ky, …, K^{k−1}y} and a
tridiagonal T = QᵀKQ; Q·(T + λI)⁻¹·Qᵀy is the conjugate gradient solution of (K + λI)·α = y after k
iterations, for every λ. An eigendecomposition costs about 9n³, k products 2k·n².

Reference: Frommer and Maass, Fast CG-based methods for Tikhonov-Phillips regularization, 1999.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg
from jaxtyping import Float

from unlazy.core.errors import require

#: Products between two looks at the residual.
LOOK = 10


class KrylovPath(NamedTuple):
    """α for each ridge, the relative residual of each as Lanczos' method knows it, and the number
    of products.
    """

    coefficients: Float[np.ndarray, "r n"]
    residuals: Float[np.ndarray, " r"]
    products: int


def krylov_path(
    product: Callable[[np.ndarray], np.ndarray],
    y: Float[np.ndarray, " n"],
    ridges: Sequence[float],
    *,
    tolerance: float = 1e-6,
    products: int = 500,
) -> KrylovPath:
    """Solve (K + λI)·α = y for all `ridges`, where `product(v)` is K·v, to residuals of at most
    tolerance·‖y‖ or with so many products.

    The basis is kept orthogonal in double precision by full reorthogonalisation, so that it takes
    n·products numbers of memory.
    """
    values = np.asarray(ridges, np.float64)
    require(
        values.size > 0 and bool(np.all(values > 0)),
        f"ridges must be positive numbers, but are {list(ridges)}.",
    )
    require(
        0 < tolerance < 1 and products > 0,
        "tolerance must be between 0 and 1, and products positive.",
    )
    n, norm = len(y), float(np.linalg.norm(y))
    if norm == 0:
        return KrylovPath(np.zeros((len(values), n)), np.zeros(len(values)), 0)
    most = min(products, n)
    basis = np.empty((most, n))
    diagonal, beside = np.empty(most), np.empty(most)
    vector, size = y / norm, 0
    while size < most:
        basis[size] = vector
        image = np.asarray(product(vector), np.float64)
        diagonal[size] = vector @ image
        for _ in range(2):  # once is not enough where the image lies almost within the basis
            image = image - basis[: size + 1].T @ (basis[: size + 1] @ image)
        beside[size] = np.linalg.norm(image)
        exhausted = beside[size] <= 1e-12 * np.max(np.abs(diagonal[: size + 1]))
        size += 1
        if not exhausted:
            vector = image / beside[size - 1]
        if (
            exhausted
            or size == most
            or (size % LOOK == 0 and _residual(diagonal, beside, size, values.min()) <= tolerance)
        ):
            break
    inside = np.stack([_tridiagonal(diagonal, beside, size, ridge) for ridge in values])
    return KrylovPath(
        norm * (inside @ basis[:size]), beside[size - 1] * np.abs(inside[:, -1]), size
    )


def _tridiagonal(diagonal: np.ndarray, beside: np.ndarray, size: int, ridge: float) -> np.ndarray:
    """(T + λI)⁻¹·e₁ for the leading part of T."""
    bands = np.zeros((2, size))
    bands[0] = diagonal[:size] + ridge
    bands[1, :-1] = beside[: size - 1]
    first = np.zeros(size)
    first[0] = 1
    # T has the rounding errors of the products and need not be definite, so it is solved as a
    # general band matrix.
    banded = np.stack([np.r_[0, bands[1, :-1]], bands[0], bands[1]])
    result: np.ndarray = scipy.linalg.solve_banded((1, 1), banded, first, check_finite=False)
    return result


def _residual(diagonal: np.ndarray, beside: np.ndarray, size: int, ridge: float) -> float:
    value = beside[size - 1] * abs(_tridiagonal(diagonal, beside, size, ridge)[-1])
    return float(value) if math.isfinite(value) else math.inf
