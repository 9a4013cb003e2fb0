"""Plain initial networks: independent entries, a chosen width and number of outputs."""

from __future__ import annotations

import math
from typing import get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from unlazy.errors import require
from unlazy.networks import Activation, Init, TwoLayer
from unlazy.random import normal


def require_law(m: int, outputs: int | None, activation: str, **scales: float) -> None:
    """Raise `BadInput` unless these are sizes and standard deviations of a network."""
    known = get_args(Activation)
    require(activation in known, f"activation must be one of {', '.join(known)}, but is {activation!r}.")
    require(isinstance(m, int) and m > 0, f"m must be a positive whole number of neurons, but is {m!r}.")
    require(
        outputs is None or (isinstance(outputs, int) and outputs > 0),
        f"outputs must be a positive whole number, or None for one output without an axis, but is {outputs!r}.",
    )
    for name, value in scales.items():
        require(0 <= value < math.inf, f"{name} is a standard deviation and must be a finite number ≥ 0, but is {value}.")


class PlainInit(Init):
    """`TwoLayer` with m neurons: w ~ N(0, w_scale²), b ~ N(0, b_scale²), a ~ N(0, a_scale²), c = 0.

    `outputs=None` is one output without an axis for it.
    """

    m: int = eqx.field(static=True, kw_only=True)
    w_scale: float = eqx.field(converter=float, kw_only=True)
    b_scale: float = eqx.field(converter=float, kw_only=True)
    a_scale: float = eqx.field(converter=float, kw_only=True)
    outputs: int | None = eqx.field(static=True, default=None, kw_only=True)
    activation: Activation = eqx.field(static=True, default="relu", kw_only=True)

    def __check_init__(self) -> None:
        """Refuse sizes and scales that make no network."""
        scales = {"w_scale": self.w_scale, "b_scale": self.b_scale, "a_scale": self.a_scale}
        require_law(self.m, self.outputs, self.activation, **scales)

    @property
    def width(self) -> int:
        """m neurons."""
        return self.m

    def __call__(self, d: int, *, key: PRNGKeyArray) -> TwoLayer:
        """Draw."""
        key_w, key_b, key_a = jax.random.split(key, 3)
        ends = () if self.outputs is None else (self.outputs,)
        return TwoLayer(
            self.w_scale * normal(key_w, (self.m, d)),
            self.b_scale * normal(key_b, (self.m,)),
            self.a_scale * normal(key_a, (self.m, *ends)),
            jnp.zeros(ends),
            self.activation,
        )
