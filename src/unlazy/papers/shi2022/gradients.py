"""The first and the second gradient of the population, neuron by neuron, beside the bounds of the
lemmas on them.

All components are computed without sampling (`population`); only the initial weights are drawn.
`mistaken` and `mean` make worlds in which the lemmas are false: so many relevant patterns are taken
for background patterns and as many the other way round; labels have a mean. `offset` lowers all
biases by so many σ_w.

Reference: shi2022, Lemmas 15 to 22.
"""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.lab.power_laws import slope
from unlazy.lab.trials import ExactComputation
from unlazy.papers.shi2022.constants import lemma_15, lemma_20
from unlazy.papers.shi2022.population import Components, components

#: γ of the parity mixture at po = ½.
GAMMA = 0.25
#: The probability δ with which a lemma's typical start may be missed.
DELTA = 0.05
#: Stands for zero where a ratio is taken.
TINY = 1e-300


def generator(key: PRNGKeyArray, *more: int) -> np.random.Generator:
    """Random numbers of the host by a key."""
    return np.random.default_rng([*more, *np.asarray(jax.random.key_data(key)).ravel().tolist()])


class _PatternNeurons(ExactComputation):
    """Base of both: neurons of the paper's initial law on a parity mixture with k of D patterns."""

    k: int = eqx.field(static=True)
    m: int = eqx.field(static=True, default=8)
    neurons: int = eqx.field(static=True, default=8)
    mistaken: int = eqx.field(static=True, default=0)
    mean: float = eqx.field(converter=float, default=0.0)
    offset: float = eqx.field(converter=float, default=0.0)

    def start(self, D: int, rng: np.random.Generator) -> tuple[np.ndarray, float, float]:
        """q along all patterns, those of A first, b and a.

        Neurons of one generator differ in their background weights alone.
        """
        sigma_a = D / 4 / (GAMMA * self.k**2)
        b, a = rng.normal() / self.k**2 - self.offset / self.k, sigma_a * rng.normal()
        return rng.normal(size=D) / self.k, b, a

    def look(self, q: np.ndarray, b: float, noise: float) -> Components:
        """The components of a neuron, with the patterns that are taken for others."""
        found = components(q[: self.k], q[self.k :], b, noise, mean=self.mean)
        c = self.mistaken
        if not c:
            return found
        on, off = found.on.copy(), found.off.copy()
        on[:c], off[:c] = found.off[:c], found.on[:c]
        return found._replace(on=on, off=off)


class FirstGradient(_PatternNeurons):
    """T_j, T_b and T_a of the first gradient over the number D of patterns, the worst of all
    neurons, beside Lemmas 15 to 17.

    Ratios are to the lemmas' bounds with constants one. `error`: the greatest |T_j/(βγ/σ̃) − 1| on
    A; `share`: the greatest |T_j| off A over βγ/σ̃; `largest`, `energy`, `bias`: the start relative
    to the bounds of G_w(δ) and G_b(δ). Exponents are over D.
    """

    sizes: tuple[int, ...] = eqx.field(static=True, kw_only=True)

    axis = "sizes"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rows = [self._at(D, key) for D in self.sizes]
        found = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        sizes = np.log(self.sizes)
        exponents = {
            f"{name}_exponent": slope(sizes, np.log(found[name]))
            for name in ("relevant", "background")
        }
        return found | {name: np.full(len(sizes), value) for name, value in exponents.items()}

    def _at(self, D: int, key: PRNGKeyArray) -> dict[str, float]:
        each = [self._one(D, generator(key, index)) for index in range(self.neurons)]
        worst = {name: max(row[name] for row in each) for name in each[0]}
        least = {
            name: min(row[name] for row in each) for name in ("relevant", "beta", "least_energy")
        }
        return worst | least

    def _one(self, D: int, rng: np.random.Generator) -> dict[str, float]:
        k, sigma = self.k, math.sqrt(D) / 2
        q, b, _ = self.start(D, rng)
        found = self.look(q, b, k**-1.5)
        bound = lemma_15(D=D, k=k, m=self.m, po=0.5, sigma=sigma, delta=DELTA)
        signal = found.beta * GAMMA / sigma
        relevant = float(np.min(np.abs(found.on)))
        background = float(np.max(np.abs(found.off)))
        energy = float(q[k:] @ q[k:]) * k**2 / (D - k)
        return {
            "relevant": relevant,
            "background": background,
            "beta": found.beta,
            "error": float(np.max(np.abs(found.on / signal - 1))),
            "share": background / signal,
            "relevant_ratio": float(np.max(np.abs(found.on - signal))) / bound.relevant,
            "background_ratio": background / bound.background,
            "bias_ratio": abs(found.bias) / bound.error,
            "second_ratio": abs(found.second) / float(np.max(np.abs(q))),
            "largest": float(np.max(np.abs(q))) * k / math.sqrt(2 * math.log(D * self.m / DELTA)),
            "energy": energy,
            "least_energy": energy,
            "bias": abs(b) * k**2 / math.sqrt(2 * math.log(self.m / DELTA)),
        }


