"""Factors in single precision against an eigendecomposition in double precision."""

import numpy as np
import pytest

from unlazy.core.errors import BadInput
from unlazy.kernels.stationary import RBF, Laplace
from unlazy.solvers import policy, single
from unlazy.solvers.ridge import double_gram, fit_gram
from unlazy.solvers.single import fit_factored

DRAW = np.random.default_rng(0)
X = DRAW.standard_normal((300, 4))
Y = np.column_stack([np.sin(X[:, 0]) + 0.3 * DRAW.standard_normal(300), X[:, 1] > 0])


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_it_finds_the_fit_and_the_leave_one_out_errors_of_the_eigendecomposition(
    intercept, weighted, monkeypatch
):
    weight = DRAW.uniform(0.5, 2, 300) if weighted else None
    ridges = [1e-3, 1e-2, 0.1, 1.0, 10.0]
    monkeypatch.setattr(single, "CHOOSING_POINTS", 150)
    monkeypatch.setattr(single, "TRIED_RIDGES", 5)
    exact = fit_gram(double_gram(Laplace(0.5), X), Y, ridges, weight=weight, intercept=intercept)
    found = fit_factored(Laplace(0.5), X, Y, ridges, weight=weight, intercept=intercept)
    assert found.ridge == exact.ridge
    np.testing.assert_allclose(found.coefficients, exact.coefficients, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.intercept, exact.intercept, atol=1e-8)
    seen = np.isfinite(found.errors)
    assert 2 <= seen.sum() <= 5
    np.testing.assert_allclose(found.errors[seen], exact.errors[seen], rtol=2e-4)


def test_a_given_ridge_takes_one_factor():
    exact = fit_gram(double_gram(RBF(0.2), X), Y, 0.3)
    found = fit_factored(RBF(0.2), X, Y, 0.3)
    np.testing.assert_allclose(found.coefficients, exact.coefficients, rtol=1e-7, atol=1e-9)
    assert np.isnan(found.errors).all()


def test_double_precision_if_single_precision_cannot_factorize():
    near = np.repeat(X[:50], 2, axis=0) + 1e-5 * DRAW.standard_normal((100, 4))
    K = double_gram(RBF(0.1), near)
    assert single._factor(K, 1e-9, np.float32) is None
    found = fit_factored(RBF(0.1), near, Y[:100], 1e-9)
    residual = Y[:100] - K @ found.coefficients - found.intercept - 1e-9 * found.coefficients
    assert np.max(np.abs(residual)) < 1e-4
    with pytest.raises(BadInput, match="larger ridge"):
        fit_factored(RBF(0.1), np.repeat(X[:50], 2, axis=0), Y[:100], 0.0)


def test_the_policy_switches_at_its_number_of_points(monkeypatch):
    monkeypatch.setattr(policy, "DECOMPOSED", 100)
    few = policy.fit_stored(Laplace(0.5), X[:100], Y[:100])
    many = policy.fit_stored(Laplace(0.5), X[:101], Y[:101])
    assert np.isfinite(few.errors).all() and np.isnan(many.errors).any()
    assert policy.exact_bytes(101) < policy.exact_bytes(100)


def test_a_quick_fit_uses_the_ridge_of_a_subset(monkeypatch):
    monkeypatch.setattr(single, "QUICK_POINTS", 100)
    found = fit_factored(Laplace(0.5), X, Y, quick=True)
    exact = fit_gram(double_gram(Laplace(0.5), X), Y, found.ridge)
    np.testing.assert_allclose(found.coefficients, exact.coefficients, rtol=1e-6, atol=1e-9)
    part = np.random.default_rng(0).permutation(len(X))[:100]
    assert found.ridge == fit_gram(double_gram(Laplace(0.5), X[part]), Y[part]).ridge


def test_with_more_points_some_of_them_choose_the_ridge(monkeypatch):
    monkeypatch.setattr(single, "MAX_LOO_POINTS", 150)
    found = fit_factored(Laplace(0.5), X, Y, weight=np.full(300, 2.0))
    part = np.random.default_rng(1).permutation(300)[:150]
    some = fit_factored(Laplace(0.5), X[part], Y[part], weight=np.full(150, 2.0))
    assert found.ridge == some.ridge and found.error == some.error > 0
    exact = fit_gram(double_gram(Laplace(0.5), X), Y, found.ridge, weight=np.full(300, 2.0))
    np.testing.assert_allclose(found.coefficients, exact.coefficients, rtol=1e-6, atol=1e-9)
