"""Remarks on the text that are no errata: statements that hold, and symbols that may be lost."""

import itertools
import math

import jax
import numpy as np
import pytest

from unlazy.learners.circuits.layerwise import learn_circuit
from unlazy.networks.tree import initial_tree
from unlazy.papers.malach2019.computations import (
    PushForward,
    all_inputs,
    plain_evaluation,
    printed_masses,
)
from unlazy.papers.malach2019.layers import lemma14_width
from unlazy.papers.malach2019.margins import GenerativeMargin
from unlazy.papers.malach2019.theorem_runs import theorem_width
from unlazy.tasks.circuits.circuit import Circuit
from unlazy.tasks.circuits.correlation import correlations
from unlazy.tasks.circuits.distributions import GenerativeDistribution, ProductDistribution
from unlazy.tasks.circuits.recovery import PopulationStatistics, recovery


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def learned(circuit, distribution, margin, **settings):
    tree = initial_tree(circuit.n, 32, key=jax.random.key(10))
    return learn_circuit(
        PopulationStatistics(circuit, distribution), tree, margin=margin, **settings
    )


def test_the_width_that_theorem_4_prints_suffices():
    """Its proof uses the larger width of Lemma 14, which the theorem does not ask for."""
    delta = 0.05
    for d in range(1, 9):
        n = 2**d
        width = theorem_width(n, delta)
        assert width < math.log(4 * n * d / delta) / math.log(4 / 3) <= lemma14_width(n * d)
        at_initialization = 4 * (n - 1) * 0.75**width
        # Hoeffding's bound with the range 2 of f and the factor 4/n_i of the gradient.
        on_the_sample = (n - 1) * 8 * (delta / (8 * n * d)) ** 2
        assert at_initialization <= 2 * delta / d
        assert (at_initialization + on_the_sample <= delta) == (d >= 2)
    # d = 1 is a single gate, whose label is its value, so that the sample cannot mislead it.
    assert 4 * 0.75 ** theorem_width(2, delta) == pytest.approx(delta)


def test_correlation_in_section_4_1_is_covariance():
    """With E[z·y] = 0 and unbalanced labels, a gate is learned; with covariance 0 it is not."""
    circuit, distribution = (
        Circuit.parse("OR / LEFT LEFT"),
        ProductDistribution(np.array([0.25, 0.5, 2 / 3, 0.5])),
    )
    known = correlations(circuit, distribution)
    assert (
        known.c[1][0] == pytest.approx(0)
        and known.influence[1][0] > 0
        and known.mean_label == pytest.approx(0.5)
    )
    assert known.margin < 0, "LCA fails"
    assert recovery(circuit, distribution, learned(circuit, distribution, 0.01).circuit).exact
    # Cov(z, y) = 0 makes z and y independent: both values of the gate pull in the same direction.
    circuit = Circuit.parse("XNOR / XNOR XNOR")
    distribution = ProductDistribution(np.array([0.5, 0.85, 0.85, 0.85]))
    values = learned(circuit, distribution, 0.01, rate="scaled").layers[1].values
    assert np.ptp(values[1]) == 0


def test_a_sampler_with_one_set_breaks_lemma_9():
    circuit = Circuit.parse("OR / AND OR")
    values = plain_evaluation(circuit, all_inputs(4))[1]
    mass = printed_masses(circuit)
    assert mass.sum() == pytest.approx(1) and mass @ np.all(values == 1, axis=1) == pytest.approx(1)
    distances = [
        PushForward((4,), sample=100, printed=printed).measure(key=jax.random.key(10))["distance"][
            0
        ]
        for printed in (True, False)
    ]
    assert distances[0] == pytest.approx(2 / 3) and distances[1] < 1e-12


def test_the_rarest_pattern_of_a_generative_distribution():
    """ε = 1/n² holds from n = 4 on."""
    smallest = Circuit.parse("AND")
    assert (
        correlations(smallest, GenerativeDistribution(smallest)).epsilon == pytest.approx(1 / 6)
        and 1 / 6 < 1 / 4
    )
    measured = GenerativeMargin((2, 4, 8)).measure(key=jax.random.key(10))
    np.testing.assert_allclose(measured["closed_form"], 1)
    for gates in itertools.product([8, 14, 7, 1], repeat=3):
        circuit = Circuit(np.array(gates))
        assert (
            correlations(circuit, GenerativeDistribution(circuit)).epsilon
            >= 0.25 * (2 / 3) ** 2 - 1e-12
        )
    assert np.all(measured["pattern_ratio"][1:] >= 0) and measured["pattern_ratio"][0] < 1
    assert all(0.25 * (2 / 3) ** d >= 0.25**d for d in range(2, 30))
