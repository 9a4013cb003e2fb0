"""Dictionary data in the general setting: incoherent patterns, noise, unbalanced classes.

    x̃ = M φ̃ + ζ,   ζ ~ N(0, σ_ζ² I),   y = +1 if Σ_{j∈A} φ̃_j is odd else −1,
    x = (x̃ − E x̃) / σ̃,   σ̃² = Σ_j Var φ̃_j + d σ_ζ²

`coherence`: weight of the Gaussian part added to an orthonormal dictionary before its columns are
normalized. The task gives the resulting μ = √d·max_{i≠j} |⟨M_i, M_j⟩|. Each background pattern has
its own rate, and one hidden sign shifts all rates together. Both are independent of the relevant
patterns.

Reference: shi2022, Appendix F.1.
"""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.core.linear_algebra import orthogonal_triangular, pseudo_inverse
from unlazy.core.random import bernoulli, normal, random_subset
from unlazy.tasks.base import Batch, Family, Task, error_of_constant
from unlazy.tasks.dictionary.balance import (
    BalancedParity,
    BalancedPatternDistribution,
    balanced_distribution,
)


def incoherent_dictionary(
    d: int, D: int, coherence: float | Array, *, key: PRNGKeyArray
) -> Float[Array, "D d"]:
    """Draw D unit rows: an orthonormal dictionary plus `coherence` times Gaussian rows.

    The Gaussian rows have expected norm about one; the sum is normalized.
    """
    key_orthonormal, key_gaussian = jax.random.split(key)
    q, _ = orthogonal_triangular(normal(key_orthonormal, (d, D)))
    rows = q.T + coherence * normal(key_gaussian, (D, d)) / math.sqrt(d)
    result: Array = rows / jnp.linalg.norm(rows, axis=1, keepdims=True)
    return result


def incoherence(dictionary: Float[Array, "D d"]) -> Float[Array, ""]:
    """Return μ = √d·max_{i≠j} |⟨M_i, M_j⟩|."""
    gram = jnp.abs(dictionary @ dictionary.T)
    return math.sqrt(dictionary.shape[1]) * jnp.max(
        jnp.where(jnp.eye(len(gram), dtype=bool), 0.0, gram)
    )


