import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contracts import check_learner
from unlazy.core.errors import BadInput
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.trials import Trial
from unlazy.learners.circuits.layerwise import Layerwise
from unlazy.learners.circuits.tree import LayerDescent, layerwise_network
from unlazy.learners.gradient import GradientDescent
from unlazy.learners.sources import FreshGradients
from unlazy.networks.tree import TreeInit, TreeNetwork, hard_tanh
from unlazy.probes.performance import Performance
from unlazy.tasks.base import Batch, Sampler
from unlazy.tasks.circuits.families import FixedCircuit, GenerativeCircuits, listed


def test_the_tree_network_is_a_tree_of_gates():
    net = TreeInit(8)(8, key=jax.random.key(0))
    assert isinstance(net, TreeNetwork) and net.depth == 3 and net.first_layer.shape == (32, 8)
    x = jax.random.normal(jax.random.key(1), (5, 8))
    hidden = np.maximum(np.asarray(x) @ np.asarray(net.first_layer).T, 0).reshape(5, 4, 8)
    np.testing.assert_allclose(
        net.up_to(2, x), np.clip((hidden * np.asarray(net.v[2])).sum(axis=2), -1, 1), atol=1e-6
    )
    assert net(x).shape == (5,)
    with pytest.raises(BadInput, match="no parameter group"):
        net.get(("b",))
    assert hard_tanh(jnp.array([-3.0, 0.5, 2.0])).tolist() == [-1.0, 0.5, 1.0]
    assert jax.grad(hard_tanh)(1.0) == 0 and LayerDescent(0, margin=0.1, steps=7).length(3) == 7


def test_learners_satisfy_the_contract_and_learn():
    # End-to-end training of the tree is checked with the arms of the claims.
    learner = Layerwise(margin=(2 / 3) ** 3, rate="scaled", precision=64)
    check_learner(learner, GenerativeCircuits(8), 2000)
    (record,) = LocalEngine().run(
        [Trial(GenerativeCircuits(8), learner, 4000, 1, (Performance(500),))]
    )
    assert record.value("test_accuracy") == 100
    with pytest.raises(BadInput, match="margin"):
        Layerwise(margin=0.0)


@pytest.mark.slow
def test_the_network_on_the_population_uses_every_input():
    """A sample with the frequencies of the population gives the same network."""
    family = FixedCircuit("OR / LEFT LEFT", (0.3, 0.5, 0.4, 0.5))
    with jax.enable_x64(True):
        task, key = family.task(key=jax.random.key(0)), jax.random.key(1)
        x = listed(4)
        often = np.rint(200 * np.asarray(task.probability(x))).astype(int)
        repeated = np.repeat(np.asarray(x), often, axis=0)
        sample = Sampler(lambda n, key: Batch(jnp.asarray(repeated), task.target(repeated)), 4)
        by_law = layerwise_network(
            4, margin=0.28, steps=1500, k=32, population=True, precision=64
        ).fit(task.sampler, 1, key=key)
        by_sample = layerwise_network(4, margin=0.28, steps=1500, k=32, precision=64).fit(
            sample, 200, key=key
        )
        assert len(repeated) == 200 and by_law.at(0).circuit == by_sample.at(0).circuit
        np.testing.assert_allclose(by_law.at(0)(x), by_sample.at(0)(x), atol=1e-6)
        np.testing.assert_array_equal(by_law.at(0)(x) > 0, task.target(x) > 0)


def test_a_stream_has_no_layers():
    learner = GradientDescent(
        TreeInit(8), (LayerDescent(0, margin=0.1, steps=5),), source=FreshGradients()
    )
    with pytest.raises(BadInput, match="a sample or a population"):
        learner.fit(
            GenerativeCircuits(2).task(key=jax.random.key(0)).sampler, 100, key=jax.random.key(1)
        )
