"""The closed-form minimum-norm network: exact, of the stated norm, and optimal."""

import math

import numpy as np
import pytest

from unlazy.core.errors import BadInput
from unlazy.tasks.spectrum import corners
from unlazy.theory.minimal_norm import min_error, min_norm, parity_gain, parity_network


def scores(w, a, z):
    x = np.concatenate([z, np.ones((len(z), w.shape[1] - z.shape[1]))], axis=1) / math.sqrt(
        w.shape[1]
    )
    return np.maximum(x @ w.T, 0) @ a


@pytest.mark.parametrize(
    ("q", "m"), [(2, 4), (2, 12), (4, 16), (4, 48), (6, 64), (6, 192), (8, 256)]
)
def test_the_network_is_the_parity(q, m):
    z = corners(q)
    w, a = parity_network(q, m, q + 3)
    assert np.mean((scores(w, a, z) - np.prod(z, axis=1)) ** 2) < 1e-10
    assert np.sum(a > 0) == m // 2 and np.allclose(np.abs(a), m**-0.5)
    assert np.linalg.norm(w) == pytest.approx(min_norm(q) * math.sqrt(q + 3))


@pytest.mark.parametrize("q", [2, 4, 6, 8, 10])
def test_the_gain_is_the_sum_it_stands_for(q):
    assert (
        parity_gain(q)
        == sum(math.comb(q, j) * (-1) ** j * abs(q - 2 * j) for j in range(q + 1)) // 2
    )


def test_the_norm_of_degree_6_and_its_errors():
    assert min_norm(6) == pytest.approx(16 * math.sqrt(6) / 3) and min_norm(6) == pytest.approx(
        13.0639, abs=1e-4
    )
    z = corners(6)
    for norm in (5.0, 9.7, 12.5):
        w, a = parity_network(6, 64, 6, norm)
        assert np.mean((scores(w, a, z) - np.prod(z, axis=1)) ** 2) == pytest.approx(
            min_error(6, norm)
        )
    w, _ = parity_network(6, 200, 40)
    assert np.linalg.norm(w) / math.sqrt(40) == pytest.approx(min_norm(6) * math.sqrt(200 / 192))


@pytest.mark.parametrize("q", [2, 4, 6])
def test_no_direction_correlates_more_with_the_parity_than_equal_signs(q):
    """Random directions and the best of them improved by random steps: what the lower bound on the
    norm rests on.
    """
    rng = np.random.default_rng(0)
    z = corners(q)
    chi = np.prod(z, axis=1)
    equal = abs(parity_gain(q)) / (2**q * math.sqrt(q))

    def seen(u):
        return np.abs(chi @ np.maximum(z @ u.T, 0)) / 2**q

    u = rng.normal(size=(2000, q))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    u = u[np.argsort(-seen(u))[:50]]
    for step in range(400):
        tried = u + 0.1 * 0.99**step * rng.normal(size=u.shape)
        tried /= np.linalg.norm(tried, axis=1, keepdims=True)
        u = np.where((seen(tried) > seen(u))[:, None], tried, u)
    assert 0.98 * equal < np.max(seen(u)) <= equal + 1e-12


def test_odd_degrees_and_too_few_neurons_are_refused():
    with pytest.raises(BadInput, match="even"):
        parity_gain(3)
    with pytest.raises(BadInput, match="at least 64"):
        parity_network(6, 60, 10)
