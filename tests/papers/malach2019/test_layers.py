"""Runs of the theorems, the lemmas along training, and gates without correlation."""

import math

import jax
import numpy as np
import pytest

from unlazy.core.errors import BadInput
from unlazy.papers.malach2019 import layers
from unlazy.papers.malach2019.layers import (
    LayerLemmas,
    follow,
    layers_of,
    lemma14_sample,
    or_of_biased_bits,
)
from unlazy.papers.malach2019.theorem_runs import (
    TheoremRuns,
    draw_case,
    theorem_sample,
    theorem_steps,
)
from unlazy.papers.malach2019.uncorrelated import UncorrelatedGates
from unlazy.tasks.circuits.correlation import correlations, sample_tables, tables
from unlazy.tasks.circuits.distributions import ProductDistribution


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def last(experiment, seed=10):
    return {
        name: float(np.atleast_1d(values)[-1])
        for name, values in experiment.measure(key=jax.random.key(seed)).items()
    }


@pytest.mark.parametrize("kind", ["generative", "parity", "product"])
def test_drawn_cases_satisfy_the_assumptions_of_the_theorems(kind):
    rng = np.random.default_rng(10)
    for n in (4, 8):
        case = draw_case(kind, n, rng)
        known = correlations(case.circuit, case.distribution)
        assert known.margin >= case.margin > 0 and known.epsilon >= case.epsilon > 0
        assert case.masses.sum() == pytest.approx(1)
        if kind == "product":
            assert (
                isinstance(case.distribution, ProductDistribution)
                and case.distribution.p.min() >= case.margin <= 1 - case.distribution.p.max()
            )


def test_counts_are_those_of_a_sample():
    rng = np.random.default_rng(10)
    case = draw_case("generative", 4, rng)
    sample = case.sample(10_000_000, rng)
    for found, exact in zip(
        sample_tables(case.circuit.levels, sample),
        tables(case.circuit, case.distribution),
        strict=True,
    ):
        np.testing.assert_allclose(found, exact, atol=1e-3)
    few = case.sample(50, rng)
    assert np.all(
        np.abs(few.weights * 50 - np.round(few.weights * 50)) < 1e-9
    ) and few.weights.sum() == pytest.approx(1)


def test_theorem_2_is_theorem_4_with_its_epsilon():
    delta, n, rate = 0.1, 8, 0.01
    assert theorem_sample(delta**2 / 4, delta, n) == pytest.approx(
        2**15 / delta**6 * math.log(8 * 8 * 3 / 0.05)
    )
    assert theorem_steps(delta**2 / 4, delta, n, rate) == pytest.approx(
        24 * n / (math.sqrt(2) * rate * delta**3)
    )


@pytest.mark.parametrize("kind", ["generative", "parity", "product"])
def test_with_the_parameters_of_the_theorems_no_run_fails(kind):
    found = last(TheoremRuns((4,), kind=kind, circuits=2))
    assert (
        found["failed"] == 0
        and 0 < found["steps"] < found["theorem_steps"]
        and found["sample"] > 1e6
    )
    assert found["sample_share"] >= 1 and found["steps_share"] >= 1


@pytest.mark.slow
def test_runs_fail_without_correlation_and_reject_too_many_inputs():
    assert last(TheoremRuns((8,), kind="uncorrelated", circuits=2))["failed"] == 1
    with pytest.raises(BadInput, match="at most 16"):
        TheoremRuns((32,), kind="parity")


@pytest.mark.slow
def test_lemmas_hold_along_training_and_break_with_the_printed_sign():
    found = last(LayerLemmas((4,), circuits=1))
    assert (
        found["lemma15"] >= 1
        and all(found[name] == 0 for name in LayerLemmas.FRACTIONS)
        and found["sample"] >= 1
    )
    broken = last(LayerLemmas((4,), circuits=2, printed_sign=True, examples=64))
    assert (
        broken["lemma15"] < 1
        and broken["lemma16"] > 0.05
        and broken["lemma22"] > 0.05
        and broken["sample"] < 1
    )


def test_each_lemma_fails_if_the_gradient_is_negated():
    case = or_of_biased_bits()
    layer = layers_of(case, math.ceil(lemma14_sample(case, 4)), np.random.default_rng(10))[0]
    right = follow(layer, case.margin, case.epsilon, key=jax.random.key(10))
    assert all(right)
    wrong = follow(
        layer._replace(sample=-layer.sample), case.margin, case.epsilon, key=jax.random.key(10)
    )
    assert not any(wrong)


def test_followed_training_is_that_of_the_learner():
    """The final layer equals that of `train_gates` on the same statistics."""
    from unlazy.learners.circuits.neural_gates import train_gates
    from unlazy.networks.tree import initial_neurons

    case = or_of_biased_bits()
    layer = layers_of(case, 10**8, np.random.default_rng(10))[1]
    neurons = initial_neurons(2, layers.NEURONS_OF_GATE, key=jax.random.key(10))
    step = 1 / (4 * math.sqrt(2) * layers.NEURONS_OF_GATE)
    values = train_gates(layer.sample, neurons, step=step, limit=1 << 20).values
    assert np.array_equal(np.sign(values)[layer.occurs], layer.target[layer.occurs])


@pytest.mark.slow
def test_uncorrelated_gates_become_constant_and_correlated_ones_do_not():
    uniform, biased = last(UncorrelatedGates((4, 8))), last(UncorrelatedGates((4, 8), p=0.85))
    assert uniform["least_constant"] == 1 and uniform["recovered"] == 0
    assert biased["least_constant"] == 0 and biased["recovered"] == 1
