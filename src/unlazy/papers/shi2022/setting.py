"""The data and the update rule as the paper writes them, in plain NumPy, beside what this package
draws and does: as instruments.

Reference: shi2022, Section 3 (A0 to A2, A1'), Section 3.1, Lemmas 12, 14 and 39, Appendix F.1.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import equinox as eqx
import jax
import numpy as np
import scipy.special
import scipy.stats
from jaxtyping import PRNGKeyArray

from unlazy.lab.trials import ExactComputation
from unlazy.learners.gradient import Descent
from unlazy.learners.sources import PopulationGradients
from unlazy.networks.two_layer import TwoLayer
from unlazy.papers.shi2022.learner import TwoStep
from unlazy.tasks.dictionary.balance import BalancedParity
from unlazy.tasks.dictionary.incoherent import GeneralParity
from unlazy.tasks.dictionary.patterns import ParityMixture, UnstructuredPatterns, parity


def all_bits(D: int) -> np.ndarray:
    """All hidden vectors, one a row."""
    return (np.arange(1 << D)[:, None] >> np.arange(D)[::-1]) & 1


def mixture(bits: np.ndarray, k: int, po: float, skew: float = 0.0) -> np.ndarray:
    """po·D⁽⁰⁾ + (1 − po)·D⁽¹⁾ as Appendix C prints it, with A the first k patterns.

    `skew` makes "all present" likelier and its background louder, and takes the first relevant
    pattern out of it.
    """
    D, on = bits.shape[1], bits[:, :k].sum(axis=1)
    quiet = po / (2 - 2 * po)

    def part(rate: float) -> np.ndarray:
        result: np.ndarray = np.prod(np.where(bits[:, k:] == 1, rate, 1 - rate), axis=1)
        return result

    present = (on == k) if not skew else (on == k - 1) & (bits[:, 0] == 0)
    equal = (0.5 - skew) * (on == 0) * part(quiet) + (0.5 + skew) * present * part(
        min(1.0, quiet + skew)
    )
    result: np.ndarray = po * 0.5**D + (1 - po) * equal
    return result


class Assumptions(ExactComputation):
    """(A0) to (A2), the normalisation and Lemma 14 on all hidden vectors of the printed law; and
    how far the family of this package is off.

    `structured` = False is (A1'), fair coins. `dependence`: the greatest distance in total
    variation of the law from one in which a background pattern is independent of all others;
    `agreement`: the greatest difference of moments and of probabilities; `drawn`: the greatest
    deviation of means over `examples` draws, in standard errors.
    """

    D: int = eqx.field(static=True)
    k: int = eqx.field(static=True)
    po: float = eqx.field(static=True, default=0.5)
    structured: bool = eqx.field(static=True, default=True)
    skew: float = eqx.field(static=True, default=0.0)
    examples: int = eqx.field(static=True, default=100_000)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        k, D = self.k, self.D
        bits = all_bits(D)
        signs = 2 * bits - 1
        tied = signs[:, -1] * (
            1 + 0.5 * signs[:, -2]
        )  # where skewed, the last pattern is likelier, and tied to another
        p = (
            mixture(bits, k, self.po, self.skew)
            if self.structured
            else 0.5**D * (1 + self.skew * tied)
        )
        y = np.where(np.isin(bits[:, :k].sum(axis=1), parity(k)), 1.0, -1.0)
        mean = p @ bits
        gammas = (p * y) @ bits - (p @ y) * mean
        variance = mean * (1 - mean)
        sigma = math.sqrt(variance.sum())
        phi = (bits - mean) / sigma
        quiet = self.po * (1 - self.po) / sigma**2  # σ_φ²
        gamma = float(gammas[:k].mean())
        lemma = [
            p @ y,
            p @ np.abs(y) - 1,
            *(p @ np.abs(phi[:, k:]) - 2 * quiet * sigma),
            *((p * y) @ phi[:, :k] - gamma / sigma),
        ]
        above = p @ np.abs(y[:, None] * phi) * sigma
        family: Any = (
            ParityMixture(d=D, D=D, k=k, po=self.po)
            if self.structured
            else UnstructuredPatterns(d=D, D=D, k=k, P=parity(k))
        )
        return {
            "balance": abs(float(p @ (y > 0)) - 0.5),
            "gamma": gamma,
            "gamma_spread": float(np.ptp(gammas[:k])),
            "rate": float(np.max(np.abs(mean[k:] - self.po))),
            "dependence": max(self._dependence(bits, p, j) for j in range(k, D)),
            "normalised": abs(float(p @ np.sum(phi**2, axis=1)) - 1),
            "lemma14": float(np.max(np.abs(lemma))),
            "lemma14_bound": float(np.max(above)),
            **self._package(family, bits, p, y, key),
        }

    def _dependence(self, bits: np.ndarray, p: np.ndarray, j: int) -> float:
        """½Σ|p(φ̃) − p(φ̃_j)·p(φ̃_{−j})|."""
        table = p.reshape((2,) * self.D)
        own = table.sum(axis=tuple(i for i in range(self.D) if i != j), keepdims=True)
        return float(0.5 * np.abs(table - own * table.sum(axis=j, keepdims=True)).sum())

    def _package(
        self, family: Any, bits: np.ndarray, p: np.ndarray, y: np.ndarray, key: PRNGKeyArray
    ) -> dict[str, float]:
        """The family's moments and probabilities, and means of what it draws."""
        key_task, key_draw = jax.random.split(key)
        task, moments = family.task(key=key_task), family.moments
        on, off = bits[:, : self.k].sum(axis=1), bits[:, self.k :].sum(axis=1)
        distribution = np.asarray(family.distribution.mass(on, off), float)
        mean = p @ bits
        sigma = math.sqrt(np.sum(mean * (1 - mean)))
        gamma = float(np.mean(((p * y) @ bits - (p @ y) * mean)[: self.k]))
        off_by = [
            moments.gamma - gamma,
            moments.sigma - sigma,
            moments.positive - p @ (y > 0),
            moments.background - self.po,
        ]
        x, labels = (np.asarray(each, float) for each in task.draw(self.examples, key_draw))
        order = np.argsort(~np.asarray(task.relevant), kind="stable")
        present = (x * float(moments.sigma) + np.asarray(task.mean))[:, order]
        drawn = np.column_stack([present, labels, labels[:, None] * present[:, : self.k]])
        expected = np.r_[mean, p @ y, ((p * y) @ bits)[: self.k]]
        error = np.abs(drawn.mean(axis=0) - expected) / (
            drawn.std(axis=0) / math.sqrt(self.examples) + 1e-12
        )
        return {
            "agreement": float(
                max(np.max(np.abs(distribution - p)), *(abs(float(each)) for each in off_by))
            ),
            "drawn": float(np.max(error)),
        }


class GeneralAssumptions(ExactComputation):
    """Appendix F.1 on tasks of the general family: unit patterns, γ, class shares, noise,
    independence, and the variance of the data.

    `variance`: |E‖x̃ − E x̃‖²/σ̃² − 1| for the printed σ̃² = ΣVar φ̃_j + dσ_ζ²; what is exact adds
    the covariances of the patterns times their inner products, and `corrected` is how far the mean
    of ‖x̃ − E x̃‖² over draws is from it. `drawn`: the greatest deviation of means over `examples`
    draws, in standard errors: of the label, of its product with a relevant pattern, of products of
    relevant with background patterns, and of the squared noise outside of the span of the patterns.
    `slip` is added to the class share and to γ, and lengthens patterns and noise, where they are
    compared.
    """

    family: GeneralParity
    examples: int = eqx.field(static=True, default=50_000)
    slip: float = eqx.field(static=True, default=0.0)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        key_task, key_draw = jax.random.split(key)
        family, task = self.family, self.family.task(key=key_task)
        M, relevant = np.asarray(task.dictionary, float), np.asarray(task.relevant)
        rates, swing, noise = np.asarray(task.rates, float), float(task.swing), float(task.noise)
        counts, k = np.asarray(task.distribution.count_distribution, float), family.k
        s, y = np.arange(k + 1), np.where(np.isin(np.arange(k + 1), parity(k)), 1.0, -1.0)
        p = float(counts @ s) / k
        pair = float(counts @ (s * (s - 1))) / (k * (k - 1)) - p**2  # Cov of two relevant patterns
        covariance = np.where(
            np.outer(relevant, relevant),
            pair,
            np.where(np.outer(~relevant, ~relevant), swing**2, 0.0),
        )
        np.fill_diagonal(covariance, np.where(relevant, p * (1 - p), rates * (1 - rates)))
        printed = float(np.trace(covariance)) + family.d * noise**2
        gram = (1 + self.slip) ** 2 * M @ M.T
        true = float(np.sum(gram * covariance)) + family.d * noise**2
        within = [
            float(counts[y == v] @ s[y == v]) / k / float(counts[y == v].sum()) for v in (1, -1)
        ]
        x, labels = (np.asarray(each, float) for each in task.draw(self.examples, key_draw))
        raw = x * math.sqrt(printed)
        hidden = raw @ np.linalg.pinv(M)  # φ̃ − E φ̃, and noise
        rest = raw - hidden @ M
        places = np.flatnonzero(relevant), np.flatnonzero(~relevant)
        shares = labels - (1 - 2 * (family.negative + self.slip))
        alpha = np.where(labels > 0, 0.5 / (1 - family.negative), 0.5 / family.negative)
        # E[α_y y φ̃_i] = γ
        signal = (alpha * labels)[:, None] * hidden[:, places[0]] - family.gamma
        cross = hidden[:, places[0][:1]] * hidden[:, places[1]]
        spare = np.sum(rest**2, axis=1) / (family.d - family.D) - (noise * (1 + self.slip)) ** 2
        means = np.column_stack([shares, signal, cross, spare])
        return {
            "length": float(np.max(np.abs(np.sqrt(np.diag(gram)) - 1))),
            "gamma": abs((within[0] - within[1]) / 2 + self.slip - family.gamma),
            "variance": abs(true / printed - 1),
            "corrected": abs(float(np.mean(np.sum(raw**2, axis=1))) / true - 1),
            "drawn": float(
                np.max(np.abs(means.mean(axis=0)) / (means.std(axis=0) / math.sqrt(self.examples)))
            ),
        }


class UpdateRule(ExactComputation):
    """The update (4) of Section 3.1 in plain NumPy, with the gradients of Lemma 12, beside the
    learner, step by step on the exact law.

    `weights`, `biases`, `second`: the greatest difference after any step, over the greatest entry.
    `zero`: the greatest |g⁽⁰⁾(x)|. `kept` is a share of the old weights that the reference keeps
    where λ = 1/(2η) forgets them; `printed` leaves ξ out of the gradient of b, as Lemma 12 prints
    it.
    """

    D: int = eqx.field(static=True, default=8)
    k: int = eqx.field(static=True, default=3)
    m: int = eqx.field(static=True, default=6)
    T: int = eqx.field(static=True, default=6)
    kept: float = eqx.field(static=True, default=0.0)
    printed: bool = eqx.field(static=True, default=False)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        family = BalancedParity(d=self.D + 3, D=self.D, k=self.k, structure=0.5)
        # Steps large enough for every part of the rule to be seen.
        schedule = dataclasses.replace(
            TwoStep.theorem(k=self.k, m=self.m, T=self.T, gamma=0.25, sigma=math.sqrt(self.D) / 2),
            first=0.5,
            w_rate=0.2,
            a_rate=0.2,
        )
        learner = schedule.network(tuple(range(self.T)))
        *features, classifier = learner.stages
        decay = 0.1
        assert isinstance(classifier, Descent)
        last = dataclasses.replace(classifier, batch=None, decay={"w": decay, "a": decay})
        learner = dataclasses.replace(
            learner, stages=(*features, last), source=PopulationGradients(), precision=64
        )
        key_task, key_fit = jax.random.split(key)
        task = family.task(key=key_task)
        trace = eqx.filter_jit(lambda each: learner.fit(task.sampler, 16, key=each))(key_fit)
        x, y, weight = self._distribution(task)
        models = trace.models
        assert isinstance(models, TwoLayer)
        found = [np.asarray(each, float) for each in (models.w, models.b, models.a)]
        w, b, a = (each[0] for each in found)
        zero = float(np.max(np.abs(np.clip(x @ w.T + b, 0, 1) @ a)))
        gaps = np.zeros(3)
        rates = (schedule.first, schedule.second, *(0.2,) * (self.T - 2))
        for step, rate in enumerate(rates, start=1):
            noise = schedule.noise if step <= 2 else 0.0
            slopes = gradients(w, b, a, x, y, weight, noise, printed=self.printed)
            lam_w = (1 - self.kept) / (2 * rate) if step <= 2 else decay
            lam_a = 0.0 if step == 1 else (1 - self.kept) / (2 * rate) if step == 2 else decay
            w, b, a = (
                w - rate * (slopes[0] + 2 * lam_w * w),
                b - rate * slopes[1],
                a - rate * (slopes[2] + 2 * lam_a * a),
            )
            pairs = zip((w, b, a), (each[step] for each in found), strict=True)
            gaps = np.maximum(
                gaps,
                [np.max(np.abs(mine - theirs)) / np.max(np.abs(theirs)) for mine, theirs in pairs],
            )
        return {
            "weights": float(gaps[0]),
            "biases": float(gaps[1]),
            "second": float(gaps[2]),
            "zero": zero,
        }

    def _distribution(self, task: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All inputs of Section 3, their labels and their probabilities at po = ½."""
        bits = all_bits(self.D)
        order = np.argsort(~np.asarray(task.relevant), kind="stable")
        patterns = np.asarray(task.dictionary, float)[order]
        y = np.where(np.isin(bits[:, : self.k].sum(axis=1), parity(self.k)), 1.0, -1.0)
        return (bits - 0.5) / (math.sqrt(self.D) / 2) @ patterns, y, mixture(bits, self.k, 0.5)


def gradients(
    w: np.ndarray,
    b: np.ndarray,
    a: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    noise: float,
    *,
    printed: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """∂L/∂w, ∂L/∂b, ∂L/∂a of Lemma 12; `printed`: without ξ in that of b, as (24) stands."""
    u = x @ w.T + b  # n 2m

    def ramp(v: np.ndarray) -> np.ndarray:
        """E max(0, v + ξ)."""
        if not noise:
            sharp: np.ndarray = np.maximum(v, 0)
            return sharp
        s = v / noise
        smooth: np.ndarray = v * scipy.special.ndtr(s) + noise * scipy.stats.norm.pdf(s)
        return smooth

    sharp = ((u > 0) & (u < 1)).astype(float)
    active = scipy.special.ndtr(u / noise) - scipy.special.ndtr((u - 1) / noise) if noise else sharp
    features = ramp(u) - ramp(u - 1)
    inside = weight * y * (y * (features @ a) <= 1)  # n
    return (
        -a[:, None] * ((inside[:, None] * active).T @ x),
        -a * (inside @ (sharp if printed else active)),
        -(inside @ features),
    )
