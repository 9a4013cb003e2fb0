"""NNGP and NTK of infinitely wide fully connected networks.

Networks are in NTK parametrization. With N(0, 1) entries in all W and b, h⁰ = x and

    z^l = √(w_variance/width_{l−1})·W^l·h^{l−1} + √b_variance·b^l,  h^l = σ(z^l),  l = 1, …, depth,

where width_0 = d, and the score is z^{depth+1}. All weights and biases are trained.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Self

import equinox as eqx
from jaxtyping import Array, Float

from unlazy.core.activations import activation_of
from unlazy.core.errors import require
from unlazy.core.gaussian import Moments
from unlazy.kernels.base import ProductKernel, squared_norm
from unlazy.kernels.products import require_variances


class WideNetwork(ProductKernel):
    """Base class of the kernels of infinitely wide networks.

    `depth` is the number of hidden layers. `activation` is a name in
    `unlazy.core.activations.ACTIVATIONS`, a `PiecewiseLinear`, or an elementwise function of one
    array. "relu" and "erf" have closed forms; for the accuracy of others see
    `unlazy.core.gaussian`.
    """

    depth: int = eqx.field(static=True, default=1)
    activation: str | Callable[[Array], Array] = eqx.field(static=True, default="relu")
    w_variance: float = eqx.field(converter=float, default=1.0)
    b_variance: float = eqx.field(converter=float, default=0.0)

    def __check_init__(self) -> None:
        require(
            isinstance(self.depth, int) and self.depth > 0,
            f"depth must be a positive integer, got {self.depth!r}.",
        )
        require_variances(self.w_variance, self.b_variance)
        activation_of(self.activation)

    @property
    def moments(self) -> Moments:
        """The Gaussian moments of the activation."""
        return activation_of(self.activation).moments

    def affine(self, covariance: Float[Array, "..."]) -> Float[Array, "..."]:
        """Return w_variance·covariance + b_variance, the covariance after a random layer."""
        return self.w_variance * covariance + self.b_variance

    def neighbors(self) -> list[Self]:
        """Return kernels of other depths and bias variances."""
        others = [(1, 0.0), (2, 0.1), (3, 0.1), (1, 1.0), (2, 1.0), (1, 0.1)]
        return [
            dataclasses.replace(self, depth=depth, b_variance=b)
            for depth, b in others
            if (depth, b) != (self.depth, self.b_variance)
        ]

    def input_scale(self, d: int) -> float:
        """Return √d, by which the first layer divides."""
        return math.sqrt(d)


class NNGP(WideNetwork):
    """The conjugate kernel Σ^{depth}(x, z), the covariance of the scores of a random network.

    Σ⁰ = w_variance·⟨x, z⟩/d + b_variance and Σ^l = w_variance·E[σ(u)·σ(v)] + b_variance, where u
    and v are Gaussian with variances Σ^{l−1}(x, x), Σ^{l−1}(z, z) and covariance Σ^{l−1}(x, z).
    For ReLU, depth 1 and no bias it equals ½·w_variance²·`ArcCosine(1)`/d.
    """

    def of_products(
        self,
        xz: Float[Array, "n m"],
        xx: Float[Array, "#n 1"],
        zz: Float[Array, "1 #m"],
        d: int | Float[Array, ""],
    ) -> Float[Array, "n m"]:
        c, qx, qz = (self.affine(product / d) for product in (xz, xx, zz))
        for layer in range(self.depth):
            c = self.affine(self.moments.pair(c, qx, qz)[0])
            if layer + 1 < self.depth:
                qx, qz = (self.affine(self.moments.single(q)[0]) for q in (qx, qz))
        return c

    def diagonal(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        q = self.affine(squared_norm(x) / x.shape[1])
        for _ in range(self.depth):
            q = self.affine(self.moments.single(q)[0])
        return q


class NTK(WideNetwork):
    """The neural tangent kernel Θ^{depth}(x, z) = Σ_p ∂_p f(x)·∂_p f(z) over all parameters p.

    Θ⁰ = Σ⁰ and Θ^l = Σ^l + w_variance·E[σ'(u)·σ'(v)]·Θ^{l−1}, with Σ, u and v as for `NNGP`.

    Reference: Jacot, Gabriel and Hongler, Neural tangent kernel, 2018.
    """

    def of_products(
        self,
        xz: Float[Array, "n m"],
        xx: Float[Array, "#n 1"],
        zz: Float[Array, "1 #m"],
        d: int | Float[Array, ""],
    ) -> Float[Array, "n m"]:
        c, qx, qz = (self.affine(product / d) for product in (xz, xx, zz))
        tangent = c
        for layer in range(self.depth):
            value, slope = self.moments.pair(c, qx, qz)
            c = self.affine(value)
            tangent = c + self.w_variance * slope * tangent
            if layer + 1 < self.depth:
                qx, qz = (self.affine(self.moments.single(q)[0]) for q in (qx, qz))
        return tangent

    def diagonal(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        q = self.affine(squared_norm(x) / x.shape[1])
        tangent = q
        for _ in range(self.depth):
            value, slope = self.moments.single(q)
            q = self.affine(value)
            tangent = q + self.w_variance * slope * tangent
        return tangent
