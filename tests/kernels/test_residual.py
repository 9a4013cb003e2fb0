"""Kernels of the infinitely wide residual network, against wide random networks."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from selection import slow_but_first
from unlazy.core.errors import BadInput
from unlazy.kernels.finite import Conjugate, Tangent
from unlazy.kernels.gram import gram
from unlazy.kernels.residual import ResidualNNGP, ResidualNTK
from unlazy.kernels.wide import NTK
from unlazy.networks.base import Network
from unlazy.networks.residual import ThreeLayerResNet

W, U, B = 1.8, 1.3, 0.4


class Scaled(Network):
    """The residual network in NTK parametrization: N(0, 1) parameters, scaled in the forward pass.

    With `last` fixed or not.
    """

    raw: ThreeLayerResNet
    fixed: jax.Array | None = None

    @property
    def scaled(self):
        raw, (m, d) = self.raw, self.raw.w.shape
        a = raw.a if self.fixed is None else jax.lax.stop_gradient(raw.a)
        first, second = math.sqrt(W / d) * raw.w, math.sqrt(U / raw.v.shape[1]) * raw.v
        return ThreeLayerResNet(
            first,
            math.sqrt(B) * raw.b,
            second,
            math.sqrt(B) * raw.e,
            a / math.sqrt(m),
            raw.bottleneck,
            raw.activation,
        )

    def hidden(self, x):
        return self.scaled.hidden(x) / math.sqrt(len(self.raw.b))

    def __call__(self, x, *, smoothing=None):
        return self.scaled(x)

    def enter(self, basis):
        raise NotImplementedError

    leave = get = put = enter

    @property
    def first_layer(self):
        return self.raw.w


def draw(key, d, m, activation, bottleneck=False):
    shapes = ((m, d), (m,), (m, 1 if bottleneck else m), (m,), (m,))
    values = [
        jax.random.normal(k, shape)
        for k, shape in zip(jax.random.split(key, 5), shapes, strict=True)
    ]
    return ThreeLayerResNet(*values, bottleneck, activation)


POINTS = jax.random.normal(jax.random.key(0), (5, 4)) * jnp.linspace(0.5, 2, 5)[:, None]


@pytest.mark.parametrize("activation", slow_but_first(["relu", "truncated_relu"]))
def test_wide_networks_approach_the_kernels(activation):
    @jax.jit
    def kernels(keys):
        def one(key):
            net = draw(key, 4, 128, activation)
            fixed = Scaled(net, jnp.zeros(()))
            return (
                Conjugate(Scaled(net))(POINTS, POINTS),
                Tangent(Scaled(net))(POINTS, POINTS),
                Tangent(fixed)(POINTS, POINTS),
            )

        return jax.lax.map(one, keys)

    found = kernels(jax.random.split(jax.random.key(1), 60))
    settings = activation, W, U, B
    for sample, kernel in zip(
        found,
        (ResidualNNGP(*settings), ResidualNTK(*settings), ResidualNTK(*settings, "hidden")),
        strict=True,
    ):
        error = np.std(sample, axis=0) / math.sqrt(len(sample))
        limit = np.asarray(gram(kernel, POINTS))
        # Finite width biases by about 1/128.
        np.testing.assert_array_less(
            np.abs(np.mean(sample, axis=0) - limit), 4 * error + 0.02 * np.abs(limit) + 2e-3
        )


def test_the_kernel_of_the_bottleneck_stays_random():
    """Its relative spread over draws stays of order one, unlike that of the full U."""

    def spread(width, bottleneck):
        keys = jax.random.split(jax.random.key(2), 40)

        def one(key):
            kernel = Tangent(Scaled(draw(key, 4, width, "relu", bottleneck)))
            return kernel(POINTS[:1], POINTS[:1])[0, 0]

        values = jax.jit(lambda keys: jax.lax.map(one, keys))(keys)
        return float(jnp.std(values) / jnp.mean(values))

    assert spread(256, False) < 0.2
    assert spread(256, True) > 0.4


@pytest.mark.parametrize(
    "kernel",
    [ResidualNNGP(), ResidualNTK(b_variance=0.1), ResidualNTK("erf", trained="hidden")],
    ids=repr,
)
def test_gram_is_definite_and_has_the_exact_diagonal(kernel):
    with jax.enable_x64(True):
        x = np.asarray(jax.random.normal(jax.random.key(3), (20, 4)))
        K = np.asarray(gram(kernel, x))
        assert np.linalg.eigvalsh(K)[0] > -1e-9
        np.testing.assert_allclose(
            np.diag(K), np.diag(np.asarray(eqx.filter_jit(kernel)(x, x))), rtol=1e-6
        )


def test_without_the_second_layer_it_is_the_two_layer_kernel():
    """u_variance = b_variance = 0 and an odd activation: no second branch."""
    two = gram(NTK(1, "erf", 1.7), POINTS)
    # NTK has the factor w_variance in its output layer, too.
    np.testing.assert_allclose(
        1.7 * gram(ResidualNTK("erf", 1.7, 0.0, 0.0), POINTS), two, rtol=1e-5
    )


@pytest.mark.parametrize(
    "bad",
    [
        {"activation": "rel"},
        {"w_variance": 0.0},
        {"u_variance": -1.0},
        {"b_variance": -1.0},
        {"trained": "last"},
    ],
)
def test_bad_input_is_refused(bad):
    with pytest.raises(BadInput):
        ResidualNTK(**bad)
