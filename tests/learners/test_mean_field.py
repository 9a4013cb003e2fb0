import jax
import jax.numpy as jnp
import numpy as np
import pytest

from programs import drawn
from unlazy.core.errors import BadInput
from unlazy.core.metrics import Outputs
from unlazy.lab.trials import Trial
from unlazy.learners.mean_field import MeanFieldSGD, mean_field_sgd, second_layer
from unlazy.networks.inits import SphereInit
from unlazy.papers.glasgow2023.computations import LiteralStep
from unlazy.tasks.multi_index import MultiIndex


def test_the_initial_network_is_on_the_sphere_and_balanced():
    net = SphereInit(p=40, radius=0.3)(10, key=jax.random.key(0))
    norms = np.linalg.norm(net.w, axis=1)
    np.testing.assert_allclose(norms, 0.3, rtol=1e-5)
    np.testing.assert_allclose(np.abs(second_layer(net)), norms, rtol=1e-5)
    assert set(np.sign(net.a)) == {-1.0, 1.0}
    x = jax.random.normal(jax.random.key(1), (7, 10))
    np.testing.assert_allclose(
        net(x),
        np.mean(second_layer(net)[None, :] * np.maximum(x @ net.w.T, 0), axis=1),
        rtol=1e-4,
        atol=1e-6,
    )


def test_the_bias_is_a_constant_coordinate():
    net = SphereInit(p=40, radius=0.3, bias=True)(10, key=jax.random.key(0))
    np.testing.assert_allclose(np.sum(net.w**2, axis=1) + net.b**2, 0.09, rtol=1e-4)
    assert np.all(net.b != 0)


def test_a_step_is_the_papers():
    found = LiteralStep(8, 4, 16).measure(key=jax.random.key(2))
    assert (
        found["difference"] < 1e-4 and found["norm_error"] < 1e-5 and found["balance_error"] < 1e-5
    )


@pytest.mark.slow
def test_a_frozen_second_layer_stays_and_a_trained_one_moves():
    task = drawn(MultiIndex(d=8), jax.random.key(0))
    moved = []
    for freeze in (True, False):
        learner = mean_field_sgd(width=6, batch=16, steps=3, record=(0,), freeze_second=freeze)
        models = jax.jit(
            lambda key, learner=learner: learner.fit(task.sampler, 48, key=key).models
        )(jax.random.key(1))
        moved.append(float(jnp.max(jnp.abs(models.a[1] - models.a[0]))))
        assert float(jnp.max(jnp.abs(models.w[1] - models.w[0]))) > 0
    assert moved[0] == 0 < moved[1]


@pytest.mark.parametrize("options", [{"p": 0, "radius": 1.0}, {"p": 3, "radius": 0.0}])
def test_invalid_options_are_refused(options):
    with pytest.raises(BadInput):
        SphereInit(**options)


@pytest.mark.slow
def test_the_batch_follows_the_dimension():
    learner = MeanFieldSGD(width=8, ratio=0.5)
    suited = learner.suited(MultiIndex(d=12))
    assert (
        suited.draws_fresh
        and learner.draws_fresh
        and suited.examples_at(3, 100) == 18
        and suited.recorded(100) == (16,)
    )
    trace = learner.fit(
        drawn(MultiIndex(d=12), jax.random.key(0)).sampler, 60, key=jax.random.key(1)
    )
    assert trace.steps == (10,)
    assert MeanFieldSGD(ratio=0.01).suited(MultiIndex(d=12)).examples_at(3, 100) == 3, (
        "a batch has at least one example"
    )


def test_only_signs_are_supported():
    class Reals(MultiIndex):
        @property
        def outputs(self):
            return Outputs("reals")

    assert not MeanFieldSGD().suits(Outputs("reals"))
    with pytest.raises(BadInput, match="MeanFieldSGD cannot learn reals"):
        Trial(Reals(d=8), MeanFieldSGD(), 80, 0, ())
