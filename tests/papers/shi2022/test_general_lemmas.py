"""The lemmas of the general setting at small sizes, compared with direct computations."""

import math

import jax
import numpy as np
import pytest

from unlazy.papers.shi2022.constants import lemma_40, lemma_45
from unlazy.papers.shi2022.general_neurons import (
    GeneralFirstStep,
    GeneralSecondGradient,
    general_components,
    hidden_vectors,
    smoothed,
)
from unlazy.papers.shi2022.general_readout import GeneralReadout, WeightedGradients
from unlazy.papers.shi2022.population import components
from unlazy.papers.shi2022.probability import GeneralInitialization
from unlazy.papers.shi2022.setting import gradients
from unlazy.tasks.dictionary.incoherent import GeneralParity

KEY = jax.random.key(3)
SMALL = GeneralParity(d=12, D=8, k=3, coherence=0.002)


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def test_bounds_by_hand():
    first = lemma_40(
        D=4, d=9, k=3, sigma=2.0, w_scale=0.1, noise=0.5, input_noise=0.1, quiet=0.25, delta=0.05
    )
    error = (4 / 2 + 3 * 0.1) * 0.1 * math.sqrt(2 * math.log(80)) / (2 * 0.5)
    assert first == pytest.approx(
        (error, error / 2, 0.25 * error * 2, 0.05 * math.sqrt(math.log(3)) * error)
    )
    second = lemma_45(
        k=3,
        sigma=2.0,
        gamma=0.25,
        eta=0.1,
        a=2.0,
        noise=0.5,
        input_noise=0.1,
        quiet=0.25,
        first=0.1,
    )
    error = 0.1 * 2 * 3 * 0.35 / (4 * 0.5)
    assert second == pytest.approx(
        (error, error / 2 + 0.2 + 0.1 * 2 * 0.1, 0.25 * error * 2, 0.1 * 0.1 / (0.25 * 0.5))
    )


def test_smoothing_has_the_derivative_of_the_ramp():
    u, step = np.linspace(-1, 2, 31), 1e-5
    inside, slope, _ = smoothed(u, 0.3)
    up, down = smoothed(u + step, 0.3), smoothed(u - step, 0.3)
    np.testing.assert_allclose((up[2] - down[2]) / (2 * step), inside, atol=1e-9)
    np.testing.assert_allclose((up[0] - down[0]) / (2 * step), slope, atol=1e-8)


def test_hidden_vectors_have_the_moments_of_the_setting():
    of = hidden_vectors(SMALL, KEY)
    assert of.probability.sum() == pytest.approx(1) and abs(of.signed.sum()) < 1e-15
    np.testing.assert_allclose(of.probability @ of.phi, 0, atol=1e-7)
    np.testing.assert_allclose(of.signed @ of.phi[:, :3], of.gamma / of.sigma, rtol=1e-6)
    np.testing.assert_allclose(of.signed @ of.phi[:, 3:], 0, atol=1e-15)
    spread = of.probability @ of.phi[:, 3:] ** 2
    np.testing.assert_allclose(spread, of.quiet, rtol=1e-6)
    # The hidden sign makes background patterns depend on each other.
    assert of.probability @ (of.phi[:, 3] * of.phi[:, 4]) == pytest.approx(
        SMALL.swing**2 / of.sigma**2
    )
    assert of.p_min == pytest.approx(0.3) and 0 < of.crowding < 1 / 16 and 0.4 < of.density < 1
    assert abs(hidden_vectors(SMALL, KEY, weighted=False).signed.sum() + 0.4) < 1e-7


