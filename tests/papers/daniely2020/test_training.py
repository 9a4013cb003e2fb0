import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from programs import drawn, fitted, looked
from unlazy.core.errors import BadInput
from unlazy.learners.gradient import GradientDescent
from unlazy.learners.sources import PopulationGradients
from unlazy.networks.base import Init
from unlazy.networks.inits import TernaryInit
from unlazy.networks.two_layer import TwoLayer
from unlazy.papers.daniely2020.initial_neurons import InitialNeurons
from unlazy.papers.daniely2020.learner import AfterFirstStep, ParitySchedule, _first_step
from unlazy.papers.daniely2020.neuron_features import FeatureFraction, SeparatorNorms
from unlazy.papers.daniely2020.probes import CountErrors, FullDecayStep, LayerDrift, Regret, Solved
from unlazy.papers.daniely2020.queries import BitQueries
from unlazy.tasks.equal_bits import CountedBits, EqualBits
from unlazy.theory.parity_gradients import composition

KEY = jax.random.key(3)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def test_the_initial_network_is_zero_and_the_printed_one_is_not():
    x = jax.random.normal(KEY, (50, 9)) / 3
    init = TernaryInit(neurons=20, k=3)
    assert np.max(np.abs(init(9, key=KEY)(x))) < 1e-12
    assert np.max(np.abs(dataclasses.replace(init, printed=True)(9, key=KEY)(x))) > 0.1
    net = TernaryInit(neurons=4000, k=3)(9, key=KEY)
    assert set(np.unique(net.w)) == {-1.0, 0.0, 1.0} and np.mean(net.w == 0) == pytest.approx(
        1 / 3, abs=0.01
    )
    assert (
        np.all(np.asarray(net.b) == 1 / 24)
        and np.max(np.abs(net.a)) <= 3
        and np.std(net.a) == pytest.approx(3 / np.sqrt(3), rel=0.03)
    )


def test_numbers_of_ones_have_the_distribution_of_the_bits():
    task = drawn(EqualBits(d=8, k=5, structured=0.3), KEY)
    distribution, counted = task.population(), drawn(CountedBits(d=8, k=5, structured=0.3), KEY)
    atoms = counted.population()
    along = np.asarray(distribution.x @ task.features[0])
    for value, label, weight in zip(atoms.x[:, 0], atoms.y, atoms.weight, strict=True):
        here = np.abs(along - value) < 1e-6
        assert np.sum(np.asarray(distribution.weight)[here]) == pytest.approx(
            float(weight), abs=1e-6
        )
        assert np.all(np.asarray(distribution.y)[here] == label)
    x, y = counted.draw(200, KEY)
    assert np.array_equal(counted.target(x), y)


def test_the_first_step_of_a_network_is_the_one_that_is_drawn():
    """Per neuron: weights along A, biases and second layer after a step on all inputs equal those
    computed from its counts.
    """
    n, k = 11, 3
    task = drawn(EqualBits(d=n, k=k), KEY)
    schedule = ParitySchedule.theorem(n=n, k=k, q=30, T=1, record=(0, 1))
    models = fitted(schedule.network(PopulationGradients()), task.sampler, 1, KEY).models
    before, after = models.at(0), models.at(1)
    inside = np.isin(np.arange(n), np.asarray(task.where))
    rows = np.stack(composition(np.asarray(before.w).astype(int), inside), axis=1)
    neurons, table = InitialNeurons.of(n, k), _first_step(n, k, 0.5)
    indices = {
        tuple(row): index
        for index, row in enumerate(
            np.stack([neurons.plus, neurons.minus, neurons.outside], axis=1)
        )
    }
    at = np.array([indices[tuple(row)] for row in rows])
    u = np.asarray(before.a)
    assert np.allclose(after.w @ task.features[0], u * table.along[at], atol=1e-6)
    assert np.allclose(after.b, before.b + u * table.bias[at], atol=1e-6) and np.allclose(
        after.a, table.output[at], atol=1e-7
    )


class _Given(Init):
    network: TwoLayer

    @property
    def width(self):
        return len(self.network.b)

    def __call__(self, d, *, outputs=None, key):
        return self.network


