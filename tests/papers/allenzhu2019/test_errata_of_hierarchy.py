"""One test per erratum of allenzhu2019."""

import jax
import jax.numpy as jnp
import numpy as np

from unlazy.core.series import cosine
from unlazy.networks.inits import ResNetInit
from unlazy.networks.residual import ThreeLayerResNet
from unlazy.theory.smooth_complexity import slope_complexity


def test_an_initial_mean_of_one_makes_outputs_huge_and_nearly_equal():
    m, d, k = 100, 30, 15
    init = ResNetInit(m=m, w_scale=0.1, b_scale=0.1, v_scale=0.1, e_scale=0.1, a_scale=0.1)
    net = init(d, outputs=k, key=jax.random.key(0))
    shifted = jax.tree.map(lambda leaf: leaf + 1, net)
    x = jnp.sign(jax.random.normal(jax.random.key(1), (200, d)))
    printed, corrected = np.asarray(shifted(x)), np.asarray(net(x))
    assert np.sqrt(np.mean(corrected**2)) < 3
    assert np.sqrt(np.mean(printed**2)) > 1e5
    # All outputs are nearly the same sum.
    deviation = printed - printed.mean(axis=1, keepdims=True)
    assert np.sqrt(np.mean(deviation**2) / np.mean(printed**2)) < 0.02


def test_a_function_of_general_complexity_need_not_vanish_at_the_origin():
    d = 5
    w1, w2 = np.zeros(d + 1), np.eye(d + 1)[d]
    w1[0] = 1.0
    complexity = slope_complexity(cosine(), 1.0)

    def function(x):
        """cos(⟨w₁, (x, 1)⟩/‖(x, 1)‖)·⟨w₂, (x, 1)⟩, of general complexity with p = k = 1."""
        lifted = np.append(x, 1.0)
        return np.cos(w1 @ lifted / np.linalg.norm(lifted)) * (w2 @ lifted)

    small = 1e-6 * np.ones(d)
    assert abs(function(np.zeros(d))) == 1
    assert abs(function(small)) > 1e4 * complexity * np.linalg.norm(
        small
    )  # for the C* of the paper, choose a smaller x
    assert abs(function(small)) <= complexity * np.linalg.norm(np.append(small, 1.0))


def test_the_network_has_its_skip_connection():
    init = ResNetInit(m=40, w_scale=0.5, b_scale=0.5, v_scale=0.5, e_scale=0.5, a_scale=0.2)
    net = init(6, outputs=3, key=jax.random.key(0))
    assert isinstance(net, ThreeLayerResNet)
    x = jax.random.normal(jax.random.key(1), (7, 6))
    first, second = net.layers(x)
    np.testing.assert_allclose(net(x), first @ net.a + second @ net.a, rtol=1e-5)
    assert np.max(np.abs(np.asarray(net(x) - second @ net.a))) > 0.1
