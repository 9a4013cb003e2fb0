"""Statistical query dimension of a concept class, and the resulting lower bound on queries.

Reference: shi2022, Definition 31, Theorems 32 and 33 (after Blum et al., 1994).
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from unlazy.core.errors import require


def parities(D: int, k: int) -> np.ndarray:
    """Return the values ±1 of all C(D, k) parities of k bits on all 2^D inputs, one per row."""
    bits = 2 * np.array(list(itertools.product((0, 1), repeat=D)), dtype=np.int8) - 1  # 2^D D
    return np.stack(
        [np.prod(bits[:, subset], axis=1) for subset in itertools.combinations(range(D), k)]
    )


def correlations(concepts: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Return |Pr[c_i = c_j] − Pr[c_i ≠ c_j]| for all pairs, exactly.

    Rows are concepts, columns are inputs with the given weights (uniform by default).
    """
    weight = np.full(concepts.shape[1], 1 / concepts.shape[1]) if weight is None else weight
    result: np.ndarray = np.abs((concepts * weight) @ concepts.T)
    return result


def query_dimension(correlation: np.ndarray) -> int:
    """Return the largest d with d concepts of pairwise correlation at most 1/d³.

    Uses an exact clique search.
    """
    for size in range(len(correlation), 1, -1):
        if _clique(correlation <= size**-3.0 + 1e-12, size):
            return size
    return min(1, len(correlation))


def _clique(joined: np.ndarray, size: int) -> bool:
    """Return whether `size` concepts are pairwise joined."""

    def grow(members: int, candidates: list[int]) -> bool:
        if members == size:
            return True
        for i, concept in enumerate(candidates):
            if members + len(candidates) - i < size:
                return False
            if grow(
                members + 1, [other for other in candidates[i + 1 :] if joined[concept, other]]
            ):
                return True
        return False

    return grow(0, list(range(len(joined))))


def parity_dimension(D: int, k: int) -> int:
    """Return C(D, k): parities of k of D uniform bits are pairwise uncorrelated."""
    require(0 < k <= D, f"A parity of k of D bits needs 0 < k ≤ D, got k={k}, D={D}.")
    return math.comb(D, k)


def queries_needed(dimension: float) -> float:
    """Return ½·d^{1/3}, the minimum of queries or 1/τ for an error below ½ − 1/d³."""
    return float(dimension ** (1 / 3) / 2)
