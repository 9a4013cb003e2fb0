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
from unlazy.theory.walsh import degrees, fourier

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


@functools.lru_cache(maxsize=8)
def sets_of_size(d: int, k: int) -> np.ndarray:
    """Return the indices, in the order of `walsh`, of the sets of k coordinates."""
    return np.flatnonzero(degrees(d) == k)


class Span:
    """The span of N functions of d signs z and of other inputs v, independent of z.

    `values[p, n, q]`: value of function n at point p of the cube, in the order of `walsh`, and at
    value q of v, which has probability `probabilities[q]`. Two axes suffice if there is no v. By
    Parseval's identity, only the mean over v of a function correlates with a function of z.
    """

    def __init__(
        self, values: Float[np.ndarray, "p N *q"], probabilities: Float[np.ndarray, " q"] | None
    ) -> None:
        weights = np.ones(1) if probabilities is None else probabilities
        self.d = len(values).bit_length() - 1
        require(len(values) == 1 << self.d, f"{self.d} signs have {1 << self.d} values.")
        parts = values[..., None] if values.ndim == 2 else values
        columns = parts.shape[1]
        self.coefficients = fourier(np.ascontiguousarray((parts @ weights).T)).T
        self.gram = np.zeros((columns, columns))
        for part, weight in zip(np.moveaxis(parts, 2, 0), weights, strict=True):
            self.gram += weight * (part.T @ part) / len(values)

    def risks(
        self, k: int, alpha: float, first: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the minimum squared errors and ‖P χ_S‖² for every set S of size k.

        The error is the minimum at x_i + α·χ_S over i ∈ S and all weights of the `first` functions.
        """
        sizes, vectors = scipy.linalg.eigh(self.gram[:first, :first])
        kept = sizes > 1e-12 * sizes[-1]
        projected = self.coefficients[:, :first]
        whiten = vectors[:, kept] / np.sqrt(sizes[kept])
        indices, bits = sets_of_size(self.d, k), np.arange(self.d - 1, -1, -1)
        chi = projected[indices] @ whiten  # sets r
        single = projected[1 << bits] @ whiten  # d r
        inside = (indices[:, None] >> bits) & 1 == 1  # sets d
        captured = np.sum(np.square(chi), axis=1)
        both = (
            np.sum(np.square(single), axis=1)[None]
            + alpha**2 * captured[:, None]
            + 2 * alpha * (chi @ single.T)
        )
        risks = np.where(inside, 1 + alpha**2 - both, np.inf)
        return np.min(risks, axis=1), captured


def span_risks(
    values: Float[np.ndarray, "p N"], k: int, alpha: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the minimum squared errors and ‖P χ_S‖² for every set S of size k; see `Span`."""
    return Span(values, None).risks(k, alpha)
