"""The lemmas at small sizes, compared with direct computations."""

import itertools
import math

import jax
import numpy as np
import pytest
import scipy.special
import scipy.stats

from unlazy.lab.engines.local import LocalEngine
from unlazy.papers.shi2022.classifier import error_against_width
from unlazy.papers.shi2022.constants import (
    error_bound,
    lemma_15,
    lemma_20,
    lemma_24,
    theorem_26,
    theorem_34,
)
from unlazy.papers.shi2022.gradients import FirstGradient, FirstStep, SecondGradient
from unlazy.papers.shi2022.lemmas import MEETING_CONDITIONS, SECOND, SMALL_BOUNDS
from unlazy.papers.shi2022.population import background, components
from unlazy.papers.shi2022.readout import (
    GoodReadout,
    OnlineDescent,
    min_max_weight,
    on_rows,
    smallest,
)


def test_constants_of_the_general_theorem():
    general, plain = (
        f(k=5, m=300, T=600, gamma=0.25, sigma=5.0, **more)
        for f, more in ((theorem_34, {"D": 100, "p_min": 0.3}), (theorem_26, {}))
    )
    assert general.noise == pytest.approx(5**-1.5) and general.w_scale == pytest.approx(5 / 30_000)
    assert general.first == pytest.approx(plain.first * 0.3 / 5)
    assert (general.second, general.rest, general.a_scale) == (
        plain.second,
        plain.rest,
        plain.a_scale,
    )


def test_bounds_by_hand():
    assert error_bound(k=2, m=8, T=4) == pytest.approx(256 / 4 + 8 * 4 / 64 + 4 * 4 / 4)
    assert lemma_24(steps=10, rate=0.1, decay=0.5, a=2.0, w=3.0) == pytest.approx(
        (3.0, 3.0 + 3.0, 3.0)
    )
    bound = lemma_15(D=100, k=5, m=8, po=0.5, sigma=5.0)
    assert bound.background == pytest.approx(
        0.01 * bound.error * 5
    ) and bound.relevant == pytest.approx(bound.error / 5)
    second = lemma_20(D=100, k=5, m=8, sigma=5.0, gamma=0.25, eta=0.1, a=2.0, noise=0.5)
    assert second.error == pytest.approx(
        0.1 * 2 * 5 * (0.25 + bound.error) / 12.5
    ) and second.background == pytest.approx(0.05 * second.error)
    assert second.relevant == pytest.approx(second.error / 5 + 0.2 + 0.1 * 2 * bound.error / 2.5)


@pytest.mark.parametrize(
    ("k", "D", "noise", "b", "scale", "mean"),
    [
        (3, 8, 0.3, 0.1, 0.5, 0),
        (3, 8, 0.05, 0.02, 0.1, 0),
        (3, 9, 0.3, 0.1, 2, 0.7),
        (5, 9, 0.1, -0.05, 0.3, 0.3),
    ],
)
def test_the_population_gradient_equals_the_sum_over_all_inputs(k, D, noise, b, scale, mean):
    q, sigma = scale * np.random.default_rng(k).normal(size=D), math.sqrt(D) / 2
    z = np.array(list(itertools.product((-1, 1), repeat=D)))
    equal = np.all(z[:, :k] == z[:, :1], axis=1)
    weight = 0.5 * 0.5**D + 0.5 * equal * 0.5 * 0.5 ** (D - k)
    y = np.prod(z[:, :k], axis=1) + mean
    cdf = scipy.special.ndtr

    def ramp(v):
        return v * cdf(v / noise) + noise * scipy.stats.norm.pdf(v / noise)

    u = z @ q / (2 * sigma) + b
    active = cdf(u / noise) - cdf((u - 1) / noise)
    rest = z[:, k:] @ q[k:] / (2 * sigma) + b
    found = components(q[:k], q[k:], b, noise, mean=mean)
    expected = (weight * y * active) @ z / (2 * sigma)
    np.testing.assert_allclose(np.r_[found.on, found.off], expected, atol=1e-13)
    assert found.bias == pytest.approx(weight @ (y * active), abs=1e-13)
    assert found.second == pytest.approx(weight @ (y * (ramp(u) - ramp(u - 1))), abs=1e-13)
    assert found.beta == pytest.approx(
        np.mean(cdf(rest / noise) - cdf((rest - 1) / noise)), abs=1e-13
    )


def test_series_and_products_agree():
    """Small components by power sums and by products."""
    rng = np.random.default_rng(0)
    x, w = 1e-3 * rng.normal(size=500), np.linspace(0.1, 60, 20)
    np.testing.assert_allclose(
        background(x, w), np.prod(np.cos(np.outer(w, x)), axis=1), rtol=1e-12
    )
    q = rng.normal(size=4500) / 5
    series, plain = components(q[:5], q[5:], 0.01, 0.1), components(q[:5], q[5:] + 0, 0.01, 0.1)
    z = 2.0 * (rng.random((2000, 4500)) < 0.5) - 1
    u = z @ q / math.sqrt(4500) + 0.01
    assert series.beta == pytest.approx(
        np.mean(scipy.special.ndtr(u / 0.1) - scipy.special.ndtr((u - 1) / 0.1)), abs=0.05
    )
    assert series.beta == plain.beta


