import math

import jax
import numpy as np
import pytest

from unlazy.papers.glasgow2023.clean import BaseCase, CleanNeurons, Neuron, clean_gradient
from unlazy.papers.glasgow2023.constructed import (
    DIRECTIONS,
    LABELS,
    HeavyStep,
    descend,
    scores,
    signal_heavy,
)
from unlazy.tasks.spectrum import corners


def measured(computation, seed=0):
    with jax.enable_x64(True):
        return computation.measure(key=jax.random.key(seed))


def test_the_network_is_signal_heavy_exactly_as_defined():
    net = signal_heavy(np.random.default_rng(0), d=8, p=64)
    zeta, H = net.zeta, net.H
    other = np.abs(np.sum(net.w[:, :2] * DIRECTIONS[(net.cluster + 2) % 4], axis=1))
    rest = np.linalg.norm(net.w[:, 2:], axis=1)
    ratio = (math.exp(6 * H) * rest + other) / np.maximum(np.abs(net.signal), 1e-12)
    assert (
        zeta <= math.exp(-10 * H)
        and np.all(ratio[net.inside] <= zeta * (1 + 1e-9))
        and np.all(ratio[~net.inside] > zeta)
    )
    assert np.max(ratio[net.saturated]) == pytest.approx(zeta)
    square = np.sum(net.w**2, axis=1)
    margins = [
        np.mean(
            net.inside
            * (net.cluster == c)
            * np.abs(net.a)
            * np.maximum(math.sqrt(2) * net.signal, 0)
        )
        for c in range(4)
    ]
    assert np.mean(~net.inside * square) == pytest.approx(zeta * min(margins), rel=0.2)
    assert np.mean(square) <= np.mean(net.a**2) + zeta * H <= 2 * H and np.all(
        np.abs(net.a) <= np.sqrt(square) * (1 + 1e-12)
    )


def test_the_descent_direction_is_the_derivative_of_the_loss():
    net = signal_heavy(np.random.default_rng(1), d=6, p=16, loose=0.4)
    x = corners(6)
    y = -x[:, 0] * x[:, 1]

    def loss(w, a):
        return 2 * np.mean(np.logaddexp(0, -y * scores(net._replace(w=w, a=a), x)))

    found = descend(net, x, -2 * y / (1 + np.exp(y * scores(net, x))))
    for j, i in ((0, 0), (3, 4), (15, 2)):
        step = np.zeros_like(net.w)
        step[j, i] = 1e-6
        slope = (loss(net.w + step, net.a) - loss(net.w - step, net.a)) / 2e-6
        assert found.w[j, i] == pytest.approx(-len(net.a) * slope, abs=1e-7)
        step = np.zeros_like(net.a)
        step[j] = 1e-6
        slope = (loss(net.w, net.a + step) - loss(net.w, net.a - step)) / 2e-6
        assert found.a[j] == pytest.approx(-len(net.a) * slope, abs=1e-7)


def test_a_step_preserves_the_hypothesis_and_the_controls_do_not():
    right = measured(HeavyStep(8, 64))
    assert right["least_ratio"] > 0.999 and right["greatest_ratio"] < 1.001
    assert right["mass_rate"] < 1 and right["shape_rate"] < 0 and right["norm_rate"] < 1
    assert right["gap_rate"] < 1 and right["neuron_ratio"] > 0.999
    assert right["gap"] == pytest.approx(1, abs=1e-5) and right["zeta_met"] <= 1 + 1e-9
    frozen = measured(HeavyStep(8, 64, frozen=True, linear=True))
    assert (
        frozen["least_ratio"] < 0.7 and frozen["greatest_ratio"] > 1.05 and frozen["mass_rate"] > 1
    )
    assert frozen["gap_rate"] > 1 and frozen["neuron_ratio"] < 0.999
    loose = measured(HeavyStep(8, 64, loose=0.3))
    assert (
        loose["shape_rate"] > 1
        and loose["clean_first"] > 1
        and loose["zeta_met"] > 1
        and loose["margin_gap"] > 1
    )


def test_growth_of_margins_is_that_of_a_real_step():
    """Compute γ̃ before and after a step that is large enough for floating point."""
    net = signal_heavy(np.random.default_rng(2), d=8, p=64)
    x, eta = corners(8), 1e-6
    y = -x[:, 0] * x[:, 1]
    move = descend(net, x, -2 * y / (1 + np.exp(y * scores(net, x))))
    after = net._replace(w=net.w + eta * move.w, a=net.a + eta * move.a)

    def margin(net, c):
        return np.mean(
            net.inside * (net.cluster == c) * LABELS[c] * net.a * math.sqrt(2) * net.signal
        )

    for c in range(4):
        g = 2 / (
            1
            + math.exp(
                LABELS[c]
                * scores(net, np.concatenate([math.sqrt(2) * DIRECTIONS[c], np.zeros(6)])[None])[0]
            )
        )
        growth = (margin(after, c) / margin(net, c) - 1) / eta
        assert growth == pytest.approx(2 * math.sqrt(2) / 4 * g, rel=1e-3)


def test_clean_gradients_agree_with_draws():
    rng = np.random.default_rng(3)
    neuron = Neuron(0.7, 0.4, rng.normal(size=5) / 3, np.array([0.3, 1.1, 0.8, 1.7]))
    x = rng.choice([-1.0, 1.0], (400_000, 7))
    cluster = np.where(x[:, 0] != x[:, 1], np.where(x[:, 0] > 0, 0, 1), np.where(x[:, 0] > 0, 2, 3))
    w = np.concatenate(
        [neuron.signal * DIRECTIONS[0] + neuron.opposite * DIRECTIONS[2], neuron.perpendicular]
    )
    slope, z = -LABELS[cluster] * neuron.g[cluster], x @ w
    drawn = ((z > 0) * slope) @ x / len(x)
    found = clean_gradient(neuron)
    assert found.signal == pytest.approx(DIRECTIONS[0] @ drawn[:2], abs=0.005)
    assert found.opposite == pytest.approx(neuron.opposite * DIRECTIONS[2] @ drawn[:2], abs=0.005)
    assert found.rest == pytest.approx(neuron.perpendicular @ drawn[2:], abs=0.005)
    assert found.second == pytest.approx(np.mean(slope * np.maximum(z, 0)), abs=0.005)


def test_bounds_of_clean_gradients_are_tight_and_can_fail():
    right = measured(CleanNeurons(60, 6))
    assert (
        right["rest_ratio"] == pytest.approx(1)
        and right["opposite_slack"] >= 0
        and right["both_ratio"] >= 1
    )
    assert right["beyond"] == 0.5 and right["second_bound"] == pytest.approx(1)
    wrong = measured(CleanNeurons(60, 6, flip=-1.0, gain=1.5, short=2.0))
    assert wrong["rest_ratio"] < 0 and wrong["opposite_slack"] < 0 and wrong["both_ratio"] < 0
    assert wrong["beyond"] < 0.5 and wrong["second_bound"] > 1.4 and wrong["signal_error"] > 100
    assert measured(BaseCase(1e6, 20.0))["mass"] < 1 < measured(BaseCase(1e6, 4.0))["mass"]
