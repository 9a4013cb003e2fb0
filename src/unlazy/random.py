"""Random draws that are the same numbers in single and in double precision.

JAX spends other bits on a float64 than on a float32, so a trial run in double precision would meet another secret, sample and initial
network. Drawing in single precision and widening keeps trials paired across precisions.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray


def normal(key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
    """Standard normal numbers in the current default precision."""
    return jax.random.normal(key, shape, jnp.float32).astype(jnp.result_type(float))


def bernoulli(key: PRNGKeyArray, p: Float[Array, "..."]) -> Bool[Array, "..."]:
    """One coin for each entry of `p`."""
    return jax.random.uniform(key, p.shape, jnp.float32) < p


def categorical(key: PRNGKeyArray, p: Float[Array, " c"], n: int) -> Int[Array, " n"]:
    """`n` independent choices among c with probabilities `p`."""
    u = jax.random.uniform(key, (n,), jnp.float32)
    return jnp.minimum(jnp.sum(u[:, None] >= jnp.cumsum(p), axis=1), len(p) - 1)