class SecondGradient(_PatternNeurons):
    """The components of the second gradient after a first step of size η⁽¹⁾ = rate·γ²σ̃/(km³),
    beside Lemmas 19 to 22 with constants one.

    The step moves all 2m neurons alike, so that few of them are looked at. `margin`: m times the
    greatest |g⁽¹⁾(x)| that a pair can contribute at any x; below 1 every example has y·g⁽¹⁾(x) < 1,
    and the second gradient is exactly what is computed here. `gain`: by how many powers of ten the
    greatest component off A falls beside the least on A, from step 1 to step 2.
    """

    D: int = eqx.field(static=True, kw_only=True)
    rate: float = eqx.field(converter=float, default=1.0, kw_only=True)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = generator(key, self.D)
        each = [self._one(rng) for _ in range(self.neurons)]
        found = {name: max(row[name] for row in each) for name in each[0]}
        found |= {name: min(row[name] for row in each) for name in ("gain", "beta")}
        return found

    def _one(self, rng: np.random.Generator) -> dict[str, float]:
        k, D, m, noise = self.k, self.D, self.m, self.k**-1.5
        sigma = math.sqrt(D) / 2
        eta = self.rate * GAMMA**2 * sigma / (k * m**3)
        q, b, a = self.start(D, rng)
        first = self.look(q, b, noise)
        true = components(q[:k], q[k:], b, noise, mean=self.mean) if self.mistaken else first
        q = eta * a * np.concatenate([true.on, true.off])
        moved = eta * a * true.bias
        found = self.look(q, b + moved, noise)
        beta = components(np.zeros(k), np.zeros(1), b, noise).beta  # P(b + ξ ∈ (0, 1))
        reach = float(np.sum(np.abs(q))) / (2 * sigma)  # |⟨w⁽¹⁾, x⟩| at any x
        pair = 2 * eta * abs(true.second) * min(1.0, reach + abs(b + moved) + noise)
        pair += (abs(a) + eta * abs(true.second)) * 2 * (reach + abs(moved))
        bound = lemma_20(
            D=D, k=k, m=m, sigma=sigma, gamma=GAMMA, eta=eta, a=abs(a), noise=noise, delta=DELTA
        )
        signal = beta * GAMMA / sigma

        def share(of: Components) -> float:
            return float(
                np.max(np.abs(of.off), initial=TINY) / max(float(np.min(np.abs(of.on))), TINY)
            )

        return {
            "margin": m * pair,
            "reach_ratio": reach / (eta * sigma / GAMMA),
            "beta": beta,
            "relevant_ratio": float(np.max(np.abs(found.on - signal))) / bound.relevant,
            "background_ratio": float(np.max(np.abs(found.off))) / bound.background,
            "bias_ratio": abs(found.bias) / bound.error,
            "second_ratio": abs(found.second) / (eta * sigma / GAMMA),
            "gain": math.log10(share(first) / share(found)),
            "error": bound.error,
        }
