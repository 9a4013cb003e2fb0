"""Constants of the two-step feature learning theorem.

Reference: shi2022, Section 3.1 (initialisation) and Theorem 26.
"""

from __future__ import annotations

from typing import NamedTuple


class TheoremConstants(NamedTuple):
    """Initial scales σ_w, σ_b, σ_a, noise σ_ξ of steps 1 and 2, and step sizes η⁽¹⁾, η⁽²⁾ and η⁽ᵗ⁾ for t > 2."""

    w_scale: float
    b_scale: float
    a_scale: float
    noise: float
    first: float
    second: float
    rest: float


def theorem_26(*, k: int, m: int, T: int, gamma: float, sigma: float) -> TheoremConstants:
    """σ_w = 1/k, σ_b = σ_ξ = 1/k², σ_a = σ̃²/(γk²), η⁽¹⁾ = γ²σ̃²/(km³), η⁽²⁾ = 1, η⁽ᵗ⁾ = k²/(T·m^{1/3}).

    gamma = γ, sigma = σ̃. The decay for t > 2 is only bounded in the theorem, λ ≤ k³/(σ̃·m^{1/3}); zero is taken.
    """
    return TheoremConstants(
        w_scale=1 / k,
        b_scale=1 / k**2,
        a_scale=sigma**2 / (gamma * k**2),
        noise=1 / k**2,
        first=gamma**2 * sigma**2 / (k * m**3),
        second=1.0,
        rest=k**2 / (T * m ** (1 / 3)),
    )
