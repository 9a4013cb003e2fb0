"""Kernels of the infinitely wide three-layer residual network.

With N(0, 1) entries in all W, U, A and b, the network of width m in NTK parametrization is

    z¹ = √(w_variance/d)·W·x + √b_variance·b¹,   z² = √(u_variance/m)·U·σ(z¹) + √b_variance·b²,
    score = A·(σ(z¹) + σ(z²))/√m.

A row of U averages over all neurons of the first layer, so z¹_i and z²_i are independent in the
limit. Products of both layers become products of means, which do not vanish for ReLU.

The limits do not exist for the bottleneck U = V·A of allenzhu2019, Section 6. There z² = V·(out₁,
1) depends only on the few outputs out₁, which remain random, and so does the kernel at any width.
In the paper's scaling, without factors in the forward pass, the tangent kernel also grows with m.
For such networks use the kernel at finite width, `unlazy.kernels.finite.Tangent`.

Reference: allenzhu2019, Eq. (2.1), for the network.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import equinox as eqx
from jaxtyping import Array, Float

from unlazy.core.activations import activation_of
from unlazy.core.errors import require
from unlazy.core.gaussian import Moments
from unlazy.kernels.base import ProductKernel, squared_norm
from unlazy.kernels.products import require_variances


class _Layers(NamedTuple):
    """Covariances Σ¹ and Σ² of the preactivations, the NNGP kernel, and E σ'σ' under each."""

    first: Float[Array, "..."]
    second: Float[Array, "..."]
    values: Float[Array, "..."]
    slope_1: Float[Array, "..."]
    slope_2: Float[Array, "..."]


class _Residual(ProductKernel):
    """Base class of both kernels; for `activation` see `unlazy.kernels.wide.WideNetwork`."""

    activation: str | Callable[[Array], Array] = eqx.field(static=True, default="relu")
    w_variance: float = eqx.field(converter=float, default=1.0)
    u_variance: float = eqx.field(converter=float, default=1.0)
    b_variance: float = eqx.field(converter=float, default=0.0)

    def __check_init__(self) -> None:
        require_variances(self.w_variance, self.b_variance)
        require(
            0 <= self.u_variance < math.inf,
            f"u_variance must be finite and ≥ 0, got {self.u_variance}.",
        )
        activation_of(self.activation)

    @property
    def moments(self) -> Moments:
        """The Gaussian moments of the activation."""
        return activation_of(self.activation).moments

    def input_scale(self, d: int) -> float:
        """Return √d, by which the first layer divides."""
        return math.sqrt(d)

    def _pairs(
        self,
        xz: Float[Array, "n m"],
        xx: Float[Array, "#n 1"],
        zz: Float[Array, "1 #m"],
        d: int | Float[Array, ""],
    ) -> _Layers:
        c, qx, qz = (self.w_variance * product / d + self.b_variance for product in (xz, xx, zz))
        value_1, slope_1 = self.moments.pair(c, qx, qz)
        second = self.u_variance * value_1 + self.b_variance
        rx, rz = (self.u_variance * self.moments.single(q)[0] + self.b_variance for q in (qx, qz))
        value_2, slope_2 = self.moments.pair(second, rx, rz)
        (mean_x, mean_z), (next_x, next_z) = (
            (self.moments.mean(a), self.moments.mean(b)) for a, b in ((qx, qz), (rx, rz))
        )
        return _Layers(
            c, second, value_1 + value_2 + mean_x * next_z + next_x * mean_z, slope_1, slope_2
        )

    def _singles(self, x: Float[Array, "n d"]) -> _Layers:
        q = self.w_variance * squared_norm(x) / x.shape[1] + self.b_variance
        value_1, slope_1 = self.moments.single(q)
        second = self.u_variance * value_1 + self.b_variance
        value_2, slope_2 = self.moments.single(second)
        return _Layers(
            q,
            second,
            value_1 + value_2 + 2 * self.moments.mean(q) * self.moments.mean(second),
            slope_1,
            slope_2,
        )


class ResidualNNGP(_Residual):
    """The conjugate kernel E[(σ(z¹) + σ(z²))(x)·(σ(z¹) + σ(z²))(z)].

    It is the covariance of the scores, and the tangent kernel if only A is trained.
    """

    def of_products(
        self,
        xz: Float[Array, "n m"],
        xx: Float[Array, "#n 1"],
        zz: Float[Array, "1 #m"],
        d: int | Float[Array, ""],
    ) -> Float[Array, "n m"]:
        return self._pairs(xz, xx, zz, d).values

    def diagonal(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        return self._singles(x).values


class ResidualNTK(_Residual):
    """The neural tangent kernel of one output; `trained` selects the hidden layers or all layers.

    Let Σ¹ and Σ² be the covariances of the preactivations, and D¹ and D² the moments E σ'σ' under
    them. W and b¹ contribute Σ¹·D¹·(1 + u_variance·D²), U and b² contribute Σ²·D², and A
    contributes `ResidualNNGP`. The gradients by W through the two branches are uncorrelated,
    because one passes through U.
    """

    trained: Literal["all", "hidden"] = eqx.field(static=True, default="all")

    def __check_init__(self) -> None:
        require(
            self.trained in ("all", "hidden"),
            f"trained must be 'all' or 'hidden', got {self.trained!r}.",
        )

    def _tangent(self, layers: _Layers) -> Float[Array, "..."]:
        hidden = (
            layers.first * layers.slope_1 * (1 + self.u_variance * layers.slope_2)
            + layers.second * layers.slope_2
        )
        return hidden + layers.values if self.trained == "all" else hidden

    def of_products(
        self,
        xz: Float[Array, "n m"],
        xx: Float[Array, "#n 1"],
        zz: Float[Array, "1 #m"],
        d: int | Float[Array, ""],
    ) -> Float[Array, "n m"]:
        return self._tangent(self._pairs(xz, xx, zz, d))

    def diagonal(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        return self._tangent(self._singles(x))
