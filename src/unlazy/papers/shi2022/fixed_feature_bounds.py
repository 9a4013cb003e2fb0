"""Lower bounds on the hinge loss of linear models on fixed features, as numbers.

Reference: shi2022, Theorems 2, 28, 29, Corollaries 3 and 30.
"""

from __future__ import annotations

import math

from unlazy.core.errors import require


def _check(po: float, k: int) -> None:
    require(0 < po <= 0.5, f"po must lie in (0, 1/2], but is {po}.")
    require(
        isinstance(k, int) and k > 3 and k % 2 == 1, f"The bound is for odd k > 3, but k={k!r}."
    )


def fixed_features(*, po: float, N: float, B: float, k: int) -> float:
    """po·(1 − √(2N)·B/2^k): for N fixed features in [−1, 1] some A leaves every linear model of
    norm B with this hinge loss.

    Never below zero. It asks for odd k with 3 < k ≤ D/16.
    """
    _check(po, k)
    require(N > 0 and B > 0, f"N and B must be positive, but N={N}, B={B}.")
    return float(max(0.0, po * (1 - math.sqrt(2 * N) * B / 2**k)))


def on_coins(*, N: float, B: float, k: int) -> float:
    """1 − √(2N)·B/2^k: the same on fair coins alone, for odd k ≤ D/16 (Theorem 29).

    Never below zero.
    """
    require(isinstance(k, int) and k % 2 == 1, f"The bound is for odd k, but k={k!r}.")
    return float(max(0.0, 1 - math.sqrt(2 * N) * B / 2**k))


def shift_invariant(*, po: float, L: float, k: int) -> float:
    """po·(1 − 2L/2^k): the same for a shift-invariant kernel with K(x, x) = 1 and a function of
    norm at most L in its space.

    The corollary says po(1 − poly(d, L)/2^k) − 1/poly(d, L). Its polynomial can be made explicit:
    with N Fourier features cos(⟨ω, x⟩ + c) ∈ [−1, 1] a function of norm L is ⟨Ψ(x), w⟩ with ‖w‖ →
    √(2/N)·L as N → ∞, so that √(2N)·B → 2L and the approximation error tends to zero. Deviation:
    this limit is taken instead of a finite number of features.
    """
    _check(po, k)
    return float(max(0.0, po * (1 - 2 * L / 2**k)))
