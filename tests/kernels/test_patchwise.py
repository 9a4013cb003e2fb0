"""The convolutional NTK against networks of finite width, and random filters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unlazy.core.errors import BadInput
from unlazy.kernels.catalog import kernel_named
from unlazy.kernels.patchwise import ConvolutionalNTK, RandomConvolutions, around
from unlazy.kernels.wide import NTK
from unlazy.learners.kernel import KernelRidge
from unlazy.learners.on_features import OnFeatures
from unlazy.tasks.base import Batch, Sampler

SHAPE = (5, 4, 2)
D = 40


def images(n, seed=0):
    return jax.random.normal(jax.random.key(seed), (n, D))


def finite_kernel(x, depth, width, key, w, b):
    """Return the tangent kernel of a convolutional network in NTK parametrization, by gradients."""
    sizes = [SHAPE[2], *[width] * depth]
    keys = jax.random.split(key, 2 * depth + 1)
    layers = [
        (
            jax.random.normal(keys[2 * i], (3, 3, sizes[i], width)),
            jax.random.normal(keys[2 * i + 1], (width,)),
        )
        for i in range(depth)
    ]
    head = jax.random.normal(keys[-1], (SHAPE[0], SHAPE[1], width))

    def score(parameters, image):
        layers, head = parameters
        h = image.reshape(1, *SHAPE)
        for weights, bias in layers:
            z = jax.lax.conv_general_dilated(
                h, weights, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            h = jax.nn.relu(
                jnp.sqrt(w / (9 * h.shape[-1])) * z + jnp.sqrt(b) * bias[None, None, None, :]
            )
        return jnp.sum(head * h[0]) / jnp.sqrt(width * SHAPE[0] * SHAPE[1])

    rows = jax.vmap(lambda p: jax.flatten_util.ravel_pytree(jax.grad(score)((layers, head), p))[0])(
        x
    )
    return rows @ rows.T


@pytest.mark.slow
def test_it_is_the_limit_of_networks_with_many_filters():
    x, depth = images(3), 2
    kernel = ConvolutionalNTK(depth, 3, 2.0, 0.1).for_shape(SHAPE)
    many = jax.lax.map(
        lambda key: finite_kernel(x, depth, 48, key, 2.0, 0.1),
        jax.random.split(jax.random.key(1), 25),
    )
    mean, error = jnp.mean(many, axis=0), jnp.std(many, axis=0) / jnp.sqrt(25)
    assert jnp.max(jnp.abs(kernel(x, x) - mean) / (error + 0.02 * jnp.abs(mean))) < 4
    np.testing.assert_allclose(jnp.diagonal(kernel(x, x)), kernel.diagonal(x), rtol=1e-3)


def test_one_pixel_is_a_dense_network():
    """For images and patches of one pixel, it is the NTK of a dense network without head bias."""
    x = images(5)
    dense = NTK(1, "relu", 2.0, 0.1)
    ours = ConvolutionalNTK(1, 1, 2.0, 0.1, shape=(1, 1, D))
    np.testing.assert_allclose(2 * ours(x, x) + 0.1, dense(x, x), rtol=2e-4)


def test_around_averages_a_square_with_zeros_beyond_the_edge():
    values = jnp.arange(12.0).reshape(3, 4)
    padded = np.pad(np.asarray(values), 1)
    expected = [[padded[i : i + 3, j : j + 3].mean() for j in range(4)] for i in range(3)]
    np.testing.assert_allclose(around(values, 3), expected, rtol=1e-6)


def test_random_convolutions_are_invariant_under_shifts_within_a_cell():
    image = np.zeros((1, 24, 24, 1), np.float32)
    moved = image.copy()
    image[0, 6:8, 6:8] = moved[0, 8:10, 8:10] = 1  # shifted by the stride, within one cell
    distribution = RandomConvolutions(filters=6, side=3, cells=2).for_shape((24, 24, 1))
    features = distribution.draw(576, key=jax.random.key(0))
    np.testing.assert_allclose(
        features(jnp.asarray(image.reshape(1, -1))),
        features(jnp.asarray(moved.reshape(1, -1))),
        atol=1e-4,
    )
    assert features(jnp.zeros((3, 576))).shape == (3, distribution.count(576))
    with pytest.raises(BadInput, match="height, width, channels"):
        RandomConvolutions().for_shape((3, 4))


def test_a_kernel_on_features_is_that_kernel_on_them():
    x = np.asarray(images(60), np.float32).reshape(60, *SHAPE)
    y = np.sign(x[:, 0, 0, 0] * x[:, 4, 3, 1])
    learner = OnFeatures.of(
        KernelRidge(kernel_named("rbf"), (0.1, 1.0)), RandomConvolutions(filters=8, side=3, cells=2)
    )
    sampler = Sampler(
        lambda n, key: Batch(jnp.asarray(x[:n]), jnp.asarray(y[:n])), D, None, shape=SHAPE
    )
    trace = learner.fit(sampler, 50, key=jax.random.key(0))
    scores = trace.models.scores(jnp.asarray(x[50:]))
    assert scores.shape == (2, 10) and trace.steps == (0, 1)
    np.testing.assert_allclose(trace.at(1)(jnp.asarray(x[50:])), scores[1], rtol=1e-4, atol=1e-5)
    fitted = trace.models.scores(jnp.asarray(x[:50]))
    assert np.mean(np.square(fitted[0] - y[:50])) < np.mean(np.square(fitted[1] - y[:50])) < 1
    with pytest.raises(BadInput, match="on the host"):
        OnFeatures.of(trace_learner(), RandomConvolutions())


def trace_learner():
    from toys import small_learner

    return small_learner()
