"""The shared convolution: the numbers of JAX's own, with gradients, for one network and for
many.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from selection import slow_but_first
from unlazy.networks.convolution import convolution


def own(x, kernel, stride):
    side = kernel.shape[0]
    edges = ((side - 1) // 2, side - 1 - (side - 1) // 2)
    return jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), [edges, edges], dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def drawn(height, width, side, stride):
    keys = jax.random.split(jax.random.key(0), 3)
    x, kernel = (
        jax.random.normal(keys[0], (4, height, width, 2)),
        jax.random.normal(keys[1], (side, side, 2, 3)),
    )
    return x, kernel, jax.random.normal(keys[2], own(x, kernel, stride).shape)


@pytest.mark.parametrize(
    ("height", "width", "side", "stride"),
    slow_but_first(
        [(8, 8, 3, 1), (7, 9, 3, 2), (8, 6, 3, 2), (8, 8, 4, 1), (9, 8, 5, 3), (9, 8, 1, 2)], 2
    ),
)
def test_it_is_jaxs_convolution_with_its_gradients(height, width, side, stride):
    x, kernel, slope = drawn(height, width, side, stride)
    wanted, back = jax.vjp(lambda *each: own(*each, stride), x, kernel)
    found, ours = jax.vjp(lambda *each: convolution(*each, stride), x, kernel)
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    for one, other in zip(ours(slope), back(slope), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_batched_networks_equal_single_ones():
    x, kernel, _ = drawn(8, 8, 3, 1)
    kernels = jnp.stack([kernel, 2 * kernel, -kernel])
    loss = jax.grad(lambda kernel: jnp.sum(jnp.square(convolution(x, kernel))))
    np.testing.assert_allclose(
        jax.vmap(loss)(kernels), jnp.stack([loss(each) for each in kernels]), rtol=1e-5
    )


def test_a_wrong_gradient_is_detected():
    x, kernel, slope = drawn(8, 8, 3, 2)
    _, back = jax.vjp(lambda *each: own(*each, 2), x, kernel)
    _, ours = jax.vjp(lambda x, kernel: convolution(x, kernel[::-1], 2), x, kernel)
    assert not np.allclose(ours(slope)[1], back(slope)[1], atol=1e-2)
