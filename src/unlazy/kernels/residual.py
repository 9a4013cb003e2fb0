"""Kernels of the infinitely wide three-layer residual network.

With N(0, 1) entries in all W, U, A and b, and with width m, the network is in NTK parametrisation

    z¹ = √(w_variance/d)·W·x + √b_variance·b¹,   z² = √(u_variance/m)·U·σ(z¹) + √b_variance·b²,
    score = A·(σ(z¹) + σ(z²))/√m.

A row of U sees all neurons of the first layer, so that in the limit z¹_i and z²_i are independent:
products of both layers become products of means, which for ReLU do not vanish.

These limits do not exist for the bottleneck U = V·A of allenzhu2019, Section 6: there z² = V·(out₁,
1) sees only the few outputs out₁, a Gaussian process of their own that does not average out, and
the kernel stays random at any width. In the paper's scaling, W and A of a standard deviation that
does not come with a factor in the forward pass, the tangent kernel also grows with m. For such
networks compute the kernel of the network at hand, `unlazy.kernels.finite.Tangent`.

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
    """Covariances Σ¹ and Σ² of both pre-activations, E σσ and E σ'σ' under each, and the products
    of means E σ(z¹)·E σ(z²).
    """

    first: Float[Array, "..."]
    second: Float[Array, "..."]
    values: Float[Array, "..."]
    slope_1: Float[Array, "..."]
    slope_2: Float[Array, "..."]


class _Residual(ProductKernel):
    """Base of both kernels. For `activation` see `unlazy.kernels.wide.WideNetwork`."""

    activation: str | Callable[[Array], Array] = eqx.field(static=True, default="relu")
    w_variance: float = eqx.field(converter=float, default=1.0)
    u_variance: float = eqx.field(converter=float, default=1.0)
    b_variance: float = eqx.field(converter=float, default=0.0)

    def __check_init__(self) -> None:
        require_variances(self.w_variance, self.b_variance)
        require(
            0 <= self.u_variance < math.inf,
            f"u_variance must be a finite number ≥ 0, but is {self.u_variance}.",
        )
        activation_of(self.activation)

    @property
    def moments(self) -> Moments:
        """The Gaussian moments of the activation."""
        return activation_of(self.activation).moments

    def input_scale(self, d: int) -> float:
        """√d: the first layer divides by it."""
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
    """The conjugate kernel E[(σ(z¹) + σ(z²))(x)·(σ(z¹) + σ(z²))(z)]: the covariance of the scores,
    and the kernel of training A alone.
    """

    def of_products(
        self,
        xz: Float[Array, "n m"],
        xx: Float[Array, "#n 1"],
        zz: Float[Array, "1 #m"],
        d: int | Float[Array, ""],
    ) -> Float[Array, "n m"]:
        """E σσ of both layers and the products of their means."""
        return self._pairs(xz, xx, zz, d).values

    def diagonal(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        return self._singles(x).values


class ResidualNTK(_Residual):
    """The neural tangent kernel of one output, with the hidden layers or all layers trained.

    With Σ¹ and Σ² the covariances of the pre-activations and D¹ and D² the moments E σ'σ' under
    them, W and b¹ give Σ¹·D¹·(1 + u_variance·D²), through both branches, U and b² give Σ²·D², and A
    gives `ResidualNNGP`. The gradients of the two branches in W are uncorrelated, as one passes
    through U.
    """

    trained: Literal["all", "hidden"] = eqx.field(static=True, default="all")

    def __check_init__(self) -> None:
        require(
            self.trained in ("all", "hidden"),
            f"trained must be all or hidden, but is {self.trained!r}.",
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
