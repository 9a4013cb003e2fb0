"""The minimum-norm two-layer network that computes a parity of even degree q, in closed form.

Networks are F(x) = Σ_j a_j·σ(⟨w_j, x⟩), with a_j = ±1/√m, half of them of each sign, and σ the
ReLU; inputs are x ∈ {±1/√d}^d, and z are the q signs √d·x_i that make the label χ(z) = z₁⋯z_q. Take
all sign vectors s ∈ {±1}^q as neurons. Then

    Σ_s χ(s)·σ(⟨s, z⟩) = κ_q·χ(z),
    κ_q = ½·Σ_j C(q, j)·(−1)^j·|q − 2j| = (−1)^{q/2+1}·2·C(q − 2, q/2 − 1).

Proof. σ(u) = (u + |u|)/2. The linear half vanishes: Σ_s χ(s)·s_i = 0 for q ≥ 2. In the other half
put s∘z for s: χ(s∘z) = χ(s)·χ(z) and ⟨s∘z, z⟩ = Σ_i s_i, so it is χ(z) times ½·Σ_s χ(s)·|Σ_i s_i|,
which counts the s with j negative signs. For odd q it is zero.

With t·s as the weights of the neuron of s, a of the sign of χ(s)·κ_q and m = 2^q, F = χ requires
t = √(m·d)/|κ_q|, so

    ‖W‖_F = √(q·d)·2^q/|κ_q| = B_q·√d,     B₂ = 2√2, B₄ = 8, B₆ = 16√6/3 = 13.064…

and copies of the neurons change nothing if m is a multiple of 2^q. Scaled down to norm B·√d the
error E(F − χ)² is (1 − B/B_q)².

No network has a smaller error at that norm if no unit vector u has a larger |E χ(z)·σ(⟨u, z⟩)|
than s/√q (checked numerically in the tests). Then E[χF] ≤ Σ_j |a_j|·‖w_j‖·|κ_q|/(2^q·√(q·d)) ≤
‖W‖_F/(B_q·√d) by Cauchy–Schwarz, and E(F − χ)² ≥ (1 − E[χF])².

Reference: allenzhu2019, Section 8.2, where such networks are found by training on q = 6 inputs.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from unlazy.core.errors import require
from unlazy.tasks.spectrum import corners


def parity_gain(q: int) -> int:
    """Return κ_q."""
    require(q >= 2 and q % 2 == 0, f"q must be even and at least 2, got {q}.")
    return int((-1) ** (q // 2 + 1) * 2 * math.comb(q - 2, q // 2 - 1))


def min_norm(q: int) -> float:
    """Return B_q, the norm in units of √d at which the error is zero."""
    return float(2**q * math.sqrt(q) / abs(parity_gain(q)))


def min_error(q: int, norm: float) -> float:
    """Return E(F − χ)² of the network at the norm `norm`·√d."""
    return max(0.0, 1 - norm / min_norm(q)) ** 2


def parity_network(
    q: int, m: int, d: int, norm: float | None = None
) -> tuple[Float[np.ndarray, "m d"], Float[np.ndarray, " m"]]:
    """Return W and a of the network on the first q of d coordinates.

    The default norm gives zero error. If m is not a multiple of 2^q, some neurons are zero. The
    norm for zero error then grows by the square root of m divided by the number of neurons in use.
    """
    require(
        m >= 2**q and m % 2 == 0,
        f"m must be even and at least {2**q}, got {m}.",
    )
    require(d >= q, f"d must be at least q={q}, got {d}.")
    copies = m // 2**q
    signs = np.tile(corners(q), (copies, 1))
    side = np.prod(signs, axis=1) * np.sign(parity_gain(q))
    signs = signs[np.argsort(-side, kind="stable")]
    half, used = m // 2, len(signs) // 2
    w = np.zeros((m, d))
    w[:used, :q], w[half : half + used, :q] = signs[:used], signs[used:]
    exact = math.sqrt(m * d) / (abs(parity_gain(q)) * copies)
    w *= exact if norm is None else norm * math.sqrt(d) / np.linalg.norm(w)
    return w, np.where(np.arange(m) < half, 1.0, -1.0) / math.sqrt(m)
