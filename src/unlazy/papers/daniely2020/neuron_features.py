"""How often a neuron of the random start becomes one of the features that the parity is made of,
after the exact first step.

Reference: daniely2020, Lemma 9.
"""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.lab.trials import ExactComputation
from unlazy.papers.daniely2020.random_start import RandomStart
from unlazy.papers.daniely2020.separators import levels
from unlazy.theory.parity_gradients import FirstGradients

#: Places of u at which a neuron is looked at, around the one that gives the wanted feature.
PLACES = 401


class FeatureFraction(ExactComputation):
    """Lemma 9 over the number n of bits: the share of neurons that are within 2ε of ψ_r on every
    input, ε = 1/(10k).

    `wanted`: the least over r of that share, over ε/(112·k^2.5); at least 1 by the lemma. Neurons
    whose weights in A cancel are counted alone, and the sum over bits outside A is taken at its
    worst, so the share is a lower bound. The second-layer weight u enters by the length of the set
    in which the neuron is near enough. `tight` asks for 2ε·n^(−tight) instead, which is false for
    large n.
    """

    KEY = "FeatureShare"

    sizes: tuple[int, ...] = eqx.field(static=True)
    k: int = eqx.field(static=True)
    tight: float = eqx.field(static=True, default=0.0)

    axis = "sizes"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        return {"wanted": np.array([self._one(n) for n in self.sizes])}

    def _one(self, n: int) -> float:
        k, b = self.k, 1 / (8 * self.k)
        epsilon = 1 / (10 * k)
        start, exact = RandomStart.of(n, k, cancelling=True, most=300), FirstGradients(n, k, b)
        found = exact.mixture(start.plus, start.minus, start.outside)
        kinds = np.stack([found.on_plus, found.on_zero, found.on_minus])
        there = np.stack([start.plus > 0, start.plus + start.minus < k, start.minus > 0])
        alpha = (
            start.plus * kinds[0]
            + (k - start.plus - start.minus) * kinds[1]
            + start.minus * kinds[2]
        ) / k
        unequal = k * np.max(np.where(there, np.abs(kinds - alpha), 0.0), axis=0)
        stray = (unequal + start.outside * np.abs(found.off)) / n  # of the pre-activation, by |u|
        wanted = math.inf
        for r in levels(k):
            target, reach = -b * n / (alpha * r), 4 * b * n / (alpha * abs(r) * k) * epsilon
            u = target + reach * np.linspace(-1, 1, PLACES)[:, None]
            near = np.abs(u) <= n / k
            for z in range(-k, k + 1, 2):
                middle = u * alpha * z / n + b + u * found.bias
                for side in (-1, 1):
                    feature = abs(r) / b * np.clip(middle + side * np.abs(u) * stray, 0.0, 6.0)
                    near &= (
                        np.abs(feature - max(-math.copysign(z, r * z) + abs(r), 0.0))
                        <= 2 * epsilon * n**-self.tight
                    )
            length = np.mean(near, axis=0) * 2 * reach
            wanted = min(wanted, float(np.sum(start.share * length / (2 * n / k))))
        return float(wanted / (epsilon / (112 * k**2.5)))
