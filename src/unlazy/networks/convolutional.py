"""Convolutional networks with pooling and a linear head.

h_0 = x,   h_l = pool(σ(F_l ∗ h_{l−1} + b_l)),   f(x) = ⟨a, h_L⟩ + c
"""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.activations import activation_of
from unlazy.core.errors import require
from unlazy.core.random import normal
from unlazy.networks.base import Init, Network, Scores, axes_of
from unlazy.networks.convolution import convolution


class Convolutional(Network):
    """A convolutional network on images of shape (height, width, channels).

    Filters of `side` × `side` pixels use zero padding. Squares of `pool` × `pool` pixels are
    averaged after each layer. Groups: filters, biases, a, c.
    """

    filters: tuple[Float[Array, "_ _ _"], ...]  # by pixel, channel in, channel out
    biases: tuple[Float[Array, " _"], ...]
    a: Float[Array, " f"] | Float[Array, "f o"]
    c: Float[Array, ""] | Float[Array, " o"]
    pool: int = eqx.field(static=True)
    activation: str = eqx.field(static=True)

    def hidden(self, x: Float[Array, "n h w i"]) -> Float[Array, "n f"]:
        """Return the flattened outputs of the last layer, the features of the linear head."""
        _require_image(x.shape[1:])
        for kernel, bias in zip(self.filters, self.biases, strict=True):
            z = _convolved(x, kernel) + bias[None, None, None, :]
            x = _pooled(activation_of(self.activation)(z, None), self.pool)
        return x.reshape(len(x), -1)

    def __call__(self, x: Float[Array, "n h w i"]) -> Scores:
        return self.hidden(x) @ self.a + self.c[None]


def _require_image(shape: int | tuple[int, ...]) -> None:
    require(
        isinstance(shape, tuple) and len(shape) == 3,
        f"A convolutional network needs inputs of shape (height, width, channels), got {shape}.",
    )


def _convolved(
    x: Float[Array, "n h w i"], kernel: Float[Array, "s i o"]
) -> Float[Array, "n h w o"]:
    side = math.isqrt(len(kernel))
    return convolution(x, kernel.reshape(side, side, *kernel.shape[1:]))


def _pooled(x: Float[Array, "n h w i"], pool: int) -> Float[Array, "n h//{pool} w//{pool} i"]:
    """Return means over squares; incomplete squares are dropped."""
    n, height, width, channels = x.shape
    rows, columns = height // pool, width // pool
    return jnp.mean(
        x[:, : rows * pool, : columns * pool].reshape(n, rows, pool, columns, pool, channels),
        axis=(2, 4),
    )


class ConvolutionalInit(Init):
    """`Convolutional` with one layer per entry of `channels`.

    F ~ N(0, 2/(side²·channels in)), b = 0, a ~ N(0, a_scale²/f) for f features, c = 0.
    """

    channels: tuple[int, ...] = eqx.field(static=True, default=(16, 32))
    side: int = eqx.field(static=True, default=3, kw_only=True)
    pool: int = eqx.field(static=True, default=2, kw_only=True)
    a_scale: float = eqx.field(converter=float, default=1.0, kw_only=True)
    activation: str = eqx.field(static=True, default="relu", kw_only=True)

    def __check_init__(self) -> None:
        activation_of(self.activation)
        require(
            bool(self.channels) and min(self.channels) > 0,
            f"channels must be one or more positive integers, got {self.channels}.",
        )
        require(
            self.side > 0 and self.pool > 0,
            f"side and pool must be positive, got {self.side} and {self.pool}.",
        )
        require(
            0 <= self.a_scale < math.inf,
            f"a_scale must be finite and ≥ 0, got {self.a_scale}.",
        )

    @property
    def width(self) -> int:
        """The multiply-adds per entry of an input over all layers, for cost estimates."""
        ins = (1, *self.channels)
        return sum(
            self.side**2 * i * o // self.pool ** (2 * layer) or 1
            for layer, (i, o) in enumerate(zip(ins, self.channels, strict=False))
        )

    @property
    def takes_shapes(self) -> bool:
        return True

    def __call__(
        self, d: int | tuple[int, ...], *, outputs: int | None = None, key: PRNGKeyArray
    ) -> Convolutional:
        _require_image(d)
        assert isinstance(d, tuple)
        height, width, *ins = d
        keys = jax.random.split(key, len(self.channels) + 1)
        filters = []
        for key_layer, o in zip(keys[1:], self.channels, strict=True):
            i = ins[-1]
            filters.append(
                math.sqrt(2 / (self.side**2 * i)) * normal(key_layer, (self.side**2, i, o))
            )
            ins.append(o)
            height, width = height // self.pool, width // self.pool
        features = height * width * ins[-1]
        require(
            features > 0,
            f"Images of {d[0]} × {d[1]} pixels are too small for {len(self.channels)} poolings "
            f"by {self.pool}.",
        )
        a = self.a_scale / math.sqrt(features) * normal(keys[0], (features, *axes_of(outputs)))
        biases = tuple(jnp.zeros(o) for o in self.channels)
        return Convolutional(
            tuple(filters), biases, a, jnp.zeros(axes_of(outputs)), self.pool, self.activation
        )
