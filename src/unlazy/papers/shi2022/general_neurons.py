"""Exact population gradients of neurons in the general setting, by enumeration of hidden vectors.

A preactivation is u = ⟨φ, q⟩ + b + ι + ξ with q = Mᵀw, so correlated patterns matter through q
only. ι = ⟨w, ζ/σ̃⟩ and ξ are Gaussian and independent: their sum has variance s² = σ_ξ² +
σ_ζ²‖w‖²/σ̃². The background depends on one hidden sign, given which its patterns are independent. So
the gradients of Lemma 38 are sums over 2^D hidden vectors. The part ν outside the span of the
patterns follows by Stein's lemma: E[ζ_j·h(⟨w, ζ/σ̃⟩)] = (σ_ζ²w_j/σ̃)·E h′.

Reference: shi2022, Lemmas 38 and 40 to 48.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
import scipy.special
import scipy.stats
from jaxtyping import Float, PRNGKeyArray

from unlazy.lab.trials import ExactComputation
from unlazy.papers.shi2022.constants import GeneralGradientBound, lemma_40, lemma_45
from unlazy.papers.shi2022.gradients import DELTA, generator, typical
from unlazy.papers.shi2022.setting import all_bits
from unlazy.tasks.dictionary.balance import BalancedPatternDistribution
from unlazy.tasks.dictionary.incoherent import GeneralParity


class Hidden(NamedTuple):
    """A drawn task of the general family with all its hidden vectors, relevant patterns first.

    `signed`: probability times α_y·y. `quiet`: variances σ_φj² of the background patterns.
    """

    M: Float[np.ndarray, "D d"]
    phi: Float[np.ndarray, "n D"]
    probability: Float[np.ndarray, " n"]
    y: Float[np.ndarray, " n"]
    signed: Float[np.ndarray, " n"]
    quiet: Float[np.ndarray, " rest"]
    sigma: float
    noise: float
    gamma: float
    p_min: float
    k: int

    @property
    def crowding(self) -> float:
        """Dμ/√d."""
        gram = np.abs(self.M @ self.M.T) - np.eye(len(self.M))
        return len(self.M) * float(np.max(gram))

    @property
    def density(self) -> float:
        """po: quantile of level 1 − exp(−k) of the fraction of background patterns present."""
        fraction = np.mean(self.phi[:, self.k :] > 0, axis=1)
        order = np.argsort(fraction)
        below = np.cumsum(self.probability[order])
        return float(fraction[order][np.searchsorted(below, 1 - math.exp(-self.k))])


def hidden_vectors(family: GeneralParity, key: PRNGKeyArray, *, weighted: bool = True) -> Hidden:
    """Draw a task and enumerate its hidden vectors; `weighted` = False omits the class weights."""
    task, k = family.task(key=key), family.k
    distribution = task.distribution
    assert isinstance(distribution, BalancedPatternDistribution)
    order = np.argsort(~np.asarray(task.relevant), kind="stable")
    M = np.array(task.dictionary, float)[order]
    M /= np.linalg.norm(M, axis=1, keepdims=True)
    mean = np.array(task.mean, float)[order]
    bits = all_bits(family.D)
    count = bits[:, :k].sum(axis=1)
    counts = np.array(distribution.count_distribution, float)
    counts /= counts.sum()
    relevant = (counts / scipy.special.comb(k, np.arange(k + 1)))[count]
    parts = []
    for sign in (1.0, -1.0):
        rates = mean[k:] + sign * float(task.swing)
        parts.append(np.prod(np.where(bits[:, k:] == 1, rates, 1 - rates), axis=1))
    probability = relevant * (parts[0] + parts[1]) / 2
    labels = np.array(distribution.label_of_count, float)
    y, positive = labels[count], float(counts @ (labels > 0))
    # γ = (E[φ̃_i | y = 1] − E[φ̃_i | y = −1])/2
    present = counts * np.arange(k + 1) / k
    gamma = float(present @ (labels > 0)) / positive - float(present @ (labels < 0)) / (
        1 - positive
    )
    alpha = 0.5 / np.where(y > 0, positive, 1 - positive) if weighted else 1.0
    # The mean of a relevant pattern in double precision, so that φ has mean zero.
    mean[:k] = float(counts @ np.arange(k + 1)) / k
    sigma = math.sqrt(float(mean @ (1 - mean)) + family.d * float(task.noise) ** 2)
    return Hidden(
        M,
        (bits - mean) / sigma,
        probability,
        y,
        probability * alpha * y,
        mean[k:] * (1 - mean[k:]) / sigma**2,
        sigma,
        float(task.noise),
        gamma / 2,
        min(positive, 1 - positive),
        k,
    )


class GeneralComponents(NamedTuple):
    """T_j of all patterns, ν, T_b, T_a, and β = P(⟨φ_{−A}, q_{−A}⟩ + ι + b + ξ ∈ (0, 1))."""

    T: Float[np.ndarray, " D"]
    nu: Float[np.ndarray, " d"]
    bias: float
    second: float
    beta: float


def smoothed(u: np.ndarray, s: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return P(u + N(0, s²) ∈ (0, 1)), its derivative in u, and E σ(u + N(0, s²)), σ the truncated
    ReLU.
    """
    low, high = u / s, (u - 1) / s
    below, above = scipy.special.ndtr(low), scipy.special.ndtr(high)
    at_low, at_high = (np.exp(-(v**2) / 2) / math.sqrt(2 * math.pi) for v in (low, high))
    ramp = u * below + s * at_low - (u - 1) * above - s * at_high
    return below - above, (at_low - at_high) / s, ramp


