"""Probability that a random neuron approximates a feature ψ_r after the exact first step.

Reference: daniely2020, Lemma 9.
"""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.lab.trials import ExactComputation
from unlazy.papers.daniely2020.initial_neurons import InitialNeurons
from unlazy.papers.daniely2020.separators import levels
from unlazy.theory.parity_gradients import FirstGradients

#: Grid points of u around the value that gives the target feature.
GRID_POINTS = 401


class FeatureFraction(ExactComputation):
    """Lemma 9 over the number n of bits: probability that a neuron is within 2ε of ψ_r on every
    input, ε = 1/(10k).

    `wanted`: minimum over r of that probability, divided by ε/(112·k^2.5); at least 1 by the lemma.
    Only neurons whose weights in A sum to zero are counted, with the worst sum over bits outside A,
    so the probability is a lower bound. The second-layer weight u contributes the length of the set
    of u for which the neuron is close enough. `tight` (negative control): 2ε·n^(−tight) replaces
    2ε, which is false for large n.
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
        neurons, exact = (
            InitialNeurons.of(n, k, cancelling=True, max_values=300),
            FirstGradients(n, k, b),
        )
        found = exact.mixture(neurons.plus, neurons.minus, neurons.outside)
        kinds = np.stack([found.on_plus, found.on_zero, found.on_minus])
        occurs = np.stack([neurons.plus > 0, neurons.plus + neurons.minus < k, neurons.minus > 0])
        alpha = (
            neurons.plus * kinds[0]
            + (k - neurons.plus - neurons.minus) * kinds[1]
            + neurons.minus * kinds[2]
        ) / k
        unequal = k * np.max(np.where(occurs, np.abs(kinds - alpha), 0.0), axis=0)
        stray = (
            unequal + neurons.outside * np.abs(found.off)
        ) / n  # deviation of the preactivation, per |u|
        wanted = math.inf
        for r in levels(k):
            target, reach = -b * n / (alpha * r), 4 * b * n / (alpha * abs(r) * k) * epsilon
            u = target + reach * np.linspace(-1, 1, GRID_POINTS)[:, None]
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
            wanted = min(wanted, float(np.sum(neurons.probability * length / (2 * n / k))))
        return float(wanted / (epsilon / (112 * k**2.5)))
