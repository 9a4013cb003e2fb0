"""Data and update rule as in the paper, in NumPy, compared with this package.

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
    """Return all 2^D hidden vectors as rows."""
    return (np.arange(1 << D)[:, None] >> np.arange(D)[::-1]) & 1


def mixture(bits: np.ndarray, k: int, po: float, skew: float = 0.0) -> np.ndarray:
    """Return the probabilities under po·D⁽⁰⁾ + (1 − po)·D⁽¹⁾ of Appendix C, with A = {1, …, k}.

    `skew` (negative control) raises the probability of "all present" and its background rate, and
    removes the first relevant pattern from it.
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
    """(A0) to (A2), normalization and Lemma 14 on all hidden vectors of the printed distribution,
    and deviations of this package's family from it.

    `structured` = False: (A1'), uniform bits. `dependence`: maximum over background patterns of the
    total variation distance to the distribution with that pattern made independent. `agreement`:
    maximum difference of moments and probabilities. `drawn`: maximum deviation of means over
    `examples` draws, in standard errors.
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
        # With skew, the last pattern is more likely and depends on the one before it.
        tied = signs[:, -1] * (1 + 0.5 * signs[:, -2])
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
        """Return ½Σ|p(φ̃) − p(φ̃_j)·p(φ̃_{−j})|."""
        table = p.reshape((2,) * self.D)
        own = table.sum(axis=tuple(i for i in range(self.D) if i != j), keepdims=True)
        return float(0.5 * np.abs(table - own * table.sum(axis=j, keepdims=True)).sum())

    def _package(
        self, family: Any, bits: np.ndarray, p: np.ndarray, y: np.ndarray, key: PRNGKeyArray
    ) -> dict[str, float]:
        """Return `agreement` and `drawn` of this package's family."""
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
    """Appendix F.1 on tasks of the general family: unit patterns, γ, class fractions, noise,
    independence, and the variance of the data.

    `variance`: |E‖x̃ − E x̃‖²/σ̃² − 1| for the printed σ̃² = ΣVar φ̃_j + dσ_ζ². `corrected`: relative
    deviation of the sample mean of ‖x̃ − E x̃‖² from the exact variance, which adds covariances of
    patterns times their inner products. `drawn`: maximum deviation of means over `examples` draws,
    in standard errors: of the label, of its product with a relevant pattern, of products of
    relevant and background patterns, and of the squared noise outside the span of the patterns.
    `lemma39`: maximum deviation from the equalities (322) to (325), exact; `lemma39_bound`: maximum
    of σ̃·E|α_y yφ_j|.
    `error` (negative control) is added to class fraction and γ, and scales patterns and noise by
    1 + error.
    """

    family: GeneralParity
    examples: int = eqx.field(static=True, default=50_000)
    error: float = eqx.field(static=True, default=0.0, metadata={"key": "slip"})

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
        gram = (1 + self.error) ** 2 * M @ M.T
        exact = float(np.sum(gram * covariance)) + family.d * noise**2
        within = [
            float(counts[y == v] @ s[y == v]) / k / float(counts[y == v].sum()) for v in (1, -1)
        ]
        sigma = math.sqrt(printed)
        shares = np.array([counts[y == v].sum() for v in (1, -1)]) + self.error * np.array([-1, 1])
        weighted = counts * 0.5 / np.where(y > 0, *shares)  # Pr[count]·α_y
        # Background: σ̃·E|φ_j| over both values of the hidden sign, and 2σ_φj²σ̃².
        off = rates[~relevant]
        size = np.mean([(off + h) * (1 - off) + (1 - off - h) * off for h in (swing, -swing)], 0)
        lemma39 = np.array(
            [
                weighted @ y,
                weighted.sum() - 1,
                (weighted @ (y * (s / k - p)) - family.gamma) / sigma,
                *(size - 2 * np.diag(covariance)[~relevant]) / sigma,
            ]
        )
        x, labels = (np.asarray(each, float) for each in task.draw(self.examples, key_draw))
        raw = x * math.sqrt(printed)
        hidden = raw @ np.linalg.pinv(M)  # φ̃ − E φ̃, plus noise
        rest = raw - hidden @ M
        on, rest_of = np.flatnonzero(relevant), np.flatnonzero(~relevant)
        label = labels - (1 - 2 * (family.negative + self.error))
        alpha = np.where(labels > 0, 0.5 / (1 - family.negative), 0.5 / family.negative)
        # E[α_y y φ̃_i] = γ
        signal = (alpha * labels)[:, None] * hidden[:, on] - family.gamma
        cross = hidden[:, on[:1]] * hidden[:, rest_of]
        excess = np.sum(rest**2, axis=1) / (family.d - family.D) - (noise * (1 + self.error)) ** 2
        zero_mean = np.column_stack([label, signal, cross, excess])
        standard_error = zero_mean.std(axis=0) / math.sqrt(self.examples)
        return {
            "length": float(np.max(np.abs(np.sqrt(np.diag(gram)) - 1))),
            "gamma": abs((within[0] - within[1]) / 2 + self.error - family.gamma),
            "variance": abs(exact / printed - 1),
            "corrected": abs(float(np.mean(np.sum(raw**2, axis=1))) / exact - 1),
            "drawn": float(np.max(np.abs(zero_mean.mean(axis=0)) / standard_error)),
            "lemma39": float(np.max(np.abs(lemma39))),
            "lemma39_bound": float(
                max(
                    weighted @ ((s / k) * (1 - p) + (1 - s / k) * p),
                    weighted.sum() * np.max(size),
                )
            ),
        }


