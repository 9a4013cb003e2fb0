"""The lemmas at small sizes, against plain computations."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unlazy.core.errors import BadInput
from unlazy.core.random import normal
from unlazy.lab.engines.local import LocalEngine
from unlazy.learners.base import Trace
from unlazy.networks.two_layer import TwoLayer
from unlazy.papers.shi2022.constants import drift_bound, error_bound, lemma_15, theorem_26, theorem_34
from unlazy.papers.shi2022.instruments import FirstGradient, _components
from unlazy.papers.shi2022.lemmas import drift, error_against_width, signal_to_noise
from unlazy.papers.shi2022.probes import Drift, SignalToNoise
from unlazy.papers.shi2022.table1 import PARITY, verbatim
from unlazy.tasks.dictionary.patterns import ParityMixture


def test_constants_of_the_general_theorem():
    general, plain = (
        f(k=5, m=300, T=600, gamma=0.25, sigma=5.0, **more) for f, more in ((theorem_34, {"D": 100, "p_min": 0.3}), (theorem_26, {}))
    )
    assert general.noise == pytest.approx(5**-1.5) and general.w_scale == pytest.approx(5 / 30_000)
    assert general.first == pytest.approx(plain.first * 0.3 / 5)
    assert (general.second, general.rest, general.a_scale) == (plain.second, plain.rest, plain.a_scale)


def test_bounds_by_hand():
    assert error_bound(k=2, m=8, T=4) == pytest.approx(256 / 4 + 8 * 4 / 64 + 4 * 4 / 4)
    assert drift_bound(steps=10, rate=0.1, a_start=2.0) == pytest.approx(3.0)
    bound = lemma_15(D=100, k=5, m=8, po=0.5, sigma=5.0)
    assert bound.background == pytest.approx(0.01 * bound.error * 5) and bound.relevant == pytest.approx(bound.error / 5)


def test_components_of_the_first_gradient_equal_plain_averages():
    """The exact average over each background pattern agrees with the plain average over many examples."""
    family, key = ParityMixture(d=6, D=6, k=3), jax.random.key(0)
    on, off, beta = _components(family, 2, 20_000, 0.5, 0.2, 0.3, key)
    key_task, _, key_w, key_b = jax.random.split(key, 4)
    task = family.task(key=key_task)
    z, y = task.draw(200_000, jax.random.key(9))
    z = z[:, jnp.argsort(~task.relevant)]
    w, b = 0.5 * normal(key_w, (2, 6)), 0.2 * normal(key_b, (2,))
    noise = 0.3 * normal(jax.random.key(8), (200_000, 2))
    u = z @ w.T + b
    active = ((u + noise > 0) & (u + noise < 1)).astype(float)
    plain = jnp.einsum("n,nj,ni->ij", y, z, active) / len(y)
    np.testing.assert_allclose(on, plain[:, :3], atol=0.008)
    np.testing.assert_allclose(off, plain[:, 3:], atol=0.004)
    rest = z[:, 3:] @ w[:, 3:].T + b + noise
    np.testing.assert_allclose(beta, jnp.mean((rest > 0) & (rest < 1), axis=0), atol=0.01)


def test_signal_stands_out_of_the_first_gradient():
    found = FirstGradient((16, 32), n=2000, neurons=4).measure(key=jax.random.key(0))
    assert found["background_exponent"][0] == pytest.approx(np.log2(found["background"][1] / found["background"][0]), rel=1e-5)
    assert np.all(found["relevant"] > 5 * found["background"]) and np.all(found["relevant_ratio"] < 1)


def joined(row, seeds=(10,)):
    """The records of an arm, run here."""
    trials = row.trials(seeds)
    found = {record.key: record for record in LocalEngine().run(trials)}
    return row.join([found[trial.key] for trial in trials], seeds)


def test_the_second_step_improves_the_weights():
    (found,) = joined(signal_to_noise((4096, 65_536), m=4))
    assert found.steps == (4096, 65_536)
    first, second = found.measurements["first"], found.measurements["second"]
    assert second[1] > first[1] and second[1] > 2 * second[0]
    assert found.measurements["inside"] == (1, 1)
    assert found.measurements["gain"] == pytest.approx(np.divide(second, first))
    assert found.value("second_exponent") == pytest.approx(np.log(second[1] / second[0]) / np.log(16), rel=1e-5)


def test_two_fresh_steps_are_those_of_the_theorem():
    """On n examples each, forgetting the first layer twice; nothing else but the source differs from the schedule's own steps."""
    schedule = verbatim(PARITY["smoke"])
    fresh, whole = schedule.two_fresh_steps(500), schedule.network()
    assert fresh.recorded(1000) == (1, 2) and fresh.examples_at(2, 1000) == 1000
    assert tuple(dataclasses.replace(stage, batch=None) for stage in fresh.stages) == whole.stages[:2]


