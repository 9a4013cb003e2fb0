"""Exact distributions of circuit tasks."""

import jax
import numpy as np
import pytest

from programs import sampled
from selection import slow_but_first
from unlazy.core.errors import BadInput
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.sources import PopulationGradients
from unlazy.networks.inits import AntisymmetricInit
from unlazy.papers.malach2019.computations import generative_masses
from unlazy.tasks.circuits.circuit import NAMES, Circuit
from unlazy.tasks.circuits.distributions import WeightedSample
from unlazy.tasks.circuits.families import (
    BiasedParity,
    FixedCircuit,
    GenerativeCircuits,
    GenerativeTask,
    ProductCircuits,
    ProductCircuitTask,
    listed,
)
from unlazy.tasks.circuits.recovery import WeightedSampleStatistics

FAMILIES = [
    GenerativeCircuits(8),
    ProductCircuits(8, gates=NAMES),
    BiasedParity(8, 3, 0.7),
    FixedCircuit("OR / AND NAND"),
    FixedCircuit("XNOR / XNOR XNOR", (0.5, 0.85, 0.85, 0.85)),
]


@pytest.mark.slow
@pytest.mark.parametrize("family", slow_but_first(FAMILIES))
def test_the_population_is_the_list_of_all_inputs(family):
    """Probabilities add up, labels are the task's, and the statistics of circuits are those of the
    list.
    """
    with jax.enable_x64(True):
        task = family.task(key=jax.random.key(3))
        distribution = task.sampler.population()
        x, y, weight = distribution.batch
        mass = np.asarray(weight) / len(weight)
        assert mass.sum() == pytest.approx(1) and distribution.n == family.dimension
        np.testing.assert_array_equal(y, task.target(x))
        listing = WeightedSampleStatistics(
            WeightedSample(np.asarray(x) > 0, np.asarray(y) > 0, mass / mass.sum())
        )
        learned = [np.full(task.dimension // 2, 8)]
        for below in ([], learned):
            np.testing.assert_allclose(distribution.table(below), listing.table(below), atol=1e-12)
        mean = np.asarray(sampled(task, 20_000, jax.random.key(4)).x).mean(axis=0)
        np.testing.assert_allclose(mean, mass @ np.asarray(x), atol=0.05)


@pytest.mark.slow
def test_generative_probabilities_equal_those_by_enumeration():
    task = GenerativeCircuits(8).task(key=jax.random.key(1))
    np.testing.assert_allclose(
        task.probability(listed(8)), generative_masses(task.circuit), rtol=1e-5
    )


@pytest.mark.slow
def test_any_network_can_be_trained_on_the_population_of_a_small_circuit():
    learner = GradientDescent(
        AntisymmetricInit(m=16, w_scale=1.0, b_scale=1.0, a_scale=0.5, activation="relu"),
        (Descent({"w": 0.05, "b": 0.05, "a": 0.05}, steps=200, loss="logistic", optimizer="adam"),),
        source=PopulationGradients(),
    )
    task = GenerativeCircuits(4).task(key=jax.random.key(0))
    fit = jax.jit(lambda key: learner.fit(task.sampler, 10, key=key))
    scores = fit(jax.random.key(1)).at(0)(listed(4))
    np.testing.assert_array_equal(scores > 0, task.target(listed(4)) > 0)
    with pytest.raises(BadInput, match="can be listed for at most"):
        _ = GenerativeCircuits(32).task(key=jax.random.key(0)).population().batch


def test_a_fixed_circuit_is_the_same_for_every_key():
    family = FixedCircuit("or /\n left LEFT", (0.3, 0.5, 0.4, 0.5))
    assert family.text == "OR / LEFT LEFT" and family.dimension == 4
    one, two = (family.task(key=jax.random.key(seed)) for seed in range(2))
    assert isinstance(one, ProductCircuitTask) and one.circuit == two.circuit == Circuit.parse(
        family.text
    )
    assert isinstance(FixedCircuit("AND").task(key=jax.random.key(0)), GenerativeTask)


@pytest.mark.parametrize(
    ("text", "p", "says"),
    [
        ("AND", (0.5,), "got 1"),
        ("AND", (0.5, 1.5), "p must lie in"),
        ("AND / TRUE OR", None, "both values"),
        ("NAN", None, "NAND"),
    ],
)
def test_bad_fixed_circuits_are_refused(text, p, says):
    with pytest.raises(BadInput, match=says):
        FixedCircuit(text, p)


def test_an_unlabeled_population_keeps_inputs_and_label_frequencies():
    with jax.enable_x64(True):
        task = FixedCircuit("OR / LEFT LEFT", (0.3, 0.5, 0.4, 0.5)).task(key=jax.random.key(0))
        distribution = task.population()
        null = distribution.unlabeled
        for learned in ([], [np.array([12, 12])]):
            found, known = null.table(learned), distribution.table(learned)
            np.testing.assert_allclose(found.sum(axis=2), known.sum(axis=2), atol=1e-12)
            np.testing.assert_allclose(found[:, :, 1], 0.58 * found.sum(axis=2), atol=1e-12)
        x, y, weight = null.batch
        assert float(np.mean(weight)) == pytest.approx(1) and float(
            np.mean(weight * y)
        ) == pytest.approx(0.16)
        np.testing.assert_allclose(
            np.mean((weight * y)[:, None] * x, axis=0),
            0.16 * np.array([-0.4, 0, -0.2, 0]),
            atol=1e-12,
        )
