"""Activations: exact smoothing against integrals, and one list of names for networks, kernels and
features.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from selection import slow_but
from unlazy.core.activations import ACTIVATIONS, activation_of
from unlazy.core.errors import BadInput
from unlazy.core.gaussian import PiecewiseLinear
from unlazy.kernels.feature_maps import RandomFeatures, RandomGradients
from unlazy.kernels.wide import NTK
from unlazy.networks.inits import AntisymmetricInit, PlainInit, ResNetInit

SMOOTHED = [name for name, activation in ACTIVATIONS.items() if activation.smoothed is not None]


def test_those_that_have_a_smoothed_form():
    assert {"relu", "truncated_relu", "relu6", "hard_tanh", "quadratic"} <= set(SMOOTHED)


@pytest.mark.parametrize("name", SMOOTHED)
@pytest.mark.parametrize("s", slow_but([0.5], [0.05, 0.5, 2.0]))
def test_smoothing_is_exact(name, s):
    """Against numerical integration over the noise, of the value and of the slope."""
    sigma = activation_of(name)
    with jax.enable_x64(True):
        z = jnp.linspace(-2, 7, 19)
        u = np.linspace(-9, 9, 200_001)
        density = np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi)
        noisy = jnp.asarray(np.asarray(z)[:, None] + s * u)
        value, slope = sigma.with_slope(noisy)
        np.testing.assert_allclose(
            sigma(z, s), np.trapezoid(np.asarray(value) * density, u, axis=1), atol=1e-8
        )
        found = jax.vmap(jax.grad(lambda t: sigma(t, s)))(z)
        np.testing.assert_allclose(
            found, np.trapezoid(np.asarray(slope) * density, u, axis=1), atol=2e-4
        )


def test_smoothing_can_be_differentiated_in_the_noise():
    relu, place = activation_of("relu"), 0.3
    with jax.enable_x64(True):
        step = 1e-6
        numeric = (relu(jnp.asarray(place), 0.5 + step) - relu(jnp.asarray(place), 0.5 - step)) / (
            2 * step
        )
        assert jax.grad(lambda s: relu(jnp.asarray(place), s))(0.5) == pytest.approx(
            float(numeric), rel=1e-6
        )


@pytest.mark.parametrize("name", SMOOTHED)
def test_little_smoothing_is_no_smoothing(name):
    z = jnp.linspace(-2, 3, 101)
    np.testing.assert_allclose(activation_of(name)(z, 1e-4), activation_of(name)(z), atol=1e-4)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_name_works_in_networks_kernels_and_features(name):
    key, x = jax.random.key(0), jax.random.normal(jax.random.key(1), (3, 4))
    scales = {"m": 5, "w_scale": 1.0, "b_scale": 1.0, "a_scale": 1.0, "activation": name}
    networks = [
        AntisymmetricInit(**scales),
        PlainInit(**scales),
        ResNetInit(**scales, v_scale=1.0, e_scale=1.0),
    ]
    for init in networks:
        assert init(4, outputs=2, key=key)(x).shape == (3, 2)
    assert np.all(np.isfinite(NTK(1, name)(x, x)))
    for distribution in (RandomFeatures(name, 5), RandomGradients(name, 5)):
        assert distribution.draw(4, key=key)(x).shape == (3, distribution.count(4))


def test_user_defined_activations():
    assert float(activation_of(jnp.sin)(jnp.asarray(1.0))) == pytest.approx(np.sin(1.0))
    assert float(activation_of(PiecewiseLinear((0.0,), (-1.0, 1.0)))(jnp.asarray(-2.0))) == 2.0
    with pytest.raises(BadInput, match="has no closed smoothed form"):
        activation_of("tanh")(jnp.zeros(3), 0.1)
    with pytest.raises(BadInput, match="Did you mean 'relu'"):
        activation_of("rely")
    with pytest.raises(BadInput, match="a name or a function"):
        activation_of(3)
