"""Exact computations on steps of the proofs: small balls, loss derivatives, a recursion, neurons.

Reference: glasgow2023, Lemmas B.6, C.5, C.6, Claims B.7, B.9, C.18.
"""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import numpy as np
import scipy.stats
from jaxtyping import PRNGKeyArray

from unlazy.lab.trials import ExactComputation
from unlazy.papers.glasgow2023.gradients import SignSum
from unlazy.papers.glasgow2023.spreading import probabilities_within, well_spread
from unlazy.tasks.spectrum import corners


def _generator(key: PRNGKeyArray) -> np.random.Generator:
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))


class SmallBalls(ExactComputation):
    """Probabilities that sums of signs are small.

    `equal`: minimum over ℓ ≤ 10⁴ of C√ℓ·P(|⟨ξ, u⟩| ≤ C) for u = (1, …, 1); `random`: the same for
    random u with ‖u‖_∞ ≤ 1 and ℓ ≤ 24 (Lemma B.6: at least 1). For a well-spread v and w = v + Δ,
    sorted so that the d/C² smallest coordinates of v come last (set S'): `suffix`: minimum over t
    of √d·P(|Σ_{i>t} ξ_i·w_i| ≤ ‖v‖/(2√d)), t ≥ d − |S'| (Claim B.9: at least 1); `escaped`:
    fraction of walks that cross zero at a step τ of S' and have |Σ_{i>τ}| ≤ ‖v‖/(2√d), but
    |⟨ξ, w⟩| > ‖v‖/√d (Claim B.7: 0).

    Negative control: u and w multiplied by `stretch`.
    """

    d: int = eqx.field(static=True, default=1000)
    constant: float = eqx.field(converter=float, default=2.0, kw_only=True)
    spread: float = eqx.field(converter=float, default=4.0, kw_only=True)
    stretch: float = eqx.field(converter=float, default=1.0, kw_only=True)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = _generator(key)
        C = self.constant
        lengths = np.arange(1, 10_001)
        inside = (lengths + math.floor(C / self.stretch)) // 2
        outside = (lengths - math.floor(C / self.stretch) - 1) // 2
        binomial = scipy.stats.binom.cdf(inside, lengths, 0.5) - scipy.stats.binom.cdf(
            outside, lengths, 0.5
        )
        values = []
        for _ in range(200):
            u = self.stretch * rng.uniform(rng.uniform(0, 1), 1, rng.integers(1, 25))
            values.append(C * math.sqrt(len(u)) * SignSum(u).within(C + 1e-9))
        return {
            "equal": np.min(C * np.sqrt(lengths) * binomial),
            "random": min(values),
        } | self._walk(rng)

    def _walk(self, rng: np.random.Generator) -> dict[str, float]:
        d, zeta = self.d, math.log(self.d) ** -5
        v = np.sort(np.abs(rng.normal(size=d)))[::-1] * rng.choice([-1.0, 1.0], d)
        v /= np.linalg.norm(v)
        noise = rng.normal(size=d)
        w = self.stretch * (v + zeta * noise / np.linalg.norm(noise))
        count, half = int(d / self.spread**2), 0.5 / math.sqrt(d)
        starts = np.unique(np.linspace(d - count, d - 1, 7).astype(int))
        suffix = [probabilities_within(w[t:], [(-half, half)])[0] for t in starts]
        walk = np.cumsum(rng.choice([-1.0, 1.0], (2000, d)) * w, axis=1)
        near = np.abs(walk[:, d - count :]) <= np.abs(w[d - count :])
        crossed, first = np.any(near, axis=1), np.argmax(near, axis=1) + d - count
        rest = walk[:, -1] - walk[np.arange(len(walk)), first]
        both = crossed & (np.abs(rest) <= half)
        return {
            "suffix": math.sqrt(d) * min(suffix),
            "escaped": float(np.mean(both & (np.abs(walk[:, -1]) > 2 * half))),
            "well_spread": float(well_spread(v, self.spread)),
        }


class LossDerivatives(ExactComputation):
    """Differences of loss derivatives of random networks, ÷ the bounds of Lemma C.5.

    `mean_square`: maximum of E(ℓ'_ρ − ℓ'_0)² ÷ 4(E‖a·w‖)²; `flipped_square`: maximum over inputs
    and coordinates i of the squared change of ℓ'_ρ − ℓ'_0 if x_i is negated, ÷ 16(E|a·w_i|)².
    `printed` uses ℓ'_ρ instead of ℓ'_ρ − ℓ'_0, as the lemma is printed. Expectations are sums over
    the cube. Negative control: loss derivatives multiplied by `gain`.
    """

    d: int = eqx.field(static=True, default=8)
    networks: int = eqx.field(static=True, default=100)
    gain: float = eqx.field(converter=float, default=1.0, kw_only=True)
    printed: bool = eqx.field(static=True, default=False, kw_only=True)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = _generator(key)
        x = corners(self.d)
        y = -x[:, 0] * x[:, 1]
        negated = [_negated(x, i) for i in range(self.d)]
        mean, flipped = [], []
        for _ in range(self.networks):
            p = int(rng.integers(1, 9))
            w = rng.normal(size=(p, self.d)) * (rng.random((p, self.d)) < rng.uniform(0.2, 1))
            a = rng.choice([-1.0, 1.0], p) * 10 ** rng.uniform(-2, 1)
            f = np.maximum(x @ w.T, 0) @ a / p
            difference = self.gain * (y - 2 * y / (1 + np.exp(y * f)))  # ℓ'_ρ − ℓ'_0
            size = float(np.mean(np.abs(a) * np.linalg.norm(w, axis=1)))
            if size > 0:
                mean.append(float(np.mean(difference**2)) / (4 * size**2))
            changing = difference - self.gain * y if self.printed else difference
            for i, other in enumerate(negated):
                own = float(np.mean(np.abs(a * w[:, i])))
                if own > 0:
                    square = float(np.max((changing - changing[other]) ** 2))
                    flipped.append(square / (16 * own**2))
        return {"mean_square": max(mean), "flipped_square": max(flipped)}


