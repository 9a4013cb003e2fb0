"""Feature maps against their limit kernels."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from selection import slow_but
from unlazy.core.activations import ACTIVATIONS
from unlazy.core.errors import BadInput
from unlazy.kernels.feature_maps import ROWS, RandomFeatures, RandomGradients, RawFeatures, featured
from unlazy.kernels.gram import gram
from unlazy.kernels.stationary import RBF
from unlazy.kernels.wide import NNGP, NTK

W, B, D = 1.5, 0.3, 3
SCALES = math.sqrt(W / D), math.sqrt(B)


def errors_of(make, limit, factor=1.0, plus=0.0):
    """Return maximum errors, relative to the largest entry, for few and for many neurons."""
    with jax.enable_x64(True):
        x = np.asarray(jax.random.normal(jax.random.key(1), (6, D)))
        K = np.asarray(gram(limit, x))
        found = []
        for width in (500, 50_000):
            phi = featured(make(width).draw(D, key=jax.random.key(0)), x)
            found.append(
                np.max(np.abs(factor * phi @ phi.T / width + plus - K)) / np.max(np.abs(K))
            )
    return found


@pytest.mark.parametrize("name", slow_but(["relu", "erf"], ACTIVATIONS))
@pytest.mark.parametrize(
    ("distribution", "kernel"), [(RandomFeatures, NNGP), (RandomGradients, NTK)]
)
def test_neurons_and_gradients_approach_the_kernels_of_wide_networks(distribution, kernel, name):
    few, many = errors_of(
        lambda width: distribution(name, width, *SCALES), kernel(1, name, W, B), W, B
    )
    assert many < 0.04 and many < few


def test_cosines_approach_the_gaussian_kernel():
    few, many = errors_of(lambda width: RandomFeatures("fourier", width, 1.2), RBF(1.2**2 / 2))
    assert many < 0.02 and many < few


def test_gradients_are_those_of_automatic_differentiation():
    with jax.enable_x64(True):
        features = RandomGradients("tanh", 4, 0.7, 0.4).draw(D, key=jax.random.key(0))
        w, b, a, x = features.w / 0.7, features.b / 0.4, jnp.ones(4), jnp.asarray([0.3, -1.0, 2.0])
        network = lambda w, b, a: a @ jnp.tanh(0.7 * w @ x + 0.4 * b)  # noqa: E731
        by_w, by_b, by_a = jax.grad(network, (0, 1, 2))(w, b, a)
        expected = np.concatenate([by_a, np.column_stack([by_w, by_b]).ravel()])
        np.testing.assert_allclose(features(x[None])[0], expected, rtol=1e-12)


def test_features_on_the_host_are_those_of_the_map_at_any_number_of_rows():
    features = RandomFeatures("relu", 5).draw(2, key=jax.random.key(0))
    for n in (1, 63, 65, 1030, ROWS + 3):
        x = np.random.default_rng(n).standard_normal((n, 2)).astype(np.float32)
        found = featured(features, x)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, features(jnp.asarray(x)), atol=1e-6)


def test_raw_features_are_the_inputs():
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(featured(RawFeatures().draw(3, key=jax.random.key(0)), x), x)
    assert RawFeatures().count(3) == 3 and RawFeatures().others() == []


def test_the_draw_is_the_same_in_both_precisions():
    single = RandomFeatures("erf", 7, 2.0).draw(3, key=jax.random.key(0))
    with jax.enable_x64(True):
        double = RandomFeatures("erf", 7, 2.0).draw(3, key=jax.random.key(0))
    np.testing.assert_allclose(single.w, double.w, rtol=1e-6)
    assert double.w.dtype == np.float64


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RandomFeatures("rely"), "Did you mean 'relu'"),
        (lambda: RandomGradients("fourier"), "no kind of random features named 'fourier'"),
        (lambda: RandomFeatures(width=0), "width must be"),
        (lambda: RandomFeatures(bandwidth=0.0), "bandwidth must be"),
        (lambda: RandomFeatures(bias=-1.0), "bias must be"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(BadInput, match=message):
        make()
