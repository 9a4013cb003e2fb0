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
    """2^k Gaussians whose centres are the vertices of a cube; neighbouring vertices have opposite
    labels.
    """

    axes: Float[Array, "k d"]
    spread: float | Float[Array, ""]

    @property
    def dimension(self) -> int:
        return self.axes.shape[1]

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        key_vertex, key_noise = jax.random.split(key)
        k, d = self.axes.shape
        signs = 2.0 * bernoulli(key_vertex, jnp.full((n, k), 0.5)) - 1
        noise = self.spread * math.sqrt(k / d) * normal(key_noise, (n, d))
        return Batch(signs @ self.axes + noise, jnp.prod(signs, axis=1))

    def target(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """The label of the nearest vertex: that of the input but for the far tail of the noise."""
        return jnp.prod(jnp.where(x @ self.axes.T >= 0, 1.0, -1.0), axis=1)

    @property
    def features(self) -> Float[Array, "f d"]:
        """The directions of all 2^k centres."""
        k = len(self.axes)
        vertices = np.array(list(itertools.product((-1.0, 1.0), repeat=k)))
        return jnp.asarray(vertices, self.axes.dtype) @ self.axes / math.sqrt(k)

    @property
    def chance(self) -> Float[Array, ""]:
        return jnp.asarray(0.5)


class CubeGaussians(Family):
    """Random orthonormal axes of the cube."""

    d: int = eqx.field(static=True, kw_only=True)
    k: int = eqx.field(static=True, kw_only=True)
    spread: float = eqx.field(converter=float, default=1.0, kw_only=True)

    def __check_init__(self) -> None:
        require(
            0 < self.k <= self.d, f"k orthonormal axes need 0 < k ≤ d, but k={self.k}, d={self.d}."
        )
        require(self.k <= 10, f"All 2^k centres are followed, so k is at most 10, but k={self.k}.")
        require(
            self.spread >= 0,
            f"spread is a standard deviation and cannot be negative, but is {self.spread}.",
        )

    @property
    def dimension(self) -> int:
        return self.d

    def task(self, *, key: PRNGKeyArray) -> CubeMixture:
        return CubeMixture(orthonormal(key, self.d, self.k), self.spread)
