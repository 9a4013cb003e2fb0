"""ResNet(m): its size, its parts against plain ones, and that many at once are the same as one by
one.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from selection import slow_but
from unlazy.core.errors import BadInput
from unlazy.networks.image_resnet import ImageResNetInit, convolution


def test_it_has_the_parameters_of_a_residual_network_of_18_layers():
    """11,173,962 parameters are those of ResNet-18 for images of 32 × 32 pixels and ten classes."""
    shapes = eqx.filter_eval_shape(
        lambda: ImageResNetInit(64)((32, 32, 3), outputs=10, key=jax.random.key(0))
    )
    assert sum(leaf.size for leaf in jax.tree.leaves(shapes)) == 11_173_962
    scores = eqx.filter_eval_shape(
        lambda net, x: net(x), shapes, jax.ShapeDtypeStruct((5, 32, 32, 3), jnp.float32)
    )
    assert scores.shape == (5, 10)


@pytest.mark.parametrize(("side", "stride"), slow_but([(3, 2)], [(3, 1), (3, 2), (1, 2)]))
def test_a_convolution_is_the_sum_over_pixels_and_has_its_gradients(side, stride):
    keys = jax.random.split(jax.random.key(0), 3)
    x, kernel = (
        jax.random.normal(keys[0], (2, 6, 6, 3)),
        jax.random.normal(keys[1], (side, side, 3, 4)),
    )

    def plain(x, kernel):
        padded = jnp.pad(x, ((0, 0), (side // 2,) * 2, (side // 2,) * 2, (0, 0)))
        return sum(
            padded[:, i : i + 6 : stride, j : j + 6 : stride] @ kernel[i, j]
            for i in range(side)
            for j in range(side)
        )

    ours, theirs = jax.jit(lambda x, k: convolution(x, k, stride)), jax.jit(plain)
    expected = theirs(x, kernel)
    np.testing.assert_allclose(ours(x, kernel), expected, atol=1e-5)
    weigh = jax.random.normal(keys[2], expected.shape)
    gradients = (
        jax.jit(jax.grad(lambda a, f=f: jnp.sum(weigh * f(*a))))((x, kernel))
        for f in (ours, theirs)
    )
    for mine, other in zip(*gradients, strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-4)
    many = jax.jit(jax.vmap(ours))(jnp.stack([x, 2 * x]), jnp.stack([kernel, -kernel]))
    np.testing.assert_allclose(many[1], -2 * expected, atol=1e-5)


def test_inputs_other_than_images_are_refused():
    with pytest.raises(BadInput, match="needs inputs of shape"):
        ImageResNetInit(2)(64, key=jax.random.key(0))
