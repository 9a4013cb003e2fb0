import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from unlazy.core.errors import BadInput
from unlazy.theory.walsh import degrees, fourier, influences, on_all_points, points, risk, walsh_hadamard, weights_by_degree


def test_coefficients_are_those_of_the_definition():
    values = np.random.default_rng(0).normal(size=16)
    z = points(4)
    for place, subset in enumerate(itertools.product((0, 1), repeat=4)):
        product = np.prod(z ** np.array(subset), axis=1)
        assert float(fourier(values)[place]) == pytest.approx(np.mean(values * product), abs=1e-6)


@pytest.mark.parametrize("m", [0, 1, 5, 8, 15])
def test_twice_gives_back_and_keeps_the_length(m):
    values = np.random.default_rng(m).normal(size=1 << m).astype(np.float32)
    again = walsh_hadamard(walsh_hadamard(values)) / len(values)
    assert np.allclose(again, values, atol=1e-4)
    assert np.sum(weights_by_degree(values)) == pytest.approx(np.mean(values.astype(float) ** 2), rel=1e-4)


def test_a_parity_has_one_coefficient_and_influences_on_its_bits():
    values = on_all_points(lambda z: z[:, 1] * z[:, 4] * z[:, 5], 10)
    weights = weights_by_degree(values)
    assert weights[3] == pytest.approx(1, abs=1e-6) and np.sum(weights) == pytest.approx(1, abs=1e-6)
    assert np.allclose(influences(values), np.isin(np.arange(10), (1, 4, 5)), atol=1e-6)


def test_influences_of_signs_are_chances_of_a_change():
    values = on_all_points(lambda z: jnp.sign(z[:, 0] + z[:, 1] + z[:, 2] + 0.5 * z[:, 3]), 6)
    z = points(6)
    for j in range(6):
        flipped = z.copy()
        flipped[:, j] *= -1
        changed = np.sign(flipped[:, 0] + flipped[:, 1] + flipped[:, 2] + 0.5 * flipped[:, 3])
        assert influences(values)[j] == pytest.approx(np.mean(changed != values), abs=1e-6)


def test_risks_are_exact_and_blocks_do_not_matter():
    labels = on_all_points(lambda z: z[:, 0] * z[:, 1], 5)
    first = on_all_points(lambda z: z[:, 0], 5, block=4)
    assert risk(first, labels) == 0.5 and risk(labels, labels) == 0 and risk(0 * labels, labels) == 1
    weights = (points(5)[:, 1] > 0) / 16
    assert risk(first, labels, weights) == 0
    assert on_all_points(lambda z: z[:, 0], 3, scale=0.5).tolist() == [0.5] * 4 + [-0.5] * 4


def test_bad_lengths_are_refused():
    with pytest.raises(BadInput, match=r"2\^m values, but 12"):
        fourier(np.ones(12))
    with pytest.raises(BadInput, match="Up to 24 signs"):
        points(30)
    with pytest.raises(BadInput, match="4 values were given for 8"):
        risk(np.ones(4), np.ones(8))
    assert degrees(3).tolist() == [0, 1, 1, 2, 1, 2, 2, 3]
