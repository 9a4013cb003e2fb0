import itertools

import jax
import numpy as np
import pytest
import scipy.stats

from unlazy.papers.daniely2020.first_step import (
    CancellingNeurons,
    FirstStepGradients,
    FunctionsOnParity,
)
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


def test_half_of_phi_is_a_quarter_minus_a_tail():
    """For odd |J| half of φ is smaller than 1/4, by a tail of 6.9e-14 at n = 155,001."""
    n, k, J = 155_001, 7, 103_329
    b, root = 1 / (8 * k), np.sqrt(n)
    assert k / root < b < k / root + 1 / root  # the sum over J, times √n, is at least 1
    last = np.ceil((6 - k / root - b) * root) - 1  # and at most this
    tail = scipy.stats.binom.sf(np.floor((last + J) / 2), J, 0.5)
    assert tail / 2 == pytest.approx(6.9e-14, rel=0.01)
    phi = FirstGradients(n, k, b).surely_rising(np.array([J, J + 1]))
    assert phi[0] / 2 == pytest.approx(0.25 - tail / 2, abs=1e-15) and phi[0] / 2 < 0.25
    assert phi[1] / 2 > 0.25 + 1e-4


def test_initial_weights_are_not_near_one_number():
    w = np.random.default_rng(0).integers(-1, 2, size=(1000, 200))
    assert np.min(np.max(w, axis=1) - np.min(w, axis=1)) >= 1


def test_from_the_printed_initial_network_lemmas_7_and_12_are_false():
    """The first step from the printed pairs, on 10,000 inputs of 4,001 bits."""
    n, k, q, count = 4001, 3, 4, 10_000
    draw = np.random.default_rng(3)
    z = draw.integers(0, 2, size=(count, n), dtype=np.int8) * 2 - 1
    z[: count // 2, :k] = z[: count // 2, :1]
    y = np.prod(z[:, :k], axis=1)
    w = draw.integers(-1, 2, size=(q, n)).astype(np.float32)
    u = draw.uniform(-n / k, n / k, size=q)
    h = z.astype(np.float32) @ w.T / np.sqrt(n) + 1 / (8 * k)
    printed = (np.clip(h, 0, 6) - np.clip(-h, 0, 6)) @ u
    for active, fails in ((np.ones(count, bool), False), (y * printed < 1, True)):
        second = (y * active) @ np.clip(h, 0, 6) / count
        signal = z[:, :k].T @ ((y * active)[:, None] * (h > 0)) / count
        assert (np.max(np.abs(second)) > k / np.sqrt(n) + 0.02) == fails
        assert (np.max(signal) < 0.2) == fails


@pytest.mark.parametrize("k", range(7, 32, 2))
def test_twice_the_separator_of_the_proof_has_margin_one(k):
    """With features within 2ε of ψ_r, ε = 1/(10k), the margin is at least 1 − Σ|c_r|·2ε > 1/2."""
    assert 0.5 < 1 - np.sum(np.abs(separator(k))) / (5 * k) < 1


def test_the_maximum_over_functions_is_that_over_all_of_them():
    """All 2^8 functions of three bits, by enumeration of the inputs of nine bits."""
    n, k = 9, 3
    z = np.array(list(itertools.product((-1, 1), repeat=n)))
    equal = np.abs(z[:, :k].sum(axis=1)) == k
    weight = 0.5 / len(z) + 0.5 * equal / equal.sum()
    code = (z[:, :k] > 0) @ (1 << np.arange(k))
    draw, largest = np.random.default_rng(0), 0.0
    exact = FirstGradients(n, k, 1 / (8 * k))
    for w in draw.integers(-1, 2, size=(300, n)):
        M = np.count_nonzero(w[k:])
        if M == 0:
            continue
        s = z @ w / np.sqrt(n) + 1 / (8 * k)
        rising = weight * ((s > 0) & (s < 6))
        for values in itertools.product((-1, 1), repeat=2**k):
            h = np.array(values)[code]
            gap = abs(h @ rising - weight @ h * exact.surely_rising(np.array([M]))[0])
            largest = max(largest, gap / ((3 * k + 1) * np.sqrt(2 / (np.pi * M))))
    found = FunctionsOnParity((n,), k).measure(key=KEY)["ratio_all"][0]
    assert largest <= found + 1e-12 and largest == pytest.approx(found, rel=0.05)
    assert FunctionsOnParity((n,), k, 3.0).measure(key=KEY)["ratio_all"][0] > 1


def test_features_are_approximated_for_every_tolerance():
    found = ReadoutFeatures((3, 7), fractions=(0.01, 0.5, 1.0)).measure(key=KEY)
    assert np.all(found["wanted"] >= 1 - 1e-9) and np.allclose(found["error"], 1)