class UpdateRule(ExactComputation):
    """Learner versus a NumPy reference of update (4) with the gradients of Lemma 12, step by step
    on the exact population.

    `weights`, `biases`, `second`: maximum over steps of the largest difference, divided by the
    largest entry. `zero`: maximum of |g⁽⁰⁾(x)|. Negative controls: `kept` is the fraction of the
    old weights that the reference keeps in the steps with full decay, λ = 1/(2η); `printed` omits ξ
    in the gradient of b, as printed in Lemma 12.
    """

    D: int = eqx.field(static=True, default=8)
    k: int = eqx.field(static=True, default=3)
    m: int = eqx.field(static=True, default=6)
    T: int = eqx.field(static=True, default=6)
    kept: float = eqx.field(static=True, default=0.0)
    printed: bool = eqx.field(static=True, default=False)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        family = BalancedParity(d=self.D + 3, D=self.D, k=self.k, structure=0.5)
        # Step sizes large enough for every term of the update to matter.
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
        recorded = [np.asarray(each, float) for each in (models.w, models.b, models.a)]
        w, b, a = (each[0] for each in recorded)
        zero = float(np.max(np.abs(np.clip(x @ w.T + b, 0, 1) @ a)))
        gaps = np.zeros(3)
        rates = (schedule.first, schedule.second, *(0.2,) * (self.T - 2))
        for step, rate in enumerate(rates, start=1):
            noise = schedule.noise if step <= 2 else 0.0
            grad = gradients(w, b, a, x, y, weight, noise, printed=self.printed)
            lam_w = (1 - self.kept) / (2 * rate) if step <= 2 else decay
            lam_a = 0.0 if step == 1 else (1 - self.kept) / (2 * rate) if step == 2 else decay
            w, b, a = (
                w - rate * (grad[0] + 2 * lam_w * w),
                b - rate * grad[1],
                a - rate * (grad[2] + 2 * lam_a * a),
            )
            pairs = zip((w, b, a), (each[step] for each in recorded), strict=True)
            gaps = np.maximum(
                gaps,
                [np.max(np.abs(own - learned)) / np.max(np.abs(learned)) for own, learned in pairs],
            )
        return {
            "weights": float(gaps[0]),
            "biases": float(gaps[1]),
            "second": float(gaps[2]),
            "zero": zero,
        }

    def _distribution(self, task: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return all inputs of Section 3 with labels and probabilities at po = ½."""
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
    """Return ∂L/∂w, ∂L/∂b, ∂L/∂a of Lemma 12; `printed`: without ξ in that of b, as in (24)."""
    u = x @ w.T + b  # n 2m

    def ramp(v: np.ndarray) -> np.ndarray:
        """Return E max(0, v + ξ)."""
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