@pytest.mark.parametrize("layers", ["both", "second"])
def test_training_by_the_number_of_ones_is_training_on_the_bits(layers):
    """From weights that are equal on A and zero elsewhere, all inputs of nine bits and the k + 1
    atoms give the same network.
    """
    n, k = 9, 3
    schedule = ParitySchedule.practical(n=n, k=k, q=8, T=30, pace=2.0, layers=layers)
    schedule = dataclasses.replace(schedule, penalty=0.01)
    task = drawn(EqualBits(d=n, k=k), KEY)
    small = AfterFirstStep(n=n, k=k, neurons=16)(1, key=KEY)
    large = TwoLayer(small.w @ task.features.astype(float), small.b, small.a, small.c, "relu6")
    found = []
    for network, on in ((small, drawn(CountedBits(d=n, k=k), KEY)), (large, task)):
        learner = GradientDescent(
            _Given(network), (schedule.rest,), source=PopulationGradients(), precision=64
        )
        found.append(fitted(learner, on.sampler, 1, KEY).at(-1))
    # The inputs of the task have single precision, so both agree to single precision.
    assert np.allclose(found[0].w @ task.features, found[1].w, atol=1e-6)
    assert np.allclose(found[0].a, found[1].a, atol=1e-6) and np.allclose(
        found[0].b, found[1].b, atol=1e-6
    )
    assert not np.allclose(found[0].a, small.a, atol=1e-3)


@pytest.mark.slow
def test_gradients_by_the_number_of_ones_are_those_of_many_bits():
    """On 400 bits each gradient of a network along A agrees with a sample within 4.5 standard
    errors.
    """
    n, k, count = 400, 5, 5_000
    task = drawn(EqualBits(d=n, k=k), KEY)
    small = AfterFirstStep(n=n, k=k, neurons=16)(1, key=KEY)
    small = TwoLayer(small.w, small.b, 3 * jax.random.normal(KEY, (16,)), small.c, "relu6")
    large = TwoLayer(small.w @ task.features.astype(float), small.b, small.a, small.c, "relu6")
    distribution, sample = drawn(CountedBits(d=n, k=k), KEY).population(), task.draw(count, KEY)

    def loss(network, x, y):
        return jnp.maximum(1 - y * network(x[None])[0], 0.0)

    def gradients(network, x, y):
        found = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(network, x, y)
        return jnp.concatenate(
            [found.w @ (task.features[0] if x.shape[1] > 1 else jnp.ones(1)), found.b, found.a],
            axis=1,
        )

    each = np.asarray(gradients(large, sample.x.astype(float), sample.y.astype(float)))
    exact = np.asarray(distribution.weight @ gradients(small, distribution.x, distribution.y))
    error = np.std(each, axis=0) / np.sqrt(count)
    assert np.all(np.abs(each.mean(axis=0) - exact) <= 4.5 * error + 1e-6)


def trained(schedule, *probes, structured=0.5):
    task = drawn(CountedBits(d=schedule.n, k=schedule.k, structured=structured), KEY)
    trace = fitted(schedule.reduced(structured), task.sampler, 1, KEY)
    found = {}
    for probe in probes:
        found |= looked(probe, task, trace, found=found, key=KEY)
    return {name: np.asarray(value) for name, value in found.items()}


@pytest.mark.slow
def test_descent_on_the_second_layer_finds_the_parity_and_only_with_structure():
    schedule = ParitySchedule.practical(
        n=400, k=3, q=32, T=1000, pace=1e5, layers="second", record=(0, 10, 100, 300)
    )
    probes = (CountErrors(), Solved(schedule.rate, 9 / np.sqrt(32)))
    found = trained(schedule, *probes)
    assert found["solved"][-1] == 1 and found["best"][-1] == 0 and found["solved"][0] == 0
    assert found["scores"].shape == (5, 4) and found["uniform_error"][0] > 20
    assert trained(schedule, *probes, structured=0.0)["solved"][-1] == 0


