"""Weight initializations."""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from unlazy.core.activations import activation_of
from unlazy.core.errors import BadInput, require, require_whole
from unlazy.core.random import normal, rademacher
from unlazy.networks.base import Init, axes_of
from unlazy.networks.linearized import Linearized
from unlazy.networks.residual import ThreeLayer, ThreeLayerResNet
from unlazy.networks.two_layer import TwoLayer


def require_gaussian_init(m: int, activation: str, **scales: float) -> None:
    """Raise `BadInput` unless width, activation and standard deviations are valid."""
    activation_of(activation)
    require_whole("m", m, "neurons")
    for name, value in scales.items():
        require(
            0 <= value < math.inf,
            f"{name} (a standard deviation) must be finite and ≥ 0, got {value}.",
        )


class AntisymmetricInit(Init):
    """2m neurons in antisymmetric pairs, so that the initial network is exactly zero.

    w_i ~ N(0, w_scale²·I), b_i ~ N(0, b_scale²), a_i ~ N(0, a_scale²) for i ≤ m, and w_{m+i} = w_i,
    b_{m+i} = b_i, a_{m+i} = −a_i.

    Reference: shi2022, Section 3.1.
    """

    KEY = "MirroredInit"

    m: int = eqx.field(static=True, kw_only=True)
    w_scale: float = eqx.field(converter=float, kw_only=True)
    b_scale: float = eqx.field(converter=float, kw_only=True)
    a_scale: float = eqx.field(converter=float, kw_only=True)
    activation: str = eqx.field(static=True, default="truncated_relu", kw_only=True)

    def __check_init__(self) -> None:
        require_gaussian_init(
            self.m,
            self.activation,
            w_scale=self.w_scale,
            b_scale=self.b_scale,
            a_scale=self.a_scale,
        )

    @property
    def width(self) -> int:
        return 2 * self.m

    def __call__(self, d: Any, *, outputs: int | None = None, key: PRNGKeyArray) -> TwoLayer:
        key_w, key_b, key_a = jax.random.split(key, 3)
        w = self.w_scale * normal(key_w, (self.m, d))
        b = self.b_scale * normal(key_b, (self.m,))
        a = self.a_scale * normal(key_a, (self.m, *axes_of(outputs)))
        return TwoLayer(
            jnp.concatenate([w, w]),
            jnp.concatenate([b, b]),
            jnp.concatenate([a, -a]),
            jnp.zeros(axes_of(outputs)),
            self.activation,
        )


class TernaryInit(Init):
    """Pairs of neurons with weights uniform in {−1, 0, 1} and activation `relu6`.

    There are `neurons` = 2q in total. For i ≤ q, w_i is uniform in {−1, 0, 1}^d, b_i = 1/(8k) and
    a_i is uniform in [−d/k, d/k]. Then w_{q+i} = w_i, b_{q+i} = b_i and a_{q+i} = −a_i, so that the
    initial network is exactly zero. `printed` sets w_{q+i} = −w_i and b_{q+i} = −b_i as printed in
    the paper. Then a pair has the output a_i·[σ(h) − σ(−h)], which is not zero.

    Reference: daniely2020, Section 2.
    """

    neurons: int = eqx.field(static=True, kw_only=True)
    k: int = eqx.field(static=True, kw_only=True)
    printed: bool = eqx.field(static=True, default=False, kw_only=True)

    def __check_init__(self) -> None:
        require(
            isinstance(self.neurons, int) and self.neurons > 0 and self.neurons % 2 == 0,
            f"neurons must be even and positive, got {self.neurons!r}.",
        )
        require_whole("k", self.k, "bits")

    @property
    def width(self) -> int:
        return self.neurons

    def __call__(self, d: Any, *, outputs: int | None = None, key: PRNGKeyArray) -> TwoLayer:
        key_w, key_a = jax.random.split(key)
        half, ends, number = self.neurons // 2, axes_of(outputs), jnp.result_type(float)
        require(
            self.k <= d,
            f"k must be at most the input dimension {d}, got {self.k}.",
        )
        w = jax.random.randint(key_w, (half, d), -1, 2).astype(number)
        b = jnp.full(half, 1 / (8 * self.k), number)
        a = (
            d
            / self.k
            * jax.random.uniform(key_a, (half, *ends), jnp.float32, -1.0, 1.0).astype(number)
        )
        sign = -1.0 if self.printed else 1.0
        return TwoLayer(
            jnp.concatenate([w, sign * w]),
            jnp.concatenate([b, sign * b]),
            jnp.concatenate([a, -a]),
            jnp.zeros(ends, number),
            "relu6",
        )


class PlainInit(Init):
    """`TwoLayer` with m neurons, w ~ N(0, w_scale²), b ~ N(0, b_scale²), a ~ N(0, a_scale²), and
    c = 0.
    """

    m: int = eqx.field(static=True, kw_only=True)
    w_scale: float = eqx.field(converter=float, kw_only=True)
    b_scale: float = eqx.field(converter=float, kw_only=True)
    a_scale: float = eqx.field(converter=float, kw_only=True)
    activation: str = eqx.field(static=True, default="relu", kw_only=True)

    def __check_init__(self) -> None:
        scales = {"w_scale": self.w_scale, "b_scale": self.b_scale, "a_scale": self.a_scale}
        require_gaussian_init(self.m, self.activation, **scales)

    @property
    def width(self) -> int:
        return self.m

    def __call__(self, d: Any, *, outputs: int | None = None, key: PRNGKeyArray) -> TwoLayer:
        key_w, key_b, key_a = jax.random.split(key, 3)
        ends = axes_of(outputs)
        return TwoLayer(
            self.w_scale * normal(key_w, (self.m, d)),
            self.b_scale * normal(key_b, (self.m,)),
            self.a_scale * normal(key_a, (self.m, *ends)),
            jnp.zeros(ends),
            self.activation,
        )