def test_signal_and_noise_of_weights_made_by_hand():
    """Weights of 3 on A and of 0.5 off A stand out sixfold; a network of great scores leaves the margin."""
    task = ParityMixture(d=9, D=6, k=3).task(key=jax.random.key(0))
    w = (jnp.where(task.relevant, 3.0, 0.5) * jnp.array([1, -1, 1, -1, 1, -1])) @ task.basis
    probe, seen = SignalToNoise(0.1, 500), task.draw(4, jax.random.key(1))

    def look(c):
        net = TwoLayer(jnp.stack([w, 1e-20 * w]), jnp.zeros(2), jnp.zeros(2), jnp.asarray(c))
        return probe.look(task, net, seen=seen, key=jax.random.key(2))

    assert float(look(0.0)["ratio"]) == pytest.approx(6, rel=1e-4) and float(look(0.0)["inside"]) == 1
    assert 0.3 < float(look(2.0)["inside"]) < 0.7


def test_weights_drift_less_than_the_bound():
    (found,) = joined(drift("smoke")["classifier steps"])
    assert found.steps == (2, 3, 4, 8, 16, 28, 40)
    weights, ratio = np.array(found.measurements["weights"]), np.array(found.measurements["ratio"])
    assert weights[0] == ratio[0] == found.measurements["bound"][0] == 0
    assert np.all(weights[1:] > 0) and np.all(np.diff(weights) > 0) and np.all(np.diff(ratio) >= 0)
    assert 0 < ratio[-1] <= 1


def trace_of(models, steps):
    return Trace(models, jnp.zeros(len(steps)), None, steps)


def test_drift_by_hand():
    """The greatest way of a weight vector is 5, beside a bound of (0.1·10)² + 0.1·10·2 = 3."""
    w = jnp.zeros((3, 2, 2)).at[:, :, 0].set(1.0)
    w = w.at[1, 1].add(jnp.array([3.0, 4.0])).at[2, 1].add(jnp.array([0.0, 1.0]))
    models = TwoLayer(w, jnp.zeros((3, 2)).at[2, 0].set(-2.0), jnp.array([[1.0, -2.0]] * 3), jnp.zeros(3))
    found = Drift(0.1)(None, trace_of(models, (2, 12, 22)), found={}, key=None)
    np.testing.assert_allclose(found["weights"], [0, 5, 1], rtol=1e-6)
    np.testing.assert_allclose(found["biases"], [0, 0, 2], rtol=1e-6)
    np.testing.assert_allclose(found["bound"], [0, 3, 8], rtol=1e-6)
    np.testing.assert_allclose(found["ratio"], [0, 5 / 3, 5 / 3], rtol=1e-6)  # a lasting breach
    np.testing.assert_allclose(found["relative"], [0, 5, 1], rtol=1e-6)
    with pytest.raises(BadInput, match="from step 2 on"):
        Drift(0.1)(None, trace_of(models, (0, 2, 12)), found={}, key=None)


def test_errors_over_the_width():
    (found,) = joined(error_against_width((2, 4), 500, batch=100, D=8))
    assert found.steps == (2, 4)
    for place, m in enumerate((2, 4)):
        assert found.measurements["error"][place] == pytest.approx(1 - found.measurements["test_accuracy"][place] / 100)
        assert found.measurements["bound"][place] == error_bound(k=3, m=m, T=max(4, round(m ** (4 / 3))))
    assert found.measurements["loss"] == found.measurements["test_loss"]
