"""The exact population gradient of one neuron on the parity mixture at po = ½, for any number of
patterns.

In signs z = 2φ̃ − 1 an input is φ = z/(2σ̃), and u = Σ_ℓ z_ℓ x_ℓ + b + ξ with x_ℓ = q_ℓ/(2σ̃) and ξ
~ N(0, σ_ξ²). What Lemma 12 averages are means of y, y·z_j times a function h of u. On an interval
that u does not leave, h is its Fourier series, and the mean of each wave is a product: cos(ωx_ℓ)
for a background pattern, i·sin(ωx_j) for a relevant one under the parity label, i·sin(ωΣ_A x_j)
where all relevant patterns are equal. The noise makes the waves die out as exp(−σ_ξ²ω²/2), so that
a few dozen of them give all digits.

Reference: shi2022, Lemmas 12, 15 to 17 and 20 to 22.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.special
from jaxtyping import Complex, Float

#: Terms of the series of log cos and tan; exact to the last digit for arguments below `NEAR`.
TERMS, NEAR = 12, 0.25
#: Waves below this share of the greatest are left out.
FAINT = 1e-18
#: Up to so many background patterns the waves are damped by the noise alone.
FEW = 4000
_P = np.arange(1, TERMS + 1)
_BERNOULLI = np.abs(scipy.special.bernoulli(2 * TERMS)[2::2])
#: tan(v) = Σ_p TAN_p·v^(2p−1), log cos(v) = −Σ_p TAN_p·v^(2p)/(2p).
TAN = 4.0**_P * (4.0**_P - 1) * _BERNOULLI / scipy.special.factorial(2 * _P)


class Components(NamedTuple):
    """T_j on A and off A, T_b, T_a, and β = P(⟨φ_{−A}, q_{−A}⟩ + b + ξ ∈ (0, 1)), of one neuron."""

    on: Float[np.ndarray, " k"]
    off: Float[np.ndarray, " rest"]
    bias: float
    second: float
    beta: float


def components(
    on: Float[np.ndarray, " k"],
    off: Float[np.ndarray, " rest"],
    b: float,
    noise: float,
    *,
    structure: float = 0.5,
    mean: float = 0.0,
) -> Components:
    """T_j = E[y φ_j I(u ∈ (0, 1))], T_b = E[y I(u ∈ (0, 1))], T_a = E[y σ(u)] of a neuron with
    components q = (on, off) along the patterns.

    `structure`: share of inputs whose relevant patterns are all equal. `mean` is added to the
    label: a world where (A0) is false.
    """
    sigma = math.sqrt(len(on) + len(off)) / 2
    x, rest = on / (2 * sigma), off / (2 * sigma)
    spread = math.sqrt(noise**2 + float(rest @ rest))
    reach = abs(b) + float(np.sum(np.abs(x))) + 10 * spread
    # Where u comes nowhere near 1, the upper end of (0, 1) may lie anywhere beyond its reach.
    W, r = (1.05 * reach, 1.05 * reach) if reach < 0.9 else (reach + 1, 1.0)
    # Many small components damp the waves as Gaussian noise of their variance would; few do not.
    damping = spread if len(off) > FEW else noise
    last = math.ceil(math.sqrt(-2 * math.log(FAINT)) / damping * W / math.pi)
    w = math.pi * np.arange(1, last + 1) / W  # the zeroth wave apart
    wave = np.exp(1j * w * b - (noise * w) ** 2 / 2)
    quiet = background(rest, w) * wave
    inside = (1 - np.exp(-1j * w * r)) / (2j * W * w)
    ramp = (np.exp(-1j * w * r) * (1 + 1j * w * r) - 1) / (2 * W * w**2)
    if r < W:
        ramp = ramp + (np.exp(-1j * w * r) - np.exp(-1j * w * W)) / (2j * W * w)
    flat_inside, flat_ramp = r / (2 * W), (r**2 / 2 + (W - r)) / (2 * W)

    sines, cosines = np.sin(np.outer(x, w)), np.cos(np.outer(x, w))  # k waves
    total = w * np.sum(x)
    k = len(x)
    # Of the label alone: y, and the constant that is added to it.
    label = (1 - structure) * 1j**k * np.prod(sines, axis=0) + structure * 1j * np.sin(total)
    label = label + mean * ((1 - structure) * np.prod(cosines, axis=0) + structure * np.cos(total))
    around = quiet * label  # waves
    own = (1 - structure) * 1j ** (k - 1) * cosines * _all_but_one(sines) + structure * np.cos(
        total
    )  # k waves
    if mean:
        own = own + mean * 1j * (
            (1 - structure) * sines * _all_but_one(cosines) + structure * np.sin(total)
        )
    still = structure + (1 - structure) * (k == 1)  # the zeroth wave: E[y z_j]
    return Components(
        on=(still * flat_inside + 2 * np.real(own @ (inside * quiet))) / (2 * sigma),
        off=_odd(rest, inside * around, w) / (2 * sigma),
        bias=float(mean * flat_inside + 2 * np.real(np.sum(inside * around))),
        second=float(mean * flat_ramp + 2 * np.real(np.sum(ramp * around))),
        beta=float(flat_inside + 2 * np.real(np.sum(inside * quiet))),
    )


def _all_but_one(factors: Float[np.ndarray, "k n"]) -> Float[np.ndarray, "k n"]:
    """The product of all rows but one, for each row."""
    ones = np.ones((1, factors.shape[1]))
    before = np.cumprod(np.vstack([ones, factors[:-1]]), axis=0)
    after = np.cumprod(np.vstack([ones, factors[:0:-1]]), axis=0)[::-1]
    return before * after


def background(x: Float[np.ndarray, " D"], w: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Π_ℓ cos(ω x_ℓ) for every ω: by power sums of x where all arguments are small."""
    if not len(x):
        return np.ones_like(w)
    largest = float(np.max(np.abs(x)))
    if largest == 0 or w[-1] * largest < NEAR:
        p = _terms(w[-1] * largest)
        share = (x / largest) ** 2 if largest else np.zeros_like(x)
        sums, power = [], np.ones_like(x)
        for _ in p:
            power = power * share
            sums.append(float(np.sum(power)))
        v = (w * largest)[:, None] ** (2 * p)  # n p
        near: np.ndarray = np.exp(-v @ (TAN[: len(p)] / (2 * p) * np.array(sums)))
        return near
    result: np.ndarray = np.prod(np.cos(np.outer(w, x)), axis=1)
    return result


def _terms(largest: float) -> np.ndarray:
    """1 … p, where the p-th is the last term of the series that counts up to `largest`."""
    share = max(2 * largest / math.pi, 1e-9)
    return _P[: max(3, math.ceil(math.log(FAINT) / (2 * math.log(share))) + 1)]


def _odd(
    x: Float[np.ndarray, " D"], weight: Complex[np.ndarray, " n"], w: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " D"]:
    """2·Re Σ_n weight_n·i·tan(ω_n x) for every x."""
    largest = float(np.max(np.abs(x), initial=0.0))
    if largest == 0:
        return np.zeros_like(x)
    if w[-1] * largest < NEAR:
        p = _terms(w[-1] * largest)
        v = (w * largest)[:, None] ** (2 * p - 1)
        coefficients = TAN[: len(p)] * np.real(2j * weight @ v)
        share = x / largest
        result: np.ndarray = share * np.polynomial.polynomial.polyval(share**2, coefficients)
        return result
    return np.real(2j * weight @ np.tan(np.outer(w, x)))
