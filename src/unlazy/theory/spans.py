"""Distance of parities from the span of few functions on the cube, for any choice of weights.

Functions g_1 … g_N on {±1}^d have Fourier coefficients M_S ∈ R^N. Their best linear combination
approximates x_i + α·χ_S with squared error

    1 + α² − ‖P(x_i + α·χ_S)‖²,

with P the orthogonal projection onto the span. As Σ_S ‖P χ_S‖² ≤ N over all sets S of k
coordinates, at most N/0.9 of them have ‖P χ_S‖² ≥ 0.9. This is necessary for ⟨M_S, a⟩ ≥ ¾α and
Σ_{S'≠S} ⟨M_{S'}, a⟩² ≤ α²/16 with one a.

Reference: allenzhu2019, Appendix D, Lemma D.2 (whose bound is R/2 < R of R columns).
"""

from __future__ import annotations

import functools

import numpy as np
import scipy.linalg
from jaxtyping import Float

from unlazy.core.errors import require
from unlazy.theory.walsh import degrees

#: Minimum ‖P χ_S‖² for both inequalities of Lemma D.2 with one vector: (9/16)·(1/P − 1) ≤ 1/16.
ENOUGH = 0.9


def rank_leverages(M: Float[np.ndarray, "N R"]) -> Float[np.ndarray, " R"]:
    """Return P_rr of the projection onto the row space of M, per column r.

    They measure how well a column can be singled out, and sum to the rank of M.
    """
    _, sizes, rows = scipy.linalg.svd(M, full_matrices=False)
    kept = rows[sizes > 1e-9 * max(sizes.max(initial=0.0), 1e-300)]
    result: np.ndarray = np.sum(np.square(kept), axis=0)
    return result


def _walsh_columns(values: Float[np.ndarray, "p N"]) -> Float[np.ndarray, "p N"]:
    """Return Fourier coefficients of each column, in double precision."""
    count, columns = values.shape
    m = count.bit_length() - 1
    require(count == 1 << m, f"A function of m signs has 2^m values, got {count}.")
    sums = np.array(values, np.float64)
    for bit in range(m):
        block = sums.reshape(1 << bit, 2, -1, columns)
        upper, lower = block[:, 0].copy(), block[:, 1].copy()
        block[:, 0], block[:, 1] = upper + lower, upper - lower
    result: np.ndarray = sums / count
    return result


@functools.lru_cache(maxsize=8)
def sets_of_size(d: int, k: int) -> np.ndarray:
    """Return the indices, in the order of `walsh`, of the sets of k coordinates."""
    return np.flatnonzero(degrees(d) == k)


def span_risks(
    values: Float[np.ndarray, "p N"], k: int, alpha: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the minimum squared errors and ‖P χ_S‖² for every set S of size k.

    The error is the minimum at x_i + α·χ_S over i ∈ S and all weights. `values` holds the values of
    N functions at all points of the cube.
    """
    coefficients = _walsh_columns(values)
    d = len(values).bit_length() - 1
    # By Parseval these are coordinates of all projected characters in an orthonormal basis.
    gram = coefficients.T @ coefficients
    sizes, vectors = scipy.linalg.eigh(gram)
    kept = sizes > 1e-12 * sizes[-1]
    whiten = vectors[:, kept] / np.sqrt(sizes[kept])
    indices = sets_of_size(d, k)
    chi = coefficients[indices] @ whiten  # sets r
    single = coefficients[1 << np.arange(d - 1, -1, -1)] @ whiten  # d r
    inside = (indices[:, None] >> np.arange(d - 1, -1, -1)) & 1 == 1  # sets d
    captured = np.sum(np.square(chi), axis=1)
    both = (
        np.sum(np.square(single), axis=1)[None]
        + alpha**2 * captured[:, None]
        + 2 * alpha * (chi @ single.T)
    )
    risks = np.where(inside, 1 + alpha**2 - both, np.inf)
    return np.min(risks, axis=1), captured
