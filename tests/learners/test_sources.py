"""Gradient estimators: populations and query oracles against plain computations, and what an oracle
refuses.
"""

import dataclasses

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

import programs
from contracts import is_close
from programs import drawn
from selection import slow_but_first
from unlazy.core.errors import BadInput
from unlazy.core.losses import hinge
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.trials import Trial
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.sources import (
    FreshGradients,
    PopulationGradients,
    QueryGradients,
    QueryOracle,
    SampleGradients,
    examples_needed,
    frequencies,
    within,
)
from unlazy.networks.inits import AntisymmetricInit
from unlazy.probes.performance import PopulationAccuracy
from unlazy.tasks.base import Batch, Population, Sampler
from unlazy.tasks.dictionary.balance import BalancedParity
from unlazy.tasks.dictionary.patterns import ParityMixture

KEY = jax.random.key(3)


@pytest.fixture(scope="module")
def population():
    x = jnp.array([[0.0], [1.0], [2.0], [3.0]])
    return Population(x, jnp.array([1.0, 1.0, -1.0, 1.0]), jnp.array([0.1, 0.2, 0.3, 0.4]))


def labels(x, y):
    return jnp.stack([y, jnp.where(x[:, 0] > 1, y, 0), jnp.ones_like(y)], axis=1)


# The oracle.


def test_honest_answers_are_means(population):
    np.testing.assert_allclose(
        QueryOracle.of(0.1).ask(labels, population, key=KEY), [0.4, 0.1, 1.0], atol=1e-6
    )


def test_an_adversary_hides_the_label_as_far_as_it_may(population):
    answers = QueryOracle.of(0.15, "adversarial").ask(labels, population, key=KEY)
    np.testing.assert_allclose(answers, [0.25, 0.0, 1.0], atol=1e-6)


def test_samples_stay_within_the_tolerance(population):
    oracle = QueryOracle.of(0.1, "sampled")
    ask = jax.jit(lambda key: oracle.ask(labels, population, key=key))
    for seed in range(20):
        np.testing.assert_allclose(ask(jax.random.key(seed)), [0.4, 0.1, 1.0], atol=0.1)
    assert examples_needed(0.1) == oracle.examples == pytest.approx(2 * np.log(2e9) / 0.01, abs=1)


def test_frequencies_are_those_of_independent_draws():
    weight = jnp.array([0.1, 0.0, 0.3, 0.6])
    found = np.mean([frequencies(jax.random.key(seed), weight, 500) for seed in range(20)], axis=0)
    np.testing.assert_allclose(found, weight, atol=0.02)
    assert found[1] == 0 and found.sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(("answer", "given"), [(0.59, True), (0.61, False)])
def test_an_answer_outside_the_tolerance_is_none(answer, given):
    """All answers of the same query become NaN."""
    truth, found = (
        {"a": jnp.array([0.5]), "b": jnp.array([2.0])},
        {"a": jnp.array([answer]), "b": jnp.array([2.0])},
    )
    checked = jax.jit(within)(found, truth, {"a": jnp.ones(1), "b": jnp.ones(1)}, 0.1)
    assert np.isfinite(checked["a"][0]) == np.isfinite(checked["b"][0]) == given
    if given:
        np.testing.assert_allclose(checked["a"], answer)


def test_the_tolerance_is_relative_to_the_size_of_a_query():
    checked = within(jnp.array([1.0, 3.1]), jnp.array([1.0, 3.0]), jnp.array([1.0, 0.5]), 0.1)
    assert np.all(np.isnan(checked))
    assert np.all(
        np.isfinite(
            within(jnp.array([1.0, 3.1]), jnp.array([1.0, 3.0]), jnp.array([1.0, 2.0]), 0.1)
        )
    )