class SphereInit(Init):
    """p neurons uniform on the sphere of radius θ, with second-layer weights ±‖w‖/p.

    With `bias` the sphere has one more dimension, and the last coordinate is the neuron's bias, as
    for inputs with a constant coordinate 1.

    Deviation: Theorem 3.1 prints the radius θ/√p, Lemma C.1 and Section 2.2 the radius θ. We use θ,
    which agrees with the mean-field scaling.
    """

    p: int = eqx.field(static=True, kw_only=True)
    radius: float = eqx.field(converter=float, kw_only=True)
    bias: bool = eqx.field(static=True, default=False, kw_only=True)

    def __check_init__(self) -> None:
        require_whole("p", self.p, "neurons")
        require(0 < self.radius < math.inf, f"radius must be finite and > 0, got {self.radius}.")

    @property
    def width(self) -> int:
        return self.p

    def __call__(self, d: Any, *, outputs: int | None = None, key: PRNGKeyArray) -> TwoLayer:
        key_w, key_a = jax.random.split(key)
        v = normal(key_w, (self.p, d + self.bias))
        v = self.radius * v / jnp.linalg.norm(v, axis=1, keepdims=True)
        a = rademacher(key_a, (self.p, *axes_of(outputs))) * self.radius / self.p
        return TwoLayer(
            v[:, :d],
            v[:, d] if self.bias else jnp.zeros(self.p),
            a,
            jnp.zeros(axes_of(outputs)),
            "relu",
        )


class ResNetInit(Init):
    """`ThreeLayerResNet` with independent Gaussian entries.

    Standard deviations are w_scale (W), b_scale (b₁), v_scale (V or U), e_scale (b₂) and a_scale
    (A). The paper's theorem has a_scale = 1/√m, w_scale = b_scale = σ_w and v_scale = e_scale =
    σ_v/√m; its experiments have 1/√m everywhere. Without `skip` the network is the fully connected
    `ThreeLayer` with U of shape m × m.
    """

    m: int = eqx.field(static=True, kw_only=True)
    w_scale: float = eqx.field(converter=float, kw_only=True)
    b_scale: float = eqx.field(converter=float, kw_only=True)
    v_scale: float = eqx.field(converter=float, kw_only=True)
    e_scale: float = eqx.field(converter=float, kw_only=True)
    a_scale: float = eqx.field(converter=float, kw_only=True)
    bottleneck: bool = eqx.field(static=True, default=True, kw_only=True)
    activation: str = eqx.field(static=True, default="relu", kw_only=True)
    skip: bool = eqx.field(static=True, default=True, kw_only=True)

    def __check_init__(self) -> None:
        scales = {
            name: getattr(self, name)
            for name in ("w_scale", "b_scale", "v_scale", "e_scale", "a_scale")
        }
        require_gaussian_init(self.m, self.activation, **scales)
        require(
            self.skip or not self.bottleneck,
            "skip=False requires bottleneck=False.",
        )

    @property
    def width(self) -> int:
        return self.m

    def __call__(
        self, d: Any, *, outputs: int | None = None, key: PRNGKeyArray
    ) -> ThreeLayerResNet:
        key_w, key_b, key_v, key_e, key_a = jax.random.split(key, 5)
        ends = axes_of(outputs)
        kind = ThreeLayerResNet if self.skip else ThreeLayer
        return kind(
            self.w_scale * normal(key_w, (self.m, d)),
            self.b_scale * normal(key_b, (self.m,)),
            self.v_scale * normal(key_v, (self.m, (outputs or 1) if self.bottleneck else self.m)),
            self.e_scale * normal(key_e, (self.m,)),
            self.a_scale * normal(key_a, (self.m, *ends)),
            self.bottleneck,
            self.activation,
        )


class SignedInit(Init):
    """`TwoLayer` without biases, w ~ N(0, w_scale²), and fixed a = ±1/√m with equally many of each
    sign.

    Reference: allenzhu2019, Section 8.2.
    """

    m: int = eqx.field(static=True, kw_only=True)
    w_scale: float = eqx.field(converter=float, kw_only=True)

    def __check_init__(self) -> None:
        require_gaussian_init(self.m, "relu", w_scale=self.w_scale)
        require(
            self.m % 2 == 0,
            f"m must be even, got {self.m}.",
        )

    @property
    def width(self) -> int:
        return self.m

    def __call__(self, d: Any, *, outputs: int | None = None, key: PRNGKeyArray) -> TwoLayer:
        require(outputs is None, "SignedInit supports exactly one output.")
        w = self.w_scale * normal(key, (self.m, d))
        a = jnp.where(jnp.arange(self.m) < self.m // 2, 1.0, -1.0).astype(w.dtype) / math.sqrt(
            self.m
        )
        return TwoLayer(w, jnp.zeros(self.m, w.dtype), a, jnp.zeros((), w.dtype), "relu")


class TangentInit(Init):
    """The linearization of a network drawn from `of`, at displacement zero."""

    of: Init

    @property
    def width(self) -> int:
        return self.of.width

    def __call__(self, d: Any, *, outputs: int | None = None, key: PRNGKeyArray) -> Linearized:
        base = self.of(d, outputs=outputs, key=key)
        if not isinstance(base, TwoLayer | ThreeLayerResNet):
            name = type(base).__name__
            raise BadInput(f"TangentInit supports two- and three-layer networks, got {name}.")
        return Linearized(base, jax.tree.map(jnp.zeros_like, base))
