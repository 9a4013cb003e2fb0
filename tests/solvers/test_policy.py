"""Selection of a solver, and agreement of all solvers."""

import jax
import numpy as np
import pytest
from sklearn.linear_model import Ridge

from unlazy.core.errors import BadInput
from unlazy.kernels.gram import gram
from unlazy.kernels.stationary import RBF, Laplace
from unlazy.solvers import policy
from unlazy.solvers.krylov import krylov_path
from unlazy.solvers.policy import (
    EXACT_POINTS,
    FACTORED_POINTS,
    choose,
    exact_bytes,
    feature_path,
    fit_kernel,
    kernel_path,
    matrix_path,
)

RIDGES = (1e-3, 0.1, 1.0, 50.0)
DRAW = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("n", "purpose", "options", "expected"),
    [
        (FACTORED_POINTS, "path", {"dtype": np.float32}, ("exact", True, "float64")),
        (FACTORED_POINTS + 1, "path", {"dtype": np.float32}, ("krylov", True, "float32")),
        (FACTORED_POINTS + 1, "path", {"dtype": np.float64}, ("krylov", True, "float64")),
        (
            FACTORED_POINTS + 1,
            "path",
            {"dtype": np.float32, "ridge": 1e-6},
            ("krylov", True, "float64"),
        ),
        (
            FACTORED_POINTS + 1,
            "path",
            {"dtype": np.float32, "memory": 4 * (FACTORED_POINTS + 1) ** 2},
            ("krylov", True, "float32"),
        ),
        (
            FACTORED_POINTS + 1,
            "path",
            {"dtype": np.float32, "memory": 4 * (FACTORED_POINTS + 1) ** 2 - 1},
            ("krylov", False, "float32"),
        ),
        (FACTORED_POINTS, "path", {"dtype": np.float32, "memory": 1}, ("krylov", False, "float64")),
        (100, "choice", {"dtype": np.float32}, ("exact", True, "float64")),
        (100, "choice", {"memory": exact_bytes(100)}, ("exact", True, "float64")),
        (100, "choice", {"memory": exact_bytes(100) - 1}, ("cg", False, "float64")),
        (EXACT_POINTS, "choice", {"memory": 1e12}, ("exact", True, "float64")),
        (
            EXACT_POINTS + 1,
            "choice",
            {"memory": 1e12, "dtype": np.float32},
            ("landmarks", False, "float64"),
        ),
        (
            EXACT_POINTS + 1,
            "choice",
            {"memory": 1e6, "dtype": np.float32},
            ("cg", False, "float32"),
        ),
    ],
)
def test_the_choice(n, purpose, options, expected):
    assert choose(n, purpose, **options) == expected


def test_a_path_may_take_a_third_of_the_machine(monkeypatch):
    monkeypatch.setattr(policy, "machine_memory", lambda: 3 * 8 * 1000**2)
    assert choose(1000, "path").stored and not choose(1001, "path").stored
    assert choose(700, "choice").method == "exact" and choose(708, "choice").method == "cg"


@pytest.mark.parametrize("outputs", [(), (2,)])
def test_a_matrix_path_agrees_however_it_is_solved(monkeypatch, outputs):
    """By a factorization, by products, and, if these do not converge, by a factorization of
    each ridge.
    """
    A = DRAW.standard_normal((80, 80)) * np.logspace(0, -2, 80)
    K, y = A @ A.T, DRAW.standard_normal((80, *outputs))
    exact = matrix_path(K, y, RIDGES)
    assert exact.shape == (4, 80, *outputs)
    monkeypatch.setattr(policy, "FACTORED_POINTS", 0)
    np.testing.assert_allclose(matrix_path(K, y, RIDGES), exact, rtol=1e-4, atol=1e-4)
    monkeypatch.setattr(
        policy, "krylov_path", lambda *a, **o: krylov_path(*a, **o | {"products": 3})
    )
    np.testing.assert_allclose(matrix_path(K, y, RIDGES), exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("outputs", [(), (2,)])
def test_a_kernel_path_agrees_whether_the_kernel_is_stored_or_not(monkeypatch, outputs):
    x, y = DRAW.standard_normal((90, 4)), DRAW.standard_normal((90, *outputs))
    stored = kernel_path(Laplace(0.5), x, y, (0.1, 10.0))
    with jax.enable_x64(True):
        K = np.asarray(gram(Laplace(0.5), x))
    np.testing.assert_allclose(stored[1], np.linalg.solve(K + 10 * np.eye(90), y), atol=1e-9)
    np.testing.assert_allclose(
        kernel_path(Laplace(0.5), x, y, (0.1, 10.0), memory=1), stored, atol=1e-3
    )
    monkeypatch.setattr(policy, "krylov_path", lambda *a, **o: krylov_path(*a, **o, products=3))
    with pytest.raises(
        BadInput,
        match=r"too small for 90 points without a stored Gram matrix.*or more memory",
    ):
        kernel_path(Laplace(0.5), x, y, (1e-6,), memory=1)


@pytest.mark.parametrize("shape", [(30, 8), (8, 30)])
def test_a_feature_path_is_scikit_learns_ridge(shape):
    phi, y = DRAW.standard_normal(shape), DRAW.standard_normal((shape[0], 2))
    found = feature_path(phi, y, (0.3, 4.0))
    for weights, ridge in zip(found, (0.3, 4.0), strict=True):
        np.testing.assert_allclose(
            weights.T, Ridge(alpha=ridge, fit_intercept=False).fit(phi, y).coef_, atol=1e-8
        )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("ridges", [0.2, (0.1, 0.2, 3.0)])
def test_a_fit_agrees_by_either_solver(weighted, intercept, ridges):
    x = DRAW.standard_normal((70, 3))
    Y = np.column_stack([np.sin(x[:, 0]), x[:, 1]]) + 3
    options = {"weight": DRAW.uniform(0.5, 2, 70) if weighted else None, "intercept": intercept}
    exact, iterated = (
        fit_kernel(RBF(0.3), x, Y, ridges, solver=solver, **options) for solver in ("auto", "cg")
    )
    assert exact.choice.method == "exact" and iterated.choice.method == "cg"
    assert (
        exact.fit.ridge == iterated.fit.ridge
        and iterated.converged
        and 0 < iterated.residual < 1e-5
    )
    np.testing.assert_allclose(iterated.fit.coefficients, exact.fit.coefficients, atol=1e-4)
    np.testing.assert_allclose(iterated.fit.intercept, exact.fit.intercept, atol=1e-4)
    np.testing.assert_allclose(iterated.fit.errors, exact.fit.errors)


def test_bad_input_is_refused():
    x, Y = DRAW.standard_normal((10, 3)), np.ones((10, 1))
    with pytest.raises(BadInput, match="Did you mean 'exact'"):
        fit_kernel(RBF(0.3), x, Y, 0.1, solver="exakt")
    with pytest.raises(
        BadInput,
        match=r"10 samples needs 4.8e-06 GB of memory; the limit is 1e-06 GB. solver='cg'",
    ):
        fit_kernel(RBF(0.3), x, Y, 0.1, solver="exact", memory=1e3)