def general_components(of: Hidden, w: np.ndarray, b: float, noise: float) -> GeneralComponents:
    """Return the gradient of a neuron, as long as every example has y·g(x) ≤ 1."""
    q = of.M @ w
    s = math.sqrt(noise**2 + of.noise**2 * float(w @ w) / of.sigma**2)
    rest = of.phi[:, of.k :] @ q[of.k :] + b
    active, slope, ramp = smoothed(rest + of.phi[:, : of.k] @ q[: of.k], s)
    return GeneralComponents(
        (of.signed * active) @ of.phi,
        of.noise**2 / of.sigma**2 * float(of.signed @ slope) * w,
        float(of.signed @ active),
        float(of.signed @ ramp),
        float(of.probability @ smoothed(rest, s)[0]),
    )


class GeneralNeurons(ExactComputation):
    """Typical neurons with the initialization of Theorem 34, σ_w = σ̃/(Dm)², on a drawn task.

    Negative controls: `weighted` = False omits the class weights; `mistaken` relevant patterns are
    exchanged with as many background patterns; `kept` is the fraction of the initial weights that
    the decay keeps in the first step; `rate` is a factor on η⁽¹⁾ = γ²p_minσ̃/(km³).
    """

    family: GeneralParity
    m: int = eqx.field(static=True)
    neurons: int = eqx.field(static=True)
    weighted: bool = eqx.field(static=True, default=True, kw_only=True)
    mistaken: int = eqx.field(static=True, default=0, kw_only=True)
    kept: float = eqx.field(static=True, default=0.0, kw_only=True)
    rate: float = eqx.field(static=True, default=1.0, kw_only=True)

    @property
    def noise(self) -> float:
        """σ_ξ = k^(−3/2)."""
        return float(self.family.k**-1.5)

    def eta(self, of: Hidden) -> float:
        """η⁽¹⁾."""
        return self.rate * of.gamma**2 * of.p_min * of.sigma / (self.family.k * self.m**3)

    def w_scale(self, of: Hidden) -> float:
        """σ_w."""
        return of.sigma / (self.family.D * self.m) ** 2

    def drawn(self, key: PRNGKeyArray) -> tuple[Hidden, np.random.Generator]:
        """Draw the task, and return it with a generator for the neurons."""
        key_task, key_neurons = jax.random.split(key)
        return hidden_vectors(self.family, key_task, weighted=self.weighted), generator(key_neurons)

    def initial(self, of: Hidden, rng: np.random.Generator) -> tuple[np.ndarray, float, float]:
        """Draw a typical neuron w, b, a: in G_w(δ), G_b(δ), G_a(δ) of (302) to (304)."""
        (D, d), k = of.M.shape, of.k
        b, a = (typical(rng, math.sqrt(2 * math.log(self.m / DELTA))) for _ in range(2))
        largest = math.sqrt(2 * math.log(D * self.m / DELTA))
        while True:
            w = np.asarray(rng.normal(size=d))
            q = of.M @ w
            energies = float(w @ w) / d, float(q[k:] @ q[k:]) / (D - k)
            if np.max(np.abs(q)) <= largest and all(0.5 <= each <= 1.5 for each in energies):
                return self.w_scale(of) * w, b / k**2, of.sigma**2 / (of.gamma * k**2) * a

    def observed(self, found: GeneralComponents) -> GeneralComponents:
        """Return the components with `mistaken` patterns exchanged."""
        c, k = self.mistaken, self.family.k
        T = found.T.copy()
        T[:c], T[k : k + c] = found.T[k : k + c], found.T[:c]
        return found._replace(T=T)

    def stepped(
        self, of: Hidden, found: GeneralComponents, w: np.ndarray, b: float, a: float
    ) -> tuple[np.ndarray, float, float]:
        """Return w, b, a after the first step of update (4), with λ_w = (1 − kept)/(2η)."""
        eta = self.eta(of)
        gradient = -a * (found.T @ of.M + found.nu)
        decay = (1 - self.kept) / (2 * eta)
        return (
            w - eta * (gradient + 2 * decay * w),
            b + eta * a * found.bias,
            a + eta * found.second,
        )


