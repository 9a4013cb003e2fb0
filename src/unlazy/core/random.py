"""Random draws that are the same numbers in single and in double precision.

JAX spends other bits on a float64 than on a float32, so a trial run in double precision would meet
another secret, sample and initial network. Drawing in single precision and widening keeps trials
paired across precisions.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from unlazy.core.linear_algebra import orthogonal_triangular


def normal(key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
    """Standard normal numbers in the current default precision."""
    return jax.random.normal(key, shape, jnp.float32).astype(jnp.result_type(float))


def bernoulli(key: PRNGKeyArray, p: Float[Array, "..."]) -> Bool[Array, "..."]:
    """One coin for each entry of `p`."""
    return jax.random.uniform(key, p.shape, jnp.float32) < p


def rademacher(key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
    """Fair signs ±1.

    Each costs one random bit: words of 32 bits are drawn and unpacked along the last axis.
    """
    *rows, d = shape
    words = jax.random.bits(key, (*rows, -(-d // 32)), jnp.uint32)
    # The k-th bit of a word becomes the sign bit of the number 1.0, whose bits are 0x3F800000.
    places = jnp.arange(32, dtype=jnp.uint32)
    shifted = words[..., None] << jnp.expand_dims(places, tuple(range(words.ndim)))
    ones = jax.lax.bitcast_convert_type(
        (shifted & jnp.uint32(0x80000000)) | jnp.uint32(0x3F800000), jnp.float32
    )
    return ones.reshape(*rows, -1)[..., :d].astype(jnp.result_type(float))


def categorical(key: PRNGKeyArray, p: Float[Array, " c"], n: int) -> Int[Array, " n"]:
    """`n` independent choices among c with probabilities `p`."""
    u = jax.random.uniform(key, (n,), jnp.float32)
    return jnp.minimum(jnp.sum(u[:, None] >= jnp.cumsum(p)[None, :], axis=1), len(p) - 1)


def shuffled(key: PRNGKeyArray, n: int) -> Int[Array, " n"]:
    """The numbers 0 … n−1 in random order.

    `jax.random.permutation` sorts pairs of random bits and numbers, which takes half of the
    training of small networks on a CPU. Here both share one word, whose sort is about seven times
    as fast; the second sort leaves its ties in the random order of the first.
    """
    mask = (1 << (n - 1).bit_length()) - 1
    order = jnp.arange(n)
    for bits in jax.random.bits(key, (2, n), jnp.uint32):
        words = jnp.bitwise_or(bits & ~jnp.uint32(mask), jnp.arange(n, dtype=jnp.uint32))
        order = order[jax.lax.sort(words, is_stable=False) & mask]
    # Computed once: what uses the order must not be fused with it, or it is looked up anew for
    # every coordinate.
    result: Array = jax.lax.optimization_barrier(order)
    return result


def random_subset(key: PRNGKeyArray, n: int, k: int) -> Bool[Array, " n"]:
    """Mark k of n places, chosen at random."""
    return jnp.zeros(n, bool).at[jax.random.permutation(key, n)[:k]].set(True)


def orthonormal(key: PRNGKeyArray, d: int, r: int) -> Float[Array, "r d"]:
    """r random orthonormal rows in d dimensions; the signs make their law rotation invariant."""
    q, upper = orthogonal_triangular(normal(key, (d, r)))
    result: Array = (q * jnp.sign(jnp.diagonal(upper))[None, :]).T
    return result


def host_generator(key: PRNGKeyArray) -> np.random.Generator:
    """A fast generator of NumPy for work on the host, seeded by the key: the same key gives the
    same numbers.
    """
    return np.random.Generator(
        np.random.SFC64(np.asarray(jax.random.key_data(key)).ravel().tolist())
    )
