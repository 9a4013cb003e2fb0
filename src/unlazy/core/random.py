"""Random draws identical in float32 and float64.

JAX uses different random bits for float64 and float32, so a trial in double precision would have a
different task, sample and initialization. Drawing in single precision and converting keeps trials
paired across precisions.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from unlazy.core.linear_algebra import orthogonal_triangular


def normal(key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
    """Draw standard normal numbers in the current default precision."""
    return jax.random.normal(key, shape, jnp.float32).astype(jnp.result_type(float))


def bernoulli(key: PRNGKeyArray, p: Float[Array, "..."]) -> Bool[Array, "..."]:
    """Draw one Bernoulli variable per entry of `p`."""
    return jax.random.uniform(key, p.shape, jnp.float32).astype(p.dtype) < p


def rademacher(key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
    """Draw independent uniform signs ±1.

    Each uses one random bit: words of 32 bits are drawn and unpacked along the last axis.
    """
    *rows, d = shape
    words = jax.random.bits(key, (*rows, -(-d // 32)), jnp.uint32)
    # The k-th bit of a word becomes the sign bit of the number 1.0, whose bits are 0x3F800000.
    positions = jnp.arange(32, dtype=jnp.uint32)
    shifted = words[..., None] << jnp.expand_dims(positions, tuple(range(words.ndim)))
    ones = jax.lax.bitcast_convert_type(
        (shifted & jnp.uint32(0x80000000)) | jnp.uint32(0x3F800000), jnp.float32
    )
    return ones.reshape(*rows, -1)[..., :d].astype(jnp.result_type(float))


def categorical(key: PRNGKeyArray, p: Float[Array, " c"], n: int) -> Int[Array, " n"]:
    """Draw `n` independent indices below c with probabilities `p`."""
    u = jax.random.uniform(key, (n,), jnp.float32).astype(p.dtype)
    return jnp.minimum(jnp.sum(u[:, None] >= jnp.cumsum(p)[None, :], axis=1), len(p) - 1)


def shuffled(key: PRNGKeyArray, n: int) -> Int[Array, " n"]:
    """Draw a random permutation of 0 … n−1.

    `jax.random.permutation` sorts pairs of random bits and numbers, which takes half of the
    training time of small networks on a CPU. Here both share one word, whose sort is about seven
    times as fast. The second sort leaves its ties in the random order of the first.
    """
    mask = (1 << (n - 1).bit_length()) - 1
    order = jnp.arange(n)
    for bits in jax.random.bits(key, (2, n), jnp.uint32):
        words = jnp.bitwise_or(bits & ~jnp.uint32(mask), jnp.arange(n, dtype=jnp.uint32))
        order = order[jax.lax.sort(words, is_stable=False) & mask]
    # Without the barrier XLA fuses the order with its uses and recomputes it per coordinate.
    result: Array = jax.lax.optimization_barrier(order)
    return result


def random_subset(key: PRNGKeyArray, n: int, k: int) -> Bool[Array, " n"]:
    """Return a mask of k out of n entries, chosen uniformly at random."""
    return jnp.zeros(n, bool).at[jax.random.permutation(key, n)[:k]].set(True)


def orthonormal(key: PRNGKeyArray, d: int, r: int) -> Float[Array, "r d"]:
    """Draw r orthonormal rows in d dimensions with a rotation-invariant distribution."""
    q, upper = orthogonal_triangular(normal(key, (d, r)))  # the signs make it rotation invariant
    result: Array = (q * jnp.sign(jnp.diagonal(upper))[None, :]).T
    return result


def host_generator(key: PRNGKeyArray) -> np.random.Generator:
    """Return a fast NumPy generator for work on the host, seeded by the key."""
    return np.random.Generator(
        np.random.SFC64(np.asarray(jax.random.key_data(key)).ravel().tolist())
    )
