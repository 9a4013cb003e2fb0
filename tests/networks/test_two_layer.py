"""Two-layer networks: initialization, bases and linearization."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from toys import small_init
from unlazy.core.errors import BadInput
from unlazy.networks.inits import AntisymmetricInit, TangentInit


def test_antisymmetric_network_is_zero_and_has_the_given_scales():
    net = AntisymmetricInit(m=2000, w_scale=0.2, b_scale=0.5, a_scale=4.0)(
        10, key=jax.random.key(0)
    )
    x = jax.random.normal(jax.random.key(1), (50, 10))
    assert np.max(np.abs(net(x))) < 1e-2  # 4000 terms of size 4 cancel in single precision
    assert np.std(net.w) == pytest.approx(0.2, rel=0.05)
    assert np.std(net.b) == pytest.approx(0.5, rel=0.05)
    assert np.std(net.a) == pytest.approx(4.0, rel=0.05)
    np.testing.assert_array_equal(net.w[:2000], net.w[2000:])
    np.testing.assert_array_equal(net.a[:2000], -net.a[2000:])


def test_entering_a_basis_changes_nothing():
    key = jax.random.key(0)
    net = small_init(m=5)(8, key=key)
    basis = jnp.linalg.qr(jax.random.normal(key, (8, 3)))[0].T
    z = jax.random.normal(jax.random.key(1), (20, 3))
    inside = net.enter(basis)
    np.testing.assert_allclose(inside(z), net(z @ basis), atol=1e-5)
    np.testing.assert_allclose(inside.leave(basis).w, net.w, atol=1e-6)


def test_linearized_network_is_the_first_order_expansion():
    with jax.enable_x64(True):
        model = TangentInit(small_init(m=6))(4, key=jax.random.key(0))
        x = jax.random.normal(jax.random.key(1), (30, 4))
        np.testing.assert_allclose(model(x), 0, atol=1e-12)
        delta = jax.tree.map(
            lambda leaf: jax.random.normal(jax.random.key(2), leaf.shape), model.delta
        )
        moved = model.put({"w": delta.w, "b": delta.b, "a": delta.a, "c": delta.c})
        jacobian = jax.jacobian(lambda net: net(x))(model.base)
        expected = sum(
            j.reshape(len(x), -1) @ d.ravel()
            for j, d in zip(jax.tree.leaves(jacobian), jax.tree.leaves(delta), strict=True)
        )
        np.testing.assert_allclose(moved(x), expected, atol=1e-10)
        # and a network moved by a small step follows it up to second order
        small = jax.tree.map(lambda p, d: p + 1e-5 * d, model.base, delta)
        np.testing.assert_allclose(small(x) / 1e-5, expected, atol=1e-2)


def test_unknown_parameter_group_is_named():
    with pytest.raises(BadInput, match="no parameter group named 'v'"):
        small_init()(3, key=jax.random.key(0)).get(("v",))


@pytest.mark.parametrize(
    "bad",
    [
        {"m": 0},
        {"activation": "gelo"},
        {"w_scale": -1.0},
        {"a_scale": float("inf")},
        {"b_scale": float("nan")},
    ],
)
def test_bad_initialization_is_refused(bad):
    with pytest.raises(BadInput):
        AntisymmetricInit(**({"m": 2, "w_scale": 1.0, "b_scale": 1.0, "a_scale": 1.0} | bad))
