import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from unlazy.core.random import bernoulli, categorical, normal, rademacher, shuffled


@pytest.mark.parametrize("n", [1, 2, 5, 64, 65, 1000])
def test_a_shuffle_is_a_permutation(n):
    assert sorted(np.asarray(shuffled(jax.random.key(0), n))) == list(range(n))


def test_all_orders_are_equally_likely():
    draws = 12_000
    orders = np.asarray(
        jax.vmap(lambda key: shuffled(key, 4))(jax.random.split(jax.random.key(1), draws))
    )
    counts = [
        int(np.sum(np.all(orders == order, axis=1))) for order in itertools.permutations(range(4))
    ]
    assert sum(counts) == draws and scipy.stats.chisquare(counts).pvalue > 1e-4


def test_categorical_and_bernoulli_follow_their_probabilities():
    p = jnp.array([0.2, 0.0, 0.5, 0.3])
    found = np.bincount(np.asarray(categorical(jax.random.key(2), p, 40_000)), minlength=4) / 40_000
    np.testing.assert_allclose(found, p, atol=0.015)
    assert np.mean(bernoulli(jax.random.key(3), jnp.full(40_000, 0.3))) == pytest.approx(
        0.3, abs=0.015
    )


def test_the_same_numbers_in_both_precisions():
    single = normal(jax.random.key(4), (10,))
    with jax.enable_x64(True):
        double = normal(jax.random.key(4), (10,))
        assert double.dtype == jnp.float64
    np.testing.assert_array_equal(single, double)


@pytest.mark.parametrize("d", [1, 31, 32, 33, 70])
def test_signs_are_fair_and_independent(d):
    n = 20_000
    x = np.asarray(rademacher(jax.random.key(5), (n, d)))
    assert x.shape == (n, d) and set(np.unique(x)) == {-1.0, 1.0}
    gram = x.T @ x / n  # second moments: the identity, up to noise of 1/√n
    assert np.max(np.abs(gram - np.eye(d))) < 6 / np.sqrt(n) and np.max(
        np.abs(np.mean(x, axis=0))
    ) < 5 / np.sqrt(n)


def test_signs_are_the_same_in_both_precisions():
    single = rademacher(jax.random.key(6), (3, 40))
    with jax.enable_x64(True):
        np.testing.assert_array_equal(single, rademacher(jax.random.key(6), (3, 40)))
