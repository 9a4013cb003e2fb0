"""Conjugate gradients without a Gram matrix, against exact solves."""

import jax
import numpy as np
import pytest

from unlazy.core.errors import BadInput
from unlazy.kernels.gram import gram
from unlazy.kernels.products import Linear
from unlazy.kernels.stationary import RBF
from unlazy.kernels.wide import NTK
from unlazy.solvers.conjugate import Nystroem, conjugate_gradients, default_rank, product
from unlazy.solvers.exact import Solution

KERNEL = NTK(1, "relu", 1.5, 0.1)


def problem(n=60, d=5, outputs=2, seed=0):
    """Points, targets, and test points."""
    draw = np.random.default_rng(seed)
    x = draw.standard_normal((n, d))
    Y = np.tanh(x @ draw.standard_normal((d, outputs))) + 0.1 * draw.standard_normal((n, outputs))
    return x, Y, draw.standard_normal((17, d))


def double_gram(kernel, x, z=None):
    with jax.enable_x64(True):
        return np.asarray(gram(kernel, x, z))


def solved(kernel, x, Y, ridge):
    return Solution(
        kernel, x, np.linalg.solve(double_gram(kernel, x) + ridge * np.eye(len(x)), Y), "float64"
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_by_blocks(dtype):
    x, Y, _ = problem(50)
    expected = double_gram(KERNEL, x) @ Y
    np.testing.assert_allclose(
        product(KERNEL, x.astype(dtype), Y, block=16),
        expected,
        rtol=1e-5 if dtype == np.float32 else 1e-12,
    )


@pytest.mark.parametrize("rank", [0, 20, None, 300])
def test_conjugate_gradients_solve_the_system(rank):
    x, Y, z = problem(300, 5)
    exact = solved(KERNEL, x, Y, 0.05)
    found = conjugate_gradients(KERNEL, x, Y, 0.05, rank=rank, tolerance=1e-9, block=128)
    assert found.converged and found.precision == "float64"
    assert found.iterations == len(found.residuals) and found.residuals[-1] <= 1e-9
    np.testing.assert_allclose(found.coefficients, exact.coefficients, atol=1e-6)
    np.testing.assert_allclose(found.predict(z), exact.predict(z), atol=1e-7)


def test_preconditioning_saves_iterations():
    x, Y, _ = problem(300, 5)
    plain, better = (
        conjugate_gradients(KERNEL, x, Y, 0.01, rank=rank).iterations for rank in (0, 150)
    )
    assert better < plain / 2
    # and with all points the preconditioner is the inverse, up to a factor
    with jax.enable_x64(True):
        whole = Nystroem(KERNEL, x, 0.1, 300, 0)
    values = np.linalg.eigvals(whole(double_gram(KERNEL, x) + 0.1 * np.eye(300)))
    assert np.max(np.abs(values)) / np.min(np.abs(values)) < 1.01
    assert default_rank(100) == 50 and default_rank(10) == 10


def test_single_precision_where_it_is_good_enough():
    x, Y, z = problem(300, 5)
    found = conjugate_gradients(KERNEL, x.astype(np.float32), Y, 0.5, tolerance=1e-4)
    assert found.converged and found.precision == "float32"
    np.testing.assert_allclose(found.predict(z), solved(KERNEL, x, Y, 0.5).predict(z), atol=1e-3)


def test_double_precision_where_single_is_too_coarse():
    x, Y, z = problem(200, 3)
    found = conjugate_gradients(
        RBF(0.01), x.astype(np.float32), Y, 1e-6, tolerance=1e-8, iterations=500
    )
    assert found.precision == "float64" and found.converged
    np.testing.assert_allclose(
        found.predict(z),
        solved(RBF(0.01), x.astype(np.float32).astype(float), Y, 1e-6).predict(z),
        atol=1e-3,
    )


def test_duplicated_points():
    """Equivalent to single points with half of the ridge."""
    x, Y, z = problem()
    found = conjugate_gradients(
        KERNEL, np.concatenate([x, x]), np.concatenate([Y, Y]), 0.1, tolerance=1e-9
    )
    np.testing.assert_allclose(found.predict(z), solved(KERNEL, x, Y, 0.05).predict(z), atol=1e-6)


def test_iterations_may_run_out():
    x, Y, _ = problem(100)
    found = conjugate_gradients(KERNEL, x, Y, 1e-3, rank=0, iterations=3, tolerance=1e-10)
    assert not found.converged and found.iterations == 3


def test_targets_of_zero():
    x, Y, z = problem()
    Y[:, 1] = 0
    found = conjugate_gradients(KERNEL, x, Y, 0.1)
    assert found.converged
    np.testing.assert_allclose(found.predict(z)[:, 1], 0, atol=1e-12)


class Indefinite(Linear):
    def of_products(self, xz, xx, zz, d):
        return -xz

    def diagonal(self, x):
        return -Linear.diagonal(self, x)


def test_bad_input_is_refused():
    x, Y, _ = problem()
    broken = x.copy()
    broken[3, 1] = np.nan
    for attempt, message in (
        (lambda: conjugate_gradients(Indefinite(), x, Y, 0.1, rank=0), "not positive definite"),
        (lambda: conjugate_gradients(KERNEL, broken, Y, 0.1), "finite"),
        (lambda: conjugate_gradients(KERNEL, x, Y, 0.0), "ridge must be"),
        (lambda: conjugate_gradients(KERNEL, x, Y, 0.1, tolerance=0.0), "tolerance must be"),
        (lambda: conjugate_gradients(KERNEL, x, Y, 0.1, rank=100), "rank must be"),
        (lambda: conjugate_gradients(KERNEL, x, Y, 0.1, iterations=0), "iterations"),
    ):
        with pytest.raises(BadInput, match=message):
            attempt()
