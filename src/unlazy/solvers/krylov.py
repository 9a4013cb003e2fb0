"""Ridge paths on many points, from one Krylov space for all ridges.

After k products, the Lanczos method has an orthonormal basis Q of span{y, Ky, …, K^{k−1}y} and a
tridiagonal T = QᵀKQ. For every λ, Q·(T + λI)⁻¹·Qᵀy is the conjugate gradient solution of
(K + λI)·α = y after k iterations. An eigendecomposition costs about 9n³, k products 2k·n².

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

#: Products between two computations of the residual.
CHECK_EVERY = 10


class KrylovPath(NamedTuple):
    """α and the relative residual for each ridge, and the number of products."""

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
    """Solve (K + λI)·α = y for all `ridges`, where `product(v)` is K·v.

    It stops at residuals of at limit tolerance·‖y‖, or after `products` products. Full
    reorthogonalization in double precision needs memory for n·products numbers.
    """
    values = np.asarray(ridges, np.float64)
    require(
        values.size > 0 and bool(np.all(values > 0)),
        f"ridges must be positive, got {list(ridges)}.",
    )
    require(
        0 < tolerance < 1 and products > 0,
        f"tolerance must be in (0, 1) and products positive, got {tolerance} and {products}.",
    )
    n, norm = len(y), float(np.linalg.norm(y))
    if norm == 0:
        return KrylovPath(np.zeros((len(values), n)), np.zeros(len(values)), 0)
    limit = min(products, n)
    basis = np.empty((limit, n))
    diagonal, subdiagonal = np.empty(limit), np.empty(limit)
    vector, size = y / norm, 0
    while size < limit:
        basis[size] = vector
        image = np.asarray(product(vector), np.float64)
        diagonal[size] = vector @ image
        for _ in range(2):  # once is not enough if the image is almost in the span of the basis
            image = image - basis[: size + 1].T @ (basis[: size + 1] @ image)
        subdiagonal[size] = np.linalg.norm(image)
        exhausted = subdiagonal[size] <= 1e-12 * np.max(np.abs(diagonal[: size + 1]))
        size += 1
        if not exhausted:
            vector = image / subdiagonal[size - 1]
        if (
            exhausted
            or size == limit
            or (
                size % CHECK_EVERY == 0
                and _residual(diagonal, subdiagonal, size, values.min()) <= tolerance
            )
        ):
            break
    inside = np.stack([_tridiagonal(diagonal, subdiagonal, size, ridge) for ridge in values])
    return KrylovPath(
        norm * (inside @ basis[:size]), subdiagonal[size - 1] * np.abs(inside[:, -1]), size
    )


def _tridiagonal(
    diagonal: np.ndarray, subdiagonal: np.ndarray, size: int, ridge: float
) -> np.ndarray:
    """Return (T + λI)⁻¹·e₁ for the leading part of T."""
    bands = np.zeros((2, size))
    bands[0] = diagonal[:size] + ridge
    bands[1, :-1] = subdiagonal[: size - 1]
    first = np.zeros(size)
    first[0] = 1
    # Rounding errors of the products may make T indefinite, so it is solved as a general band
    # matrix.
    banded = np.stack([np.r_[0, bands[1, :-1]], bands[0], bands[1]])
    result: np.ndarray = scipy.linalg.solve_banded((1, 1), banded, first, check_finite=False)
    return result


def _residual(diagonal: np.ndarray, subdiagonal: np.ndarray, size: int, ridge: float) -> float:
    value = subdiagonal[size - 1] * abs(_tridiagonal(diagonal, subdiagonal, size, ridge)[-1])
    return float(value) if math.isfinite(value) else math.inf
