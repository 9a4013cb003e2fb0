"""The statistical query oracle: what it answers, what it counts, and what it refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unlazy.core.errors import BadInput
from unlazy.learners.oracle import Oracle, Population, examples_needed
from unlazy.papers.shi2022.queries import QueryLearning, population_of
from unlazy.tasks.dictionary.balance import BalancedParity


@pytest.fixture(scope="module")
def population():
    x = jnp.array([[0.0], [1.0], [2.0], [3.0]])
    return Population(x, jnp.array([1.0, 1.0, -1.0, 1.0]), jnp.array([0.1, 0.2, 0.3, 0.4]))


def labels(x, y):
    return jnp.stack([y, y * (x[:, 0] > 1), jnp.ones_like(y)], axis=1)


def test_honest_answers_are_means_and_are_counted(population):
    answers, oracle = Oracle(population, 0.1).ask(labels, key=jax.random.key(0))
    np.testing.assert_allclose(answers, [0.4, 0.1, 1.0], atol=1e-6)
    assert int(oracle.asked) == 3 and int(oracle.ask(labels, key=jax.random.key(0))[1].asked) == 6


def test_an_adversary_hides_the_label_as_far_as_it_may(population):
    answers, _ = Oracle(population, 0.15, "adversarial").ask(labels, key=jax.random.key(0))
    np.testing.assert_allclose(answers, [0.25, 0.0, 1.0], atol=1e-6)


def test_samples_stay_within_the_tolerance(population):
    oracle = Oracle(population, 0.1, "sampled", sample_size=examples_needed(0.1))
    for seed in range(20):
        answers, _ = oracle.ask(labels, key=jax.random.key(seed))
        np.testing.assert_allclose(answers, [0.4, 0.1, 1.0], atol=0.1)
    assert examples_needed(0.1) == pytest.approx(2 * np.log(2e9) / 0.01, abs=1)


@pytest.mark.parametrize("traced", [False, True])
def test_an_answer_outside_the_tolerance_is_refused(population, traced):
    oracle = Oracle(population, 0.1)
    give = lambda truth, answer: oracle.answer(truth, answer)[0]  # noqa: E731
    give = jax.jit(give) if traced else give
    np.testing.assert_allclose(give(jnp.array([0.5]), jnp.array([0.59])), [0.59])
    with pytest.raises(Exception, match="outside the tolerance"):
        jax.block_until_ready(give(jnp.array([0.5]), jnp.array([0.61])))


def test_too_small_a_sample_is_refused(population):
    oracle = Oracle(population, 0.01, "sampled", sample_size=3)
    with pytest.raises(Exception, match="outside the tolerance"):
        jax.block_until_ready(oracle.ask(labels, key=jax.random.key(0)))


def test_an_unknown_mode_is_refused(population):
    with pytest.raises(BadInput, match="mode must be one of"):
        Oracle(population, 0.1, "lying")


def test_the_population_of_few_patterns_is_exact():
    family = BalancedParity(d=7, D=7, k=3, structure=0.4, negative=0.7)
    task = family.task(key=jax.random.key(0))
    found = population_of(task, key=jax.random.key(1))
    assert found.x.shape == (128, 7) and float(found.weight.sum()) == pytest.approx(1, abs=1e-5)
    assert float(found.weight @ (found.y < 0)) == pytest.approx(0.7, abs=1e-5)
    np.testing.assert_allclose(found.weight @ found.x, 0, atol=1e-5)
    assert float(found.weight @ jnp.sum(found.x**2, axis=1)) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize(
    ("learner", "structure", "low", "high"), [("correlation", 0.5, 100, 100), ("correlation", 0.0, 49, 51), ("search", 0.0, 100, 100)]
)
def test_structure_is_what_few_queries_can_use(learner, structure, low, high):
    family = BalancedParity(d=6, D=6, k=3, structure=structure)
    found = QueryLearning(learner, family, (20,)).measure(key=jax.random.key(0))
    assert low - 0.01 <= found["accuracy"][0] <= high + 0.01
    assert found["queries"][0] == {"correlation": 6 + 4, "search": 20}[learner]
