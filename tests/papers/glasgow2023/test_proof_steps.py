"""Steps of the proofs: computations versus enumeration, and their negative controls."""

import math

import jax
import numpy as np
import pytest

from unlazy.papers.glasgow2023.computations import ReducedTimes
from unlazy.papers.glasgow2023.proof_computations import (
    HelperRecursion,
    LossDerivatives,
    SmallBalls,
    StrongNeurons,
)
from unlazy.papers.glasgow2023.reduced import flow, initial, margins, simulate
from unlazy.tasks.spectrum import corners


def measured(computation, seed=0):
    with jax.enable_x64(True):
        return computation.measure(key=jax.random.key(seed))


def test_small_balls():
    found = measured(SmallBalls(d=500))
    assert min(found["equal"], found["random"], found["suffix"]) >= 1
    assert found["escaped"] == 0 and found["well_spread"] == 1
    assert measured(SmallBalls(d=500, stretch=10.0))["equal"] == 0


def test_equal_coordinates_are_counted_as_by_enumeration():
    """C = 1: two equal coordinates violate the bound, so that C must be larger."""
    sums = np.abs(np.sum(corners(2), axis=1))
    expected = math.sqrt(2) * np.mean(sums <= 1)
    assert measured(SmallBalls(d=500, constant=1.0))["equal"] == pytest.approx(expected)
    assert expected < 1


def test_loss_derivatives():
    found = measured(LossDerivatives(6, 20))
    # ℓ'_ρ − ℓ'_0 = tanh(f/2) is ½-Lipschitz in f, and f changes by at most 2·E|a·w_i|.
    assert 0 < found["flipped_square"] <= 1 / 16 + 1e-12
    assert 0 < found["mean_square"] <= 1 / 16
    assert measured(LossDerivatives(6, 20, gain=20.0))["mean_square"] > 1


def test_the_closed_form_of_the_recursion_bounds_random_vectors():
    found = measured(HelperRecursion())
    assert 0.8 < found["growth"] <= 1 <= found["largest_constant"] < 10
    assert measured(HelperRecursion(boost=3.0))["growth"] > 1
    rng, theta, B = np.random.default_rng(0), 0.1, 1.0
    eta, x, Q = theta**2, math.sqrt(theta), 0.3
    square = Q**2 + theta * B**2
    worst = 0.0
    for _ in range(2000):
        u, G, noise = (v / np.linalg.norm(v) for v in rng.normal(size=(3, 3)))
        u, G = math.sqrt(square) * u, B * G
        if -u @ G <= x * square:
            grown = np.sum((u - eta * (G + theta * B * noise)) ** 2) / square
            worst = max(worst, (grown - 1) / (5 * eta * x))
    assert 0.3 < worst <= found["growth"]


def test_strong_neurons():
    found = measured(StrongNeurons())
    assert min(found["dominant"], found["spread_out"]) >= 1
    sparse = measured(StrongNeurons(sparse=True))
    assert max(sparse["dominant"], sparse["spread_out"]) < 1


def test_the_flow_is_the_limit_of_small_steps():
    with jax.enable_x64(True):
        start = initial(50, 1e4, 0.2, key=jax.random.key(0))
        path = flow(start, 60, jax.numpy.asarray(0.2), jax.numpy.asarray(1.0))
        steps = simulate(start, 1200, 0.01, key=jax.random.key(1), d=1e4)
        last = margins(jax.tree.map(lambda leaf: leaf[-1], steps))
    np.testing.assert_allclose(path[-1], last, rtol=0.05, atol=1e-4)


@pytest.mark.slow
def test_time_per_log_d_falls_with_the_dimension():
    found = measured(ReducedTimes((10**6, 10**12), width=100))
    assert found["share"][1] < 3 < found["share"][0]
    assert np.all(found["share"] < found["share_printed"])
    assert np.all(np.isinf(measured(ReducedTimes((10**6,), width=50, second=0.0))["share"]))
