"""The statistical query dimension of a class of concepts, and what it says about the number of
queries.

Reference: shi2022, Definition 31, Theorems 32 and 33 (after Blum et al., 1994).
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from unlazy.core.errors import require


def parities(D: int, k: int) -> np.ndarray:
    """The values ±1 of all C(D, k) parities of k bits on all 2^D inputs, one concept a row."""
    bits = 2 * np.array(list(itertools.product((0, 1), repeat=D)), dtype=np.int8) - 1  # 2^D D
    return np.stack(
        [np.prod(bits[:, subset], axis=1) for subset in itertools.combinations(range(D), k)]
    )


def correlations(concepts: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """|Pr[c_i = c_j] − Pr[c_i ≠ c_j]| for all pairs, exactly: rows are concepts, columns inputs of
    the given weights (or all equal).
    """
    weight = np.full(concepts.shape[1], 1 / concepts.shape[1]) if weight is None else weight
    result: np.ndarray = np.abs((concepts * weight) @ concepts.T)
    return result


def query_dimension(correlation: np.ndarray) -> int:
    """The largest d such that d concepts are pairwise correlated by at most 1/d³, by an exact
    search for cliques.
    """
    for size in range(len(correlation), 1, -1):
        if _clique(correlation <= size**-3.0 + 1e-12, size):
            return size
    return min(1, len(correlation))


def _clique(joined: np.ndarray, size: int) -> bool:
    """Whether `size` concepts are pairwise joined."""

    def grow(found: int, candidates: list[int]) -> bool:
        if found == size:
            return True
        for place, concept in enumerate(candidates):
            if found + len(candidates) - place < size:
                return False
            if grow(
                found + 1, [other for other in candidates[place + 1 :] if joined[concept, other]]
            ):
                return True
        return False

    return grow(0, list(range(len(joined))))


def parity_dimension(D: int, k: int) -> int:
    """C(D, k): parities of k among D fair bits are pairwise uncorrelated, so that the whole class
    counts.
    """
    require(0 < k <= D, f"A parity of k among D bits needs 0 < k ≤ D, but k={k}, D={D}.")
    return math.comb(D, k)


def queries_needed(dimension: float) -> float:
    """½·d^{1/3}: the number of queries, or 1/τ, must reach it for an error below ½ − 1/d³."""
    return float(dimension ** (1 / 3) / 2)
