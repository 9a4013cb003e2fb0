"""Fits within the span of some points: the exact fit where all points are landmarks, near it where
most are, and what is chosen.
"""

from __future__ import annotations

import numpy as np
import pytest

from unlazy.core.errors import BadInput
from unlazy.kernels.stationary import RBF, Laplace
from unlazy.kernels.wide import NTK
from unlazy.solvers import landmarks as marks
from unlazy.solvers.exact import Solution
from unlazy.solvers.landmarks import fit_landmarks
from unlazy.solvers.policy import EXACT_POINTS, choose, fit_kernel
from unlazy.solvers.ridge import double_gram, fit_gram

DRAW = np.random.default_rng(0)
X = DRAW.standard_normal((300, 4))
Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2]]) + 0.1 * DRAW.standard_normal((300, 2))
NEW = DRAW.standard_normal((50, 4))


def predicted(kernel, points, fit):
    return Solution(kernel, points, fit.coefficients, "float64").predict(NEW) + fit.intercept


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kernel", [RBF(0.3), Laplace(0.5), NTK(1, "relu", 2.0, 0.1)])
def test_with_all_points_as_landmarks_it_is_the_exact_fit(kernel, intercept, monkeypatch):
    monkeypatch.setattr(marks, "BLOCK", 64)  # several blocks, of which the last is smaller
    weight = DRAW.uniform(0.5, 2, len(X))
    exact = fit_gram(double_gram(kernel, X), Y + 3, 0.05, weight=weight, intercept=intercept)
    points, fit = fit_landmarks(kernel, X, Y + 3, 0.05, weight=weight, intercept=intercept)
    assert len(points) == len(X) and fit.ridge == 0.05
    np.testing.assert_allclose(
        predicted(kernel, points, fit), predicted(kernel, X, exact), atol=1e-5
    )


def test_a_weight_of_two_is_the_point_twice_and_a_point_that_is_there_twice_is_one_landmark():
    twice = np.concatenate([X, X[:40]])
    weight = np.ones(len(X))
    weight[:40] = 2
    first = fit_landmarks(RBF(0.3), twice, np.concatenate([Y, Y[:40]]), 0.1)
    second = fit_landmarks(RBF(0.3), X, Y, 0.1, weight=weight)
    assert len(first[0]) == len(second[0]) == len(X)
    np.testing.assert_allclose(predicted(RBF(0.3), *first), predicted(RBF(0.3), *second), atol=1e-6)


def test_the_ridge_is_chosen_by_points_that_are_held_out():
    """Noise selects a larger ridge; errors are those of the ridges tried around the best."""
    noisy = fit_landmarks(Laplace(0.5), X, DRAW.standard_normal((300, 1)), landmarks=150)[1]
    clean = fit_landmarks(Laplace(0.5), X, np.sin(X[:, :1]), landmarks=150)[1]
    assert noisy.ridge > 3 * clean.ridge
    for fit in (noisy, clean):
        looked = np.flatnonzero(~np.isnan(fit.errors))
        assert 1 < len(looked) < len(fit.ridges) and np.array_equal(
            looked, np.arange(looked[0], looked[-1] + 1)
        )
        assert fit.ridge == fit.ridges[np.nanargmin(fit.errors)]


def test_equal_points_are_held_out_together():
    """Targets of pairs are noise; if one of a pair were held out, the other would determine it."""
    pairs, noise = np.repeat(X, 2, axis=0), np.repeat(DRAW.standard_normal((300, 1)), 2, axis=0)
    assert np.nanmin(fit_landmarks(Laplace(0.5), pairs, noise)[1].errors) > 0.5


def test_few_landmarks_suffice_for_a_smooth_function():
    exact = fit_kernel(RBF(0.3), X, Y, solver="exact")
    some = fit_kernel(RBF(0.3), X, Y, solver="landmarks")
    points, fit = fit_landmarks(RBF(0.3), X, Y, landmarks=150)
    full = np.mean(
        np.square(
            predicted(RBF(0.3), X, exact.fit)
            - np.column_stack([np.sin(2 * NEW[:, 0]), NEW[:, 1] * NEW[:, 2]])
        )
    )
    few = np.mean(
        np.square(
            predicted(RBF(0.3), points, fit)
            - np.column_stack([np.sin(2 * NEW[:, 0]), NEW[:, 1] * NEW[:, 2]])
        )
    )
    assert len(points) == 150 and few < 1.5 * full and some.choice.method == "landmarks"


def test_they_are_chosen_for_many_points_where_the_memory_allows_it():
    n = EXACT_POINTS + 1
    assert choose(n, "choice", memory=marks.landmark_bytes(n)).method == "landmarks"
    assert choose(n, "choice", memory=marks.landmark_bytes(n) - 1).method == "cg"


def test_a_ridge_of_zero_is_refused():
    with pytest.raises(BadInput, match="ridge must be finite and > 0"):
        fit_landmarks(RBF(0.3), X, Y, 0.0)
