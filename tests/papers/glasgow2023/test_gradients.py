import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unlazy.papers.glasgow2023.gradients import (
    SignSum,
    phase1_slope,
    population_gradient,
    rotation_invariant_bound,
)
from unlazy.tasks.spectrum import corners


def descent(w, a, x):
    """−∇_w L₀ = a·E[y·σ'(⟨w, x⟩)·x] over the given points, with σ'(0) = ½."""
    z = x @ w
    return a * np.mean(
        (-x[:, 0] * x[:, 1] * ((z > 0) + 0.5 * (np.abs(z) < 1e-12)))[:, None] * x, axis=0
    )


def split(w, a):
    """w_sig and w_opp in the first two coordinates."""
    first, second = np.array([1, -1]) * (w[0] - w[1]) / 2, np.full(2, (w[0] + w[1]) / 2)
    return (first, second) if a > 0 else (second, first)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.integers(3, 12), st.integers(0, 2**32 - 1), st.sampled_from([-0.7, 1.3]), st.booleans())
def test_the_exact_gradient_equals_enumeration(d, seed, a, on_grid):
    rng = np.random.default_rng(seed)
    w = rng.integers(-3, 4, d) / 4.0 if on_grid else rng.normal(size=d)  # a grid has ties
    signal, opposite = split(w, a)
    exact = population_gradient(
        float(np.linalg.norm(signal)), float(np.linalg.norm(opposite)), w[2:], a
    )
    found = descent(w, a, corners(d))
    assert exact.signal == pytest.approx(signal @ found[:2], abs=1e-9)
    assert exact.opposite == pytest.approx(opposite @ found[:2], abs=1e-9)
    assert exact.rest == pytest.approx(w[2:] @ found[2:], abs=1e-9)
    np.testing.assert_allclose(exact.coordinates, w[2:] * found[2:], atol=1e-9)
    assert exact.rest == pytest.approx(float(np.sum(exact.coordinates)), abs=1e-9)


@pytest.mark.parametrize("k", [20, 36, 37, 80])
def test_the_distribution_of_a_sum_of_signs_agrees_with_draws(k):
    """Enumeration up to 36 weights, Fourier inversion above."""
    rng = np.random.default_rng(k)
    v = rng.normal(size=k) / np.sqrt(k)
    distribution = SignSum(v)
    assert distribution.listed == (k <= 36)
    x = (2 * rng.integers(0, 2, (100_000, k)) - 1) @ v
    assert distribution.within(0.3) == pytest.approx(np.mean(np.abs(x) < 0.3), abs=0.006)
    assert distribution.between(0.1, 0.9) == pytest.approx(
        np.mean((x > 0.1) & (x < 0.9)), abs=0.006
    )
    inside = (np.abs(x) > 0.2) & (np.abs(x) < 1)
    assert distribution.absolute_between(0.2, 1.0) == pytest.approx(
        np.mean(np.abs(x) * inside), abs=0.006
    )
    assert distribution.between(1.0, 0.5) == distribution.absolute_between(1.0, 0.5) == 0


def test_both_methods_for_the_distribution_agree():
    v = np.random.default_rng(1).normal(size=34) / np.sqrt(34)
    listed, inverted = SignSum(v), SignSum(np.concatenate([v, np.zeros(3)]))
    assert listed.listed and not inverted.listed
    for c in (0.05, 0.3, 1.0):
        assert inverted.within(c) == pytest.approx(listed.within(c), abs=1e-4)
        assert inverted.absolute_between(0.02, c) == pytest.approx(
            listed.absolute_between(0.02, c), abs=1e-4
        )


def test_the_signal_rate_tends_to_its_limit():
    """−⟨w_sig, ∇⟩ ≈ τ·‖w_sig‖²·|a|/‖w‖ for a small signal in many dimensions, and the opposite part
    shrinks at that rate.
    """
    w = np.random.default_rng(2).normal(size=400)
    w /= np.linalg.norm(w)
    found = population_gradient(0.02, 0.02, w, 1.0, coordinates=False)
    assert found.signal / 0.02**2 == pytest.approx(1 / math.sqrt(2 * math.pi), rel=0.01)
    assert found.opposite == -found.signal and found.rest == 0
    assert float(phase1_slope(1e-6)) == pytest.approx(1 / math.sqrt(2 * math.pi), rel=1e-5)


def test_the_lower_bound_is_vacuous_at_first_and_then_holds():
    assert rotation_invariant_bound(128).error == 0
    assert rotation_invariant_bound(1200).error == pytest.approx(0.0375, abs=1e-4)
    # Six times the examples leave no bound.
    assert rotation_invariant_bound(1200, 140).error == 0
