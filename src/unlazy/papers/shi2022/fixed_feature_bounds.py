"""Lower bounds on the hinge loss of linear models on fixed features.

Reference: shi2022, Theorems 2, 28, 29, Corollaries 3 and 30.
"""

from __future__ import annotations

import math

from unlazy.core.errors import require


def _check(po: float, k: int) -> None:
    require(0 < po <= 0.5, f"`po` must lie in (0, 1/2], got {po}.")
    require(
        isinstance(k, int) and k > 3 and k % 2 == 1,
        f"`k` must be an odd integer above 3, got {k!r}.",
    )


def fixed_features(*, po: float, N: float, B: float, k: int) -> float:
    """Return po·(1 − √(2N)·B/2^k), or 0 if this is negative.

    For N fixed features in [−1, 1] there is an A for which every linear model of norm at most B has
    at least this hinge loss, if k is odd and 3 < k ≤ D/16 (Theorem 2).
    """
    _check(po, k)
    require(N > 0 and B > 0, f"`N` and `B` must be positive, got N={N}, B={B}.")
    return float(max(0.0, po * (1 - math.sqrt(2 * N) * B / 2**k)))


def uniform_bits(*, N: float, B: float, k: int) -> float:
    """Return 1 − √(2N)·B/2^k, or 0 if this is negative: the bound on uniform bits, for odd k ≤ D/16
    (Theorem 29).
    """
    require(isinstance(k, int) and k % 2 == 1, f"`k` must be an odd integer, got {k!r}.")
    return float(max(0.0, 1 - math.sqrt(2 * N) * B / 2**k))


def shift_invariant(*, po: float, L: float, k: int) -> float:
    """Return po·(1 − 2L/2^k), or 0 if this is negative: the bound for functions of norm at most L
    in the RKHS of a shift-invariant kernel with K(x, x) = 1.

    The corollary states po(1 − poly(d, L)/2^k) − 1/poly(d, L). Its polynomial can be made explicit:
    with N Fourier features cos(⟨ω, x⟩ + c) ∈ [−1, 1] a function of norm L is ⟨Ψ(x), w⟩ with ‖w‖ →
    √(2/N)·L as N → ∞. Then √(2N)·B → 2L, and the approximation error tends to zero. Deviation: this
    limit replaces a finite number of features.
    """
    _check(po, k)
    return float(max(0.0, po * (1 - 2 * L / 2**k)))