def _worst(each: list[dict[str, float]]) -> dict[str, float]:
    """Return the maximum of each measure."""
    return {name: max(row[name] for row in each) for name in each[0]}


class GeneralFirstStep(GeneralNeurons):
    """First gradient and network after the first step, for the worst sampled neuron, divided by the
    bounds of Lemmas 40 to 43 with constants one and without exp(−Θ(k)).

    `relevant_ratio`, `background_ratio`, `noise_ratio`, `bias_ratio`, `second_ratio`: |T_j − βγ/σ̃|
    on A, |T_j| off A, |ν_j|, |T_b| and |T_a|. `after_relevant`, `after_background`, `after_noise`:
    the coefficients of w⁽¹⁾ = Σ_ℓ q_ℓM_ℓ + υ. `crowding`: Dμ/√d. `density`: po. `error`: ε_e.
    """

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        of, rng = self.drawn(key)
        found = _worst([self._one(of, rng) for _ in range(self.neurons)])
        return found | {"crowding": of.crowding, "density": of.density}

    def _one(self, of: Hidden, rng: np.random.Generator) -> dict[str, float]:
        k, eta = of.k, self.eta(of)
        w, b, a = self.initial(of, rng)
        exact = general_components(of, w, b, self.noise)
        found = self.observed(exact)
        bound = general_bound(self, of)
        signal = found.beta * of.gamma / of.sigma
        moved, _, _ = self.stepped(of, found, w, b, a)
        upsilon = eta * a * found.nu
        q = (moved - upsilon) @ np.linalg.pinv(of.M)
        outside = moved - q @ of.M
        size = eta * abs(a)
        return {
            "error": bound.error,
            "relevant_ratio": float(np.max(np.abs(found.T[:k] - signal))) / bound.relevant,
            "background_ratio": float(np.max(np.abs(found.T[k:]) / bound.background)),
            "noise_ratio": float(np.max(np.abs(found.nu))) / bound.noise,
            "bias_ratio": abs(found.bias) / bound.error,
            "second_ratio": abs(found.second) / float(np.max(np.abs(of.M @ w))),
            "after_relevant": float(np.max(np.abs(q[:k] - eta * a * signal)))
            / (size * bound.relevant),
            "after_background": float(np.max(np.abs(q[k:]) / (size * bound.background))),
            "after_noise": float(np.max(np.abs(outside))) / (size * bound.noise),
        }


