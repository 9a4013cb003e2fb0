import jax
import jax.numpy as jnp
import numpy as np
import pytest

from programs import drawn, looked
from selection import slow_but_first
from toys import Halfspace, small_init
from unlazy.core.errors import BadInput
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.trials import Trial
from unlazy.learners.base import Trace
from unlazy.learners.catalog import LEARNERS
from unlazy.networks.base import Model
from unlazy.probes import PartErrors, PartWeights, ScoreByOnes
from unlazy.tasks.equal_bits import EqualBits

FAMILY = EqualBits(d=12, k=3)


class Parity(Model):
    where: jax.Array
    bits: int

    def __call__(self, x):
        return jnp.prod(jnp.sign(x[:, self.where[: self.bits]]), axis=1)


class Majority(Model):
    where: jax.Array

    def __call__(self, x):
        return jnp.sum(jnp.sign(x[:, self.where]), axis=1)


def scenario(make, family=FAMILY):
    task = drawn(family, jax.random.key(1))
    return task, Trace.of(make(task), task.sample(20, key=jax.random.key(2)))


def look(probe, make, family=FAMILY):
    task, trace = scenario(make, family)
    return {
        name: np.asarray(value[0])
        for name, value in looked(probe, task, trace, found={}, key=jax.random.key(3)).items()
    }


def test_errors_by_part_are_those_of_known_predictors():
    perfect = look(PartErrors(1000), lambda task: Parity(task.where, 3))
    assert all(perfect[name] == 0 for name in ("uniform_error", "structured_error", "whole_error"))
    majority = look(PartErrors(4000), lambda task: Majority(task.where))
    assert majority["structured_error"] == 0
    assert majority["uniform_error"] == pytest.approx(0.75, abs=0.03)
    assert majority["whole_error"] == pytest.approx(majority["uniform_error"] / 2)
    one = look(
        PartErrors(4000), lambda task: Parity(task.where, 1), EqualBits(d=12, k=3, structured=0.2)
    )
    assert one["uniform_error"] == pytest.approx(0.5, abs=0.04) and one["structured_error"] == 0
    assert one["whole_error"] == pytest.approx(0.8 * one["uniform_error"])


def test_weights_are_measured_per_part():
    task, _ = scenario(lambda task: Majority(task.where))
    w = (
        jnp.zeros((4, 12))
        .at[:, task.where]
        .set(jnp.array([[1.0, 1, 1], [1, 0, -1], [-2, -2, -2], [0, 0, 0]]))
    )
    rest = jnp.ones(12).at[task.where].set(0)
    net = small_init(m=2)(12, key=jax.random.key(0)).put({"w": w + 1e-30 * rest[None, :]})
    found = look(PartWeights(), lambda task: net)
    assert np.allclose(found["neuron_on"], [1, 0, -2, 0]) and np.allclose(
        found["neuron_off"] / 1e-30, 1
    )
    assert len(look(PartWeights(2), lambda task: net)["neuron_on"]) == 2
    assert found["separation"] > 1


@pytest.mark.slow
@pytest.mark.parametrize("k", slow_but_first([3, 5]))
def test_the_score_by_ones_is_the_zigzag_of_a_parity(k):
    family = EqualBits(d=12, k=k)
    found = look(ScoreByOnes(50), lambda task: Parity(task.where, k), family)
    assert (
        found["ones_mean"].tolist() == [(-1.0) ** (k - ones) for ones in range(k + 1)]
        and found["ones_right"] == 1
    )
    majority = look(ScoreByOnes(50), lambda task: Majority(task.where), family)
    assert np.allclose(majority["ones_mean"], 2 * np.arange(k + 1) - k) and np.allclose(
        majority["ones_low"], majority["ones_high"]
    )
    one = look(ScoreByOnes(2000), lambda task: Parity(task.where, 1), family)
    assert np.allclose(one["ones_mean"], 2 * np.arange(k + 1) / k - 1, atol=0.1)


@pytest.mark.slow
def test_they_run_in_programs_and_on_the_host():
    probes = (PartErrors(500), ScoreByOnes(20))
    trials = [
        Trial(FAMILY, LEARNERS[name].value, 100, 10, probes) for name in ("linear", "network")
    ]
    for record in LocalEngine().run(trials):
        assert record.value("structured_error") < 0.5 and record.arrays["ones_mean"].shape == (
            len(record.steps),
            4,
        )


def test_other_tasks_and_empty_looks_are_refused():
    task = drawn(Halfspace(4), jax.random.key(0))
    trace = Trace.of(
        small_init(m=3)(4, key=jax.random.key(1)), task.sample(5, key=jax.random.key(2))
    )
    for probe in (PartErrors(), PartWeights(), ScoreByOnes()):
        with pytest.raises(BadInput, match="needs a task of EqualBits"):
            probe(task, trace, found={}, key=jax.random.key(3))
    for probe in (PartErrors, PartWeights, ScoreByOnes):
        with pytest.raises(BadInput, match="must be positive, got 0"):
            probe(0)
