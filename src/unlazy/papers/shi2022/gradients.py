"""First and second population gradient per neuron, and the bounds of the lemmas on them.

All components are exact (`population`); only the initial weights are random. They are drawn under
the condition that they are typical: w ∈ G_w(δ), b ∈ G_b(δ), a ∈ G_a(δ), the assumption of the
lemmas, which all 2m neurons meet with the probability of Lemma 10. Three fields give negative
controls: `mistaken` relevant patterns are exchanged with as many background patterns; `mean` is
added to the labels; biases are lowered by `offset`·σ_w.

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
#: Probability δ that an initialization is not typical.
DELTA = 0.05
#: Replaces zero in ratios.
TINY = 1e-300


def generator(key: PRNGKeyArray, *more: int) -> np.random.Generator:
    """Return a NumPy generator seeded by a key and integers."""
    return np.random.default_rng([*more, *np.asarray(jax.random.key_data(key)).ravel().tolist()])


def typical(rng: np.random.Generator, limit: float) -> float:
    """Draw a standard normal number under the condition that it is at most `limit` in absolute
    value.
    """
    value = rng.normal()
    while abs(value) > limit:
        value = rng.normal()
    return float(value)


class _PatternNeurons(ExactComputation):
    """Neurons with the paper's initialization on the parity mixture with k relevant patterns."""

    k: int = eqx.field(static=True)
    m: int = eqx.field(static=True, default=8)
    neurons: int = eqx.field(static=True, default=8)
    mistaken: int = eqx.field(static=True, default=0)
    mean: float = eqx.field(converter=float, default=0.0)
    offset: float = eqx.field(converter=float, default=0.0)

    def initial(self, D: int, rng: np.random.Generator) -> tuple[np.ndarray, float, float]:
        """Draw a typical neuron: q along all patterns (those of A first), b and a.

        For the same generator state, b and a do not depend on D.
        """
        limit = math.sqrt(2 * math.log(self.m / DELTA))
        b, a = (typical(rng, limit) for _ in range(2))
        largest = math.sqrt(2 * math.log(D * self.m / DELTA))
        q = rng.normal(size=D)
        while (
            np.max(np.abs(q)) > largest
            or not 0.5 <= float(q[self.k :] @ q[self.k :]) / (D - self.k) <= 1.5
        ):
            q = rng.normal(size=D)
        sigma_a = D / 4 / (GAMMA * self.k**2)
        return q / self.k, b / self.k**2 - self.offset / self.k, sigma_a * a

    def observed(self, q: np.ndarray, b: float, noise: float) -> Components:
        """Return the components of a neuron, with `mistaken` patterns exchanged."""
        exact = components(q[: self.k], q[self.k :], b, noise, mean=self.mean)
        c = self.mistaken
        if not c:
            return exact
        on, off = exact.on.copy(), exact.off.copy()
        on[:c], off[:c] = exact.off[:c], exact.on[:c]
        return exact._replace(on=on, off=off)


class FirstGradient(_PatternNeurons):
    """T_j, T_b and T_a of the first gradient over the number D of patterns, for the worst sampled
    neuron, divided by the bounds of Lemmas 15 to 17 with constants one.

    `error`: maximum of |T_j/(βγ/σ̃) − 1| over j ∈ A. `share`: maximum of |T_j| over j ∉ A, divided
    by βγ/σ̃. `largest`, `bias`: initial weights divided by the bounds of G_w(δ) and G_b(δ).
    `energy`, `least_energy`: maximum and minimum of Σ_{ℓ∉A} q_ℓ² divided by its mean. Exponents are
    slopes in log D.
    """

    sizes: tuple[int, ...] = eqx.field(static=True, kw_only=True)

    axis = "sizes"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rows = [self._at(D, key) for D in self.sizes]
        table = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        log_sizes = np.log(self.sizes)
        exponents = {
            f"{name}_exponent": slope(log_sizes, np.log(table[name]))
            for name in ("relevant", "background")
        }
        return table | {name: np.full(len(log_sizes), value) for name, value in exponents.items()}

    def _at(self, D: int, key: PRNGKeyArray) -> dict[str, float]:
        each = [self._one(D, generator(key, index)) for index in range(self.neurons)]
        maxima = {name: max(row[name] for row in each) for name in each[0]}
        minima = {
            name: min(row[name] for row in each) for name in ("relevant", "beta", "least_energy")
        }
        return maxima | minima

    def _one(self, D: int, rng: np.random.Generator) -> dict[str, float]:
        k, sigma = self.k, math.sqrt(D) / 2
        q, b, _ = self.initial(D, rng)
        found = self.observed(q, b, k**-1.5)
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


