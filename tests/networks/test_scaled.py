"""Deep networks, and networks whose output is scaled."""

import jax
import numpy as np
import pytest

from unlazy.core.errors import BadInput
from unlazy.networks.deep import DeepInit
from unlazy.networks.inits import PlainInit
from unlazy.networks.scaled import ScaledInit

X = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
PLAIN = PlainInit(m=7, w_scale=1.0, b_scale=0.5, a_scale=1.0)


@pytest.mark.slow
def test_a_deep_network_is_its_formula():
    init = DeepInit(
        m=6, depth=3, w_scale=1.0, b_scale=0.3, v_scale=0.5, a_scale=1.0, activation="tanh"
    )
    net = init(3, outputs=2, key=jax.random.key(0))
    h = np.tanh(X @ net.w.T + net.b[None, :])
    for v, e in zip(net.v, net.e, strict=True):
        h = np.tanh(h @ v.T + e[None, :])
    np.testing.assert_allclose(net(X), h @ net.a + net.c[None, :], rtol=1e-5, atol=1e-6)
    assert net.v.shape == (2, 6, 6) and net.groups == ("w", "b", "v", "e", "a", "c")
    with pytest.raises(BadInput, match="depth must be"):
        DeepInit(m=6, depth=0, w_scale=1.0, b_scale=0.3, v_scale=0.5, a_scale=1.0)


def test_a_scaled_network_starts_at_zero_and_moves_by_its_scale():
    net = ScaledInit(PLAIN, 8.0)(3, key=jax.random.key(1))
    np.testing.assert_array_equal(net(X), np.zeros(5))
    moved = net.put({"a": net.a + 0.1})
    np.testing.assert_allclose(moved(X), 8.0 * (moved.unscaled(X) - net.start(X)), rtol=1e-4)
    gradient = jax.grad(lambda net: float(0) + net(X).sum())(moved)
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(gradient.start)), (
        "the start is no parameter"
    )
