"""Exact probabilities: typical initialization, and sums over background patterns.

Reference: shi2022, Lemmas 9, 10, 11, 13, 36 and 37.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
import scipy.stats
from jaxtyping import PRNGKeyArray

from unlazy.lab.trials import ExactComputation
from unlazy.papers.shi2022.gradients import generator
from unlazy.papers.shi2022.setting import all_bits
from unlazy.tasks.dictionary.incoherent import incoherent_dictionary

#: Rate of P(Σq² of n standard normals ∉ [½, 3/2]·n) as n → ∞: ½(x − 1 − log x) at x = 3/2.
ENERGY = 0.5 * (0.5 - math.log(1.5))


class TypicalInitialization(ExactComputation):
    """Exact probabilities that an initialization is not typical, divided by δ or by
    2·exp(−c(D − k)), c = ½(½ − log(3/2)); maximum over δ and all D so far.

    `largest`: P(max_ℓ |q_ℓ| > σ_w√(2 log(D/δ)))/δ. `energy`: P(Σ_{ℓ∉A} q_ℓ² ∉ [½, 3/2]·σ_w²(D − k))
    ÷ 2·exp(−c(D − k)). `bias`: P(|b| > σ_b√(2 log(1/δ)))/δ. `all_largest`, `all_bias`: the same for
    m neurons, with m in the logarithm. `drawn`: deviation of the sampled frequency from the first
    probability, in standard errors. `wider` (negative control): factor on weights and biases.
    """

    KEY = "TypicalStart"

    sizes: tuple[int, ...] = eqx.field(static=True)
    k: int = eqx.field(static=True, default=5)
    m: int = eqx.field(static=True, default=300)
    wider: float = eqx.field(static=True, default=1.0)

    axis = "sizes"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rows = []
        rng = generator(key)
        for D in self.sizes:
            each = [self._at(D, delta) for delta in (0.5, 0.1, 0.01, 1e-4)]
            row = {name: max(e[name] for e in each) for name in each[0]}
            rows.append(row | {"drawn": self._drawn(D, 0.1, rng)})
        return {name: np.maximum.accumulate([row[name] for row in rows]) for name in rows[0]}

    def _beyond(self, logarithm: float) -> float:
        """Return P(|N(0, 1)| > √(2·logarithm)/wider)."""
        return float(2 * scipy.stats.norm.sf(math.sqrt(2 * logarithm) / self.wider))

    def _at(self, D: int, delta: float) -> dict[str, float]:
        n, width = D - self.k, self.wider**2
        outside = scipy.stats.chi2.cdf(n / 2 / width, n) + scipy.stats.chi2.sf(1.5 * n / width, n)

        def any_of(count: int, probability: float) -> float:
            return -math.expm1(count * math.log1p(-probability))

        return {
            "largest": any_of(D, self._beyond(math.log(D / delta))) / delta,
            "energy": float(outside) / (2 * math.exp(-ENERGY * n)),
            "bias": self._beyond(math.log(1 / delta)) / delta,
            "all_largest": any_of(D * self.m, self._beyond(math.log(D * self.m / delta))) / delta,
            "all_bias": any_of(self.m, self._beyond(math.log(self.m / delta))) / delta,
        }

    def _drawn(self, D: int, delta: float, rng: np.random.Generator) -> float:
        runs = 2000
        largest = self.wider * np.abs(rng.normal(size=(runs, D))).max(axis=1)
        exact = -math.expm1(D * math.log1p(-self._beyond(math.log(D / delta))))
        frequency = float(np.mean(largest > math.sqrt(2 * math.log(D / delta))))
        return abs(frequency - exact) / math.sqrt(exact * (1 - exact) / runs)


class GeneralInitialization(ExactComputation):
    """Frequencies, over `draws`, with which an initialization is not typical under an incoherent
    dictionary, divided by the bounds of Lemmas 36 and 37; maximum over three δ.

    `largest`: of max_ℓ |q_ℓ| > σ_w√(2 log(D/δ)), divided by δ. `energy`: of Σ_{ℓ∉A} q_ℓ² ∉
    [½, 3/2]·σ_w²(D − k), divided by 2·exp(−c(D − k)), c = ½(½ − log(3/2)). `length`: exact
    probability of ‖w‖² ∉ [½, 3/2]·σ_w²d, divided by the same. `all_largest`, `all_energy`: the same
    for m neurons at once, with Dm/δ and 2m·exp(−c(D − k)). `crowding`: Dμ/√d. `wider` (negative
    control): factor on the weights.
    """

    d: int = eqx.field(static=True)
    D: int = eqx.field(static=True)
    k: int = eqx.field(static=True, default=5)
    m: int = eqx.field(static=True, default=4)
    coherence: float = eqx.field(static=True, default=0.001)
    draws: int = eqx.field(static=True, default=20_000)
    wider: float = eqx.field(static=True, default=1.0)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        key_dictionary, key_draws = jax.random.split(key)
        M = np.asarray(
            incoherent_dictionary(self.d, self.D, self.coherence, key=key_dictionary), float
        )
        w = self.wider * generator(key_draws).normal(size=(self.draws, self.d))
        q = w @ M.T
        energy = np.sum(q[:, self.k :] ** 2, axis=1) / (self.D - self.k)
        outside = np.abs(energy - 1) > 0.5
        top = np.max(np.abs(q), axis=1)
        rare = 2 * math.exp(-ENERGY * (self.D - self.k))
        groups = self.draws // self.m

        def together(event: np.ndarray) -> float:
            """Return the frequency with which an event occurs in a group of m neurons."""
            return float(np.mean(event[: groups * self.m].reshape(groups, self.m).any(axis=1)))

        def share(size: int, frequency: Callable[[np.ndarray], float]) -> float:
            return max(
                frequency(top > math.sqrt(2 * math.log(size / delta))) / delta
                for delta in (0.5, 0.1, 0.01)
            )

        scaled = self.d / self.wider**2
        gram = np.abs(M @ M.T - np.eye(self.D))
        return {
            "largest": share(self.D, lambda event: float(np.mean(event))),
            "energy": float(np.mean(outside)) / rare,
            "length": float(
                scipy.stats.chi2.cdf(scaled / 2, self.d) + scipy.stats.chi2.sf(1.5 * scaled, self.d)
            )
            / rare,
            "all_largest": share(self.D * self.m, together),
            "all_energy": together(outside) / (self.m * rare),
            "crowding": self.D * float(np.max(gram)),
        }


class BackgroundSums(ExactComputation):
    """Lemmas 11 and 13 for random q on all 2^n backgrounds of n patterns, each present with
    probability po; over n.

    `shift`: maximum over b of |Pr{⟨φ, q⟩ ≥ b} − Pr{⟨φ_{−B}, q_{−B}⟩ ≥ b}| for ⟨φ_B, q_B⟩ = t of 0.1
    or 0.5 standard deviations, divided by t/(σ_φ‖q_{−B}‖₂) + ‖q_{−B}‖₃³/(σ̃σ_φ‖q_{−B}‖₂³).
    "least": Pr{⟨φ, q⟩ ≥ half a standard deviation}. `tail`: deviation of this probability from its
    Gaussian value, divided by 0.56 times the second term (Berry–Esseen). Each is the worst of
    `draws`. `together` (negative control): all background patterns are present, or none.
    """

    KEY = "FewOfMany"

    sizes: tuple[int, ...] = eqx.field(static=True)
    po: float = eqx.field(static=True, default=0.3)
    draws: int = eqx.field(static=True, default=8)
    together: bool = eqx.field(static=True, default=False)

    axis = "sizes"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rows = []
        for n in self.sizes:
            each = [self._one(n, generator(key, n, index)) for index in range(self.draws)]
            rows.append(
                {name: (min if name == "least" else max)(e[name] for e in each) for name in each[0]}
            )
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def _one(self, n: int, rng: np.random.Generator) -> dict[str, float]:
        q, po = rng.normal(size=n), self.po
        bits = all_bits(n)
        p = np.prod(np.where(bits == 1, po, 1 - po), axis=1)
        if self.together:
            count = bits.sum(axis=1)
            p = po * (count == n) + (1 - po) * (count == 0)
        # In units with σ̃ = 1: φ = φ̃ − po, σ_φ² = po(1 − po).
        value = (bits - po) @ q
        order = np.argsort(value)
        value, below = value[order], np.cumsum(p[order])
        spread = math.sqrt(po * (1 - po))
        deviation = spread * float(np.linalg.norm(q))
        third = float(np.sum(np.abs(q) ** 3)) / (spread * float(np.linalg.norm(q)) ** 3)

        def less(b: np.ndarray) -> np.ndarray:
            """Return Pr{value < b}."""
            index = np.searchsorted(value, b, side="left")
            return np.where(index > 0, below[np.maximum(index - 1, 0)], 0.0)

        shifts = []
        for multiple in (0.1, 0.5):
            t = multiple * deviation
            edges = np.concatenate(
                [value, value + t, np.nextafter(value, np.inf), np.nextafter(value + t, np.inf)]
            )
            change = float(np.max(np.abs(less(edges) - less(edges - t))))
            shifts.append(change / (multiple + third))
        tail = 1 - float(less(np.array([deviation / 2]))[0])
        return {
            "shift": max(shifts),
            "tail": abs(tail - scipy.stats.norm.sf(0.5)) / (0.56 * third),
            "least": tail,
        }
