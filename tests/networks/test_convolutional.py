"""Convolutional networks, and other networks on images."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contracts import check_learner
from programs import fitted
from selection import slow_but, slow_but_first
from toys import Blobs, Halfspace
from unlazy.core.errors import BadInput
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.trials import Trial
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.holdout import HoldOut
from unlazy.learners.unit_norm import UnitNorm
from unlazy.networks.convolutional import ConvolutionalInit, _convolved
from unlazy.networks.inits import AntisymmetricInit
from unlazy.probes.performance import Performance

RATES = {"filters": 0.05, "biases": 0.05, "a": 0.05, "c": 0.05}


def learner(steps=150, channels=(4, 8)):
    return GradientDescent(
        ConvolutionalInit(channels),
        (Descent(RATES, steps=steps, batch=50, loss="natural", momentum=0.9),),
        record=(0,),
    )


@pytest.mark.parametrize("side", slow_but([2, 3], [1, 2, 3, 4]))
def test_the_convolution_is_jaxs(side):
    x = jax.random.normal(jax.random.key(0), (5, 6, 7, 3))
    kernel = jax.random.normal(jax.random.key(1), (side, side, 3, 4))
    peer = jax.lax.conv_general_dilated(
        x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    np.testing.assert_allclose(_convolved(x, kernel.reshape(side**2, 3, 4)), peer, atol=1e-4)


def test_the_network_is_its_formula():
    network = ConvolutionalInit((2,), side=1, pool=2)((2, 2, 1), key=jax.random.key(0))
    image = jnp.arange(4.0).reshape(1, 2, 2, 1)
    hidden = jnp.mean(jax.nn.relu(image * network.filters[0][None]), axis=(1, 2))
    np.testing.assert_allclose(network(image), hidden @ network.a, rtol=1e-5)


@pytest.mark.slow
def test_the_network_keeps_its_scale_from_layer_to_layer():
    network = ConvolutionalInit((64, 64), pool=1)((16, 16, 8), key=jax.random.key(0))
    x = jax.random.normal(jax.random.key(1), (20, 16, 16, 8))
    assert 0.5 < float(jnp.std(network(x))) < 2


@pytest.mark.parametrize("classes", slow_but_first([2, 10]))
def test_training_satisfies_the_contract_and_learns_images(classes):
    family = Blobs(side=8, classes=classes)
    check_learner(learner(steps=3), family, 60)
    trials = [Trial(family, learner(), 500, seed, (Performance(1000),)) for seed in (0, 1)]
    for record in LocalEngine().run(trials):
        before, after = record.measurements["test_accuracy"]
        # Templates are random pixels without local structure, so far above chance is enough.
        assert before < 75 and after > (93 if classes == 2 else 65)


@pytest.mark.parametrize(
    "wrap", slow_but_first([lambda inner: HoldOut.of(UnitNorm.of(inner)), UnitNorm.of, HoldOut.of])
)
def test_it_can_be_scaled_and_held_out(wrap):
    check_learner(wrap(learner(steps=3)), Blobs(side=8), 60)


@pytest.mark.slow
def test_a_network_of_vectors_gets_flattened_images():
    init = AntisymmetricInit(m=20, w_scale=0.3, b_scale=0.1, a_scale=0.3, activation="relu")
    flat = GradientDescent(
        init, (Descent({"w": 0.1, "a": 0.1}, steps=4, loss="natural"),), record=(0,)
    )
    family = Blobs(side=8)
    check_learner(flat, family, 60)
    images, key = family.task(key=jax.random.key(0)), jax.random.key(1)
    vectors = Blobs(d=64).task(key=jax.random.key(0))
    one, other = (fitted(flat, task.sampler, 60, key) for task in (images, vectors))
    np.testing.assert_allclose(one.at(1)(one.seen.x), other.at(1)(other.seen.x), atol=1e-6)


def test_inputs_other_than_images_are_refused():
    with pytest.raises(
        BadInput,
        match=r"needs inputs of shape \(height, width, channels\), got 4",
    ):
        learner().fit(Halfspace(4).task(key=jax.random.key(0)).sampler, 60, key=jax.random.key(1))
    with pytest.raises(BadInput, match="Images of 2 × 2 pixels are too small for 2 poolings by 2"):
        ConvolutionalInit()((2, 2, 1), key=jax.random.key(0))
    for bad in ({"channels": ()}, {"channels": (0,)}, {"side": 0}, {"activation": "gulu"}):
        with pytest.raises(BadInput):
            ConvolutionalInit(**bad)