@pytest.mark.slow
def test_drift_and_regret_are_below_their_bounds_and_above_false_ones():
    schedule = ParitySchedule.theorem(n=10_001, k=7, q=16, T=200, record=(0, 10, 100))
    found = trained(schedule, LayerDrift(10_001, 7, schedule.rate, schedule.penalty))
    assert all(np.all(found[name] <= 1) for name in ("u", "w", "b", "loss"))
    slow = trained(schedule, LayerDrift(10_001, 7, schedule.rate / 10_000, schedule.penalty))
    assert all(slow[name][-1] > 1 for name in ("u", "w", "b", "loss"))
    second = ParitySchedule.practical(
        n=400, k=3, q=16, T=200, pace=10.0, layers="second", record=tuple(range(200))
    )
    assert np.all(trained(second, Regret(second.rate, 0.0))["regret"] <= 1)
    assert trained(second, Regret(second.rate, 0.0, -1.0))["regret"][-1] > 1


def test_the_first_step_detects_the_printed_initialization():
    task = drawn(EqualBits(d=7, k=3), KEY)
    for printed in (False, True):
        schedule = ParitySchedule.theorem(n=7, k=3, q=8, T=1, record=(0, 1), printed=printed)
        trace = fitted(schedule.network(PopulationGradients()), task.sampler, 1, KEY)
        found = looked(FullDecayStep(), task, trace, found={}, key=KEY)
        assert (float(found["start"][0]) > 0.1) == printed and (
            float(found["w"][0]) > 1e-3
        ) == printed


def test_enough_neurons_become_features():
    found = FeatureFraction((10_001, 28_300_000_001), 7).measure(key=KEY)["wanted"]
    assert np.all(found >= 1)
    assert FeatureFraction((10_001,), 7, 0.5).measure(key=KEY)["wanted"][0] < 1
    several = FeatureFraction((10_001,), 7, factors=(1.0, 10.0, 700.0)).measure(key=KEY)["wanted"]
    assert 1 <= several[0] <= found[0] + 1e-9


def test_the_separator_of_lemma_10_has_margin_one_and_a_small_norm():
    found = SeparatorNorms((200_000, 800_000), 300_000_001, 7).measure(key=KEY)
    assert np.all(found["margin"] >= 1) and np.all(found["height"] <= 1)
    assert np.all(found["failure"] <= 1e-3) and np.all(found["norm_all"] < found["norm"])
    assert found["norm_slope"][0] == pytest.approx(-0.5, abs=0.1)
    printed = SeparatorNorms((200_000,), 300_000_001, 7, printed=True).measure(key=KEY)
    assert printed["margin"][0] < 0
    absent = SeparatorNorms((200_000,), 300_000_001, 7, 0.0).measure(key=KEY)
    assert absent["failure"][0] == 1 and np.isnan(absent["margin"][0])


def test_queries_recognize_the_bits_on_the_mixture_only():
    for structured, expected in ((0.5, 1.0), (0.0, 4 / 7)):
        found = BitQueries((4, 99), 7, 3, structured).measure(key=KEY)["recognized"]
        assert np.allclose(found, expected)


def test_invalid_sizes_are_rejected():
    with pytest.raises(BadInput, match="must be even"):
        TernaryInit(neurons=7, k=3)
    with pytest.raises(BadInput, match="k must be odd"):
        ParitySchedule.theorem(n=50, k=4, q=8, T=10)
    with pytest.raises(BadInput, match="3 ≤ k ≤ d"):
        ParitySchedule.theorem(n=5, k=7, q=8, T=10)
    with pytest.raises(BadInput, match="must be at most the input dimension"):
        TernaryInit(neurons=8, k=5)(4, key=KEY)
    with pytest.raises(BadInput, match="one-dimensional inputs"):
        AfterFirstStep(n=50, k=3, neurons=8)(2, key=KEY)
    with pytest.raises(BadInput, match="layers must be"):
        ParitySchedule(n=9, k=3, neurons=8, steps=1, rate=1.0, layers="first")


def test_the_learner_takes_k_from_the_family():
    learner = ParitySchedule.practical(n=50, k=3, q=4, T=10, pace=1.0).one_step()
    assert (
        learner.suited(EqualBits(d=30, k=5)).init.k == 5
        and learner.suited(CountedBits(d=30, k=5)).init.k == 3
    )
