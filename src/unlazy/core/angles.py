"""Fast, accurate angles from inner products, used by all closed-form network kernels."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def inverse_root(q: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return 1/√q, and 0 at q = 0: a zero vector counts as orthogonal to all others."""
    positive = q > 0
    return jnp.where(positive, jax.lax.rsqrt(jnp.where(positive, q, 1)), 0)


def cosine(
    c: Float[Array, "*s"], qx: Float[Array, "*#s"], qz: Float[Array, "*#s"]
) -> Float[Array, "*s"]:
    """Return c/√(qx·qz), clipped to [−1, 1] against rounding."""
    return jnp.clip(c * inverse_root(qx) * inverse_root(qz), -1, 1)


#: arcsin(t) = t + t·z·P(z)/Q(z) with z = t² for |t| ≤ ½. Coefficients of Sun's fdlibm (asin,
#: error below 1 ulp) and, for single precision, of Moshier's Cephes (asinf, a polynomial).
_ASIN_P = (
    3.47933107596021167570e-05,
    7.91534994289814532176e-04,
    -4.00555345006794114027e-02,
    2.01212532134862925881e-01,
    -3.25565818622400915405e-01,
    1.66666666666666657415e-01,
)
_ASIN_Q = (
    7.70381505559019352791e-02,
    -6.88283971605453293030e-01,
    2.02094576023350569471,
    -2.40339491173441421878,
    1.0,
)
_ASIN_SINGLE = (4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1)


def arcsin(t: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return arcsin(t) for |t| ≤ 1 to rounding error.

    Branch-free, and several times faster on CPUs than `jnp.arcsin`.
    """
    # Above ½ by arcsin(t) = π/2 − 2·arcsin(√((1 − t)/2)).
    size = jnp.abs(t)
    far = size > 0.5
    z = jnp.where(far, (1 - size) / 2, size * size)
    root = jnp.where(far, jnp.sqrt(z), size)
    if t.dtype == jnp.float32:
        value = root + root * z * _horner(_ASIN_SINGLE, z)
    else:
        value = root + root * z * _horner(_ASIN_P, z) / _horner(_ASIN_Q, z)
    return jnp.copysign(jnp.where(far, math.pi / 2 - 2 * value, value), t)


def _horner(coefficients: tuple[float, ...], z: Float[Array, "..."]) -> Float[Array, "..."]:
    value = jnp.full_like(z, coefficients[0])
    for c in coefficients[1:]:
        value = value * z + c
    return value
