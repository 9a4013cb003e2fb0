"""Dictionary data in the general setting: patterns that are not orthogonal, noise, unequal classes,
a background that is not independent.

    x̃ = M φ̃ + ζ,   ζ ~ N(0, σ_ζ² I),   y = +1 if Σ_{j∈A} φ̃_j is odd else −1,
    x = (x̃ − E x̃) / σ̃,   σ̃² = Σ_j Var φ̃_j + d σ_ζ²

`coherence`: weight of the Gaussian part that is mixed into an orthonormal dictionary before its
columns are scaled to length one; the task reports the μ = √d·max_{i≠j} |⟨M_i, M_j⟩| that came out.
The background has its own rate for every pattern, and one hidden coin that moves all of them
together; both are independent of the relevant patterns.

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
    """D unit rows: an orthonormal dictionary, plus `coherence` times Gaussian rows of expected
    length one, scaled to length one.
    """
    key_orthonormal, key_gaussian = jax.random.split(key)
    q, _ = orthogonal_triangular(normal(key_orthonormal, (d, D)))
    rows = q.T + coherence * normal(key_gaussian, (D, d)) / math.sqrt(d)
    result: Array = rows / jnp.linalg.norm(rows, axis=1, keepdims=True)
    return result


def incoherence(dictionary: Float[Array, "D d"]) -> Float[Array, ""]:
    """μ = √d·max_{i≠j} |⟨M_i, M_j⟩|."""
    gram = jnp.abs(dictionary @ dictionary.T)
    return math.sqrt(dictionary.shape[1]) * jnp.max(
        jnp.where(jnp.eye(len(gram), dtype=bool), 0.0, gram)
    )


class GeneralPatterns(Task):
    """Dictionary data of the general setting, with all that is hidden in it."""

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
        """The dictionary's true μ."""
        return incoherence(self.dictionary)

    @property
    def mean(self) -> Float[Array, " D"]:
        """E φ̃: the hidden coin is fair, so that it moves no mean."""
        return jnp.where(self.relevant, self.distribution.moments.relevant, self.rates)

    @property
    def sigma(self) -> Float[Array, ""]:
        """σ̃."""
        return jnp.sqrt(
            jnp.sum(self.mean * (1 - self.mean)) + self.dimension * jnp.square(self.noise)
        )

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        """Draw relevant patterns, the background by its rates and the hidden coin, and noise."""
        key_relevant, key_coin, key_background, key_noise = jax.random.split(key, 4)
        relevant = self.distribution.draw(n, self.relevant, key=key_relevant)
        coin = 2.0 * bernoulli(key_coin, jnp.full((n, 1), 0.5)) - 1
        background = bernoulli(key_background, self.rates[None, :] + self.swing * coin)
        present = jnp.where(self.relevant, relevant, background)
        noise = self.noise * normal(key_noise, (n, self.dimension))
        x = ((present - self.mean[None, :]) @ self.dictionary + noise) / self.sigma
        return Batch(
            x, self.distribution.label_of_count[jnp.sum(present & self.relevant[None, :], axis=1)]
        )

    def target(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """The label, from patterns by least squares and rounding; wrong in the far tail alone."""
        present = (x * self.sigma) @ pseudo_inverse(self.dictionary) + self.mean
        count = jnp.sum(jnp.round(present) * self.relevant, axis=1).astype(int)
        return self.distribution.label_of_count[jnp.clip(count, 0, self.distribution.k)]

    @property
    def features(self) -> Float[Array, "1 d"]:
        """The direction of Σ_{j∈A} M_j."""
        direction = self.relevant @ self.dictionary
        result: Array = (direction / jnp.linalg.norm(direction))[None]
        return result

    @property
    def chance(self) -> Float[Array, ""]:
        return error_of_constant(self.distribution.moments.positive)


class GeneralParity(Family):
    """Parity labels in the general setting; the rates of the background patterns are drawn evenly
    from [least, most].
    """

    d: int = eqx.field(static=True, kw_only=True)
    D: int = eqx.field(static=True, kw_only=True)
    k: int = eqx.field(static=True, kw_only=True)
    structure: float = eqx.field(converter=float, default=0.5, kw_only=True)
    negative: float = eqx.field(converter=float, default=0.7, kw_only=True)
    coherence: float = eqx.field(converter=float, default=0.2, kw_only=True)
    noise: float = eqx.field(converter=float, default=0.05, kw_only=True)
    least: float = eqx.field(converter=float, default=0.2, kw_only=True)
    most: float = eqx.field(converter=float, default=0.5, kw_only=True)
    swing: float = eqx.field(converter=float, default=0.1, kw_only=True)

    def __check_init__(self) -> None:
        # What these parameters must satisfy is written there.
        BalancedParity(
            d=self.d, D=self.D, k=self.k, structure=self.structure, negative=self.negative
        )
        require(
            self.coherence >= 0 and self.noise >= 0,
            f"coherence and noise cannot be negative, but are {self.coherence}, {self.noise}.",
        )
        require(
            0 <= self.swing <= self.least <= self.most <= 1 - self.swing,
            "0 ≤ swing ≤ least ≤ most ≤ 1 − swing is expected, so that all rates are "
            f"probabilities, but swing={self.swing}, "
            f"least={self.least}, most={self.most}.",
        )

    @property
    def distribution(self) -> BalancedPatternDistribution:
        """The law of the relevant patterns."""
        return balanced_distribution(self.D, self.k, self.structure, self.negative)

    @property
    def sigma(self) -> float:
        """σ̃ with the mean rate for every background pattern."""
        p, q = float(self.distribution.moments.relevant), (self.least + self.most) / 2
        return math.sqrt(
            self.k * p * (1 - p) + (self.D - self.k) * q * (1 - q) + self.d * self.noise**2
        )

    @property
    def gamma(self) -> float:
        """γ = (E[φ̃_i | y = 1] − E[φ̃_i | y = −1])/2, which does not depend on the balance of the
        classes.
        """
        return float(balanced_distribution(self.D, self.k, self.structure, 0.5).moments.gamma)

    @property
    def dimension(self) -> int:
        return self.d

    def task(self, *, key: PRNGKeyArray) -> GeneralPatterns:
        key_dictionary, key_relevant, key_rates = jax.random.split(key, 3)
        dictionary = incoherent_dictionary(self.d, self.D, self.coherence, key=key_dictionary)
        relevant = random_subset(key_relevant, self.D, self.k)
        rates = self.least + (self.most - self.least) * jax.random.uniform(
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
