"""The unrolled generator gives the numbers of JAX's own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unlazy.core.threefry import new_key

DRAWS = {
    "bits": lambda key: jax.random.bits(key, (5, 7), jnp.uint32),
    "bytes": lambda key: jax.random.bits(key, (33,), jnp.uint8),
    "half words": lambda key: jax.random.bits(key, (33,), jnp.uint16),
    "uniform": lambda key: jax.random.uniform(key, (4, 3)),
    "normal": lambda key: jax.random.normal(key, (9,)),
    "one number": jax.random.normal,
    "none": lambda key: jax.random.normal(key, (0, 3)),
    "permutation": lambda key: jax.random.permutation(key, 50),
    "split": lambda key: jax.random.key_data(jax.random.split(key, 3)),
    "split in rows": lambda key: jax.random.key_data(jax.random.split(key, (2, 3))),
    "fold in": lambda key: jax.random.key_data(jax.random.fold_in(key, 2**31 + 5)),
    "deep": lambda key: jax.random.uniform(jax.random.fold_in(jax.random.split(key)[1], 9), (6,)),
}


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1, 2**32 - 1])
@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())
def test_draws_are_those_of_jax(draw, seed, double):
    with jax.enable_x64(double):
        np.testing.assert_array_equal(
            draw(new_key(jnp.uint32(seed))), draw(jax.random.key(jnp.uint32(seed)))
        )


def test_double_words_are_those_of_jax():
    with jax.enable_x64(True):
        for seed in (3, 2**40 + 1, -1):
            found, expected = (
                jax.random.bits(key, (6,), jnp.uint64)
                for key in (new_key(seed), jax.random.key(seed))
            )
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("seed", [0, 7, -3])
def test_plain_seeds_are_those_of_jax(seed):
    np.testing.assert_array_equal(
        jax.random.key_data(new_key(seed)), jax.random.key_data(jax.random.key(seed))
    )


def test_many_keys_at_once_draw_as_each_alone():
    seeds = jnp.arange(4, dtype=jnp.uint32)
    together = jax.jit(jax.vmap(lambda seed: jax.random.normal(new_key(seed), (5,))))(seeds)
    np.testing.assert_array_equal(
        together, [jax.random.normal(jax.random.key(seed), (5,)) for seed in seeds]
    )
