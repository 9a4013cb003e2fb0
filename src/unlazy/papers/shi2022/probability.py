"""The lemmas on chance, exactly: how likely a typical start is, and how little a few patterns move
a sum of many.

Reference: shi2022, Lemmas 9, 10, 11 and 13.
"""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import numpy as np
import scipy.stats
from jaxtyping import PRNGKeyArray

from unlazy.lab.trials import ExactComputation
from unlazy.papers.shi2022.gradients import generator
from unlazy.papers.shi2022.setting import all_bits

#: −log of the chance that Σq² of n numbers leaves [½, 3/2]·n, over n, as n grows: ½(x − 1 − log x)
#: at x = 3/2.
ENERGY = 0.5 * (0.5 - math.log(1.5))


class TypicalStart(ExactComputation):
    """The exact chances that a start is not typical, over δ or 2·exp(−c(D − k)), c = ½(½ − log
    3/2): the worst of all δ and D so far.

    `largest`: P(max_ℓ |q_ℓ| > σ_w√(2 log(D/δ))) over δ; `energy`: P(Σ_{ℓ∉A} q_ℓ² outside [½,
    3/2]·σ_w²(D − k)) over 2·exp(−c(D − k)); `bias`: P(|b| > σ_b√(2 log(1/δ))) over δ;
    `all_largest`, `all_bias`: the same for m neurons with m in the logarithm. `drawn`: how far a
    sample of weights is from the first, in standard errors. `wider`: by which weights and biases
    are too large.
    """

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
        """P(|N(0, 1)| > √(2·logarithm)/wider)."""
        return float(2 * scipy.stats.norm.sf(math.sqrt(2 * logarithm) / self.wider))

    def _at(self, D: int, delta: float) -> dict[str, float]:
        n, width = D - self.k, self.wider**2
        outside = scipy.stats.chi2.cdf(n / 2 / width, n) + scipy.stats.chi2.sf(1.5 * n / width, n)

        def some(chance: float, of: int) -> float:
            return -math.expm1(of * math.log1p(-chance))

        return {
            "largest": some(self._beyond(math.log(D / delta)), D) / delta,
            "energy": float(outside) / (2 * math.exp(-ENERGY * n)),
            "bias": self._beyond(math.log(1 / delta)) / delta,
            "all_largest": some(self._beyond(math.log(D * self.m / delta)), D * self.m) / delta,
            "all_bias": some(self._beyond(math.log(self.m / delta)), self.m) / delta,
        }

    def _drawn(self, D: int, delta: float, rng: np.random.Generator) -> float:
        runs = 2000
        largest = self.wider * np.abs(rng.normal(size=(runs, D))).max(axis=1)
        chance = -math.expm1(D * math.log1p(-self._beyond(math.log(D / delta))))
        found = float(np.mean(largest > math.sqrt(2 * math.log(D / delta))))
        return abs(found - chance) / math.sqrt(chance * (1 - chance) / runs)


class FewOfMany(ExactComputation):
    """Lemmas 11 and 13 for random q on all 2^n backgrounds of n patterns that are present with
    probability po, over n.

    `shift`: the greatest |Pr{⟨φ, q⟩ ≥ b} − Pr{⟨φ_{−B}, q_{−B}⟩ ≥ b}| over all b, for ⟨φ_B, q_B⟩ = t
    of half a deviation or a tenth, over the bound t/(σ_φ‖q_{−B}‖₂) + ‖q_{−B}‖₃³/(σ̃σ_φ‖q_{−B}‖₂³);
    `tail`: |Pr{⟨φ, q⟩ ≥ half a deviation} − its Gaussian value| over 0.56 of the second term, Berry
    and Esseen's; `least`: that probability. The worst of `draws`. `together`: the background comes
    all at once or not at all.
    """

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
        # In units where σ̃ = 1: φ = φ̃ − po, σ_φ² = po(1 − po).
        value = (bits - po) @ q
        order = np.argsort(value)
        value, below = value[order], np.cumsum(p[order])
        spread = math.sqrt(po * (1 - po))
        deviation = spread * float(np.linalg.norm(q))
        third = float(np.sum(np.abs(q) ** 3)) / (spread * float(np.linalg.norm(q)) ** 3)

        def less(b: np.ndarray) -> np.ndarray:
            """Pr{value < b}."""
            place = np.searchsorted(value, b, side="left")
            return np.where(place > 0, below[np.maximum(place - 1, 0)], 0.0)

        found = []
        for share in (0.1, 0.5):
            t = share * deviation
            edges = np.concatenate(
                [value, value + t, np.nextafter(value, np.inf), np.nextafter(value + t, np.inf)]
            )
            found.append(float(np.max(np.abs(less(edges) - less(edges - t)))) / (share + third))
        tail = 1 - float(less(np.array([deviation / 2]))[0])
        return {
            "shift": max(found),
            "tail": abs(tail - scipy.stats.norm.sf(0.5)) / (0.56 * third),
            "least": tail,
        }
