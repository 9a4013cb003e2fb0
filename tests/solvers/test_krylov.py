import numpy as np
import pytest

from unlazy.core.errors import BadInput
from unlazy.solvers.exact import ridge_path
from unlazy.solvers.krylov import krylov_path

RIDGES = (1e-3, 0.1, 1.0, 50.0)


def problem(n=80, rank=80, seed=0):
    draw = np.random.default_rng(seed)
    A = draw.standard_normal((n, rank)) * np.logspace(0, -2, rank)
    return A @ A.T, draw.standard_normal(n)


@pytest.mark.parametrize("rank", [80, 5])
def test_a_krylov_path_is_the_exact_path(rank):
    """Also if K has low rank and the Krylov space is exhausted early."""
    K, y = problem(rank=rank)
    found = krylov_path(lambda v: K @ v, y, RIDGES, tolerance=1e-10)
    np.testing.assert_allclose(
        found.coefficients, ridge_path(K, y, RIDGES).coefficients, rtol=1e-6, atol=1e-8
    )
    assert rank == 80 or found.products <= 7


def test_the_reported_residual_is_the_true_one():
    K, y = problem()
    found = krylov_path(lambda v: K @ v, y, RIDGES, tolerance=1e-12, products=20)
    for alpha, ridge, told in zip(found.coefficients, RIDGES, found.residuals, strict=True):
        true = np.linalg.norm(y - K @ alpha - ridge * alpha) / np.linalg.norm(y)
        assert told == pytest.approx(true, rel=1e-6, abs=1e-12)
    assert found.products == 20 and found.residuals[0] > 1e-6 > found.residuals[-1]


def test_nothing_to_solve():
    K, _ = problem()
    assert not krylov_path(lambda v: K @ v, np.zeros(80), RIDGES).coefficients.any()


@pytest.mark.parametrize("ridges", [(), (0.0,), (-1.0, 1.0)])
def test_ridges_that_cannot_be_solved_are_refused(ridges):
    with pytest.raises(BadInput, match="ridges must be positive"):
        krylov_path(lambda v: v, np.ones(3), ridges)
