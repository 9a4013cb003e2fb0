"""One test per erratum of allenzhu2019."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unlazy.core.series import cosine
from unlazy.networks.inits import ResNetInit
from unlazy.networks.residual import ThreeLayerResNet
from unlazy.papers.allenzhu2019.existence import indicator_constant
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


def test_hermite_coefficients_of_an_indicator_have_another_double_factorial():
    """|E[h_i(α)·1[α ≥ 0]]| = (i − 2)!!/√(2π), in rational numbers times 1/√(2π).

    ∫₀^∞ t^n·e^{−t²/2} dt = (n − 1)!! for odd n, so that odd h_i = Σ c_n·t^n gives Σ c_n·(n − 1)!!.
    """
    for i in range(1, 40, 2):
        before, coefficients = {0: 1}, {1: 1}
        for n in range(1, i):  # h_{n+1} = t·h_n − n·h_{n−1}
            after = {power + 1: c for power, c in coefficients.items()}
            for power, c in before.items():
                after[power] = after.get(power, 0) - n * c
            before, coefficients = coefficients, after
        exact = abs(sum(c * math.prod(range(n - 1, 0, -2)) for n, c in coefficients.items()))
        assert exact == math.prod(range(i - 2, 0, -2))
        assert indicator_constant(i) == pytest.approx(
            (-1) ** ((i - 1) // 2) * exact / math.sqrt(2 * math.pi)
        )
        printed = math.prod(range(i - 1, 0, -2)) / 4
        assert (exact / math.sqrt(2 * math.pi) >= printed) == (i == 1)
        # With the norm printed in Appendix E.2, E[h_j²] = √(2π)·j!, from i = 5 on.
        assert (exact * (2 * math.pi) ** -0.25 >= printed) == (i <= 3)
        # Lemma E.2 keeps Σ (i + 1)·|c_i|: i!/((i − 2)!!)² ≤ 2·i^{3/2}.
        assert math.factorial(i) / exact**2 <= 2 * i**1.5
