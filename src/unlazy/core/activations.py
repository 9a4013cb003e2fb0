"""Activations with their smoothed form and Gaussian moments, for networks, kernels and features."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from unlazy.core.errors import BadInput, require, unknown
from unlazy.core.gaussian import ErfMoments, Moments, PiecewiseLinear, ReluMoments, Series


def _normal_cdf(u: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return Φ(u) to absolute rounding error.

    `jax.scipy.stats.norm.cdf` is also accurate in the far tail, but costs several times as much.
    """
    return 0.5 * (1 + jax.lax.erf(u * math.sqrt(0.5)))


@jax.custom_jvp
def smooth_ramp(z: Float[Array, "..."], s: float | Float[Array, ""]) -> Float[Array, "..."]:
    """Return E max(z + ξ, 0) for ξ ~ N(0, s²): s·h(z/s) with h(u) = u·Φ(u) + φ(u).

    Its derivative in z is Φ(z/s).
    """
    u = z / s
    return s * (u * _normal_cdf(u) + jax.scipy.stats.norm.pdf(u))


@smooth_ramp.defjvp
def _smooth_ramp_jvp(primals: Any, tangents: Any) -> Any:
    # Automatic differentiation adds uφ(u) − uφ(u), which is slower and leaves rounding errors.
    (z, s), (dz, ds) = primals, tangents
    u = z / s
    return smooth_ramp(z, s), _normal_cdf(u) * dz + jax.scipy.stats.norm.pdf(u) * ds


@dataclasses.dataclass(frozen=True)
class Activation:
    """Elementwise activation σ with its Gaussian `moments` and, if available, `smoothed` form.

    `smoothed(z, s)` is exactly E σ(z + ξ) for ξ ~ N(0, s²).
    """

    name: str
    function: Callable[[Array], Array]
    moments: Moments
    smoothed: Callable[[Array, Any], Array] | None = None

    def __call__(
        self, z: Float[Array, "..."], smoothing: float | Float[Array, ""] | None = None
    ) -> Float[Array, "..."]:
        """Return σ(z), or E σ(z + ξ) for Gaussian ξ of standard deviation `smoothing`."""
        if smoothing is None:
            return self.function(z)
        if self.smoothed is None:
            raise BadInput(f"Activation {self.name} has no closed smoothed form.")
        return self.smoothed(z, smoothing)

    def with_slope(self, z: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        """Return σ(z) and σ'(z)."""
        return jax.jvp(self.function, (z,), (jnp.ones_like(z),))


def _clipped(name: str, low: float, high: float) -> Activation:
    """Return min(max(z, low), high) as the ramp at `low` minus the ramp at `high`."""

    def smoothed(z: Array, s: Any) -> Array:
        ramps = smooth_ramp(z - low if low else z, s) - smooth_ramp(z - high, s)
        return ramps + low if low else ramps

    return Activation(
        name,
        lambda z: jnp.clip(z, low, high),
        PiecewiseLinear((low, high), (0.0, 1.0, 0.0), low),
        smoothed,
    )


_gelu = functools.partial(jax.nn.gelu, approximate=False)

ACTIVATIONS: dict[str, Activation] = {
    activation.name: activation
    for activation in (
        Activation("relu", jax.nn.relu, ReluMoments(), smooth_ramp),
        _clipped("truncated_relu", 0.0, 1.0),
        _clipped("relu6", 0.0, 6.0),
        _clipped("hard_tanh", -1.0, 1.0),
        Activation("erf", jax.lax.erf, ErfMoments()),
        Activation("tanh", jnp.tanh, Series(jnp.tanh)),
        Activation("gelu", _gelu, Series(_gelu)),
        Activation("quadratic", jnp.square, Series(jnp.square), lambda z, s: z * z + s * s),
    )
}


def activation_of(activation: str | Activation | Moments | Callable[[Array], Array]) -> Activation:
    """Return an activation from its name, a `PiecewiseLinear` or any elementwise function."""
    if isinstance(activation, Activation):
        return activation
    if isinstance(activation, str):
        if activation not in ACTIVATIONS:
            raise unknown("activation", activation, ACTIVATIONS)
        return ACTIVATIONS[activation]
    if isinstance(activation, PiecewiseLinear):
        return Activation("piecewise linear", activation, activation)
    require(callable(activation), f"activation must be a name or a function, got {activation!r}.")
    return Activation(getattr(activation, "__name__", "function"), activation, Series(activation))  # type: ignore[arg-type]
