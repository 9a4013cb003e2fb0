import jax
import numpy as np
import pytest

from unlazy.papers.daniely2020.first_step import CancellingNeurons, FirstStepGradients
from unlazy.papers.daniely2020.initial_neurons import InitialNeurons
from unlazy.papers.daniely2020.separators import (
    ReadoutFeatures,
    ceiling_separator,
    levels,
    printed_separator,
    separator,
)
from unlazy.theory.parity_gradients import FirstGradients, composition

KEY = jax.random.key(0)


def test_probabilities_of_counts_are_those_of_random_neurons():
    n, k = 15, 3
    neurons = InitialNeurons.of(n, k)
    assert np.sum(neurons.probability) == pytest.approx(1, abs=1e-9)
    w = np.random.default_rng(0).integers(-1, 2, size=(40_000, n))
    plus, minus, outside = composition(w, np.arange(n) < k)
    for p, m, M in ((1, 1, 8), (0, 0, 7), (2, 1, 9)):
        exact = np.sum(
            neurons.probability[(neurons.plus == p) & (neurons.minus == m) & (neurons.outside == M)]
        )
        seen = np.mean((plus == p) & (minus == m) & (outside == M))
        assert abs(seen - exact) < 4 * np.sqrt(exact / 40_000)
    assert np.sum(neurons.probability[neurons.cancelling]) == pytest.approx(
        np.mean(plus == minus), abs=0.01
    )
    assert np.sum(InitialNeurons.of(n, k, cancelling=True).probability) == pytest.approx(
        np.sum(neurons.probability[neurons.cancelling])
    )


def test_the_lemmas_hold_and_smaller_bounds_do_not():
    found = FirstStepGradients((101, 201), 5).measure(key=KEY)
    assert (
        np.all(found["chance3"] <= 1)
        and np.all(found["chance4"] <= 1)
        and np.all(found["mean3"] <= 1)
    )
    assert (
        np.all(found["ratio6"] <= 1)
        and np.all(found["ratio12"] <= 1)
        and np.all(found["good"] >= 1)
    )
    wrong = FirstStepGradients((101, 201), 5, part="structured").measure(key=KEY)
    assert wrong["chance4"][-1] > 1 and wrong["mean3"][-1] > 1
    bent = FirstStepGradients((101, 201), 5, 0.5).measure(key=KEY)
    assert bent["ratio12"][-1] > 1 and bent["least_alpha"][-1] < 0.25


def test_alpha_is_half_of_the_printed_one():
    """The mean of z_j f σ' is φ up to k/√n on the all-equal half, and φ/2 on the mixture."""
    exact = FirstGradients(20_001, 7, 1 / 56)
    neuron = (np.array([2]), np.array([2]), np.array([13_300]))
    phi = exact.surely_rising(neuron[2])[0]
    assert exact.structured(*neuron).on_plus[0] == pytest.approx(phi, abs=0.06)
    assert exact.mixture(*neuron).on_plus[0] == pytest.approx(phi / 2, abs=0.03)
    assert exact.uniform(*neuron).on_plus[0] == 0 and 0.25 <= exact.mixture(*neuron).on_plus[0] <= 1


def test_cancelling_neurons_have_zero_gradients_off_the_parity():
    found = CancellingNeurons((21, 101), 5).measure(key=KEY)
    assert np.all(found["off"] < 1e-15) and np.all(found["bias"] < 1e-15)
    other = CancellingNeurons((21, 101), 5, 1).measure(key=KEY)
    assert np.all(other["off"] > 1e-3) and np.all(other["bias"] > 1e-2)


@pytest.mark.parametrize("k", range(3, 32, 2))
def test_the_separator_is_exact_for_odd_k(k):
    z = np.arange(-k, k + 1, 2)
    label = np.array([(-1.0) ** ((k - value) // 2) for value in z])
    psi = np.stack([np.maximum(-np.sign(r) * z + abs(r), 0.0) for r in levels(k)])
    assert np.allclose(separator(k) @ psi, label, atol=1e-9)
    assert np.min(label * (printed_separator(k) @ psi)) < -1
    assert np.min(label * (ceiling_separator(k) @ np.minimum(psi, 6.0))) >= 1 - 1e-8


def test_features_with_a_ceiling_are_not_approximated():
    free, cut = (
        ReadoutFeatures((3, 5, 7)).measure(key=KEY),
        ReadoutFeatures((3, 5, 7), ceiling=True).measure(key=KEY),
    )
    assert np.allclose(free["error"], 1) and np.all(free["wanted"] >= 1 - 1e-9)
    assert cut["error"][0] == pytest.approx(1) and np.all(cut["error"][1:] > 100)


def test_the_printed_initial_network_is_not_zero():
    draw = np.random.default_rng(0)
    n, k, q = 30, 3, 8
    w, b, u = (
        draw.integers(-1, 2, size=(q, n)),
        np.full(q, 1 / (8 * k)),
        draw.uniform(-n / k, n / k, size=q),
    )
    x = draw.choice([-1.0, 1.0], size=(50, n)) / np.sqrt(n)

    def network(w, b, u):
        return np.clip(x @ w.T + b, 0, 6) @ u

    assert np.allclose(network(w, b, u) + network(w, b, -u), 0)
    assert np.max(np.abs(network(w, b, u) + network(-w, -b, -u))) > 1
