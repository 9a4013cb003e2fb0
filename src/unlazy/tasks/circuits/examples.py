"""Named circuits: random ones, parities, and the function of Razborov and Sherstov.

Reference: malach2019, Section 5 (parities, Lemma 5) and Section 6 (Theorem 11).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from unlazy.core.errors import require, unknown
from unlazy.tasks.circuits.circuit import GATES, MONOTONE_AND_NEGATED, Circuit, check_leaves


def random_circuit(
    n: int, rng: np.random.Generator, names: Sequence[str] = MONOTONE_AND_NEGATED
) -> Circuit:
    """Draw a circuit with each gate uniform in `names`."""
    check_leaves(n, f"n={n}")
    for name in names:
        if name not in GATES:
            raise unknown("gate", name, GATES)
    return Circuit(rng.choice([GATES[name] for name in names], n - 1))


def parity_circuit(n: int, relevant: Collection[int], *, printed: bool = False) -> Circuit:
    """Return the product of the signs x_j, j in `relevant` (counted from 0).

    Deviation: a gate with one relevant side returns it (LEFT or RIGHT), and a gate without any is
    TRUE. The construction printed before Lemma 5 (`printed=True`) multiplies throughout the upper
    levels. Its function is the same, but its constant gates have influence and correlation E[y],
    which violates the local correlation assumption.
    """
    check_leaves(n, f"n={n}")
    require(
        all(0 <= j < n for j in relevant),
        f"relevant must lie in 0 … {n - 1}, got {sorted(relevant)}.",
    )
    row = [j in relevant for j in range(n)]
    levels: list[list[str]] = []
    while len(row) > 1:
        pairs = list(zip(row[0::2], row[1::2], strict=True))
        if printed and levels:
            levels.append(["XNOR"] * len(pairs))
        else:
            levels.append([_parity_gate(left, right) for left, right in pairs])
        row = [left or right for left, right in pairs]
    return Circuit.of_levels(reversed(levels))


def _parity_gate(left: bool, right: bool) -> str:
    if left and right:
        return "XNOR"
    return "LEFT" if left else "RIGHT" if right else "TRUE"


def and_of_ors(m: int, r: int) -> Circuit:
    """Return ⋀_{i≤m} ⋁_{j≤r} (x_ij ∧ y_ij), inputs in the order x_11, y_11, x_12, y_12, …

    f_m of Theorem 11 has r = m². If m or r is not a power of two, the tree is padded. Gates with
    one real side return it, so the additional inputs have no influence.
    """
    require(
        m >= 1 and r >= 1,
        f"m and r must be at least 1, got {m} and {r}.",
    )
    ors, ands = (r - 1).bit_length(), (m - 1).bit_length()
    real = np.zeros((2**ands, 2**ors), bool)
    real[:m, :r] = True
    row = real.ravel().tolist()
    levels = [["AND" if used else "TRUE" for used in row]]
    for name in ["OR"] * ors + ["AND"] * ands:
        pairs = list(zip(row[0::2], row[1::2], strict=True))
        levels.append(
            [name if a and b else "LEFT" if a else "RIGHT" if b else "TRUE" for a, b in pairs]
        )
        row = [a or b for a, b in pairs]
    return Circuit.of_levels(reversed(levels))


def razborov_sherstov(m: int) -> Circuit:
    """Return f_m(x, y) = ⋀_{i≤m} ⋁_{j≤m²} (x_ij ∧ y_ij), whose sign-rank is 2^Ω(m)."""
    return and_of_ors(m, m * m)
