"""Gaussians at the vertices of a cube with parity labels.

    ε uniform in {±1}^k,  x = Σ_i ε_i M_i + g,  g ~ N(0, σ_r²·(k/d)·I),  y = Π_i ε_i

Reference: shi2022, Appendix E.3.
"""

from __future__ import annotations

import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.core.random import bernoulli, normal, orthonormal
from unlazy.tasks.base import Batch, Family, Task


class CubeMixture(Task):
    """Mixture of 2^k Gaussians at the vertices of a cube; neighbors have opposite labels."""

    axes: Float[Array, "k d"]
    spread: float | Float[Array, ""]

    @property
    def dimension(self) -> int:
        return self.axes.shape[1]

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        key_vertex, key_noise = jax.random.split(key)
        k, d = self.axes.shape
        signs = jnp.where(bernoulli(key_vertex, jnp.full((n, k), 0.5)), 1.0, -1.0)
        noise = self.spread * math.sqrt(k / d) * normal(key_noise, (n, d))
        return Batch(signs @ self.axes + noise, jnp.prod(signs, axis=1))

    def target(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """Return the label of the nearest vertex.

        It differs from the label of the example only in the far tail of the noise.
        """
        return jnp.prod(jnp.where(x @ self.axes.T >= 0, 1.0, -1.0), axis=1)

    @property
    def features(self) -> Float[Array, "f d"]:
        """Directions of all 2^k centers."""
        k = len(self.axes)
        vertices = np.array(list(itertools.product((-1.0, 1.0), repeat=k)))
        return jnp.asarray(vertices, self.axes.dtype) @ self.axes / math.sqrt(k)

    @property
    def chance(self) -> Float[Array, ""]:
        return jnp.asarray(0.5)


class CubeGaussians(Family):
    """Family with random orthonormal axes of the cube."""

    d: int = eqx.field(static=True, kw_only=True)
    k: int = eqx.field(static=True, kw_only=True)
    spread: float = eqx.field(converter=float, default=1.0, kw_only=True)

    def __check_init__(self) -> None:
        require(0 < self.k <= self.d, f"0 < k ≤ d is required, got k={self.k}, d={self.d}.")
        require(self.k <= 10, f"k must be at most 10 (2^k centers are tracked), got {self.k}.")
        require(
            self.spread >= 0,
            f"spread (a standard deviation) must not be negative, got {self.spread}.",
        )

    @property
    def dimension(self) -> int:
        return self.d

    def task(self, *, key: PRNGKeyArray) -> CubeMixture:
        return CubeMixture(orthonormal(key, self.d, self.k), self.spread)
