"""Equinox modules as networks."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contracts import check_learner
from programs import drawn, fitted
from selection import slow_but_first
from toys import Blobs, Halfspace, Products
from unlazy.core.errors import BadInput
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.trials import Trial
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.networks.adapters import ModuleInit, ModuleNetwork
from unlazy.probes.performance import Performance

MLP = functools.partial(eqx.nn.MLP, width_size=32, depth=1)


class Additive(eqx.Module):
    """A batched module with an array that is not trained and a field that is no array."""

    weights: jax.Array
    scale: jax.Array
    order: jax.Array
    activation: object

    def __init__(self, d, outputs, *, key):
        self.weights = jax.random.normal(key, (d, outputs)) / d
        self.scale = jnp.ones(outputs)
        self.order = jnp.arange(d)[::-1]
        self.activation = jnp.tanh

    def __call__(self, x):
        return self.activation(x[:, self.order] @ self.weights) * self.scale[None, :]


def learner(make=MLP, groups=None, steps=300, rate=0.1, **options):
    stage = Descent(groups or {"all": rate}, steps=steps, batch=50, loss="natural")
    return GradientDescent(ModuleInit(make, **options), (stage,), record=(0,))


@pytest.mark.parametrize(
    "family",
    slow_but_first([Halfspace(4), Blobs(), Products(), Products(scalar=True)]),
    ids=["signs", "classes", "reals", "one real"],
)
@pytest.mark.parametrize(
    "make",
    [learner(steps=5), learner(Additive, steps=5, batched=True)],
    ids=["one by one", "batched"],
)
def test_modules_satisfy_the_learner_contract(make, family):
    check_learner(make, family, 60)


def accuracy(family, learner, n=400, measure="test_accuracy"):
    (record,) = LocalEngine().run([Trial(family, learner, n, 0, (Performance(1000),))])
    return record.measurements[measure]


@pytest.mark.slow
def test_a_module_learns():
    before, after = accuracy(Blobs(), learner(rate=0.3))
    assert before < 40 and after > 95
    before, after = accuracy(Halfspace(4), learner(Additive, batched=True, rate=3.0))
    assert after > 93


def test_only_the_named_groups_are_trained():
    init = ModuleInit(Additive, batched=True)
    first = init(4, key=jax.random.key(0))
    assert first.groups == ("weights", "scale", "all")
    task = drawn(Halfspace(4), jax.random.key(0))
    trace = learner(Additive, {"scale": 0.1}, steps=3, batched=True).fit(
        task.sampler, 60, key=jax.random.key(1)
    )
    start, end = trace.at(0).module, trace.at(1).module
    np.testing.assert_array_equal(start.weights, end.weights)
    assert not np.allclose(start.scale, end.scale) and end.activation is jnp.tanh
    np.testing.assert_array_equal(end.order, [3, 2, 1, 0])


def test_training_a_module_equals_a_plain_loop():
    task = drawn(Halfspace(4), jax.random.key(0))
    stage = Descent({"all": 0.5}, steps=3, loss="squared")
    learner = GradientDescent(ModuleInit(MLP), (stage,), record=(0,))
    trace = fitted(learner, task.sampler, 40, jax.random.key(1))
    module, (x, y) = trace.at(0).module, trace.seen

    @eqx.filter_jit
    @eqx.filter_grad
    def slope(module):
        return 0.5 * jnp.mean(jnp.square(jax.vmap(module)(x)[:, 0] - y))

    for _ in range(3):
        module = eqx.apply_updates(module, jax.tree.map(lambda g: -0.5 * g, slope(module)))
    np.testing.assert_allclose(trace.at(1)(x), jax.vmap(module)(x)[:, 0], atol=1e-5)


def test_keys_follow_the_module():
    one, same, other = (
        Trial(Halfspace(4), learner(functools.partial(MLP, depth=depth)), 50, 0, ()).key
        for depth in (1, 1, 2)
    )
    assert one == same != other


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda d, outputs, *, key: jnp.tanh, "no floating-point arrays"),
        (lambda d, outputs, *, key: 3, "must be callable"),
        (
            lambda d, outputs, *, key: eqx.nn.Linear(d, 3, key=key),
            r"scores of shape \(60,\), got \(60, 3\)",
        ),
    ],
)
def test_invalid_modules_are_refused(make, message):
    task = drawn(Halfspace(4), jax.random.key(0))
    with pytest.raises(BadInput, match=message):
        GradientDescent(ModuleInit(make), (Descent({"all": 0.1}, steps=1),)).fit(
            task.sampler, 60, key=jax.random.key(1)
        )


def test_groups_that_do_not_exist_or_overlap_are_refused():
    network = ModuleNetwork.of(eqx.nn.Linear(3, 1, key=jax.random.key(0)))
    with pytest.raises(
        BadInput, match=r"no parameter group named 'wieght'\. Did you mean 'weight'"
    ):
        network.get(("wieght",))
    with pytest.raises(BadInput, match="cannot be combined"):
        network.get(("weight", "all"))
