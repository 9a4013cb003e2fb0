"""Constants and bounds of the theorems on two-step feature learning.

Reference: shi2022, Section 3.1 (initialization), Lemmas 15, 20, 24, 40 and 45, Theorems 26 and
34.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple


class TheoremConstants(NamedTuple):
    """Initial scales σ_w, σ_b, σ_a, noise σ_ξ of steps 1 and 2, and step sizes η⁽¹⁾, η⁽²⁾ and η⁽ᵗ⁾
    for t > 2.
    """

    w_scale: float
    b_scale: float
    a_scale: float
    noise: float
    first: float
    second: float
    rest: float


def theorem_26(*, k: int, m: int, T: int, gamma: float, sigma: float) -> TheoremConstants:
    """Return σ_w = 1/k, σ_b = σ_ξ = 1/k², σ_a = σ̃²/(γk²), η⁽¹⁾ = γ²σ̃²/(km³), η⁽²⁾ = 1, η⁽ᵗ⁾ =
    k²/(T·m^{1/3}).

    gamma = γ, sigma = σ̃. The theorem only bounds the decay for t > 2, λ ≤ k³/(σ̃·m^{1/3}); zero is
    used.
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


def theorem_34(
    *, k: int, m: int, T: int, D: int, gamma: float, sigma: float, p_min: float
) -> TheoremConstants:
    """Return η⁽¹⁾ = γ²·p_min·σ̃/(km³), σ_ξ = 1/k^{3/2}, σ_w = σ̃/(Dm); all else as in Theorem 26.

    p_min = probability of the smaller class. The theorem requires σ_w² = σ̃²/poly(Dm).
    """
    return theorem_26(k=k, m=m, T=T, gamma=gamma, sigma=sigma)._replace(
        w_scale=sigma / (D * m), noise=k**-1.5, first=gamma**2 * p_min * sigma / (k * m**3)
    )


def error_bound(*, k: int, m: float, T: float) -> float:
    """Return k⁸/m^{2/3} + k³T/m² + k²m^{2/3}/T, the bound of Theorem 26 with constant one."""
    return float(k**8 / m ** (2 / 3) + k**3 * T / m**2 + k**2 * m ** (2 / 3) / T)


class FirstGradientBound(NamedTuple):
    """Lemma 15 with constants one: `error` = ε_e, `relevant` bounds |T_j − βγ/σ̃| for j ∈ A,
    `background` bounds |T_j| for j ∉ A.
    """

    error: float
    relevant: float
    background: float


def lemma_15(
    *, D: int, k: int, m: int, po: float, sigma: float, delta: float = 0.05
) -> FirstGradientBound:
    """Return ε_e = (k·log^{1/2}(Dm/δ) + log^{3/2}(Dm/δ)) / √(σ_φ²σ̃²(D−k)), ε_e/σ̃ and σ_φ²ε_eσ̃,
    with σ_φ² = po(1−po)/σ̃².
    """
    log = math.log(D * m / delta)
    spread = po * (1 - po) / sigma**2  # σ_φ²
    error = (k * log**0.5 + log**1.5) / math.sqrt(spread * sigma**2 * (D - k))
    return FirstGradientBound(error, error / sigma, spread * error * sigma)


class SecondGradientBound(NamedTuple):
    """Lemma 20 with constants one: `error` = ε_e2, `relevant` bounds |T_j − βγ/σ̃| for j ∈ A,
    `background` bounds |T_j| for j ∉ A.
    """

    error: float
    relevant: float
    background: float


