import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unlazy.core.errors import BadInput
from unlazy.core.random import rademacher
from unlazy.learners.mean_field import second_layer
from unlazy.networks.inits import SphereInit
from unlazy.networks.two_layer import TwoLayer
from unlazy.papers.glasgow2023.gradients import phase1_slope
from unlazy.papers.glasgow2023.reduced import Neurons, advance, initial, margins, simulate

D, P = 400, 6


def full_step(net, eta, points, key):
    """One population step by a large sample, of the paper's loss in mean-field scaling."""
    x = rademacher(key, (points, D))
    y = -x[:, 0] * x[:, 1]

    def loss(net):
        return 2 * jnp.mean(jnp.logaddexp(0, -y * net(x)))

    gradient = jax.grad(loss)(net)
    return net.w - eta * P * gradient.w, second_layer(net) - eta * gradient.a


@pytest.mark.slow
@pytest.mark.parametrize("signal", [0.05, 1.0])
def test_one_step_is_that_of_a_full_network(signal):
    """With small and with dominant signal parts: every number of the reduced state moves as in the
    network.
    """
    net = SphereInit(p=P, radius=0.5)(D, key=jax.random.key(0))
    # Orthogonal rests, which the reduction assumes between neurons.
    w = net.w.at[:, :2].set(signal * jax.random.normal(jax.random.key(1), (P, 2)))
    rest = jnp.linalg.qr(w[:, 2:].T)[0].T * 0.5
    net = TwoLayer(jnp.concatenate([w[:, :2], rest], axis=1), net.b, net.a, net.c, "relu")
    turn = jnp.array([[1.0, -1.0], [1.0, 1.0]]) / jnp.sqrt(2)
    state = Neurons(net.w[:, :2] @ turn.T, jnp.linalg.norm(rest, axis=1), second_layer(net))
    eta = 0.3
    moved = advance(state, eta, jnp.zeros((P, 2)), 0.0, float(D))
    w, a = jax.jit(lambda net, key: full_step(net, eta, 40_000, key))(net, jax.random.key(2))
    scale = eta * np.abs(state.a)
    np.testing.assert_allclose(moved.along, w[:, :2] @ turn.T, atol=0.03 * float(np.max(scale)))
    # The rest grows by noise as well; what is compared is its part along where it was.
    along = jnp.sum(w[:, 2:] * rest, axis=1) / jnp.linalg.norm(rest, axis=1)
    np.testing.assert_allclose(moved.rest, along, atol=0.03 * float(np.max(scale)))
    np.testing.assert_allclose(moved.a, a, atol=0.03)


@pytest.mark.slow
def test_a_million_dimensions_are_learned_in_the_order_of_log_d():
    path = simulate(
        initial(200, 1e6, 0.3, key=jax.random.key(0)), 160, 0.4, d=1e6, key=jax.random.key(1)
    )
    strong = path.signal[0] >= 0.3 / 1e3
    growth = jnp.median(jnp.log(path.signal[20] / path.signal[0])[strong])
    assert float(growth) == pytest.approx(float(phase1_slope(0.4)) * 0.4 * 20, rel=0.05)
    minima = [
        float(jnp.min(margins(jax.tree.map(lambda leaf, t=t: leaf[t], path)))) for t in (0, 160)
    ]
    assert abs(minima[0]) < 0.01 and minima[1] > 3


@pytest.mark.slow
def test_minibatch_noise_increases_the_perpendicular_norm():
    start = initial(50, 1e4, 0.3, key=jax.random.key(0))
    quiet = simulate(start, 10, 0.4, key=jax.random.key(1), d=1e4)
    noisy = simulate(start, 10, 0.4, ratio=1.0, key=jax.random.key(1), d=1e4)
    assert float(jnp.mean(noisy.rest[-1])) > 1.2 * float(jnp.mean(quiet.rest[-1]))


def test_few_dimensions_are_rejected():
    with pytest.raises(BadInput, match="larger than 4"):
        initial(4, 3.0, 0.3, key=jax.random.key(0))