def _negated(x: np.ndarray, i: int) -> np.ndarray:
    """Return for each point of the cube the index of the point with coordinate i negated."""
    weights = 1 << np.arange(x.shape[1])
    code = (x > 0).astype(int) @ weights
    result: np.ndarray = np.argsort(code)[code ^ weights[i]]
    return result


class HelperRecursion(ExactComputation):
    """Worst case of Lemma C.6 over θ, Q, x and all vectors u, G, Ĝ that satisfy its assumptions.

    `growth`: maximum of (‖u − ηĜ‖²/(Q² + θB²) − 1)/(5ηx), η = θ², ‖G‖ ≤ B, over θ ≤ 0.2, x ≥ √θ
    (at most 1). `largest_constant`: largest K such that this holds with ‖G‖ ≤ K·B. Negative
    control: −⟨u, G⟩ is `boost` times as large as assumed.
    """

    boost: float = eqx.field(converter=float, default=1.0, kw_only=True)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        growth = self._growth(1.0)
        low, high = 0.0, 100.0
        while high - low > 1e-6:
            middle = (low + high) / 2
            low, high = (middle, high) if self._growth(middle) <= 1 else (low, middle)
        return {"growth": growth, "largest_constant": low}

    def _growth(self, constant: float) -> float:
        worst = []
        for theta in (0.001, 0.01, 0.05, 0.1, 0.2):
            eta, B = theta**2, 1.0
            for Q in (0.0, 0.3, 1.0, 1.5):
                for x in (math.sqrt(theta), math.sqrt(math.sqrt(theta)), 0.9):
                    square = Q**2 + theta * B**2
                    W, length = math.sqrt(square), constant * B
                    along = min(self.boost * x * square, W * length)  # −⟨u, G⟩
                    moved = math.sqrt(square + 2 * eta * along + eta**2 * length**2)
                    worst.append(((moved + eta * theta * B) ** 2 / square - 1) / (5 * eta * x))
        return max(worst)


class StrongNeurons(ExactComputation):
    """P(|⟨w, ξ⟩| ≤ √2‖w_sig‖) ÷ ‖w_sig‖/(5‖w_perp + w_sig‖), minimum over hand-made neurons.

    ‖w_sig‖ ≥ ζ^{1.5}‖w_perp‖. `dominant`: ‖w_perp‖ ≤ ‖w_sig‖, any w_perp of up to 12 coordinates;
    `spread_out`: ‖w_perp‖_∞ ≤ ζ³‖w_perp‖ (Claim C.18: at least 1). Negative control: `sparse`
    w_perp, longer than √2·w_sig and with a single large coordinate.
    """

    zeta: float = eqx.field(converter=float, default=0.3)
    neurons: int = eqx.field(static=True, default=100)
    sparse: bool = eqx.field(static=True, default=False, kw_only=True)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = _generator(key)
        dominant, spread_out = [], []
        for _ in range(self.neurons):
            v = rng.normal(size=int(rng.integers(1, 13)))
            if self.sparse:
                v = np.concatenate([[1.0], 0.01 * v])
            v /= np.linalg.norm(v)
            signal = rng.uniform(1, 3) if not self.sparse else rng.uniform(0.1, 0.6)
            dominant.append(SignSum(v).within(math.sqrt(2) * signal) / _required(signal))
        count = math.ceil(self.zeta**-6)
        for ratio in np.geomspace(self.zeta**1.5, 2, 12):
            if self.sparse:
                spread_out.append(SignSum(np.ones(1)).within(math.sqrt(2) * min(ratio, 0.6)))
                continue
            # Equal coordinates: the sum is binomial.
            most = math.floor((math.sqrt(2 * count) * ratio + count) / 2)
            equal = 2 * scipy.stats.binom.cdf(most, count, 0.5) - 1
            v = np.clip(rng.normal(size=2 * count), -1, 1)
            low = math.sqrt(2) * ratio
            free = probabilities_within(v / np.linalg.norm(v), [(-low, low)])[0]
            spread_out += [equal / _required(ratio), free / _required(ratio)]
        return {"dominant": min(dominant), "spread_out": min(spread_out)}


def _required(signal: float) -> float:
    """Return the bound for ‖w_perp‖ = 1."""
    return signal / (5 * math.sqrt(1 + signal**2))
