"""Well-spread vectors: how often a random vector is one, and how near the law of ⟨ξ, v + Δ⟩, ξ fair
signs, is to a Gaussian.

Reference: glasgow2023, Definition B.1, Lemmas B.2 to B.4.
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

#: A constant that is known to do in the Berry–Esseen inequality for sums of independent, not
#: equally distributed terms.
BERRY_ESSEEN = 0.56
#: Weights of the wave are multiplied up in pieces of so many.
CHUNK = 1 << 16


def well_spread(v: np.ndarray, c: float) -> bool:
    """Whether a vector is c-well-spread.

    ‖v‖₃³ ≤ 20·‖v‖³/√d and ‖v‖_∞ ≤ log(d)·‖v‖/√d; and of the d/c² smallest coordinates the sum is at
    least ‖v‖·√d/c⁵, the greatest at most ‖v‖/(c·√d).

    Deviation: the exponents of the second half are re-derived from the proof of Lemma B.2, the
    print being unreadable.
    """
    d = len(v)
    size = np.abs(v) / np.linalg.norm(v)
    count = max(1, int(d / c**2))
    smallest = np.sort(np.partition(size, count - 1)[:count])
    even = np.sum(size**3) <= 20 / math.sqrt(d) and np.max(size) <= math.log(d) / math.sqrt(d)
    return bool(
        even and np.sum(smallest) >= math.sqrt(d) / c**5 and smallest[-1] <= 1 / (c * math.sqrt(d))
    )


def law_within(v: np.ndarray, bounds: list[tuple[float, float]]) -> list[float]:
    """P(low ≤ ⟨ξ, v⟩ ≤ high) for each pair: listed where few weights are not zero, else by
    inverting Π cos(v_i·t) piece by piece.
    """
    weights = v[v != 0]
    if len(weights) <= 30:
        distribution = SignSum(weights)
        return [distribution.between(low - 1e-9, high + 1e-9) for low, high in bounds]
    scale = float(np.linalg.norm(weights))
    nodes, each = np.polynomial.legendre.leggauss(96)
    t, each = 4.5 * (nodes + 1) / scale, 4.5 * each / scale
    wave = np.ones(len(t))
    for start in range(0, len(weights), CHUNK):
        wave *= np.prod(np.cos(np.outer(t, weights[start : start + CHUNK])), axis=1)
    return [
        float(np.sum(each * wave * (np.sin(high * t) - np.sin(low * t)) / t)) / math.pi
        for low, high in bounds
    ]


class SpreadVectors(ExactComputation):
    """Random vectors v on the sphere with disturbances ‖Δ‖ = ζ‖v‖, ζ = 1/log⁵ d, in each of
    `dimensions`.

    `spread`: the share of `draws` vectors that are c-well-spread (B.2). For the first of them
    `small` = √d·P(|⟨ξ, v + Δ⟩| ≤ ‖v‖/√d), which B.3 bounds below by e^{−100C^k}/8 for some k; and
    `gaussian_ratio`: the greatest |P(⟨ξ, v + Δ⟩ ∈ [a, b]·‖v‖) − P(|G| ≤ (b − a)/2)| over 2P(|G| ≤
    (b − a)/2)·(√ζ + max(|a|, |b|)²) + 200·C_BE/√d (B.4); `gaussian_gap`: by how much the difference
    exceeds the part 2P·max(|a|, |b|)² of it, times √d.

    The false world: `sparse` vectors, of which one coordinate is all but a little.
    """

    dimensions: tuple[int, ...] = eqx.field(static=True, default=(1000, 1_000_000))
    draws: int = eqx.field(static=True, default=100)
    constant: float = eqx.field(converter=float, default=4.0)
    sparse: bool = eqx.field(static=True, default=False, kw_only=True)

    axis = "dimensions"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        rows = [self._at(rng, d) for d in self.dimensions]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def _vector(self, rng: np.random.Generator, d: int) -> np.ndarray:
        if self.sparse:
            result: np.ndarray = np.eye(1, d)[0]
            return result
        v = rng.normal(size=d)
        return v / np.linalg.norm(v)

    def _at(self, rng: np.random.Generator, d: int) -> dict[str, float]:
        vectors = [self._vector(rng, d) for _ in range(max(1, min(self.draws, 20_000_000 // d)))]
        zeta = math.log(d) ** -5
        disturbed = vectors[0]
        if not self.sparse:
            noise = rng.normal(size=d)
            disturbed = disturbed + zeta * noise / np.linalg.norm(noise)
        small = 1 / math.sqrt(d)
        intervals = [(-0.05, 0.05), (-0.3, 0.3), (-0.1, 0.2), (0.05, 0.15)]
        found = law_within(disturbed, [(-small, small), *intervals])
        gaps, ratios = [], []
        for (low, high), chance in zip(intervals, found[1:], strict=True):
            gauss = 2 * float(scipy.stats.norm.cdf((high - low) / 2)) - 1
            gap = abs(chance - gauss)
            gaps.append(max(0.0, gap - 2 * gauss * max(abs(low), abs(high)) ** 2) * math.sqrt(d))
            bound = 2 * gauss * (
                math.sqrt(zeta) + max(abs(low), abs(high)) ** 2
            ) + 200 * BERRY_ESSEEN / math.sqrt(d)
            ratios.append(gap / bound)
        return {
            "spread": float(np.mean([well_spread(v, self.constant) for v in vectors])),
            "small": math.sqrt(d) * found[0],
            "gaussian_ratio": max(ratios),
            "gaussian_gap": max(gaps),
        }
