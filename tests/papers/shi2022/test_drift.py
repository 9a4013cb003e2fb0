"""Classifier steps on the exact population, compared with the learner and by hand."""

import dataclasses
import math

import jax
import numpy as np
import pytest

from unlazy.learners.sources import PopulationGradients
from unlazy.papers.shi2022.classifier import drift
from unlazy.papers.shi2022.drift import ClassifierDrift, Weights, population_gradient
from unlazy.papers.shi2022.learner import TwoStep
from unlazy.papers.shi2022.setting import all_bits
from unlazy.tasks.dictionary.balance import BalancedParity


@pytest.mark.parametrize("background", [1e-6, 0.3, 2.0])
def test_the_gradient_is_the_sum_over_all_inputs(background):
    D, k, m = 8, 3, 7
    rng = np.random.default_rng(0)
    w = rng.normal(size=(m, D)) * np.where(np.arange(D) < k, 1, background)
    net = Weights(w, 0.3 * rng.normal(size=m), 0.3 * rng.normal(size=m))
    z = 2.0 * all_bits(D) - 1
    y = z[:, :k].prod(axis=1)
    p = 0.5**D / 2 + (np.abs(z[:, :k].sum(axis=1)) == k) * 0.5 ** (D - k) / 4
    x = z / math.sqrt(D)
    u = x @ w.T + net.b
    active = -y * p * (y * (np.clip(u, 0, 1) @ net.a) < 1)
    inside = ((u > 0) & (u < 1)) * active[:, None]
    expected = (net.a[:, None] * (inside.T @ x), net.a * inside.sum(0), active @ np.clip(u, 0, 1))
    for found, wanted in zip(population_gradient(net, k), expected, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-14)


def test_the_steps_are_those_of_the_learner():
    D, k, m, T = 8, 3, 12, 30
    sigma = math.sqrt(D) / 2
    schedule = TwoStep.theorem(k=k, m=m, T=T, gamma=0.25, sigma=sigma, batch=10)
    first = 0.25**2 * sigma / (k * m**3)
    learner = dataclasses.replace(schedule, first=first, noise=k**-1.5).network((2, 12))
    *features, classifier = learner.stages
    later = dataclasses.replace(classifier, batch=None, decay={"w": 0.9, "a": 0.9})
    learner = dataclasses.replace(learner, stages=(*features, later), source=PopulationGradients())
    task = BalancedParity(d=D, D=D, k=k, structure=0.5).task(key=jax.random.key(5))
    models = learner.fit(task.sampler, 100, key=jax.random.key(1)).models
    order = np.argsort(~np.asarray(task.relevant), kind="stable")
    w = (np.asarray(models.first_layer, float) @ np.asarray(task.dictionary).T)[..., order]
    nets = [
        Weights(*each) for each in zip(w, np.float64(models.b), np.float64(models.a), strict=True)
    ]
    steps = ClassifierDrift(D, k, m, rate=schedule.w_rate, decay=0.9, taken=(0, 10, T - 2))
    for found, wanted in zip(steps.train(nets[0]), nets, strict=True):
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.parametrize("name", ["no decay", "λ = 0.9"])
def test_weights_drift_less_than_the_bound(name):
    found = drift("smoke")[name].measure(key=jax.random.key(0))
    assert found["weights"][0] == 0
    for ratio in ("second_ratio", "weights_ratio", "biases_ratio", "sharp_ratio", "loss_ratio"):
        if (name, ratio) != ("λ = 0.9", "biases_ratio"):
            assert 0 < found[ratio][-1] <= 1 and np.all(np.diff(found[ratio]) >= 0)
    assert found["norm"] == pytest.approx(1)
    assert found["sharp_ratio"][-1] > found["weights_ratio"][-1]


def test_drift_by_hand():
    """The second neuron's weights move by 5; the bound is (0.1·10)² + 0.1·10·2 = 3."""
    w = np.zeros((3, 2, 2))
    w[:, :, 0] = 1
    w[1, 1] += (3, 4)
    w[2, 1] += (0, 1)
    b = np.zeros((3, 2))
    b[2, 0] = -2
    nets = [Weights(w[i], b[i], np.array([1.0, -2.0])) for i in range(3)]
    steps = ClassifierDrift(2, 1, 1, rate=0.1, taken=(0, 10, 20))
    found = steps.ratios(nets, np.array([[1.0, 0.0]]), np.ones(1), np.ones((1, 2)))
    np.testing.assert_allclose(found["weights"], [0, 5, 1])
    np.testing.assert_allclose(found["bound"], [0, 3, 8])
    # Ratios are maxima so far.
    np.testing.assert_allclose(found["weights_ratio"], [0, 5 / 3, 5 / 3])
    np.testing.assert_allclose(found["biases_ratio"], [0, 0, 2 / 6])
    # The largest feature is 1.
    np.testing.assert_allclose(found["sharp_ratio"], [0, 5 / 2.5, 5 / 2.5])
    np.testing.assert_allclose(found["second_ratio"], [0, 2 / 3, 2 / 3])
