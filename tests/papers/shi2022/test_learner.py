import jax
import jax.numpy as jnp
import numpy as np
import pytest

from programs import drawn, fitted, sampled
from unlazy.core.errors import BadInput
from unlazy.core.metrics import accuracy
from unlazy.papers.shi2022.constants import theorem_26
from unlazy.papers.shi2022.learner import TwoStep
from unlazy.tasks.dictionary.patterns import ParityMixture


def test_constants_of_the_theorem_at_published_sizes():
    c = theorem_26(k=5, m=300, T=600, gamma=0.25, sigma=5.0)
    assert c == pytest.approx(
        (0.2, 0.04, 4.0, 0.04, 1.1574e-8, 1.0, 25 / (600 * 300 ** (1 / 3))), rel=1e-4
    )


@pytest.fixture(scope="module")
def setting():
    family = ParityMixture(d=60, D=30, k=3)
    moments = family.moments
    numbers = {
        "k": 3,
        "m": 40,
        "T": 300,
        "gamma": float(moments.gamma),
        "sigma": float(moments.sigma),
        "batch": 200,
    }
    return drawn(family, jax.random.key(0)), numbers


def fit(task, learner, n=5000):
    trace = jax.jit(lambda key: learner.fit(task.sampler, n, key=key))(jax.random.key(1))
    test = sampled(task, 4000, jax.random.key(2))
    model = jax.tree.map(lambda leaf: leaf[-1], trace.models)
    return trace, float(accuracy(model(test.x), test.y))


def cosine(task, w):
    w = w / jnp.max(jnp.abs(w), axis=1, keepdims=True)
    return float(jnp.max(w @ task.features[0] / jnp.linalg.norm(w, axis=1)))


@pytest.mark.slow
def test_practical_settings_learn_the_features_and_the_classifier(setting):
    task, numbers = setting
    schedule = TwoStep.practical(**numbers)
    trace, found = fit(task, schedule.network(record=(0, 1, 2)))
    assert found > 99.5
    assert cosine(task, trace.models.w[0]) < 0.5
    assert cosine(task, trace.models.w[2]) > 0.97
    assert fit(task, schedule.random_features())[1] < 95


@pytest.mark.slow
def test_the_theorem_verbatim_finds_the_features_but_not_the_classifier(setting):
    """Two steps align the weights; the step sizes of steps 3 … T are too small for a classifier."""
    task, numbers = setting
    trace, found = fit(task, TwoStep.theorem(**numbers).network(record=(2,)))
    assert cosine(task, trace.models.w[0]) > 0.95
    assert found < 95


@pytest.mark.slow
def test_all_methods_share_one_initial_network(setting):
    task, numbers = setting
    schedule = TwoStep.practical(**(numbers | {"T": 6, "m": 3}))
    firsts = [
        fitted(learner, task.sampler, 400, jax.random.key(1)).models.first_layer[0]
        for learner in (
            schedule.network((0,)),
            schedule.random_features((0,)),
            schedule.tangent((0,)),
            schedule.frozen(1, (0,)),
        )
    ]
    for first in firsts[1:]:
        np.testing.assert_array_equal(first, firsts[0])


@pytest.mark.slow
def test_frozen_features_stay_frozen(setting):
    task, numbers = setting
    schedule = TwoStep.practical(**(numbers | {"T": 8, "m": 3}))
    w = fitted(schedule.frozen(1, (0, 1, 5)), task.sampler, 400, jax.random.key(1)).models.w
    assert not np.allclose(w[0], w[1])
    np.testing.assert_array_equal(w[1], w[2])
    np.testing.assert_array_equal(w[1], w[3])


def test_a_schedule_needs_classifier_steps(setting):
    with pytest.raises(BadInput, match="`T` must be greater than 3, got 3"):
        TwoStep.practical(**(setting[1] | {"T": 3}))
