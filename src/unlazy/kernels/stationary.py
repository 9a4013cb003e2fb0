"""Stationary kernels."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from typing import Self

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from unlazy.core.errors import require
from unlazy.kernels.base import Kernel, squared_norm


class Stationary(Kernel):
    """A kernel that is a function of the distance r = ‖x − z‖₂ and 1 at r = 0."""

    gamma: float = eqx.field(converter=float)

    def __check_init__(self) -> None:
        require(0 < self.gamma < math.inf, f"gamma must be finite and > 0, got {self.gamma}.")

    @abstractmethod
    def of_distance(self, squared: Float[Array, "n m"]) -> Float[Array, "n m"]:
        """Return the kernel from squared distances."""

    def __call__(self, x: Float[Array, "n d"], z: Float[Array, "m d"]) -> Float[Array, "n m"]:
        # Centering reduces the rounding errors of ‖x‖² + ‖z‖² − 2⟨x, z⟩ far from the origin.
        center = jnp.mean(z, axis=0, keepdims=True)
        x, z = x - center, z - center
        return self.of_distance(
            jnp.maximum(squared_norm(x)[:, None] + squared_norm(z)[None, :] - 2 * (x @ z.T), 0)
        )

    def diagonal(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        return jnp.ones_like(x, shape=(len(x),))

    def neighbors(self) -> list[Self]:
        return [
            dataclasses.replace(self, gamma=self.gamma * factor)
            for factor in (1 / 4, 4, 1 / 16, 16, 1 / 2, 2)
        ]


class RBF(Stationary):
    """k(x, z) = exp(−gamma·‖x − z‖₂²)."""

    def of_distance(self, squared: Float[Array, "n m"]) -> Float[Array, "n m"]:
        return jnp.exp(-self.gamma * squared)


class Laplace(Stationary):
    """k(x, z) = exp(−gamma·‖x − z‖₂); scikit-learn's `laplacian_kernel` has ‖·‖₁ instead."""

    def of_distance(self, squared: Float[Array, "n m"]) -> Float[Array, "n m"]:
        return jnp.exp(-self.gamma * jnp.sqrt(squared))
