"""Kernel interface.

Kernels have the precision of their inputs: float32, or float64 inside `jax.enable_x64(True)`.

Rounding: angles and distances of nearly equal points are differences of products and have errors of
about √eps (3e-4 in single, 1e-8 in double precision). Kernels that depend on them linearly
(`Laplace`, `ArcCosine(0)`, the E[σ'σ'] term of a ReLU NTK) have this error at near-duplicates;
others have errors of order eps. The diagonal of a Gram matrix is always exact.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from unlazy.core.errors import require

#: One point per row.
Points = Float[Array | np.ndarray, "n d"]


#: Rows and columns per block of a Gram matrix, so that a few blocks fit into a core's cache.
BLOCK = 512


class Kernel(eqx.Module):
    """A symmetric, positive semi-definite function k(x, z)."""

    @abstractmethod
    def __call__(self, x: Float[Array, "n d"], z: Float[Array, "m d"]) -> Float[Array, "n m"]:
        """Return k(x_i, z_j) for all pairs; use `gram` for large matrices."""

    @abstractmethod
    def diagonal(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """Return k(x_i, x_i), without the rounding errors of a matrix product."""

    @property
    def block(self) -> int:
        """The rows and columns per block of a Gram matrix."""
        return BLOCK

    def neighbors(self) -> Sequence[Self]:
        """Return kernels of the same kind with other parameters, for tuning; by default none."""
        return ()

    def for_shape(self, shape: tuple[int, ...]) -> Kernel:
        """Return this kernel for flattened inputs of that original shape."""
        return self

    def input_scale(self, d: int) -> float:
        """Return the factor for inputs of norm 1 and size d, √d if the kernel divides by d."""
        return 1.0


class ProductKernel(Kernel):
    """A kernel that is a function of ⟨x, z⟩, ‖x‖² and ‖z‖²."""

    @abstractmethod
    def of_products(
        self,
        xz: Float[Array, "n m"],
        xx: Float[Array, "#n 1"],
        zz: Float[Array, "1 #m"],
        d: int | Float[Array, ""],
    ) -> Float[Array, "n m"]:
        """Return k from inner products `xz` and squared norms `xx`, `zz` of inputs of size d."""

    def __call__(self, x: Float[Array, "n d"], z: Float[Array, "m d"]) -> Float[Array, "n m"]:
        return self.of_products(
            x @ z.T, squared_norm(x)[:, None], squared_norm(z)[None, :], x.shape[1]
        )


def squared_norm(x: Float[Array, "n d"]) -> Float[Array, " n"]:
    """Return ‖x_i‖²."""
    return jnp.sum(jnp.square(x), axis=1)


def as_image(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return height, width and channels of an input; a vector is an image with one row."""
    require(
        len(shape) in (1, 3),
        f"Inputs must be images of shape (height, width, channels) or vectors, got shape {shape}.",
    )
    return (1, shape[0], 1) if len(shape) == 1 else (shape[0], shape[1], shape[2])
