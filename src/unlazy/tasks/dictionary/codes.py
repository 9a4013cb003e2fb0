"""Dictionary data whose relevant patterns form one of a few labeled codes.

    φ̃_A uniform among 2·codes random vectors, half of them labeled +1, all other patterns uniform
    bits, x = M φ̃ normalized

Reference: shi2022, Appendix E.3.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.core.random import bernoulli, orthonormal, random_subset
from unlazy.tasks.base import Batch, Family, Task


class LabeledCodes(Task):
    """Inputs whose relevant patterns form one of a few labeled vectors."""

    dictionary: Float[Array, "D d"]
    relevant: Bool[Array, " D"]
    codes: Bool[Array, "c k"]
    labels: Float[Array, " c"]

    @property
    def dimension(self) -> int:
        return self.dictionary.shape[1]

    @property
    def basis(self) -> Float[Array, "D d"]:
        """The dictionary, which is orthonormal and spans all inputs."""
        return self.dictionary

    @property
    def mean(self) -> Float[Array, " D"]:
        """E φ̃."""
        return jnp.full(len(self.relevant), 0.5).at[self._where].set(jnp.mean(self.codes, axis=0))

    @property
    def sigma(self) -> Float[Array, ""]:
        """σ̃."""
        return jnp.sqrt(jnp.sum(self.mean * (1 - self.mean)))

    @property
    def _where(self) -> Array:
        return jnp.nonzero(self.relevant, size=self.codes.shape[1])[0]

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        key_code, key_background = jax.random.split(key)
        chosen = jax.random.randint(key_code, (n,), 0, len(self.codes))
        present = (
            bernoulli(key_background, jnp.full((n, len(self.relevant)), 0.5))
            .at[:, self._where]
            .set(self.codes[chosen])
        )
        return Batch(
            (present.astype(self.mean.dtype) - self.mean[None, :]) / self.sigma, self.labels[chosen]
        )

    def target(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        present = ((x @ self.dictionary.T) * self.sigma + self.mean[None, :])[:, self._where]
        codes = self.codes.astype(present.dtype)
        distance = jnp.sum(jnp.abs(present[:, None, :] - codes[None, :, :]), axis=2)  # n c
        return self.labels[jnp.argmin(distance, axis=1)]

    @property
    def features(self) -> Float[Array, "1 d"]:
        """Direction between the class means of the codes, that of the first gradient."""
        difference = self.labels @ self.codes.astype(self.labels.dtype)
        direction = jnp.zeros(len(self.relevant)).at[self._where].set(difference) @ self.dictionary
        result: Array = (direction / jnp.linalg.norm(direction))[None]
        return result

    @property
    def chance(self) -> Float[Array, ""]:
        """½: both labels have the same number of codes."""
        return jnp.asarray(0.5)


class HiddenRepresentations(Family):
    """`codes` random vectors of k patterns per label, in a dictionary of D patterns."""

    d: int = eqx.field(static=True, kw_only=True)
    D: int = eqx.field(static=True, kw_only=True)
    k: int = eqx.field(static=True, kw_only=True)
    codes: int = eqx.field(static=True, kw_only=True)

    def __check_init__(self) -> None:
        require(
            0 < self.k <= self.D <= self.d,
            f"0 < k ≤ D ≤ d is required, got k={self.k}, D={self.D}, d={self.d}.",
        )
        require(self.codes > 0, f"codes must be positive, got {self.codes}.")

    @property
    def dimension(self) -> int:
        return self.d

    @property
    def coordinates(self) -> int:
        """D: inputs lie in the span of D patterns."""
        return self.D

    def task(self, *, key: PRNGKeyArray) -> LabeledCodes:
        key_dictionary, key_relevant, key_codes = jax.random.split(key, 3)
        relevant = random_subset(key_relevant, self.D, self.k)
        codes = bernoulli(key_codes, jnp.full((2 * self.codes, self.k), 0.5))
        labels = jnp.where(jnp.arange(2 * self.codes) < self.codes, 1.0, -1.0)
        return LabeledCodes(orthonormal(key_dictionary, self.d, self.D), relevant, codes, labels)
