"""Learners with a statistical query oracle: accuracy, number of queries, and models."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from programs import drawn
from selection import slow_but_first
from unlazy.core.errors import BadInput
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.trials import Trial
from unlazy.learners.base import Trace
from unlazy.learners.sources import QueryOracle
from unlazy.networks.two_layer import TwoLayer
from unlazy.papers.shi2022.queries import Elimination, query_learning
from unlazy.papers.shi2022.query_learners import CorrelationQueries, ParitySearch
from unlazy.probes.performance import PopulationAccuracy
from unlazy.tasks.base import draw
from unlazy.tasks.dictionary.balance import BalancedParity
from unlazy.theory.statistical_queries import queries_needed


def joined(row, seeds=(10,)):
    trials = row.trials(seeds)
    found = {record.key: record for record in LocalEngine().run(trials)}
    return row.join([found[trial.key] for trial in trials], seeds)


def fitted(learner, sampler):
    return eqx.filter_jit(lambda key: learner.fit(sampler, 8, key=key))(jax.random.key(1)).at(0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "structure", "accuracy", "asked"),
    slow_but_first(
        [
            ("correlation", 0.5, 100, 6 + 4),
            ("correlation", 0.0, 50, 6 + 4),
            ("search", 0.0, 100, 20),
        ]
    ),
)
def test_few_queries_suffice_with_structure_only(learner, structure, accuracy, asked):
    (found,) = joined(
        query_learning(learner, BalancedParity(d=9, D=6, k=3, structure=structure), (10, 20))
    )
    assert found.steps == (10, 20) and found.status == "ok"
    assert found.measurements["accuracy"] == pytest.approx((accuracy, accuracy), abs=0.01)
    assert found.measurements["queries"] == (asked, asked)
    assert found.value("needed") == pytest.approx(queries_needed(20))
    assert found.value("effort") == pytest.approx(max(asked, 20) / queries_needed(20))


def test_each_query_excludes_few_parities():
    """By Parseval, a query at tolerance τ excludes at most 1/(4τ²) parities of uniform bits; if
    parities are correlated, one query excludes all.
    """
    uniform, correlated = (
        Elimination(10, 5, rate).measure(key=jax.random.key(0)) for rate in (0.5, 0.97)
    )
    assert uniform["most_at_once"] <= 1 < correlated["most_at_once"]
    assert uniform["queries_over_needed"] > 5 and correlated["queries_over_needed"] < 1


@pytest.mark.slow
def test_descent_queries_every_coordinate_of_every_step():
    (found,) = joined(query_learning("descent", BalancedParity(d=6, D=6, k=3), (20,)))
    # 20 neurons of 6 weights; then the weights and the second layer; then all groups.
    assert found.value("queries") == 120 + 140 + 298 * 160 and found.value("accuracy") > 95


def test_all_tolerances_run_in_one_program():
    trials = query_learning("correlation", BalancedParity(d=6, D=6, k=3), (10, 20)).trials((10, 11))
    assert LocalEngine().plan(trials).shapes == 1


@pytest.mark.slow
@pytest.mark.parametrize("learner", slow_but_first([CorrelationQueries, ParitySearch]))
def test_models_are_the_same_on_inputs_and_on_coordinates(learner):
    task = drawn(BalancedParity(d=9, D=6, k=3), jax.random.key(0))
    model = fitted(learner(QueryOracle.of(0.05, "adversarial"), 3), task.sampler)
    z, y = draw(task.sampler, 200, jax.random.key(2))
    np.testing.assert_allclose(model(z @ task.basis), model.enter(task.basis)(z), atol=1e-6)
    np.testing.assert_array_equal(jnp.sign(model(z @ task.basis)), y)
    other = jnp.linalg.qr(jax.random.normal(jax.random.key(3), (9, 9)))[0]
    np.testing.assert_allclose(
        model.enter(other)(z @ task.basis @ other.T), model(z @ task.basis), atol=1e-6
    )
    alone = fitted(learner(QueryOracle.of(0.05), 3), task.sampler.on_inputs)
    assert alone.dictionary is None and alone.enter(task.basis).dictionary.shape == (9, 6)


@pytest.mark.parametrize("learner", slow_but_first([CorrelationQueries, ParitySearch]))
def test_an_oracle_that_misses_its_tolerance_is_detected(learner):
    """The answers are part of the model, so non-finite answers make it non-finite."""
    oracles = QueryOracle(1.0, "sampled", examples=50), QueryOracle(1e-4, "sampled", examples=50)
    trials = [
        Trial(BalancedParity(d=6, D=6, k=3), learner(oracle, 3), 64, 10, (PopulationAccuracy(),))
        for oracle in oracles
    ]
    found = {record.key: record.status for record in LocalEngine().run(trials)}
    assert [found[trial.key] for trial in trials] == ["ok", "diverged"]


@pytest.mark.slow
@pytest.mark.parametrize("D", slow_but_first([4, 20]))
def test_accuracy_over_the_population_or_over_fresh_examples(D):
    """A constant network is correct on the fraction of its class; exactly, if inputs are listed."""
    task = drawn(BalancedParity(d=D, D=D, k=3, negative=0.3), jax.random.key(0))
    models = jax.vmap(TwoLayer)(
        jnp.zeros((2, 1, D)), jnp.zeros((2, 1)), jnp.zeros((2, 1)), jnp.array([1.0, 0.0])
    )
    trace = Trace(models, jnp.zeros(2), None, (0, 1))
    found = PopulationAccuracy()(task, trace, found={}, key=jax.random.key(1))["accuracy"]
    np.testing.assert_allclose(found, [70, 50], atol=1e-4 if D == 4 else 1.5)
    assert (abs(float(found[0]) - 70) < 1e-4) == (D == 4)


def test_invalid_sizes_are_rejected():
    with pytest.raises(BadInput, match="`k` must be odd, got 4"):
        ParitySearch(QueryOracle.of(0.1), 4)
    sampler = drawn(BalancedParity(d=3, D=3, k=3), jax.random.key(0)).sampler
    with pytest.raises(BadInput, match="`k` must be at most the number 3 of patterns, got 4"):
        CorrelationQueries(QueryOracle.of(0.1), 4).fit(sampler, 8, key=jax.random.key(0))