def test_relevant_components_dominate_the_first_gradient():
    found = FirstGradient(5, 2, 2, sizes=(200, 800)).measure(key=jax.random.key(0))
    assert (
        np.all(found["relevant"] > 50 * found["background"])
        and np.all(found["error"] < 0.1)
        and np.all(found["relevant_ratio"] < 1)
    )
    assert found["relevant_exponent"][0] == pytest.approx(-0.5, abs=0.1)
    wrong = FirstGradient(5, 2, 2, 1, sizes=(200, 800)).measure(key=jax.random.key(0))
    assert np.all(wrong["error"] > 0.9) and np.all(wrong["share"] > 0.9)


def test_the_second_step_improves_the_weights():
    found = SecondGradient(5, 8, 2, D=200).measure(key=jax.random.key(0))
    assert (
        found["gain"] > 3
        and found["margin"] < 1
        and found["background_ratio"] < 1
        and found["relevant_ratio"] < 1
    )
    assert SecondGradient(5, 8, 2, 1, 1.0, D=200).measure(key=jax.random.key(0))["gain"] < 1


@pytest.mark.parametrize("scale", ["laptop", "paper"])
def test_conditions_are_met_as_documented(scale):
    for sizes in (MEETING_CONDITIONS[scale], SECOND[scale]):
        assert (
            sizes.k >= math.log(max(sizes.D) * sizes.m / 0.05) ** 2
            and min(sizes.D) >= 2 * sizes.k**2
            and sizes.k % 2
        )
    assert (
        lemma_15(
            D=max(SMALL_BOUNDS[scale].D),
            k=5,
            m=8,
            po=0.5,
            sigma=math.sqrt(max(SMALL_BOUNDS[scale].D)) / 2,
        ).error
        < 0.1
    )


def joined(row, seeds=(10,), engine=None):
    """Run an arm and return its records."""
    trials = row.trials(seeds)
    found = {record.key: record for record in (engine or LocalEngine()).run(trials)}
    return row.join([found[trial.key] for trial in trials], seeds)


@pytest.mark.slow
def test_errors_over_the_width():
    (found,) = joined(error_against_width((2, 4), 500, batch=100, D=8))
    assert found.steps == (2, 4)
    for index, m in enumerate((2, 4)):
        assert found.measurements["error"][index] == pytest.approx(
            1 - found.measurements["test_accuracy"][index] / 100
        )
        assert found.measurements["bound"][index] == error_bound(
            k=3, m=m, T=max(4, round(m ** (4 / 3)))
        )
    assert found.measurements["loss"] == found.measurements["test_loss"]


def test_the_minimal_maximum_weight_by_hand():
    """Margins 2a₁ ≥ 1 and a₁ + a₂ ≥ 1 are met by weights of ½; margins of opposite sign by none."""
    assert min_max_weight(np.array([[2.0, 0.0], [1.0, 1.0]])) == pytest.approx((0, 0.5))
    loss, _ = min_max_weight(np.array([[1.0], [-1.0]]))
    assert loss == pytest.approx(1)


def test_features_after_two_steps_carry_the_parity():
    good, bad = (GoodReadout(6, 3, 40, steps).measure(key=jax.random.key(1)) for steps in (2, 0))
    assert good["loss"] == 0 and good["greatest"] < 256 and good["second"] < 1
    assert bad["greatest"] > 10 * good["greatest"]


@pytest.mark.slow
def test_the_regret_of_online_descent():
    good, bad = (
        OnlineDescent(T=40, sequences=3, convex=convex).measure(key=jax.random.key(0))
        for convex in (True, False)
    )
    assert (
        good["broken"] == 0 and 0 < good["tightness"] < 1 < bad["tightness"] and bad["broken"] > 0
    )


def test_initial_neurons_are_typical():
    """With δ so large that most draws are rejected, all neurons are within the bounds."""
    neurons = FirstStep(3, 1, 1, D=40)
    rng = np.random.default_rng(0)
    draws = [neurons.initial(40, rng) for _ in range(200)]
    limit = math.sqrt(2 * math.log(1 / 0.05))
    assert max(abs(b) for _, b, _ in draws) <= limit / 9
    assert max(abs(a) for _, _, a in draws) <= limit * 10 / (0.25 * 9)
    assert max(np.max(np.abs(q)) for q, _, _ in draws) <= math.sqrt(2 * math.log(40 / 0.05)) / 3


def test_the_first_step_forgets_the_initial_weights():
    found = FirstStep(5, 2, 2, D=800).measure(key=jax.random.key(0))
    assert found["error"] < 0.05 and found["share"] < 0.05
    assert all(found[f"{name}_ratio"] < 1 for name in ("relevant", "background", "bias", "second"))
    kept = FirstStep(5, 2, 2, D=800, kept=1.0).measure(key=jax.random.key(0))
    assert kept["background_ratio"] > 1 and kept["share"] > 0.1


def test_growing_rows_give_the_minimum_over_all_rows():
    rng = np.random.default_rng(0)
    signed = rng.normal(size=(3000, 4)) + 2.0
    whole = smallest(signed)
    grown = on_rows(signed, smallest, added=10)
    assert grown.value == pytest.approx(whole.value, rel=1e-6)
    assert np.min(signed @ grown.a) > 1 - 1e-5
