"""Exact population gradient of one neuron on the parity mixture at po = ½, for any number of
patterns.

In signs z = 2φ̃ − 1 an input is φ = z/(2σ̃). The preactivation is u = Σ_ℓ z_ℓ x_ℓ + b + ξ with
x_ℓ = q_ℓ/(2σ̃) and ξ ~ N(0, σ_ξ²). The gradients of Lemma 12 are means of y·h(u) and y·z_j·h(u).
On an interval that contains u, h equals its Fourier series. The mean of each Fourier mode is a
product: of cos(ωx_ℓ) for background patterns, of i·sin(ωx_j) for relevant patterns under the parity
label, and i·sin(ωΣ_A x_j) if all relevant patterns are equal. The noise damps the modes as
exp(−σ_ξ²ω²/2), so a few dozen modes give full precision.

Reference: shi2022, Lemmas 12, 15 to 17 and 20 to 22.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.special
from jaxtyping import Complex, Float

#: Terms of the series of log cos and tan, which give full precision for arguments below
#: `MAX_ARGUMENT`.
TERMS, MAX_ARGUMENT = 12, 0.25
#: Relative truncation threshold of series.
TRUNCATION = 1e-18
#: Up to this number of background patterns, only the noise is used to bound the damping of modes.
MAX_UNDAMPED = 4000
_P = np.arange(1, TERMS + 1)
_BERNOULLI = np.abs(scipy.special.bernoulli(2 * TERMS)[2::2])
#: tan(v) = Σ_p TAN_p·v^(2p−1), log cos(v) = −Σ_p TAN_p·v^(2p)/(2p).
TAN = 4.0**_P * (4.0**_P - 1) * _BERNOULLI / scipy.special.factorial(2 * _P)


class Components(NamedTuple):
    """T_j on and off A, T_b, T_a, and β = P(⟨φ_{−A}, q_{−A}⟩ + b + ξ ∈ (0, 1)) of one neuron."""

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
    """Return T_j = E[y φ_j I(u ∈ (0, 1))], T_b = E[y I(u ∈ (0, 1))], T_a = E[y σ(u)] of a neuron
    with components q = (on, off) along the patterns.

    `structure`: fraction of inputs whose relevant patterns are all equal. `mean` is added to the
    label, which violates (A0).
    """
    sigma = math.sqrt(len(on) + len(off)) / 2
    x, rest = on / (2 * sigma), off / (2 * sigma)
    spread = math.sqrt(noise**2 + float(rest @ rest))
    reach = abs(b) + float(np.sum(np.abs(x))) + 10 * spread
    # If |u| < 1 always, the upper end of (0, 1) can be any value above max |u|.
    W, r = (1.05 * reach, 1.05 * reach) if reach < 0.9 else (reach + 1, 1.0)
    # Many small components damp the modes like Gaussian noise of the same variance; few do not.
    damping = spread if len(off) > MAX_UNDAMPED else noise
    last = math.ceil(math.sqrt(-2 * math.log(TRUNCATION)) / damping * W / math.pi)
    w = math.pi * np.arange(1, last + 1) / W  # frequencies ω without 0
    mode = np.exp(1j * w * b - (noise * w) ** 2 / 2)
    quiet = background(rest, w) * mode
    inside = (1 - np.exp(-1j * w * r)) / (2j * W * w)
    ramp = (np.exp(-1j * w * r) * (1 + 1j * w * r) - 1) / (2 * W * w**2)
    if r < W:
        ramp = ramp + (np.exp(-1j * w * r) - np.exp(-1j * w * W)) / (2j * W * w)
    flat_inside, flat_ramp = r / (2 * W), (r**2 / 2 + (W - r)) / (2 * W)

    sines, cosines = np.sin(np.outer(x, w)), np.cos(np.outer(x, w))  # k modes
    total = w * np.sum(x)
    k = len(x)
    # Mean of the label times each mode, for y and for the constant added to it.
    label = (1 - structure) * 1j**k * np.prod(sines, axis=0) + structure * 1j * np.sin(total)
    label = label + mean * ((1 - structure) * np.prod(cosines, axis=0) + structure * np.cos(total))
    around = quiet * label  # modes
    own = (1 - structure) * 1j ** (k - 1) * cosines * _all_but_one(sines) + structure * np.cos(
        total
    )  # k modes
    if mean:
        own = own + mean * 1j * (
            (1 - structure) * sines * _all_but_one(cosines) + structure * np.sin(total)
        )
    still = structure + (1 - structure) * (k == 1)  # zeroth mode: E[y z_j]
    return Components(
        on=(still * flat_inside + 2 * np.real(own @ (inside * quiet))) / (2 * sigma),
        off=_odd(rest, inside * around, w) / (2 * sigma),
        bias=float(mean * flat_inside + 2 * np.real(np.sum(inside * around))),
        second=float(mean * flat_ramp + 2 * np.real(np.sum(ramp * around))),
        beta=float(flat_inside + 2 * np.real(np.sum(inside * quiet))),
    )


def _all_but_one(factors: Float[np.ndarray, "k n"]) -> Float[np.ndarray, "k n"]:
    """Return for each row the product of all other rows."""
    ones = np.ones((1, factors.shape[1]))
    before = np.cumprod(np.vstack([ones, factors[:-1]]), axis=0)
    after = np.cumprod(np.vstack([ones, factors[:0:-1]]), axis=0)[::-1]
    return before * after


def background(x: Float[np.ndarray, " D"], w: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return Π_ℓ cos(ω x_ℓ) for every ω, by power sums of x if all arguments are small."""
    if not len(x):
        return np.ones_like(w)
    largest = float(np.max(np.abs(x)))
    if largest == 0 or w[-1] * largest < MAX_ARGUMENT:
        p = _terms(w[-1] * largest)
        square = (x / largest) ** 2 if largest else np.zeros_like(x)
        sums, power = [], np.ones_like(x)
        for _ in p:
            power = power * square
            sums.append(float(np.sum(power)))
        v = (w * largest)[:, None] ** (2 * p)  # n p
        series: np.ndarray = np.exp(-v @ (TAN[: len(p)] / (2 * p) * np.array(sums)))
        return series
    result: np.ndarray = np.prod(np.cos(np.outer(w, x)), axis=1)
    return result


def _terms(largest: float) -> np.ndarray:
    """Return 1, …, p, with p the number of series terms needed for arguments up to `largest`."""
    ratio = max(2 * largest / math.pi, 1e-9)
    return _P[: max(3, math.ceil(math.log(TRUNCATION) / (2 * math.log(ratio))) + 1)]


def _odd(
    x: Float[np.ndarray, " D"], weight: Complex[np.ndarray, " n"], w: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " D"]:
    """Return 2·Re Σ_n weight_n·i·tan(ω_n x) for every x."""
    largest = float(np.max(np.abs(x), initial=0.0))
    if largest == 0:
        return np.zeros_like(x)
    if w[-1] * largest < MAX_ARGUMENT:
        p = _terms(w[-1] * largest)
        v = (w * largest)[:, None] ** (2 * p - 1)
        coefficients = TAN[: len(p)] * np.real(2j * weight @ v)
        scaled = x / largest
        result: np.ndarray = scaled * np.polynomial.polynomial.polyval(scaled**2, coefficients)
        return result
    return np.real(2j * weight @ np.tan(np.outer(w, x)))