def test_too_small_a_sample_gives_no_answer(population):
    answers = QueryOracle(0.01, "sampled", examples=3).ask(labels, population, key=KEY)
    assert np.all(np.isnan(answers))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: QueryOracle(0.1, "lying"), "mode must be one of"),
        (lambda: QueryOracle(0.0), "tolerance must be in"),
        (lambda: QueryOracle(0.1, "sampled"), "requires examples > 0"),
    ],
)
def test_invalid_oracles_are_refused(make, message):
    with pytest.raises(BadInput, match=message):
        make()


# Populations.


@pytest.mark.slow
@pytest.mark.parametrize(
    "family",
    slow_but_first(
        [
            BalancedParity(d=8, D=7, k=3, structure=0.4, negative=0.7),
            ParityMixture(d=8, D=7, k=3, po=0.3),
        ]
    ),
)
def test_the_population_of_few_patterns_is_exact(family):
    task = drawn(family, jax.random.key(0))
    found = task.population()
    assert found.x.shape == (128, 7) and float(found.weight.sum()) == pytest.approx(1, abs=1e-5)
    assert float(jnp.sum(found.weight, where=found.y > 0)) == pytest.approx(
        float(family.moments.positive), abs=1e-5
    )
    np.testing.assert_allclose(found.weight @ found.x, 0, atol=1e-5)
    assert float(found.weight @ jnp.sum(found.x**2, axis=1)) == pytest.approx(1, abs=1e-4)
    # Each point has the frequency of the population.
    z, y = task.draw(100_000, KEY)
    place = (z > 0).astype(int) @ (1 << jnp.arange(7))
    np.testing.assert_allclose(jnp.bincount(place, length=128) / len(y), found.weight, atol=0.004)
    np.testing.assert_array_equal(found.y[place], y)


def test_the_population_of_many_patterns_is_not_listed():
    assert drawn(BalancedParity(d=20, D=19, k=3), KEY).population is None


def test_the_population_of_inputs_is_that_of_the_coordinates():
    sampler = drawn(BalancedParity(d=9, D=4, k=3), KEY).sampler
    by_coordinates, by_inputs = sampler.population(), sampler.on_inputs.population()
    np.testing.assert_allclose(by_inputs.x, by_coordinates.x @ sampler.basis)
    assert sampler.on_inputs.basis is None


# Gradients.

FAMILY = BalancedParity(d=9, D=6, k=3, structure=0.5, negative=0.6)
INIT = AntisymmetricInit(m=3, w_scale=0.5, b_scale=0.5, a_scale=1.0)
RATES = {"w": 0.3, "b": 0.2, "a": 0.1}


def learner_of(source, *, steps=4, **more):
    return GradientDescent(INIT, (Descent(RATES, steps=steps, **more),), source=source)


def fitted(learner, *, n=64, family=FAMILY):
    task = drawn(family, jax.random.key(0))
    return task, jax.jit(lambda key: learner.fit(task.sampler, n, key=key))(KEY)


def explicit(task, net, update, steps):
    """Perform gradient descent on the input space, with gradients `update(net, population, t)`."""
    population = task.sampler.on_inputs.population()
    for t in range(steps):
        gradient = update(net, population, t)
        net = net.put({name: getattr(net, name) - RATES[name] * gradient[name] for name in RATES})
    return net


def expected_gradient(net, population, weight, smoothing=None):
    def loss(groups, x, y):
        return hinge(net.put(groups)(x[None], smoothing=smoothing)[0], y)

    each = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(
        net.get(("w", "b", "a")), population.x, population.y
    )
    return {name: jnp.tensordot(weight, value, 1) for name, value in each.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "class_weighted"),
    slow_but_first(
        [
            (PopulationGradients(), True),
            (PopulationGradients(), False),
            (QueryGradients.of(0.01), True),
            (QueryGradients.of(0.01), False),
        ]
    ),
)
def test_the_gradient_of_a_population_is_the_sum_over_its_points(source, class_weighted):
    with jax.enable_x64(True):
        learner = learner_of(source, class_weighted=class_weighted)
        task, trace = fitted(learner)

        def update(net, population, t):
            # Negative labels have probability 0.6: classes of equal weight count 0.5/0.6 and
            # 0.5/0.4.
            factor = jnp.where(population.y > 0, 0.5 / 0.4, 0.5 / 0.6) if class_weighted else 1.0
            return expected_gradient(net, population, population.weight * factor)

        start = INIT(9, key=jax.random.split(KEY, 3)[0])
        assert is_close(trace.at(-1), explicit(task, start, update, 4), 1e-6)


