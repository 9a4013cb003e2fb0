"""The random generator of JAX with unrolled rounds.

On a CPU JAX runs Threefry's rounds as a loop, which XLA compiles into about six small functions. A
typical program of this project contains about thirty such loops, a third of the compilation time.
Unrolled rounds give the same numbers, bit for bit, and compile faster.

Reference: Salmon, Moraes, Dror, Shaw (2011), "Parallel random numbers: as easy as 1, 2, 3".
"""

from __future__ import annotations

import math

import jax
import jax.extend.random
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Integer, PRNGKeyArray, UInt32

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


@jax.jit
def _hash(
    k: UInt32[Array, " 2"], high: UInt32[Array, "*s"], low: UInt32[Array, "*s"]
) -> tuple[UInt32[Array, "*s"], UInt32[Array, "*s"]]:
    """Return Threefry-2x32 with twenty rounds: two words per counter of two words."""
    keys = (k[0], k[1], k[0] ^ k[1] ^ np.uint32(0x1BD11BDA))
    a, b = high + keys[0], low + keys[1]
    for block in range(5):
        for turn in _ROTATIONS[block % 2]:
            a = a + b
            b = ((b << np.uint32(turn)) | (b >> np.uint32(32 - turn))) ^ a
        a, b = a + keys[(block + 1) % 3], b + keys[(block + 2) % 3] + np.uint32(block + 1)
    return a, b


def _counted(
    k: UInt32[Array, " 2"], shape: tuple[int, ...]
) -> tuple[UInt32[Array, "*s"], UInt32[Array, "*s"]]:
    """Return the hash of 0, 1, 2, … in an array of the given shape."""
    if math.prod(shape) >= 2**32:
        raise NotImplementedError("One draw is limited to 2³² random words.")
    low = jax.lax.iota(jnp.uint32, math.prod(shape)).reshape(shape)
    result: tuple[UInt32[Array, "*s"], UInt32[Array, "*s"]] = _hash(k, jnp.zeros_like(low), low)
    return result


def _seed(seed: Integer[Array, ""]) -> UInt32[Array, " 2"]:
    high = jax.lax.shift_right_logical(
        seed, jnp.array(32, seed.dtype)
    )  # zero for a seed of 32 bits
    return jnp.stack([high.astype(jnp.uint32), seed.astype(jnp.uint32)])


def _split(k: UInt32[Array, " 2"], shape: tuple[int, ...]) -> UInt32[Array, "*s 2"]:
    return jnp.stack(_counted(k, shape), axis=-1)


def _fold_in(k: UInt32[Array, " 2"], data: int | UInt32[Array, ""]) -> UInt32[Array, " 2"]:
    data = jnp.asarray(data, jnp.uint32)
    return jnp.stack(_hash(k, jnp.zeros_like(data), data))


def _random_bits(k: UInt32[Array, " 2"], bit_width: int, shape: tuple[int, ...]) -> Array:
    a, b = _counted(k, shape)
    if bit_width == 64:
        return (a.astype(jnp.uint64) << np.uint64(32)) | b.astype(jnp.uint64)
    return (a ^ b).astype(f"uint{bit_width}")


_THREEFRY = jax.extend.random.define_prng_impl(
    key_shape=(2,),
    seed=_seed,
    split=_split,
    random_bits=_random_bits,
    fold_in=_fold_in,
    name="threefry, written out",
    tag="fry",
)


def new_key(seed: int | Integer[Array, ""]) -> PRNGKeyArray:
    """Return a key whose draws are those of `jax.random.key(seed)`."""
    return jax.random.key(seed, impl=_THREEFRY)