def general_bound(neurons: GeneralNeurons, of: Hidden) -> GeneralGradientBound:
    """Return the bounds of Lemma 40 for a drawn task."""
    D, d = of.M.shape
    return lemma_40(
        D=D,
        d=d,
        k=of.k,
        sigma=of.sigma,
        w_scale=neurons.w_scale(of),
        noise=neurons.noise,
        input_noise=of.noise,
        quiet=of.quiet,
        delta=DELTA,
    )


class GeneralSecondGradient(GeneralNeurons):
    """Network after the first step on `examples` inputs, and second gradient, for the worst sampled
    neuron, divided by the bounds of Lemmas 44 to 47 with constants one and without exp(−Ω(k)).

    `margin`: m times the largest contribution of a sampled pair to |g⁽¹⁾(x)|; below 1, every
    example has y·g⁽¹⁾(x) < 1. `reach_ratio`, `rest_ratio`, `noise_reach`: maxima over examples of
    |⟨w⁽¹⁾, Mφ⟩|, its part off A and |⟨w⁽¹⁾, ζ/σ̃⟩|, divided by η⁽¹⁾σ̃/γ. `reach_sharp`: maximum of
    |⟨w⁽¹⁾, Mφ⟩| divided by η⁽¹⁾|a|(βγ/σ̃)·max|Σ_{j∈A} φ_j|, the leading term of the proof.
    The ratios of the gradient are as in `GeneralFirstStep`.
    """

    examples: int = eqx.field(static=True, default=10_000, kw_only=True)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        of, rng = self.drawn(key)
        chosen = rng.choice(len(of.y), size=self.examples, p=of.probability / of.probability.sum())
        phi = of.phi[chosen]
        zeta = of.noise * rng.normal(size=(self.examples, of.M.shape[1])) / of.sigma
        each = [self._one(of, phi, zeta, rng) for _ in range(self.neurons)]
        return _worst(each) | {"crowding": of.crowding}

    def _one(
        self, of: Hidden, phi: np.ndarray, zeta: np.ndarray, rng: np.random.Generator
    ) -> dict[str, float]:
        k, eta, noise = of.k, self.eta(of), self.noise
        w, b, a = self.initial(of, rng)
        first = general_components(of, w, b, noise)
        moved, bias, second = self.stepped(of, first, w, b, a)
        found = self.observed(general_components(of, moved, bias, noise))
        beta = float(smoothed(np.array([b]), noise)[0][0])
        q = of.M @ moved
        rest = np.abs(phi[:, k:] @ q[k:])
        patterns, inputs = np.abs(phi @ q), np.abs(zeta @ moved)
        reach = float(np.max(patterns + inputs))
        # Of a pair: w and −w, b ± the same change, ±a plus the same change.
        change, shift = abs(second - a), abs(bias - b)
        pair = 2 * change * min(1.0, reach + abs(bias) + noise)
        pair += (abs(a) + change) * 2 * (reach + shift)
        limit = eta * of.sigma / of.gamma
        leading = first.beta * of.gamma / of.sigma * float(np.max(np.abs(phi[:, :k].sum(axis=1))))
        bound = lemma_45(
            k=k,
            sigma=of.sigma,
            gamma=of.gamma,
            eta=eta,
            a=abs(a),
            noise=noise,
            input_noise=of.noise,
            quiet=of.quiet,
            first=general_bound(self, of).error,
        )
        signal = beta * of.gamma / of.sigma
        return {
            "margin": self.m * pair,
            "reach_ratio": float(np.max(patterns)) / limit,
            "rest_ratio": float(np.max(rest)) / limit,
            "noise_reach": float(np.max(inputs)) / limit,
            "reach_sharp": float(np.max(patterns)) / (eta * abs(a) * leading),
            "relevant_ratio": float(np.max(np.abs(found.T[:k] - signal))) / bound.relevant,
            "background_ratio": float(np.max(np.abs(found.T[k:]) / bound.background)),
            "noise_ratio": float(np.max(np.abs(found.nu))) / bound.noise,
            "bias_ratio": abs(found.bias) / bound.error,
            "second_ratio": abs(found.second) / (limit / of.p_min),
        }