def test_gradients_equal_a_mean_over_examples():
    """T_j, ν, T_b and T_a of a large neuron, against the formulas on drawn examples."""
    of, rng, n = hidden_vectors(SMALL, KEY), np.random.default_rng(0), 400_000
    of = of._replace(noise=0.5)
    w, b, noise = 2 * of.M[:3].sum(axis=0) + 0.3 * rng.normal(size=12), 0.3, 0.2
    chosen = rng.choice(len(of.y), size=n, p=of.probability / of.probability.sum())
    zeta = of.noise * rng.normal(size=(n, 12)) / of.sigma
    x = of.phi[chosen] @ of.M + zeta
    weight = np.abs(of.signed / of.probability)[chosen] / n
    found = general_components(of, w, b, noise)
    by_w, by_b, by_a = gradients(
        w[None], np.array([b]), np.array([1e-9]), x, of.y[chosen], weight, noise
    )
    np.testing.assert_allclose(-by_w[0] / 1e-9, found.T @ of.M + found.nu, atol=0.0015)
    assert np.max(np.abs(found.nu)) > 0.006, "the noise matters in this test"
    assert -by_b[0] / 1e-9 == pytest.approx(found.bias, abs=0.005)
    assert -by_a[0] == pytest.approx(found.second, abs=0.005)


def test_the_general_setting_contains_the_plain_one():
    """Without noise, with orthogonal patterns, equal classes and rates ½, the gradients are those
    of the parity mixture.
    """
    family = GeneralParity(
        d=8, D=8, k=3, coherence=0.0, noise=0.0, negative=0.5, lowest=0.5, highest=0.5, swing=0.0
    )
    of = hidden_vectors(family, KEY)
    w = np.random.default_rng(1).normal(size=8)
    found, q = general_components(of, w, 0.1, 0.3), of.M @ w
    plain = components(q[:3], q[3:], 0.1, 0.3)
    np.testing.assert_allclose(found.T, np.r_[plain.on, plain.off], atol=1e-9)
    assert (found.bias, found.second, found.beta) == pytest.approx(
        (plain.bias, plain.second, plain.beta), abs=1e-9
    )
    assert np.all(found.nu == 0)


def test_the_first_step_and_its_controls():
    right = GeneralFirstStep(SMALL, 16, 3).measure(key=KEY)
    names = [name for name in right if name.endswith("ratio") or name.startswith("after")]
    assert len(names) == 8 and all(right[name] < 0.5 for name in names)
    wrong = GeneralFirstStep(SMALL, 16, 3, weighted=False, mistaken=1, kept=0.01).measure(key=KEY)
    assert all(wrong[name] > 1 for name in names if name != "noise_ratio")
    assert right["noise_ratio"] < 1e-5 < wrong["noise_ratio"]


def test_the_second_gradient_and_its_controls():
    right = GeneralSecondGradient(SMALL, 16, 3, examples=500).measure(key=KEY)
    names = ("relevant_ratio", "background_ratio", "bias_ratio", "second_ratio")
    assert all(right[name] < 1 for name in (*names, "margin", "reach_ratio", "noise_reach"))
    assert right["reach_sharp"] == pytest.approx(1, abs=0.05)
    wrong = GeneralSecondGradient(SMALL, 16, 3, weighted=False, mistaken=1, examples=500)
    found = wrong.measure(key=KEY)
    assert all(found[name] > 1 for name in names) and found["reach_sharp"] < 0.95
    assert GeneralSecondGradient(SMALL, 16, 3, rate=1e8).measure(key=KEY)["margin"] > 1


def test_features_after_two_steps_carry_the_label():
    good, bad = (
        GeneralReadout(SMALL, 40, 0, examples=500, steps_taken=steps).measure(key=KEY)
        for steps in (2, 0)
    )
    assert good["loss"] < 0.05 and good["greatest"] < 512 and good["second"] < 1
    assert bad["loss"] == 1 and bad["greatest"] > 1000


@pytest.mark.slow
def test_gradients_with_class_weights():
    family = GeneralParity(d=12, D=8, k=3)
    right, printed, plain = (
        WeightedGradients(family, examples=300, **how).measure(key=KEY)
        for how in ({}, {"printed": True}, {"weighted": False})
    )
    assert all(value < 1e-12 for value in right.values())
    assert printed["biases"] > 1e-3 > printed["weights"] and all(v > 1e-3 for v in plain.values())


def test_typical_initialization_under_an_incoherent_dictionary():
    right, wrong = (
        GeneralInitialization(200, 100, coherence=0.0005, draws=4_000, wider=wider).measure(key=KEY)
        for wider in (1.0, 1.5)
    )
    for name in ("largest", "energy", "length", "all_largest", "all_energy"):
        assert right[name] <= 1 < wrong[name]
    assert right["crowding"] < 1 / 16