@pytest.mark.slow
def test_the_gradient_of_a_population_is_near_that_of_a_large_sample():
    _, exact = fitted(learner_of(PopulationGradients(), steps=1))
    _, sampled = fitted(learner_of(SampleGradients(), steps=1), n=200_000)
    _, small = fitted(learner_of(SampleGradients(), steps=1), n=50)
    for name in RATES:
        np.testing.assert_allclose(
            getattr(sampled.models, name), getattr(exact.models, name), atol=2e-3
        )
    assert float(jnp.max(jnp.abs(small.models.w - exact.models.w))) > 5e-3


@pytest.mark.slow
def test_every_coordinate_of_an_adversary_is_a_query():
    """Compare with derivatives per point, divided by their maximum, as queries on coordinates."""
    with jax.enable_x64(True):
        oracle = QueryOracle.of(0.05, "adversarial")
        task, trace = fitted(learner_of(QueryGradients(oracle)))
        population = task.population()
        net = INIT(9, key=jax.random.split(KEY, 3)[0])
        outside = net.w - net.w @ task.basis.T @ task.basis
        net = net.put({"w": net.w @ task.basis.T})
        largest = jnp.max(jnp.abs(population.x))
        for _ in range(4):
            scales = {
                "w": jnp.abs(net.a)[:, None] * largest * jnp.ones_like(net.w),
                "b": jnp.abs(net.a),
                "a": jnp.ones_like(net.a),
            }
            flat, unflatten = jax.flatten_util.ravel_pytree(scales)

            def query(x, y, net=net, flat=flat):
                slope = jax.vmap(lambda row: jax.flatten_util.ravel_pytree(_slope(net, row))[0])(x)
                return -jnp.where(y * net(x) < 1, y, 0)[:, None] * slope / flat[None, :]

            answers = unflatten(oracle.ask(query, population, key=KEY) * flat)
            net = net.put(
                {name: getattr(net, name) - RATES[name] * answers[name] for name in RATES}
            )
        assert is_close(trace.at(-1), net.put({"w": net.w @ task.basis + outside}), 1e-6)
        # The adversary is not the honest oracle.
        assert (
            float(
                jnp.max(
                    jnp.abs(trace.at(-1).b - fitted(learner_of(PopulationGradients()))[1].at(-1).b)
                )
            )
            > 1e-3
        )


def _slope(net, row):
    return jax.grad(lambda groups: net.put(groups)(row[None])[0])(net.get(("w", "b", "a")))


@pytest.mark.slow
def test_sampled_gradients_are_near_the_honest_ones():
    _, honest = fitted(learner_of(QueryGradients.of(0.05)))
    _, sampled = fitted(learner_of(QueryGradients.of(0.05, "sampled")))
    gap = float(jnp.max(jnp.abs(honest.models.w - sampled.models.w)))
    assert 0 < gap < 0.02


def test_queries_are_counted_by_stage_and_step():
    """Only coordinates with a nonzero derivative are queried: 6 of 9 dimensions, 6 neurons."""
    stages = (Descent({"w": 1.0}, steps=1, full_decay=("w",), spread=0.5), Descent(RATES, steps=4))
    learner = GradientDescent(INIT, stages, record=(0, 1, 3), source=QueryGradients.of(0.1))
    _, trace = fitted(learner)
    assert trace.steps == (0, 1, 3, 5)
    np.testing.assert_array_equal(trace.notes["queries"], [0, 36, 36 + 2 * 48, 36 + 4 * 48])
    assert fitted(learner_of(PopulationGradients()))[1].notes == {}