def lemma_20(
    *,
    D: int,
    k: int,
    m: int,
    sigma: float,
    gamma: float,
    eta: float,
    a: float,
    noise: float,
    delta: float = 0.05,
) -> SecondGradientBound:
    """Return ε_e2 = η|a|k(γ + ε_e)/(σ̃²σ_ξ), ε_e2/σ̃ + η/σ_ξ + η|a|ε_e/(σ̃σ_ξ) and σ_φ²ε_e2σ̃, at
    po = ½.

    The terms exp(−Θ(k)) are omitted: they account for examples with y·g > 1 and noise above 1.
    """
    first = lemma_15(D=D, k=k, m=m, po=0.5, sigma=sigma, delta=delta).error
    error = eta * a * k * (gamma + first) / (sigma**2 * noise)
    return SecondGradientBound(
        error, error / sigma + eta / noise + eta * a * first / (sigma * noise), 0.25 / sigma * error
    )


class GeneralGradientBound(NamedTuple):
    """Lemmas 40 and 45 with constants one: `error` = ε_e or ε_e2, `relevant` bounds |T_j − βγ/σ̃|
    for j ∈ A, `background` bounds |T_j| for each j ∉ A, `noise` bounds |ν_j|.
    """

    error: float
    relevant: float
    background: Any
    noise: float


def lemma_40(
    *,
    D: int,
    d: int,
    k: int,
    sigma: float,
    w_scale: float,
    noise: float,
    input_noise: float,
    quiet: Any,
    delta: float,
) -> GeneralGradientBound:
    """Return ε_e = (D/σ̃ + √d·σ_ζ)·σ_w√(2 log(D/δ))/(σ̃σ_ξ), ε_e/σ̃, σ_φj²ε_eσ̃ and
    (σ_ζ√log k/σ̃)·ε_ν with ε_ν = ε_e.

    noise = σ_ξ, input_noise = σ_ζ, quiet = σ_φj². The second term of ε_e is printed with σ_ξ; its
    origin |⟨w, ζ/σ̃⟩| suggests σ_ζ. The term exp(−Θ(k)) is omitted.
    """
    error = (D / sigma + math.sqrt(d) * input_noise) * w_scale * math.sqrt(2 * math.log(D / delta))
    error /= sigma * noise
    return GeneralGradientBound(
        error,
        error / sigma,
        quiet * error * sigma,
        input_noise * math.sqrt(math.log(k)) / sigma * error,
    )


def lemma_45(
    *,
    k: int,
    sigma: float,
    gamma: float,
    eta: float,
    a: float,
    noise: float,
    input_noise: float,
    quiet: Any,
    first: float,
) -> GeneralGradientBound:
    """Return ε_e2 = η|a|k(γ + ε_e)/(σ̃²σ_ξ), ε_e2/σ̃ + η/σ_ξ + η|a|ε_e/(σ̃σ_ξ), σ_φj²ε_e2σ̃ and
    ησ_ζ/(γσ_ξ); first = ε_e. The terms exp(−Ω(k)) are omitted.
    """
    error = eta * a * k * (gamma + first) / (sigma**2 * noise)
    return GeneralGradientBound(
        error,
        error / sigma + eta / noise + eta * a * first / (sigma * noise),
        quiet * error * sigma,
        eta * input_noise / (gamma * noise),
    )


class DriftBound(NamedTuple):
    """Bounds of Lemma 24 with the constants of its proof, on |a_i|, ‖w_i − w_i⁽²⁾‖ and
    |b_i − b_i⁽²⁾|.
    """

    a: Any
    w: Any
    b: Any


def lemma_24(*, steps: Any, rate: Any, decay: Any, a: Any, w: Any) -> DriftBound:
    """Return |a_i| ≤ ηt + |a_i⁽²⁾|, ‖Δw_i‖ ≤ 2tηλ‖w_i⁽²⁾‖ + η²t² + t·η|a_i⁽²⁾| and |Δb_i| ≤ η²t² +
    t·η|a_i⁽²⁾|, if E‖x‖ ≤ 1.

    a, w: |a_i⁽²⁾| and ‖w_i⁽²⁾‖. The lemma prints t·|a_i⁽²⁾| without the η of the second to last
    step of its proof; for η < 1 the form with η is sharper.
    """
    drift = (rate * steps) ** 2 + rate * steps * a
    return DriftBound(rate * steps + a, 2 * steps * rate * decay * w + drift, drift)
