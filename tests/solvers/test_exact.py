"""Exact solvers against scikit-learn, refitting and separate solves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from unlazy.core.errors import BadInput
from unlazy.kernels.base import Kernel
from unlazy.kernels.gram import gram
from unlazy.kernels.products import Linear
from unlazy.kernels.stationary import RBF, Laplace
from unlazy.kernels.wide import NTK
from unlazy.solvers.exact import Solution, prefix_coefficients, ridge_path

RIDGES = (1e-3, 0.1, 10.0)
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


@pytest.mark.parametrize("kernel", [KERNEL, RBF(0.1), Laplace(0.3)], ids=repr)
def test_ridge_path_is_separate_solves(kernel):
    x, Y, _ = problem()
    K = double_gram(kernel, x)
    path = ridge_path(K, Y, RIDGES)
    for index, ridge in enumerate(RIDGES):
        alpha = np.linalg.solve(K + ridge * np.eye(len(K)), Y)
        np.testing.assert_allclose(path.coefficients[index], alpha, rtol=1e-7, atol=1e-9)
        peer = KernelRidge(alpha=ridge, kernel="precomputed").fit(K, Y)
        np.testing.assert_allclose(path.coefficients[index], peer.dual_coef_, rtol=1e-6, atol=1e-8)


def test_one_output_without_an_axis():
    x, Y, _ = problem()
    K = double_gram(KERNEL, x)
    one, two = ridge_path(K, Y[:, 0], RIDGES), ridge_path(K, Y, RIDGES)
    assert one.coefficients.shape == (3, 60)
    np.testing.assert_allclose(one.coefficients, two.coefficients[..., 0], atol=1e-12)
    np.testing.assert_allclose(one.leave_one_out(), two.leave_one_out()[..., 0], atol=1e-12)
    assert prefix_coefficients(K, Y[:, 0], 0.1, [2, 9]).shape == (2, 60)


def test_left_out_predictions_are_those_of_refitting():
    x, Y, _ = problem()
    K = double_gram(KERNEL, x)
    found = ridge_path(K, Y, RIDGES).leave_one_out()
    for index, ridge in enumerate(RIDGES):
        peer = KernelRidge(alpha=ridge, kernel="precomputed")
        np.testing.assert_allclose(
            found[index], cross_val_predict(peer, K, Y, cv=LeaveOneOut()), atol=1e-7
        )


def test_linear_kernel_is_linear_ridge_regression():
    x, Y, z = problem()
    found = ridge_path(double_gram(Linear(), x), Y, RIDGES).coefficients
    for alpha, ridge in zip(found, RIDGES, strict=True):
        np.testing.assert_allclose(
            z @ x.T @ alpha, Ridge(alpha=ridge, fit_intercept=False).fit(x, Y).predict(z), atol=1e-8
        )


def test_fits_to_prefixes_are_separate_solves():
    x, Y, _ = problem()
    K = double_gram(KERNEL, x)
    found = prefix_coefficients(K, Y, 0.1, [1, 7, 60])
    assert found.shape == (3, 60, 2)
    for row, n in zip(found, (1, 7, 60), strict=True):
        expected = np.linalg.solve(K[:n, :n] + 0.1 * np.eye(n), Y[:n])
        np.testing.assert_allclose(row[:n], expected, atol=1e-10)
        assert np.all(row[n:] == 0)


def test_predictions_by_blocks_are_products():
    x, Y, z = problem()
    np.testing.assert_allclose(
        Solution(KERNEL, x, Y, "float64").predict(z), double_gram(KERNEL, z, x) @ Y, atol=1e-10
    )


def test_a_matrix_indefinite_by_rounding_is_refused():
    """A smooth kernel: its Gram matrix in single precision has eigenvalues far below −ridge."""
    x, Y, _ = problem(200, 3)
    K = np.asarray(gram(RBF(0.01), x.astype(np.float32)), np.float64)
    assert np.linalg.eigvalsh(K)[0] < -1e-7
    with pytest.raises(BadInput, match="double precision"):
        ridge_path(K, Y, [1e-9])


def test_duplicated_points():
    """Equivalent to single points with half of the ridge."""
    x, Y, z = problem()
    twice, targets = np.concatenate([x, x]), np.concatenate([Y, Y])
    K, K_test = double_gram(KERNEL, twice), double_gram(KERNEL, z, twice)
    expected = (
        double_gram(KERNEL, z, x) @ ridge_path(double_gram(KERNEL, x), Y, [0.05]).coefficients[0]
    )
    np.testing.assert_allclose(
        K_test @ ridge_path(K, targets, [0.1]).coefficients[0], expected, atol=1e-6
    )
    np.testing.assert_allclose(
        K_test @ prefix_coefficients(K, targets, 0.1, [120])[0], expected, atol=1e-6
    )
    with pytest.raises(BadInput, match="not positive definite"):
        ridge_path(K, targets, [0.0])


class Indefinite(Kernel):
    def __call__(self, x, z):
        return -(x @ z.T)

    def diagonal(self, x):
        return -jnp.sum(x * x, axis=1)


def test_indefinite_matrices_are_refused():
    x, Y, _ = problem()
    K = double_gram(Indefinite(), x)
    for attempt in (
        lambda: ridge_path(K, Y, [0.1]),
        lambda: prefix_coefficients(K, Y, 0.1, [60]),
    ):
        with pytest.raises(BadInput, match="not positive definite"):
            attempt()


def broken(array, value):
    array = np.array(array)
    array.flat[3] = value
    return array


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_are_refused(value):
    x, Y, z = problem()
    K = double_gram(KERNEL, x)
    for attempt in (
        lambda: ridge_path(broken(K, value), Y, RIDGES),
        lambda: ridge_path(K, broken(Y, value), RIDGES),
        lambda: ridge_path(K, Y, [value]),
        lambda: prefix_coefficients(broken(K, value), Y, 0.1, [60]),
        lambda: Solution(KERNEL, x, Y, "float64").predict(broken(z, value)),
    ):
        with pytest.raises(BadInput, match="finite"):
            attempt()


def test_bad_arguments_are_refused():
    x, Y, _ = problem()
    K = double_gram(KERNEL, x)
    for attempt in (
        lambda: ridge_path(K[:5], Y, RIDGES),
        lambda: ridge_path(K, Y[:5], RIDGES),
        lambda: ridge_path(K, Y, [-1.0]),
        lambda: ridge_path(K, Y, []),
        lambda: prefix_coefficients(K, Y, 0.1, [5, 3]),
        lambda: prefix_coefficients(K, Y, 0.1, [61]),
        lambda: prefix_coefficients(K, Y, -1.0, [60]),
    ):
        with pytest.raises(BadInput):
            attempt()
