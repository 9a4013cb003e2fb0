"""What a kernel is: fixed features, given by their inner products.

A kernel follows the precision of its inputs: float32, or float64 inside `jax.enable_x64(True)`. All
of the kernels here see their inputs only through inner products, so an orthogonal map of the inputs
changes nothing. Kernels of infinitely wide networks are in `unlazy.kernels.wide`.

Rounding: angles and distances between nearly equal points come from differences of products and are
known to about √eps only (3e-4 in single, 1e-8 in double precision). What depends on them linearly
(`Laplace`, `ArcCosine(0)`, the slope part of a ReLU tangent kernel) has that error at
near-duplicates; everything else has errors of order eps. The diagonal of a Gram matrix is always
exact.
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

#: One point a row, as JAX or as NumPy holds it.
Points = Float[Array | np.ndarray, "n d"]


#: Rows and columns of a block of a Gram matrix: a few blocks fit into a core's cache, and a block
#: is long enough to keep it busy.
BLOCK = 512


class Kernel(eqx.Module):
    """A symmetric, positive semi-definite function k(x, z)."""

    @abstractmethod
    def __call__(self, x: Float[Array, "n d"], z: Float[Array, "m d"]) -> Float[Array, "n m"]:
        """k(x_i, z_j) for all pairs, all at once; `gram` does large ones by blocks."""

    @abstractmethod
    def diagonal(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """k(x_i, x_i), without the rounding errors of ⟨x_i, x_i⟩ taken from a matrix product."""

    @property
    def block(self) -> int:
        """Rows and columns of a block of a Gram matrix of this kernel."""
        return BLOCK

    def neighbours(self) -> Sequence[Self]:
        """Kernels of the same kind with other numbers to choose among, the most different first
        after the nearest; by default none.
        """
        return ()

    def for_shape(self, shape: tuple[int, ...]) -> Kernel:
        """This kernel on inputs that were laid out as vectors and had that shape; one that knows no
        neighbouring pixels stays as it is.
        """
        return self

    def input_scale(self, d: int) -> float:
        """What inputs of norm about 1 and size d are multiplied by, where a learner may choose: 1,
        or √d for a kernel that divides by d.
        """
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
        """The kernel from inner products `xz` and squared norms `xx`, `zz` of inputs of size d."""

    def __call__(self, x: Float[Array, "n d"], z: Float[Array, "m d"]) -> Float[Array, "n m"]:
        return self.of_products(
            x @ z.T, squared_norm(x)[:, None], squared_norm(z)[None, :], x.shape[1]
        )


def squared_norm(x: Float[Array, "n d"]) -> Float[Array, " n"]:
    """‖x_i‖²."""
    return jnp.sum(jnp.square(x), axis=1)


def as_image(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Height, width and channels of an input; a vector is a picture of one row."""
    require(
        len(shape) in (1, 3),
        f"Pictures have the shape (height, width, channels), but inputs have the shape {shape}.",
    )
    return (1, shape[0], 1) if len(shape) == 1 else (shape[0], shape[1], shape[2])
