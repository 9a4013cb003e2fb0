"""Convolutional fixed features: the convolutional NTK, and random filters with pooling.

Images are flattened to vectors; `for_shape` sets their height, width and channels.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.activations import activation_of
from unlazy.core.errors import BadInput, require
from unlazy.core.random import normal
from unlazy.kernels.base import Kernel, as_image
from unlazy.kernels.feature_maps import FeatureMap, Features

#: Images per program.
CHUNK = 64
#: Stride of the random filters.
STRIDE = 2


class ConvolutionalNTK(Kernel):
    """The NTK of a convolutional ReLU network with infinitely many filters per layer.

    The network has a linear head on all pixels. With P(C)[p] the mean of C over the side × side
    pixels around p (zero padding),

        C¹ = w·P(⟨x, z⟩/channels) + b,     Θ¹ = C¹,
        C^{l+1} = w·P(E σσ) + b,           Θ^{l+1} = C^{l+1} + w·P(E σ'σ'·Θ^l),

    and k(x, z) is the mean over all pixels p of E[σσ](p) + E[σ'σ'](p)·Θ^depth(p). Only equal
    positions of both images are compared, so depth 1 is the mean of a tangent kernel over patches.
    `w_variance` = w, `b_variance` = b.

    Reference: Arora et al., On exact computation with an infinitely wide neural net, 2019, Section
    4 (without pooling).
    """

    depth: int = eqx.field(static=True, default=1)
    side: int = eqx.field(static=True, default=3)
    w_variance: float = eqx.field(converter=float, default=2.0)
    b_variance: float = eqx.field(converter=float, default=0.1)
    shape: tuple[int, int, int] | None = eqx.field(static=True, default=None, kw_only=True)

    def __check_init__(self) -> None:
        require(
            isinstance(self.depth, int) and self.depth > 0,
            f"depth must be a positive integer, got {self.depth!r}.",
        )
        require(
            self.side > 0 and self.side % 2 == 1,
            f"side must be odd and positive, got {self.side}.",
        )
        require(
            self.w_variance > 0 <= self.b_variance,
            f"w_variance must be > 0 and b_variance ≥ 0, got {self.w_variance} and "
            f"{self.b_variance}.",
        )

    def for_shape(self, shape: tuple[int, ...]) -> ConvolutionalNTK:
        return dataclasses.replace(self, shape=as_image(shape))

    @property
    def block(self) -> int:
        """The block size, small because a block has an entry per pixel of each pair."""
        return 32

    def _images(self, x: Float[Array, "n d"]) -> Float[Array, "n h w c"]:
        if self.shape is None:
            raise BadInput("ConvolutionalNTK needs the shape of the images; set it by `for_shape`.")
        return x.reshape(len(x), *self.shape)

    def _affine(self, covariance: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.w_variance * around(covariance, self.side) + self.b_variance

    def _variances(self, images: Float[Array, "n h w c"]) -> list[Float[Array, "n h w"]]:
        """Return C^l(x, x) at each pixel for all layers."""
        moments = activation_of("relu").moments
        variances = [self._affine(jnp.mean(jnp.square(images), axis=-1))]
        for _ in range(self.depth - 1):
            variances.append(self._affine(moments.single(variances[-1])[0]))
        return variances

    def __call__(self, x: Float[Array, "n d"], z: Float[Array, "m d"]) -> Float[Array, "n m"]:
        moments = activation_of("relu").moments
        left, right = self._images(x), self._images(z)
        c = self._affine(jnp.einsum("nhwc,mhwc->nmhw", left, right) / left.shape[-1])
        tangent = c
        for layer, (qx, qz) in enumerate(
            zip(self._variances(left), self._variances(right), strict=True)
        ):
            value, slope = moments.pair(c, qx[:, None], qz[None])
            if layer + 1 == self.depth:
                return jnp.mean(value + slope * tangent, axis=(2, 3))
            c = self._affine(value)
            tangent = c + self.w_variance * around(slope * tangent, self.side)
        raise AssertionError("depth is positive")

    def diagonal(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        moments = activation_of("relu").moments
        variances = self._variances(self._images(x))
        tangent = variances[0]
        for layer, q in enumerate(variances):
            value, slope = moments.single(q)
            if layer + 1 == self.depth:
                return jnp.mean(value + slope * tangent, axis=(1, 2))
            tangent = variances[layer + 1] + self.w_variance * around(slope * tangent, self.side)
        raise AssertionError("depth is positive")

    def neighbors(self) -> list[Self]:
        others = [(1, 5), (2, 3), (1, 9), (2, 5), (3, 3), (1, 3)]
        return [
            dataclasses.replace(self, depth=depth, side=side)
            for depth, side in others
            if (depth, side) != (self.depth, self.side)
        ]

    def input_scale(self, d: int) -> float:
        """Return √d, so that pixels are of order 1."""
        return math.sqrt(d)


def around(values: Float[Array, "... h w"], side: int) -> Float[Array, "... h w"]:
    """Return means over the side × side pixels around each pixel, with zero padding."""
    for axis in (-2, -1):
        reach = side // 2
        length = values.shape[axis]
        padding = [(0, 0)] * values.ndim
        padding[axis] = (reach, reach)
        padded = jnp.pad(values, padding)
        shifted = [
            jax.lax.slice_in_dim(padded, start, start + length, axis=axis) for start in range(side)
        ]
        values = sum(shifted[1:], shifted[0]) / side
    return values


class ConvolutionMap(FeatureMap):
    """Means of relu(F ∗ x + b) over cells of the image."""

    filters: Float[Array, "s c f"]
    biases: Float[Array, " f"]
    shape: tuple[int, int, int] = eqx.field(static=True)
    cells: int = eqx.field(static=True)

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n f"]:
        side = math.isqrt(len(self.filters))
        kernel = self.filters.reshape(side, side, *self.filters.shape[1:])

        # A few images at a time, because an image has many features before the average.
        def pooled(images: Any) -> Any:
            filtered = jax.lax.conv_general_dilated(
                images,
                kernel,
                (STRIDE, STRIDE),
                "SAME",
                dimension_numbers=("NHWC", "HWIO", "NHWC"),
            )
            hidden = jax.nn.relu(filtered + self.biases[None, None, None, :])  # n h w f
            rows, columns = (_edges(length, self.cells) for length in hidden.shape[1:3])
            means = [
                jnp.mean(hidden[:, a:b, c:d], axis=(1, 2)) for a, b in rows for c, d in columns
            ]
            return jnp.concatenate(means, axis=1)

        count = -(-len(x) // CHUNK)
        padded = jnp.pad(x, ((0, count * CHUNK - len(x)), (0, 0))).reshape(
            count, CHUNK, *self.shape
        )
        result: Array = jax.lax.map(pooled, padded).reshape(count * CHUNK, -1)[: len(x)]
        return result


def _edges(length: int, cells: int) -> list[tuple[int, int]]:
    """Return the bounds of cells of nearly equal length."""
    count = min(cells, length)
    return [(cell * length // count, (cell + 1) * length // count) for cell in range(count)]


class RandomConvolutions(Features):
    """`filters` random ReLU filters of side × side pixels, averaged over cells × cells parts of the
    image.
    """

    filters: int = eqx.field(static=True, default=200)
    side: int = eqx.field(static=True, default=5)
    cells: int = eqx.field(static=True, default=3)
    bandwidth: float = eqx.field(converter=float, default=1.0)
    shape: tuple[int, int, int] | None = eqx.field(static=True, default=None, kw_only=True)

    def __check_init__(self) -> None:
        require(
            min(self.filters, self.side, self.cells) > 0,
            f"filters, side and cells must be positive, got {self}.",
        )
        require(
            0 < self.bandwidth < math.inf,
            f"bandwidth must be finite and > 0, got {self.bandwidth}.",
        )

    def for_shape(self, shape: tuple[int, ...]) -> RandomConvolutions:
        return dataclasses.replace(self, shape=as_image(shape))

    def draw(self, d: int, *, key: PRNGKeyArray) -> ConvolutionMap:
        shape = self.shape or as_image((d,))
        key_w, key_b = jax.random.split(key)
        # Inputs have norm 1. The factor √d makes pixels and filter outputs of order 1.
        scale = self.bandwidth * math.sqrt(d / (self.side**2 * shape[2]))
        return ConvolutionMap(
            scale * normal(key_w, (self.side**2, shape[2], self.filters)),
            self.bandwidth * normal(key_b, (self.filters,)),
            shape,
            self.cells,
        )

    def count(self, d: int) -> int:
        return self.filters * self.cells**2

    @property
    def settings(self) -> Mapping[str, float | str]:
        return {"side": self.side, "cells": self.cells, "bandwidth": self.bandwidth}

    def others(self) -> list[Features]:
        sizes = [(7, 3), (5, 4), (3, 4), (9, 2), (5, 2), (7, 4)]
        return [
            dataclasses.replace(self, side=side, cells=cells)
            for side, cells in sizes
            if (side, cells) != (self.side, self.cells)
        ]
