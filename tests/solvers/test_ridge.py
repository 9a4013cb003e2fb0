"""Ridge regression against scikit-learn, against refitting and against repeated examples."""

import dataclasses

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from unlazy.core.errors import BadInput
from unlazy.kernels.stationary import Laplace
from unlazy.kernels.wide import NTK
from unlazy.solvers.ridge import RIDGES, double_gram, fit_features, fit_gram

DRAW = np.random.default_rng(0)
X = DRAW.standard_normal((14, 4)) + 2
Y = X @ DRAW.standard_normal((4, 2)) + DRAW.standard_normal((14, 2)) + 5
WEIGHT = DRAW.integers(1, 4, 14).astype(float)
GRID = (0.01, 0.3, 5.0)
ON_FEATURES = pytest.mark.parametrize("route", ["gram", "features"])


def fit(route, x, y, ridges, **options):
    """Return the coefficients of features by either route."""
    if route == "features":
        return fit_features(x, y, ridges, **options)
    found = fit_gram(x @ x.T, y, ridges, **options)
    return dataclasses.replace(found, coefficients=x.T @ found.coefficients)


@ON_FEATURES
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("ridges", [0.7, (0.7,), None])
def test_linear_kernel_is_scikit_learns_ridge(route, intercept, ridges):
    found = fit(route, X, Y, ridges, weight=WEIGHT / 2, intercept=intercept)
    peer = Ridge(alpha=found.ridge, fit_intercept=intercept).fit(X, Y, sample_weight=WEIGHT / 2)
    np.testing.assert_allclose(found.coefficients.T, peer.coef_, rtol=1e-7)
    np.testing.assert_allclose(found.intercept, peer.intercept_, rtol=1e-7, atol=1e-9)


@ON_FEATURES
@pytest.mark.parametrize("intercept", [True, False])
def test_leave_one_out_is_refitting(route, intercept):
    """Also with weights: a unit of weight is left out, or an example that has less."""
    weight = np.where(np.arange(14) % 3 == 0, 0.4, WEIGHT)
    found = fit(route, X, Y, GRID, weight=weight, intercept=intercept)
    for ridge, error in zip(GRID, found.errors, strict=True):
        total = 0.0
        for i in range(14):
            less = weight.copy()
            less[i] = max(weight[i] - 1, 0)
            keep = less > 0
            peer = Ridge(alpha=ridge, fit_intercept=intercept).fit(
                X[keep], Y[keep], sample_weight=less[keep]
            )
            total += weight[i] * np.sum((peer.predict(X[i : i + 1]) - Y[i]) ** 2)
        assert error == pytest.approx(total / weight.sum(), rel=1e-8)
    assert found.ridge == GRID[int(np.argmin(found.errors))] and found.error == min(found.errors)


@ON_FEATURES
@pytest.mark.parametrize("ridges", [GRID, None, 0.3])
def test_weights_are_repetitions(route, ridges):
    times = WEIGHT.astype(int)
    one = fit(route, X, Y, ridges, weight=WEIGHT)
    other = fit(route, np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0), ridges)
    np.testing.assert_allclose(one.coefficients, other.coefficients, rtol=1e-8)
    np.testing.assert_allclose(one.intercept, other.intercept, rtol=1e-8)
    np.testing.assert_allclose(one.errors, other.errors, rtol=1e-6)


def test_both_routes_agree_where_points_are_fewer_than_features():
    wide = DRAW.standard_normal((9, 30))
    one, other = fit("gram", wide, Y[:9], None), fit_features(wide, Y[:9])
    np.testing.assert_allclose(one.coefficients, other.coefficients, rtol=1e-9)
    np.testing.assert_allclose(one.ridges, other.ridges)


@ON_FEATURES
def test_equal_points_get_the_mean(route):
    found = fit(route, np.ones((5, 3)), np.arange(5.0), None)
    assert found.intercept + np.ones(3) @ found.coefficients == pytest.approx(2.0)
    assert len(found.ridges) == len(RIDGES) and found.ridge > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ridges": -1.0}, "ridge must be finite"),
        ({"ridges": ()}, "ridges must be > 0"),
        ({"ridges": (0.0, 1.0)}, "ridges must be > 0"),
        (
            {"ridges": 0.0},
            "singular, for example by duplicated points|larger ridge|must be finite and > 0",
        ),
        ({"weight": np.zeros(14)}, "drop examples of weight 0"),
        ({"weight": np.ones(3)}, "weight must be 14 positive numbers"),
        ({"weight": np.full(14, np.nan)}, "weight must be finite"),
    ],
)
@ON_FEATURES
@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_refused(route, options, message):
    x = np.concatenate([X[:7], X[:7]])
    with pytest.raises(BadInput, match=message):
        fit(route, x, Y, **({"ridges": 1.0} | options))


def test_duplicated_points_have_the_exact_entry():
    x = np.repeat(DRAW.standard_normal((6, 3)), 2, axis=0)
    for kernel in (Laplace(1.0), NTK(1)):
        K = double_gram(kernel, x)
        np.testing.assert_array_equal(K[::2], K[1::2])
        np.testing.assert_array_equal(np.diag(K)[::2], np.diag(K[1::2, ::2]))
    turned = double_gram(Laplace(1.0), x @ DRAW.standard_normal((3, 3)), x)
    np.testing.assert_array_equal(np.diag(turned[1::2, ::2]), 1.0)