class GeneralPatterns(Task):
    """Dictionary data of the general setting, with its ground truth."""

    dictionary: Float[Array, "D d"]
    relevant: Bool[Array, " D"]
    rates: Float[Array, " D"]
    distribution: BalancedPatternDistribution
    swing: float | Float[Array, ""]
    noise: float | Float[Array, ""]

    @property
    def dimension(self) -> int:
        return self.dictionary.shape[1]

    @property
    def mu(self) -> Float[Array, ""]:
        """The dictionary's μ."""
        return incoherence(self.dictionary)

    @property
    def mean(self) -> Float[Array, " D"]:
        """E φ̃; the hidden sign is uniform and does not change it."""
        return jnp.where(self.relevant, self.distribution.moments.relevant, self.rates)

    @property
    def sigma(self) -> Float[Array, ""]:
        """σ̃."""
        return jnp.sqrt(
            jnp.sum(self.mean * (1 - self.mean)) + self.dimension * jnp.square(self.noise)
        )

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        """Draw relevant patterns, the background by its rates and hidden sign, and noise."""
        key_relevant, key_sign, key_background, key_noise = jax.random.split(key, 4)
        relevant = self.distribution.draw(n, self.relevant, key=key_relevant)
        sign = jnp.where(bernoulli(key_sign, jnp.full((n, 1), 0.5)), 1.0, -1.0)
        background = bernoulli(key_background, self.rates[None, :] + self.swing * sign)
        present = jnp.where(self.relevant[None, :], relevant, background)
        noise = self.noise * normal(key_noise, (n, self.dimension))
        deviation = present.astype(self.mean.dtype) - self.mean[None, :]
        x = (deviation @ self.dictionary + noise) / self.sigma
        return Batch(
            x, self.distribution.label_of_count[jnp.sum(present & self.relevant[None, :], axis=1)]
        )

    def target(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """Return the label from patterns by least squares and rounding.

        It is wrong only in the far tail of the noise.
        """
        present = (x * self.sigma) @ pseudo_inverse(self.dictionary) + self.mean[None, :]
        count = jnp.sum(jnp.where(self.relevant[None, :], jnp.round(present), 0), axis=1).astype(
            int
        )
        return self.distribution.label_of_count[jnp.clip(count, 0, self.distribution.k)]

    @property
    def features(self) -> Float[Array, "1 d"]:
        """Direction of Σ_{j∈A} M_j."""
        direction = self.relevant.astype(self.dictionary.dtype) @ self.dictionary
        result: Array = (direction / jnp.linalg.norm(direction))[None]
        return result

    @property
    def chance(self) -> Float[Array, ""]:
        return error_of_constant(self.distribution.moments.positive)


class GeneralParity(Family):
    """Parity labels in the general setting.

    The rates of the background patterns are drawn uniformly from [lowest, highest].
    """

    d: int = eqx.field(static=True, kw_only=True)
    D: int = eqx.field(static=True, kw_only=True)
    k: int = eqx.field(static=True, kw_only=True)
    structure: float = eqx.field(converter=float, default=0.5, kw_only=True)
    negative: float = eqx.field(converter=float, default=0.7, kw_only=True)
    coherence: float = eqx.field(converter=float, default=0.2, kw_only=True)
    noise: float = eqx.field(converter=float, default=0.05, kw_only=True)
    lowest: float = eqx.field(converter=float, default=0.2, kw_only=True, metadata={"key": "least"})
    highest: float = eqx.field(converter=float, default=0.5, kw_only=True, metadata={"key": "most"})
    swing: float = eqx.field(converter=float, default=0.1, kw_only=True)

    def __check_init__(self) -> None:
        # Checks the parameters that both families share.
        BalancedParity(
            d=self.d, D=self.D, k=self.k, structure=self.structure, negative=self.negative
        )
        require(
            self.coherence >= 0 and self.noise >= 0,
            f"coherence and noise must not be negative, got {self.coherence}, {self.noise}.",
        )
        require(
            0 <= self.swing <= self.lowest <= self.highest <= 1 - self.swing,
            "0 ≤ swing ≤ lowest ≤ highest ≤ 1 − swing is required, so that all rates are "
            f"probabilities, got swing={self.swing}, lowest={self.lowest}, "
            f"highest={self.highest}.",
        )

    @property
    def distribution(self) -> BalancedPatternDistribution:
        """Distribution of the relevant patterns."""
        return balanced_distribution(self.D, self.k, self.structure, self.negative)

    @property
    def sigma(self) -> float:
        """σ̃ with the mean rate for every background pattern."""
        p, q = float(self.distribution.moments.relevant), (self.lowest + self.highest) / 2
        return math.sqrt(
            self.k * p * (1 - p) + (self.D - self.k) * q * (1 - q) + self.d * self.noise**2
        )

    @property
    def gamma(self) -> float:
        """γ = (E[φ̃_i | y = 1] − E[φ̃_i | y = −1])/2, independent of the class balance."""
        return float(balanced_distribution(self.D, self.k, self.structure, 0.5).moments.gamma)

    @property
    def dimension(self) -> int:
        return self.d

    def task(self, *, key: PRNGKeyArray) -> GeneralPatterns:
        key_dictionary, key_relevant, key_rates = jax.random.split(key, 3)
        dictionary = incoherent_dictionary(self.d, self.D, self.coherence, key=key_dictionary)
        relevant = random_subset(key_relevant, self.D, self.k)
        rates = self.lowest + (self.highest - self.lowest) * jax.random.uniform(
            key_rates, (self.D,), jnp.float32
        )
        return GeneralPatterns(
            dictionary,
            relevant,
            rates.astype(dictionary.dtype),
            self.distribution,
            self.swing,
            self.noise,
        )
