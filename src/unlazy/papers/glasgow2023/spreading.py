"""Well-spread vectors, and the distance of ⟨ξ, v + Δ⟩, ξ uniform signs, from a Gaussian.

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

#: Berry–Esseen constant for independent, not identically distributed terms.
BERRY_ESSEEN = 0.56
#: Number of weights per chunk of the product Π cos(v_i·t).
CHUNK = 1 << 16


def well_spread(v: np.ndarray, c: float) -> bool:
    """Return whether a vector is c-well-spread.

    ‖v‖₃³ ≤ 20·‖v‖³/√d and ‖v‖_∞ ≤ log(d)·‖v‖/√d; the d/c² smallest coordinates have sum at least
    ‖v‖·√d/c⁵ and maximum at most ‖v‖/(c·√d).

    Deviation: the exponents of the second half are re-derived from the proof of Lemma B.2, since
    our text is unreadable there.
    """
    d = len(v)
    size = np.abs(v) / np.linalg.norm(v)
    count = max(1, int(d / c**2))
    smallest = np.sort(np.partition(size, count - 1)[:count])
    even = np.sum(size**3) <= 20 / math.sqrt(d) and np.max(size) <= math.log(d) / math.sqrt(d)
    return bool(
        even and np.sum(smallest) >= math.sqrt(d) / c**5 and smallest[-1] <= 1 / (c * math.sqrt(d))
    )


def probabilities_within(v: np.ndarray, bounds: list[tuple[float, float]]) -> list[float]:
    """Return P(low ≤ ⟨ξ, v⟩ ≤ high) for each pair of bounds.

    Sums are enumerated for up to 30 nonzero weights, else Π cos(v_i·t) is inverted.
    """
    weights = v[v != 0]
    if len(weights) <= 30:
        distribution = SignSum(weights)
        return [distribution.between(low - 1e-9, high + 1e-9) for low, high in bounds]
    scale = float(np.linalg.norm(weights))
    nodes, quadrature = np.polynomial.legendre.leggauss(96)
    t, quadrature = 4.5 * (nodes + 1) / scale, 4.5 * quadrature / scale
    wave = np.ones(len(t))
    for start in range(0, len(weights), CHUNK):
        wave *= np.prod(np.cos(np.outer(t, weights[start : start + CHUNK])), axis=1)
    return [
        float(np.sum(quadrature * wave * (np.sin(high * t) - np.sin(low * t)) / t)) / math.pi
        for low, high in bounds
    ]


class SpreadVectors(ExactComputation):
    """Random vectors v on the sphere with perturbations ‖Δ‖ = ζ‖v‖, ζ = 1/log⁵ d; the axis is d.

    `spread`: fraction of `draws` vectors that are c-well-spread (B.2). For the first vector:
    `small` = √d·P(|⟨ξ, v + Δ⟩| ≤ ‖v‖/√d), which B.3 bounds below by e^{−100C^k}/8 for some k.
    `gaussian_ratio`: maximum over intervals of |P(⟨ξ, v + Δ⟩ ∈ [a, b]·‖v‖) − P|, P = P(|G| ≤ (b −
    a)/2), ÷ (2P·(√ζ + max(|a|, |b|)²) + 200·C_BE/√d) (B.4). `gaussian_gap`: excess of that
    difference over 2P·max(|a|, |b|)², at least 0, times √d.

    Negative control: `sparse` vectors with one nonzero coordinate.
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
        perturbed = vectors[0]
        if not self.sparse:
            noise = rng.normal(size=d)
            perturbed = perturbed + zeta * noise / np.linalg.norm(noise)
        small = 1 / math.sqrt(d)
        intervals = [(-0.05, 0.05), (-0.3, 0.3), (-0.1, 0.2), (0.05, 0.15)]
        probabilities = probabilities_within(perturbed, [(-small, small), *intervals])
        gaps, ratios = [], []
        for (low, high), probability in zip(intervals, probabilities[1:], strict=True):
            gauss = 2 * float(scipy.stats.norm.cdf((high - low) / 2)) - 1
            gap = abs(probability - gauss)
            gaps.append(max(0.0, gap - 2 * gauss * max(abs(low), abs(high)) ** 2) * math.sqrt(d))
            bound = 2 * gauss * (
                math.sqrt(zeta) + max(abs(low), abs(high)) ** 2
            ) + 200 * BERRY_ESSEEN / math.sqrt(d)
            ratios.append(gap / bound)
        return {
            "spread": float(np.mean([well_spread(v, self.constant) for v in vectors])),
            "small": math.sqrt(d) * probabilities[0],
            "gaussian_ratio": max(ratios),
            "gaussian_gap": max(gaps),
        }
