import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contracts import check_learner
from unlazy.core.errors import BadInput
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.trials import Trial
from unlazy.learners.circuits.layerwise import Layerwise
from unlazy.learners.circuits.tree import LayerDescent
from unlazy.networks.tree import TreeInit, TreeNetwork, hard_tanh
from unlazy.probes.performance import Performance
from unlazy.tasks.circuits.families import GenerativeCircuits


def test_the_tree_network_is_a_tree_of_gates():
    net = TreeInit(8)(8, key=jax.random.key(0))
    assert isinstance(net, TreeNetwork) and net.depth == 3 and net.first_layer.shape == (32, 8)
    x = jax.random.normal(jax.random.key(1), (5, 8))
    hidden = np.maximum(np.asarray(x) @ np.asarray(net.first_layer).T, 0).reshape(5, 4, 8)
    np.testing.assert_allclose(net.up_to(2, x), np.clip((hidden * np.asarray(net.v[2])).sum(axis=2), -1, 1), atol=1e-6)
    assert net(x).shape == (5,)
    with pytest.raises(BadInput, match="no parameter group"):
        net.get(("b",))
    assert hard_tanh(jnp.array([-3.0, 0.5, 2.0])).tolist() == [-1.0, 0.5, 1.0]
    assert jax.grad(hard_tanh)(1.0) == 0 and LayerDescent(0, margin=0.1, steps=7).length(3) == 7


def test_learners_keep_the_contract_and_learn():
    # End-to-end training of the tree is checked with the arms of the claims.
    learner = Layerwise(margin=(2 / 3) ** 3, rate="scaled", precision=64)
    check_learner(learner, GenerativeCircuits(8), 2000)
    (record,) = LocalEngine().run([Trial(GenerativeCircuits(8), learner, 4000, 1, (Performance(500),))])
    assert record.value("test_accuracy") == 100
    with pytest.raises(BadInput, match="margin"):
        Layerwise(margin=0.0)
