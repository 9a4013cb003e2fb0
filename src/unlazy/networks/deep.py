"""Fully connected networks with several hidden layers of equal width."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.activations import activation_of
from unlazy.core.errors import require
from unlazy.core.random import normal
from unlazy.networks.base import HasNeurons, Init, Scores, axes_of
from unlazy.networks.inits import require_gaussian_init


class DeepNetwork(HasNeurons):
    """h¹ = σ(W·x + b), h^{l+1} = σ(V_l·h^l + e_l), out = ⟨a, h^L⟩ + c.

    Groups: w, b, v (all V), e (all e), a, c.
    """

    w: Float[Array, "m d"]
    b: Float[Array, " m"]
    v: Float[Array, "l m m"]
    e: Float[Array, "l m"]
    a: Float[Array, " m"] | Float[Array, "m o"]
    c: Float[Array, ""] | Float[Array, " o"]
    activation: str = eqx.field(static=True, default="relu")

    @property
    def first_layer(self) -> Float[Array, "*s m d"]:
        return self.w

    def hidden(self, x: Float[Array, "n d"]) -> Float[Array, "n m"]:
        """Return the outputs of the last hidden layer, the features of the linear output."""
        activate = activation_of(self.activation)
        h = activate(x @ self.w.T + self.b[None, :])
        for layer in range(len(self.v)):
            h = activate(h @ self.v[layer].T + self.e[layer][None, :])
        return h

    def __call__(self, x: Float[Array, "n d"]) -> Scores:
        return self.hidden(x) @ self.a + self.c[None]


class DeepInit(Init):
    """`DeepNetwork` with `depth` hidden layers of m neurons and independent Gaussian entries.

    Standard deviations are w_scale (W), b_scale (all biases), v_scale (all V) and a_scale.
    """

    m: int = eqx.field(static=True, kw_only=True)
    depth: int = eqx.field(static=True, kw_only=True)
    w_scale: float = eqx.field(converter=float, kw_only=True)
    b_scale: float = eqx.field(converter=float, kw_only=True)
    v_scale: float = eqx.field(converter=float, kw_only=True)
    a_scale: float = eqx.field(converter=float, kw_only=True)
    activation: str = eqx.field(static=True, default="relu", kw_only=True)

    def __check_init__(self) -> None:
        scales = {
            name: getattr(self, name) for name in ("w_scale", "b_scale", "v_scale", "a_scale")
        }
        require_gaussian_init(self.m, self.activation, **scales)
        require(
            isinstance(self.depth, int) and self.depth > 0,
            f"depth must be a positive integer, got {self.depth!r}.",
        )

    @property
    def width(self) -> int:
        return self.m

    def __call__(self, d: Any, *, outputs: int | None = None, key: PRNGKeyArray) -> DeepNetwork:
        key_w, key_b, key_v, key_e, key_a = jax.random.split(key, 5)
        ends = axes_of(outputs)
        return DeepNetwork(
            self.w_scale * normal(key_w, (self.m, d)),
            self.b_scale * normal(key_b, (self.m,)),
            self.v_scale * normal(key_v, (self.depth - 1, self.m, self.m)),
            self.b_scale * normal(key_e, (self.depth - 1, self.m)),
            self.a_scale * normal(key_a, (self.m, *ends)),
            jnp.zeros(ends),
            self.activation,
        )
