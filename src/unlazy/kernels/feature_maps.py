"""Feature maps: raw inputs, random neurons, their gradients, and random cosines.

Neurons have weights w ~ N(0, bandwidth²·I) and biases b ~ N(0, bias²), and features are of order
one. As `width` grows, the mean over neurons of the products of features converges to a kernel. With
bandwidth² = w_variance/d and bias² = b_variance,

    RandomFeatures(σ):         w·⟨φ(x), φ(z)⟩/width + b → NNGP(1, σ, w, b),
    RandomGradients(σ):        w·⟨φ(x), φ(z)⟩/width + b → NTK(1, σ, w, b),
    RandomFeatures("fourier"):   ⟨φ(x), φ(z)⟩/width     → RBF(bandwidth²/2),

where w = w_variance and b = b_variance.

Reference: Rahimi and Recht, Random features for large-scale kernel machines, 2007.
"""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.activations import ACTIVATIONS, activation_of
from unlazy.core.errors import require, unknown
from unlazy.core.random import normal

FOURIER = "fourier"
#: Maximum number of rows per program.
ROWS = 4096


class FeatureMap(eqx.Module):
    """Features φ(x) of inputs."""

    @abstractmethod
    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n f"]:
        """Return the features of a batch."""


class Inputs(FeatureMap):
    """φ(x) = x."""

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        return x


class RandomMap(FeatureMap):
    """φ_i(x) = σ(⟨w_i, x⟩ + b_i), for σ an activation or √2·cos."""

    w: Float[Array, "f d"]
    b: Float[Array, " f"]
    kind: str = eqx.field(static=True)

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n f"]:
        before = x @ self.w.T + self.b[None, :]
        return (
            math.sqrt(2) * jnp.cos(before)
            if self.kind == FOURIER
            else activation_of(self.kind)(before)
        )


class GradientMap(FeatureMap):
    """The gradients of a random network by its last and first layers, in this order.

    With z_i = ⟨w_i, x⟩ + b_i they are σ(z_i) and σ'(z_i)·(scale·x, bias). The weights are
    w = scale·w' and b = bias·b' with standard normal w' and b', and gradients are by w' and b'.
    """

    w: Float[Array, "m d"]
    b: Float[Array, " m"]
    scale: Float[Array, ""]
    bias: Float[Array, ""]
    activation: str = eqx.field(static=True)

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n f"]:
        hidden, slopes = activation_of(self.activation).with_slope(x @ self.w.T + self.b[None, :])
        inputs = jnp.concatenate([self.scale * x, jnp.broadcast_to(self.bias, (len(x), 1))], axis=1)
        return jnp.concatenate(
            [hidden, (slopes[:, :, None] * inputs[:, None, :]).reshape(len(x), -1)], axis=1
        )


class Features(eqx.Module):
    """A distribution of feature maps."""

    @abstractmethod
    def draw(self, d: int, *, key: PRNGKeyArray) -> FeatureMap:
        """Draw a map for inputs of size d."""

    @abstractmethod
    def count(self, d: int) -> int:
        """Return the number of features."""

    def for_shape(self, shape: tuple[int, ...]) -> Features:
        """Return this distribution for flattened inputs of that original shape."""
        return self

    @property
    def settings(self) -> Mapping[str, float | str]:
        """The tuned parameters by name."""
        return {}

    def others(self) -> list[Features]:
        """Return distributions of the same kind with other parameters, for tuning."""
        return []


class RawFeatures(Features):
    """The inputs as features, for linear models."""

    def draw(self, d: int, *, key: PRNGKeyArray) -> Inputs:
        return Inputs()

    def count(self, d: int) -> int:
        return d


def _optional_float(value: float | None) -> float | None:
    return None if value is None else float(value)


class _Neurons(Features):
    """`width` random neurons; weights and biases have standard deviations `bandwidth` and `bias`.

    `bias` is `bandwidth` by default.
    """

    kind: str = eqx.field(static=True, default="relu")
    width: int = eqx.field(static=True, default=2000)
    bandwidth: float = eqx.field(converter=float, default=1.0)
    bias: float | None = eqx.field(converter=_optional_float, default=None)

    def __check_init__(self) -> None:
        kinds = self.kinds()
        if self.kind not in kinds:
            raise unknown("kind of random features", str(self.kind), kinds)
        require(
            isinstance(self.width, int) and self.width > 0,
            f"width must be a positive integer, got {self.width!r}.",
        )
        require(
            0 < self.bandwidth < math.inf,
            f"bandwidth must be finite and > 0, got {self.bandwidth}.",
        )
        require(
            self.bias is None or 0 <= self.bias < math.inf,
            f"bias must be finite and ≥ 0, got {self.bias}.",
        )

    @classmethod
    def kinds(cls) -> tuple[str, ...]:
        """Return the valid values of `kind`."""
        return tuple(ACTIVATIONS)

    def _drawn(self, d: int, key: PRNGKeyArray) -> tuple[Float[Array, "m d"], Float[Array, " m"]]:
        key_w, key_b = jax.random.split(key)
        w = self.bandwidth * normal(key_w, (self.width, d))
        if self.kind == FOURIER:
            return w, 2 * math.pi * jax.random.uniform(key_b, (self.width,), jnp.float32).astype(
                w.dtype
            )
        return w, self._bias * normal(key_b, (self.width,))

    @property
    def _bias(self) -> float:
        return self.bandwidth if self.bias is None else self.bias

    @property
    def settings(self) -> Mapping[str, float | str]:
        return {"bandwidth": self.bandwidth} | ({} if self.bias is None else {"bias": self.bias})

    def others(self) -> list[Features]:
        return [
            dataclasses.replace(self, bandwidth=self.bandwidth * factor)
            for factor in (1 / 2, 2, 1 / 4, 4, 1 / 8, 8)
        ]


class RandomFeatures(_Neurons):
    """One feature σ(⟨w, x⟩ + b) per neuron, for a named activation σ.

    "fourier" is √2·cos(⟨w, x⟩ + b) with b uniform in [0, 2π].
    """

    @classmethod
    def kinds(cls) -> tuple[str, ...]:
        return (*ACTIVATIONS, FOURIER)

    def draw(self, d: int, *, key: PRNGKeyArray) -> RandomMap:
        return RandomMap(*self._drawn(d, key), self.kind)

    def count(self, d: int) -> int:
        return self.width


class RandomGradients(_Neurons):
    """The gradients of a random network of one hidden layer, d + 2 features per neuron."""

    def draw(self, d: int, *, key: PRNGKeyArray) -> GradientMap:
        w, b = self._drawn(d, key)
        return GradientMap(
            w, b, jnp.asarray(self.bandwidth, w.dtype), jnp.asarray(self._bias, w.dtype), self.kind
        )

    def count(self, d: int) -> int:
        return self.width * (d + 2)


_compiled = eqx.filter_jit(lambda features, x: features(x))


def featured(features: FeatureMap, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n f"]:
    """Return φ(x) on the host, computed in the precision of x and returned in double precision."""
    parts = []
    with jax.enable_x64(x.dtype == np.float64):
        for start in range(0, len(x), ROWS):
            rows = x[start : start + ROWS]
            # Pad to a power of two, so that few programs are compiled for many small tables.
            size = max(16, 1 << (len(rows) - 1).bit_length()) if len(rows) <= 1024 else len(rows)
            padded = np.pad(rows, ((0, size - len(rows)), (0, 0)))
            parts.append(np.asarray(_compiled(features, padded), np.float64)[: len(rows)])
    return np.concatenate(parts)