class FirstStep(_PatternNeurons):
    """The network after the first step of size η⁽¹⁾ = γ²σ̃/(km³) by update (4), for the worst
    sampled neuron, divided by the bounds of Lemma 18 with constants one.

    `relevant_ratio`, `background_ratio`: maximum of |q_ℓ⁽¹⁾ − η⁽¹⁾aβγ/σ̃| over ℓ ∈ A and of |q_ℓ⁽¹⁾|
    over ℓ ∉ A. `bias_ratio`, `second_ratio`: |b⁽¹⁾ − b⁽⁰⁾| and |a⁽¹⁾ − a⁽⁰⁾|. `error`: maximum of
    |q_ℓ⁽¹⁾/(η⁽¹⁾aβγ/σ̃) − 1| over ℓ ∈ A. `share`: maximum of |q_ℓ⁽¹⁾| over ℓ ∉ A, divided by
    η⁽¹⁾|a|βγ/σ̃. `kept` (negative control): fraction of the initial weights that the decay keeps; 0
    is λ_w⁽¹⁾ = 1/(2η⁽¹⁾).
    """

    D: int = eqx.field(static=True, kw_only=True)
    kept: float = eqx.field(converter=float, default=0.0, kw_only=True)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        each = [self._one(generator(key, self.D, index)) for index in range(self.neurons)]
        return {name: max(row[name] for row in each) for name in each[0]} | {
            "beta": min(row["beta"] for row in each)
        }

    def _one(self, rng: np.random.Generator) -> dict[str, float]:
        k, D, m = self.k, self.D, self.m
        sigma = math.sqrt(D) / 2
        eta = GAMMA**2 * sigma / (k * m**3)
        decay = (1 - self.kept) / (2 * eta)
        q, b, a = self.initial(D, rng)
        found = self.observed(q, b, k**-1.5)
        # Gradients are −aT_j, −aT_b and −T_a; only w has decay.
        moved = q - eta * (-a * np.concatenate([found.on, found.off]) + 2 * decay * q)
        bias, second = b + eta * a * found.bias, a + eta * found.second
        bound = lemma_15(D=D, k=k, m=m, po=0.5, sigma=sigma, delta=DELTA)
        size = eta * abs(a)
        target = eta * a * found.beta * GAMMA / sigma
        off = float(np.max(np.abs(moved[k:])))
        return {
            "relevant_ratio": float(np.max(np.abs(moved[:k] - target))) / (size * bound.relevant),
            "background_ratio": off / (size * bound.background),
            "bias_ratio": abs(bias - b) / (size * bound.error),
            "second_ratio": abs(second - a) / (eta * math.sqrt(math.log(D * m / DELTA)) / k),
            "error": float(np.max(np.abs(moved[:k] / target - 1))),
            "share": off / abs(target),
            "beta": found.beta,
        }


class SecondGradient(_PatternNeurons):
    """Components of the second gradient after a first step of size η⁽¹⁾ = rate·γ²σ̃/(km³), divided
    by the bounds of Lemmas 19 to 22 with constants one.

    All 2m neurons have the same distribution, so a sample of them suffices. `margin`: m times the
    largest possible contribution of a pair to |g⁽¹⁾(x)| at any x. Below 1, every example has
    y·g⁽¹⁾(x) < 1, and the computed gradient is exact. `reach_ratio`, `rest_ratio`: maximum over all
    x of |⟨w⁽¹⁾, x⟩| and of its part off A, divided by η⁽¹⁾σ̃/γ. `reach_sharp`: the first one divided
    by η⁽¹⁾|a⁽⁰⁾|kβγ/(2σ̃²), its value if T_j = βγ/σ̃ on A and 0 off A. `rest_share`: the second one
    divided by the first. `pair_ratio`: difference of the biases of a pair after step 1, divided by
    η⁽¹⁾|a⁽⁰⁾|ε_e. `gain`: log₁₀ decrease from step 1 to step 2 of max_{j∉A} |T_j| divided by
    min_{j∈A} |T_j|.
    """

    D: int = eqx.field(static=True, kw_only=True)
    rate: float = eqx.field(converter=float, default=1.0, kw_only=True)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = generator(key, self.D)
        each = [self._one(rng) for _ in range(self.neurons)]
        worst = {name: max(row[name] for row in each) for name in each[0]}
        return worst | {name: min(row[name] for row in each) for name in ("gain", "beta")}

    def _one(self, rng: np.random.Generator) -> dict[str, float]:
        k, D, m, noise = self.k, self.D, self.m, self.k**-1.5
        sigma = math.sqrt(D) / 2
        eta = self.rate * GAMMA**2 * sigma / (k * m**3)
        q, b, a = self.initial(D, rng)
        first = self.observed(q, b, noise)
        true = components(q[:k], q[k:], b, noise, mean=self.mean) if self.mistaken else first
        q = eta * a * np.concatenate([true.on, true.off])
        moved = eta * a * true.bias
        found = self.observed(q, b + moved, noise)
        beta = components(np.zeros(k), np.zeros(1), b, noise).beta  # P(b + ξ ∈ (0, 1))
        reach = float(np.sum(np.abs(q))) / (2 * sigma)  # |⟨w⁽¹⁾, x⟩| at any x
        rest = float(np.sum(np.abs(q[k:]))) / (2 * sigma)
        pair = 2 * eta * abs(true.second) * min(1.0, reach + abs(b + moved) + noise)
        pair += (abs(a) + eta * abs(true.second)) * 2 * (reach + abs(moved))
        bound = lemma_20(
            D=D, k=k, m=m, sigma=sigma, gamma=GAMMA, eta=eta, a=abs(a), noise=noise, delta=DELTA
        )
        first_error = lemma_15(D=D, k=k, m=m, po=0.5, sigma=sigma, delta=DELTA).error
        signal = beta * GAMMA / sigma

        def off_to_on(of: Components) -> float:
            return float(
                np.max(np.abs(of.off), initial=TINY) / max(float(np.min(np.abs(of.on))), TINY)
            )

        return {
            "margin": m * pair,
            "reach_ratio": reach / (eta * sigma / GAMMA),
            "rest_ratio": rest / (eta * sigma / GAMMA),
            "reach_sharp": reach / (eta * abs(a) * k * true.beta * GAMMA / (2 * sigma**2)),
            "rest_share": rest / reach,
            "pair_ratio": 2 * abs(moved) / (eta * abs(a) * first_error),
            "beta": beta,
            "relevant_ratio": float(np.max(np.abs(found.on - signal))) / bound.relevant,
            "background_ratio": float(np.max(np.abs(found.off))) / bound.background,
            "bias_ratio": abs(found.bias) / bound.error,
            "second_ratio": abs(found.second) / (eta * sigma / GAMMA),
            "gain": math.log10(off_to_on(first) / off_to_on(found)),
            "error": bound.error,
        }
