import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unlazy.core.errors import BadInput
from unlazy.networks.inits import AntisymmetricInit
from unlazy.theory import BooleanFunction
from unlazy.theory.walsh import (
    degrees,
    fourier,
    influences,
    on_all_points,
    points,
    risk,
    walsh_hadamard,
    weights_by_degree,
)


def test_coefficients_are_those_of_the_definition():
    values = np.random.default_rng(0).normal(size=16)
    z = points(4)
    for place, subset in enumerate(itertools.product((0, 1), repeat=4)):
        product = np.prod(z ** np.array(subset), axis=1)
        assert float(fourier(values)[place]) == pytest.approx(np.mean(values * product), abs=1e-15)


@pytest.mark.parametrize("m", [0, 1, 2, 3, 4, 5, 8, 9, 15, 18])
def test_twice_gives_back_and_keeps_the_length(m):
    values = np.random.default_rng(m).normal(size=1 << m)
    again = walsh_hadamard(walsh_hadamard(values)) / len(values)
    assert np.allclose(again, values, atol=1e-12)
    assert np.sum(weights_by_degree(values)) == pytest.approx(np.mean(values**2), rel=1e-12)


def by_stages(values):
    """The butterfly, stage by stage."""
    v, h = np.array(values), 1
    while h < len(v):
        pairs = v.reshape(-1, 2, h)
        v = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        h *= 2
    return v


@pytest.mark.parametrize("m", [1, 3, 6, 7, 10, 11, 12, 13, 14, 17, 20])
def test_products_are_the_butterfly_and_exact_for_whole_numbers(m):
    draw = np.random.default_rng(m)
    whole = draw.integers(-1000, 1000, 1 << m).astype(float)
    assert np.array_equal(walsh_hadamard(whole), by_stages(whole))
    values = draw.normal(size=1 << m)
    assert np.max(np.abs(walsh_hadamard(values) - by_stages(values))) <= 2 * 78 * 2.0**-53 * np.sum(
        np.abs(values)
    )


def test_rows_of_a_batch_are_transformed_one_by_one():
    values = np.random.default_rng(0).normal(size=(3, 5, 128))
    assert np.allclose(walsh_hadamard(values)[2, 4], walsh_hadamard(values[2, 4]), atol=1e-12)
    assert np.allclose(
        fourier(np.float32(values[:, 0])), walsh_hadamard(values[:, 0]) / 128, atol=1e-6
    )


def test_a_parity_has_one_coefficient_and_influences_on_its_bits():
    values = on_all_points(lambda z: z[:, 1] * z[:, 4] * z[:, 5], 10)
    weights = weights_by_degree(values)
    assert weights[3] == pytest.approx(1, abs=1e-6) and np.sum(weights) == pytest.approx(
        1, abs=1e-6
    )
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
    assert (
        risk(first, labels) == 0.5 and risk(labels, labels) == 0 and risk(0 * labels, labels) == 1
    )
    weights = (points(5)[:, 1] > 0) / 16
    assert risk(first, labels, weights) == 0
    assert on_all_points(lambda z: z[:, 0], 3, scale=0.5).tolist() == [0.5] * 4 + [-0.5] * 4


def test_a_network_is_known_by_its_coefficients():
    net = AntisymmetricInit(m=6, w_scale=1.0, b_scale=0.5, a_scale=0.5)(
        9, key=jax.random.key(0)
    ).put({"c": jnp.asarray(0.3)})
    net = net.put({"a": net.a.at[0].add(1.0)})
    f = BooleanFunction.of(net, 9, scale=1 / 3)
    z = points(9)
    values = np.asarray(net(jnp.asarray(z / 3)), float)
    assert np.allclose(f.values, values, atol=1e-6) and f.m == 9
    assert f.coefficient((2, 5)) == pytest.approx(np.mean(f.values * z[:, 2] * z[:, 5]), abs=1e-14)
    assert f.mean == pytest.approx(np.mean(f.values)) and f.variance == pytest.approx(
        np.var(f.values)
    )
    assert np.allclose(f.influences, influences(f.values)) and np.allclose(
        f.weights, weights_by_degree(f.values)
    )
    (best, value), *_ = f.largest(3)
    assert f.coefficient(best) == value and abs(value) == np.max(np.abs(f.coefficients))


def test_stability_and_risk_are_those_of_enumeration():
    draw = np.random.default_rng(1)
    f, g = (BooleanFunction(np.sign(draw.normal(size=16))) for _ in range(2))
    z = points(4)
    distribution = (
        np.prod((1 + 0.3 * z[:, None] * z[None]) / 2, axis=2) / 16
    )  # of pairs of points with correlation 0.3
    assert f.stability(0.3) == pytest.approx(f.values @ distribution @ f.values)
    assert f.risk(g) == np.mean(f.values != g.values) and f.stability(1.0) == pytest.approx(1)


@pytest.mark.usefixtures("unchecked")
def test_bad_lengths_are_refused():
    with pytest.raises(BadInput, match="one axis, got 2 axes"):
        BooleanFunction(np.ones((2, 4)))
    with pytest.raises(BadInput, match="indices from 0 to 2, got"):
        BooleanFunction(np.ones(8)).coefficient((3,))
    with pytest.raises(BadInput, match=r"2\^m values, got 12"):
        fourier(np.ones(12))
    with pytest.raises(BadInput, match="m must be in 1 … 24"):
        points(30)
    with pytest.raises(BadInput, match="8 labels need as many values, got 4"):
        risk(np.ones(4), np.ones(8))
    assert degrees(3).tolist() == [0, 1, 1, 2, 1, 2, 2, 3]