def test_weights_that_an_oracle_hides_stay_zero():
    """Without input structure a coarse adversary answers zero throughout: no scale is made of
    it.
    """
    stages = (Descent({"w": 1.0}, steps=1, full_decay=("w",), smoothing=0.5, spread=0.5),)
    learner = GradientDescent(INIT, stages, source=QueryGradients.of(1.0, "adversarial"))
    _, trace = fitted(learner, family=dataclasses.replace(FAMILY, structure=0.0, negative=0.5))
    np.testing.assert_array_equal(trace.models.w, 0)


@pytest.mark.parametrize("source", slow_but_first([SampleGradients(), PopulationGradients()]))
def test_the_spread_is_that_of_the_weighted_inputs(source):
    stages = (Descent({"w": 1.0}, steps=1, full_decay=("w",), smoothing=0.5, spread=0.7),)
    task, trace = fitted(GradientDescent(INIT, stages, source=source), n=100_000)
    population = task.population()
    product = population.x @ trace.at(-1).enter(task.basis).first_layer.T
    assert float(jnp.sqrt(population.weight @ jnp.mean(product**2, axis=1))) == pytest.approx(
        0.7, rel=0.01 if source == SampleGradients() else 1e-4
    )


def test_a_wrong_answer_makes_the_trial_diverge_in_the_engine():
    """Only the trial with the wrong answer diverges, not the others of its program."""
    sound, broken = (
        QueryGradients(QueryOracle(tolerance, "sampled", examples=50)) for tolerance in (1.0, 1e-4)
    )
    trials = [
        Trial(FAMILY, learner_of(source), 64, 10, (PopulationAccuracy(),))
        for source in (sound, broken)
    ]
    found = {record.key: record.status for record in LocalEngine().run(trials)}
    assert [found[trial.key] for trial in trials] == ["ok", "diverged"]


def test_the_engine_agrees_with_a_direct_fit():
    trial = Trial(
        FAMILY, learner_of(QueryGradients.of(0.05, "adversarial")), 64, 10, (PopulationAccuracy(),)
    )
    record = next(iter(LocalEngine().run([trial])))
    assert record.measurements["queries"] == (4 * 48.0,) and 50 < record.value("accuracy") <= 100


@pytest.mark.slow
def test_a_sample_equal_to_the_population_gives_its_gradient():
    """All sources perform the same step on the same points."""
    population = drawn(FAMILY, jax.random.key(0)).population()
    uniform = Population(population.x, population.y, jnp.full(64, 1 / 64))
    sampler = Sampler(
        lambda n, key: Batch(population.x, population.y), 6, population=lambda: uniform
    )
    stages = (Descent(RATES, steps=5),)
    ends = [
        programs.fitted(GradientDescent(INIT, stages, source=s), sampler, 64, KEY).models
        for s in (SampleGradients(), PopulationGradients(), QueryGradients.of(0.1))
    ]
    batches = (dataclasses.replace(stages[0], batch=64),)
    learner = GradientDescent(INIT, batches, source=FreshGradients())
    fresh = programs.fitted(learner, sampler, 320, KEY).models
    for other in (*ends[1:], fresh):
        for name in RATES:
            np.testing.assert_allclose(getattr(other, name), getattr(ends[0], name), atol=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: fitted(
                learner_of(PopulationGradients()), family=BalancedParity(d=20, D=19, k=3)
            ),
            "do not provide an exact population",
        ),
        (lambda: fitted(learner_of(QueryGradients.of(0.1), batch=8)), "omit batch"),
        (
            lambda: fitted(learner_of(QueryGradients.of(0.1), loss="squared")),
            "require the loss hinge or logistic",
        ),
        (
            lambda: fitted(
                dataclasses.replace(
                    learner_of(QueryGradients.of(0.1)),
                    init=dataclasses.replace(INIT, activation="relu"),
                )
            ),
            "need the activation",
        ),
    ],
)
def test_unsupported_uses_of_a_source_are_refused(make, message):
    with pytest.raises(BadInput, match=message):
        make()
