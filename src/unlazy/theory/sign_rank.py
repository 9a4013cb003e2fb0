"""Sign-rank bounds on the expressivity of two-layer networks.

The sign-rank of a ±1 matrix M is the minimum rank of a real matrix with the same signs. A two-layer
network with k neurons and integer first-layer weights of size at most B has sign-rank at most 4Bkn′
(Lemma 23). So lower bounds on the sign-rank of a function bound the width of such networks:

    Forster:              sr(M) ≥ √(rows·columns) / ‖M‖
    Razborov, Sherstov:   sr(A) ≥ γ·|A| / (‖A‖·√|A| + γ·h)   for real A with the signs of M,
                          all but h of whose entries have |A_xy| ≥ γ
    shattered rows:       sr(M) ≥ v if v rows show all 2^v sign patterns in the columns

Reference: malach2019, Theorems 11 and 12, Lemma 23.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from unlazy.core.errors import require
from unlazy.tasks.circuits.bits import unpack
from unlazy.tasks.circuits.circuit import Circuit, every_input


def sign_matrix(circuit: Circuit) -> np.ndarray:
    """Return M[x, y] = f(x, y); inputs 1, 3, 5, … of the circuit are x, the others y."""
    half = circuit.n // 2
    require(
        circuit.n <= 20,
        f"The circuit may have at most 20 inputs, got {circuit.n}.",
    )
    inputs = every_input(circuit.n)
    interleaved = np.empty_like(inputs)
    interleaved[0::2], interleaved[1::2] = inputs[:half], inputs[half:]
    return (
        np.where(unpack(circuit.output(interleaved)[None], 2**circuit.n)[:, 0], 1, -1)
        .reshape(2**half, 2**half)
        .astype(np.int8)
    )


def network_matrix(w: np.ndarray, v: np.ndarray, b: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return Σ_i u_i·max(⟨w_i, x⟩ + ⟨v_i, y⟩ + b_i, 0) with rows x, columns y ∈ {±1}^{n′}."""
    points = np.where(unpack(every_input(w.shape[1]), 2 ** w.shape[1]), 1, -1)
    left, right = points @ w.T, points @ v.T + b
    result: np.ndarray = sum(
        u[i] * np.maximum(left[:, i, None] + right[None, :, i], 0) for i in range(len(u))
    )
    return result


def lemma23_bound(B: int, k: int, half: int) -> int:
    """Return 4Bkn′, where n′ = `half` is the number of inputs in x and in y."""
    return 4 * B * k * half


def forster_bound(matrix: np.ndarray) -> float:
    """Return √(rows·columns) / spectral norm."""
    return math.sqrt(matrix.size) / float(np.linalg.norm(matrix.astype(float), 2))


def razborov_sherstov_bound(matrix: np.ndarray, weights: int = 33) -> float:
    """Return the best bound over matrices with one sign of M weighted by t ≤ 1.

    Entries of one sign are scaled by t, the others by 1, for both signs. Both γ = t (h = 0) and γ =
    1 (h = number of scaled entries) are tried.
    """
    best = 0.0
    size = matrix.size
    for light in (1, -1):
        count = int((matrix == light).sum())
        for t in np.linspace(0, 1, weights):
            weighted = np.where(matrix == light, t * matrix, matrix).astype(float)
            norm = float(np.linalg.norm(weighted, 2)) * math.sqrt(size)
            best = max(best, t * size / norm, size / (norm + count))
    return best


def shattered_rows(matrix: np.ndarray, rows: Sequence[int]) -> int:
    """Return the largest v such that the first v rows show all 2^v sign patterns.

    The sign-rank is at least v: if the first v rows had rank below v, they would be dependent, and
    the signs of the coefficients of a dependence are a pattern that cannot occur.
    """
    bits = (matrix[list(rows)] > 0).astype(np.int64)
    for v in range(len(rows), 0, -1):
        if len(np.unique((1 << np.arange(v)) @ bits[:v])) == 2**v:
            return v
    return 0


def is_no_product(matrix: np.ndarray) -> bool:
    """Return whether the signs are not a product a_x·b_y, so that the sign-rank is ≥ 2."""
    return bool(np.any(matrix * matrix[0] * (matrix[:, :1] * matrix[0, 0]) != 1))


def rounding_steps(B: float, k: int, half: int, gamma: float) -> int:
    """Return N = ⌈2Bk(2n′ + 1)/γ⌉.

    Rounding the weights to multiples of 1/N changes the network by at most γ/2 (proof of Theorem
    12).
    """
    return math.ceil(2 * B * k * (2 * half + 1) / gamma)


def least_width(sign_rank: float, B: float, half: int, gamma: float) -> float:
    """Return k with 4Bkn′·2Bk(2n′ + 1)/γ = sign-rank.

    Below this width the proof of Theorem 12 excludes margin γ.

    Deviation: the text drops γ and bounds the product by 24B²k²n′². Here it is solved for k
    exactly, without rounding up.
    """
    return math.sqrt(sign_rank * gamma / (8 * B * B * half * (2 * half + 1)))
