"""ResNet(m): the residual network of 18 layers on small images, with m filters in its first block.

Layers: a 3 × 3 convolution to m channels; four stages of two blocks with m, 2m, 4m and 8m channels,
of which the last three halve height and width; the mean over pixels; a linear head. A block is
relu(x + N(F₂ ∗ relu(N(F₁ ∗ x)))). If the size changes, x passes through a 1 × 1 convolution. N is
group normalization with learned scales and offsets. Unlike batch normalization, it does not depend
on the other inputs of a batch.

Reference: He et al., Deep residual learning for image recognition, 2016; shi2022, Appendix E.4.1,
for ResNet(m).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.errors import BadInput, require
from unlazy.core.random import normal
from unlazy.networks.base import Init, Network, Scores, axes_of
from unlazy.networks.convolution import convolution

#: Channels per stage as multiples of m, and blocks per stage.
STAGES, BLOCKS = (1, 2, 4, 8), 2
#: Maximum number of groups in group normalization.
MAX_GROUPS = 4
_ROUNDING = 1e-5


class BlockFilters(NamedTuple):
    """The convolutions of a block; `skip` is None unless the size changes."""

    first: Float[Array, "3 3 i o"]
    second: Float[Array, "3 3 o o"]
    skip: Float[Array, "1 1 i o"] | None


class Affine(NamedTuple):
    """Scale and offset per channel after a normalization."""

    scale: Float[Array, " o"]
    offset: Float[Array, " o"]


class ImageResNet(Network):
    """ResNet(m).

    Groups: stem (first convolution), filters (all blocks), norms (scales and offsets), a, c (head).
    """

    stem: Float[Array, "3 3 i m"]
    filters: tuple[BlockFilters, ...]
    norms: tuple[Affine, ...]
    a: Float[Array, " f"] | Float[Array, "f o"]
    c: Float[Array, ""] | Float[Array, " o"]
    groups_of_channels: int = eqx.field(static=True)

    def hidden(self, x: Float[Array, "n h w i"]) -> Float[Array, "n f"]:
        """Return the means over pixels, the features of the linear head."""
        require(
            x.ndim == 4,
            f"ResNet(m) needs inputs of shape (height, width, channels), got {x.shape[1:]}.",
        )
        norms = iter(self.norms)

        def convolved(x: Array, kernel: Array, stride: int = 1) -> Array:
            return self._normalized(convolution(x, kernel, stride), next(norms))

        x = jax.nn.relu(convolved(x, self.stem))
        for block in self.filters:
            stride = 1 if block.skip is None or block.skip.shape[2] == block.skip.shape[3] else 2
            inner = jax.nn.relu(convolved(x, block.first, stride))
            inner = convolved(inner, block.second)
            x = jax.nn.relu(inner + (x if block.skip is None else convolved(x, block.skip, stride)))
        return jnp.mean(x, axis=(1, 2))

    def _normalized(self, x: Float[Array, "n h w o"], affine: Affine) -> Float[Array, "n h w o"]:
        # First over pixels, then over channels: the reverse order takes four times as long.
        mean = self._over_groups(jnp.mean(x, axis=(1, 2)))
        variance = self._over_groups(jnp.mean(jnp.square(x - mean[:, None, None]), axis=(1, 2)))
        scale = affine.scale[None, :] * jax.lax.rsqrt(variance + _ROUNDING)
        return x * scale[:, None, None] + (affine.offset[None, :] - mean * scale)[:, None, None]

    def _over_groups(self, values: Float[Array, "n o"]) -> Float[Array, "n o"]:
        """Return the mean over the group of each channel."""
        n, channels = values.shape
        size = channels // self.groups_of_channels
        return jnp.repeat(
            jnp.mean(values.reshape(n, self.groups_of_channels, size), axis=2), size, axis=1
        )

    def __call__(self, x: Float[Array, "n h w i"]) -> Scores:
        return self.hidden(x) @ self.a + self.c[None]


class ImageResNetInit(Init):
    """ResNet(m) with filters ~ N(0, 2/fan-in), scales 1, offsets 0, a ~ N(0, 1/f) for f features,
    and c = 0.

    The number of groups in group normalization is the largest divisor of m up to four.

    Deviation: group instead of batch normalization; the paper does not state the initialization.
    """

    m: int = eqx.field(static=True)

    def __check_init__(self) -> None:
        require(
            isinstance(self.m, int) and self.m > 0,
            f"m must be a positive integer, got {self.m!r}.",
        )

    @property
    def width(self) -> int:
        """The multiply-adds per entry of a color image and pass, for cost estimates."""
        return 9 * self.m + 4 * 4 * 9 * self.m**2

    @property
    def takes_shapes(self) -> bool:
        return True

    def __call__(
        self, d: int | tuple[int, ...], *, outputs: int | None = None, key: PRNGKeyArray
    ) -> ImageResNet:
        if not isinstance(d, tuple) or len(d) != 3:
            raise BadInput(f"ResNet(m) needs inputs of shape (height, width, channels), got {d}.")
        keys = iter(jax.random.split(key, 3 * len(STAGES) * BLOCKS + 2))

        def drawn(side: int, i: int, o: int) -> Float[Array, "s s i o"]:
            return math.sqrt(2 / (side**2 * i)) * normal(next(keys), (side, side, i, o))

        stem, now = drawn(3, d[2], self.m), self.m
        filters, sizes = [], [self.m]
        for stage in STAGES:
            for _ in range(BLOCKS):
                o = stage * self.m
                changes = o != now
                filters.append(
                    BlockFilters(
                        drawn(3, now, o), drawn(3, o, o), drawn(1, now, o) if changes else None
                    )
                )
                sizes += [o] * (3 if changes else 2)
                now = o
        norms = tuple(Affine(jnp.ones(size), jnp.zeros(size)) for size in sizes)
        a = normal(next(keys), (now, *axes_of(outputs))) / math.sqrt(now)
        groups = max(count for count in range(1, MAX_GROUPS + 1) if self.m % count == 0)
        return ImageResNet(stem, tuple(filters), norms, a, jnp.zeros(axes_of(outputs)), groups)
