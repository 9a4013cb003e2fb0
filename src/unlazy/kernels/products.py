"""Kernels of inner products: linear, polynomial, arc-cosine and arcsine."""

from __future__ import annotations

import dataclasses
import math
from typing import Self

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from unlazy.core.angles import arcsin, cosine
from unlazy.core.errors import require, require_whole
from unlazy.kernels.base import ProductKernel, squared_norm


class Linear(ProductKernel):
    """k(x, z) = ⟨x, z⟩."""

    def of_products(
        self,
        xz: Float[Array, "n m"],
        xx: Float[Array, "#n 1"],
        zz: Float[Array, "1 #m"],
        d: int | Float[Array, ""],
    ) -> Float[Array, "n m"]:
        return xz

    def diagonal(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        return squared_norm(x)


class Polynomial(ProductKernel):
    """k(x, z) = (⟨x, z⟩ + offset)^degree."""

    degree: int = eqx.field(static=True)
    offset: float = eqx.field(converter=float, default=1.0)

    def __check_init__(self) -> None:
        require_whole("degree", self.degree)
        require(
            0 <= self.offset < math.inf,
            f"offset must be finite and ≥ 0, got {self.offset}.",
        )

    def of_products(
        self,
        xz: Float[Array, "n m"],
        xx: Float[Array, "#n 1"],
        zz: Float[Array, "1 #m"],
        d: int | Float[Array, ""],
    ) -> Float[Array, "n m"]:
        return (xz + self.offset) ** self.degree

    def diagonal(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        return (squared_norm(x) + self.offset) ** self.degree

    def neighbors(self) -> list[Self]:
        """Return other degrees, or none without an offset.

        Without an offset, the features are the monomials of a single degree.
        """
        degrees = (2, 3, 5, 4, 7, 6) if self.offset > 0 else ()
        return [
            dataclasses.replace(self, degree=degree) for degree in degrees if degree != self.degree
        ]


class ArcCosine(ProductKernel):
    """k(x, z) = 2·E[σ(⟨g, x⟩)·σ(⟨g, z⟩)] for g ~ N(0, I) and σ(t) = max(t, 0)^order.

    At order 0, σ is a step function with σ(0) = ½. With θ the angle between x and z,
    k = (‖x‖‖z‖)^order·J(θ)/π. J is π − θ at order 0, sin θ + (π − θ)·cos θ at order 1, and
    3·sin θ·cos θ + (π − θ)(1 + 2·cos² θ) at order 2.

    Reference: Cho and Saul, Kernel methods for deep learning, 2009.
    """

    order: int = eqx.field(static=True, default=1)

    def __check_init__(self) -> None:
        require(self.order in (0, 1, 2), f"order must be 0, 1 or 2, got {self.order!r}.")

    def of_products(
        self,
        xz: Float[Array, "n m"],
        xx: Float[Array, "#n 1"],
        zz: Float[Array, "1 #m"],
        d: int | Float[Array, ""],
    ) -> Float[Array, "n m"]:
        t = cosine(xz, xx, zz)
        rest = 0.5 + arcsin(t) / math.pi  # 1 − θ/π
        if self.order == 0:
            return rest
        sine = jnp.sqrt((1 - t) * (1 + t)) / math.pi
        if self.order == 1:
            return jnp.sqrt(xx) * jnp.sqrt(zz) * (sine + rest * t)
        return xx * zz * (3 * sine * t + rest * (1 + 2 * t * t))

    def diagonal(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """Return (1, 1, 3)·‖x‖^{2·order}."""
        q = squared_norm(x)
        if self.order == 0:
            return jnp.where(q > 0, jnp.ones_like(q), 0.5)
        return q if self.order == 1 else 3 * q * q


class ArcSine(ProductKernel):
    """k(x, z) = E[erf(⟨g, x⟩ + h)·erf(⟨g, z⟩ + h)], g ~ N(0, w_variance·I), h ~ N(0, b_variance).

    With s(x, z) = w_variance·⟨x, z⟩ + b_variance,
    k(x, z) = (2/π)·arcsin(2·s(x, z)/√((1 + 2·s(x, x))·(1 + 2·s(z, z)))).

    Reference: Williams, Computing with infinite networks, 1996.
    """

    w_variance: float = eqx.field(converter=float, default=1.0)
    b_variance: float = eqx.field(converter=float, default=0.0)

    def __check_init__(self) -> None:
        require_variances(self.w_variance, self.b_variance)

    def of_products(
        self,
        xz: Float[Array, "n m"],
        xx: Float[Array, "#n 1"],
        zz: Float[Array, "1 #m"],
        d: int | Float[Array, ""],
    ) -> Float[Array, "n m"]:
        c, qx, qz = (self.w_variance * product + self.b_variance for product in (xz, xx, zz))
        return arcsin(cosine(2 * c, 1 + 2 * qx, 1 + 2 * qz)) * (2 / math.pi)

    def diagonal(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """Return (2/π)·arcsin(2s/(1 + 2s))."""
        s = self.w_variance * squared_norm(x) + self.b_variance
        return arcsin(2 * s / (1 + 2 * s)) * (2 / math.pi)


def require_variances(w_variance: float, b_variance: float) -> None:
    """Raise `BadInput` unless w_variance > 0 and b_variance ≥ 0 are finite."""
    require(0 < w_variance < math.inf, f"w_variance must be finite and > 0, got {w_variance}.")
    require(0 <= b_variance < math.inf, f"b_variance must be finite and ≥ 0, got {b_variance}.")
