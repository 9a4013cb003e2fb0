import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, LeaveOneOut, cross_val_predict

from unlazy.solvers import exact as solvers
from unlazy.core.errors import BadInput
from unlazy.kernels.wide import NTK
from unlazy.solvers.conjugate import Nystroem, conjugate_gradients, default_rank, cost_of, product
from unlazy.kernels.base import Kernel
from unlazy.kernels.stationary import RBF, Laplace
from unlazy.kernels.products import Linear
from unlazy.kernels.gram import gram
from unlazy.solvers.exact import learning_curve, prefix_coefficients, ridge_path, solve

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
    x, Y, z = problem()
    K, K_test = double_gram(kernel, x), double_gram(kernel, z, x)
    path = ridge_path(K, Y, RIDGES)
    predictions = path.predict(K_test)
    for index, ridge in enumerate(RIDGES):
        alpha = np.linalg.solve(K + ridge * np.eye(len(K)), Y)
        np.testing.assert_allclose(path.coefficients[index], alpha, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(predictions[index], K_test @ alpha, atol=1e-9)
        peer = KernelRidge(alpha=ridge, kernel="precomputed").fit(K, Y).predict(K_test)
        np.testing.assert_allclose(predictions[index], peer, atol=1e-8)


def test_one_output_without_an_axis():
    x, Y, z = problem()
    K, K_test = double_gram(KERNEL, x), double_gram(KERNEL, z, x)
    one, two = ridge_path(K, Y[:, 0], RIDGES), ridge_path(K, Y, RIDGES)
    assert one.predict(K_test).shape == (3, 17)
    np.testing.assert_allclose(one.predict(K_test), two.predict(K_test)[..., 0], atol=1e-12)
    np.testing.assert_allclose(one.leave_one_out(), two.leave_one_out()[..., 0], atol=1e-12)
    np.testing.assert_allclose(one.leave_out(4), two.leave_out(4)[..., 0], atol=1e-12)
    assert learning_curve(K, K_test, Y[:, 0], 0.1, sizes=[2, 9]).shape == (2, 17)


def test_left_out_predictions_are_those_of_refitting():
    x, Y, _ = problem()
    K = double_gram(KERNEL, x)
    path = ridge_path(K, Y, RIDGES)
    labels = np.random.default_rng(1).integers(0, 3, len(x))
    folds = [np.flatnonzero(labels == label) for label in range(3)]
    by_label, by_index = path.leave_out(labels), path.leave_out(folds)
    np.testing.assert_array_equal(by_label, by_index)
    for index, ridge in enumerate(RIDGES):
        peer = KernelRidge(alpha=ridge, kernel="precomputed")
        np.testing.assert_allclose(path.leave_one_out()[index], cross_val_predict(peer, K, Y, cv=LeaveOneOut()), atol=1e-7)
        np.testing.assert_allclose(path.leave_out(5)[index], cross_val_predict(peer, K, Y, cv=KFold(5)), atol=1e-7)
        for fold in folds:
            rest = np.setdiff1d(np.arange(len(x)), fold)
            expected = K[np.ix_(fold, rest)] @ np.linalg.solve(K[np.ix_(rest, rest)] + ridge * np.eye(len(rest)), Y[rest])
            np.testing.assert_allclose(by_label[index, fold], expected, atol=1e-7)


def test_linear_kernel_is_linear_ridge_regression():
    x, Y, z = problem()
    found = ridge_path(double_gram(Linear(), x), Y, RIDGES).predict(z @ x.T)
    for index, ridge in enumerate(RIDGES):
        np.testing.assert_allclose(found[index], Ridge(alpha=ridge, fit_intercept=False).fit(x, Y).predict(z), atol=1e-8)


def test_learning_curve_is_separate_solves():
    x, Y, z = problem()
    K, K_test = double_gram(KERNEL, x), double_gram(KERNEL, z, x)
    curve = learning_curve(K, K_test, Y, 0.1)
    some = learning_curve(K, K_test, Y, 0.1, sizes=[1, 7, 60])
    assert curve.shape == (60, 17, 2)
    for n in (1, 7, 60):
        expected = K_test[:, :n] @ np.linalg.solve(K[:n, :n] + 0.1 * np.eye(n), Y[:n])
        np.testing.assert_allclose(curve[n - 1], expected, atol=1e-10)
    np.testing.assert_allclose(some, curve[[0, 6, 59]], atol=1e-10)
    coefficients = prefix_coefficients(K, Y, 0.1, [1, 7, 60])
    np.testing.assert_allclose(K_test @ coefficients, some, atol=1e-10)
    assert np.all(coefficients[1, 7:] == 0) and prefix_coefficients(K, Y[:, 0], 0.1, [7]).shape == (1, 60)


def test_exact_solve():
    x, Y, z = problem()
    K, K_test = double_gram(KERNEL, x), double_gram(KERNEL, z, x)
    found = solve(KERNEL, x, Y, 0.1)
    assert found.precision == "float64"
    np.testing.assert_allclose(found.coefficients, np.linalg.solve(K + 0.1 * np.eye(60), Y), atol=1e-10)
    np.testing.assert_allclose(found.predict(z), K_test @ found.coefficients, atol=1e-10)


def test_single_precision_is_used_where_it_is_good_enough_and_left_where_not():
    x, Y, z = problem(200, 3)
    single = x.astype(np.float32)
    assert solve(RBF(0.01), single, Y, 1.0).precision == "float32"
    # a smooth kernel: its Gram matrix in single precision has eigenvalues far below −ridge
    with jax.enable_x64(False):
        K = np.asarray(gram(RBF(0.01), single), np.float64)
    assert np.linalg.eigvalsh(K)[0] < -1e-7
    with pytest.raises(BadInput, match="double precision"):
        ridge_path(K, Y, [1e-9])
    found = solve(RBF(0.01), single, Y, 1e-7)
    assert found.precision == "float64"
    wide = single.astype(np.float64)
    expected = double_gram(RBF(0.01), z, wide) @ np.linalg.solve(double_gram(RBF(0.01), wide) + 1e-7 * np.eye(200), Y)
    np.testing.assert_allclose(found.predict(z), expected, atol=1e-4)


def test_duplicated_points():
    x, Y, z = problem()
    twice, targets = np.concatenate([x, x]), np.concatenate([Y, Y])
    K, K_test = double_gram(KERNEL, twice), double_gram(KERNEL, z, twice)
    # the same as each point once with half of the ridge
    expected = solve(KERNEL, x, Y, 0.05).predict(z)
    np.testing.assert_allclose(ridge_path(K, targets, [0.1]).predict(K_test)[0], expected, atol=1e-6)
    np.testing.assert_allclose(solve(KERNEL, twice, targets, 0.1).predict(z), expected, atol=1e-6)
    np.testing.assert_allclose(learning_curve(K, K_test, targets, 0.1, sizes=[120])[0], expected, atol=1e-6)
    np.testing.assert_allclose(conjugate_gradients(KERNEL, twice, targets, 0.1, tolerance=1e-9).predict(z), expected, atol=1e-6)
    with pytest.raises(BadInput, match="not positive definite"):
        ridge_path(K, targets, [0.0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_by_blocks(dtype):
    x, Y, _ = problem(50)
    expected = double_gram(KERNEL, x) @ Y
    np.testing.assert_allclose(product(KERNEL, x.astype(dtype), Y, block=16), expected, rtol=1e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("rank", [0, 20, None, 300])
def test_conjugate_gradients_solve_the_system(rank):
    x, Y, z = problem(300, 5)
    exact = solve(KERNEL, x, Y, 0.05)
    found = conjugate_gradients(KERNEL, x, Y, 0.05, rank=rank, tolerance=1e-9, block=128)
    assert found.converged and found.precision == "float64"
    assert found.iterations == len(found.residuals) and found.residuals[-1] <= 1e-9
    np.testing.assert_allclose(found.coefficients, exact.coefficients, atol=1e-6)
    np.testing.assert_allclose(found.predict(z), exact.predict(z), atol=1e-7)


def test_preconditioning_saves_iterations():
    x, Y, _ = problem(300, 5)
    plain, better = (conjugate_gradients(KERNEL, x, Y, 0.01, rank=rank).iterations for rank in (0, 150))
    assert better < plain / 2
    # and with all points the preconditioner is the inverse, up to a factor
    with jax.enable_x64(True):
        whole = Nystroem(KERNEL, x, 0.1, 300, 0)
    values = np.linalg.eigvals(whole(double_gram(KERNEL, x) + 0.1 * np.eye(300)))
    assert np.max(np.abs(values)) / np.min(np.abs(values)) < 1.01


def test_conjugate_gradients_in_single_precision():
    x, Y, z = problem(300, 5)
    exact = solve(KERNEL, x, Y, 0.5)
    found = conjugate_gradients(KERNEL, x.astype(np.float32), Y, 0.5, tolerance=1e-4)
    assert found.converged and found.precision == "float32"
    np.testing.assert_allclose(found.predict(z), exact.predict(z), atol=1e-3)


def test_conjugate_gradients_change_to_double_precision_where_single_is_too_coarse():
    x, Y, z = problem(200, 3)
    found = conjugate_gradients(RBF(0.01), x.astype(np.float32), Y, 1e-6, tolerance=1e-8, iterations=500)
    assert found.precision == "float64" and found.converged
    np.testing.assert_allclose(found.predict(z), solve(RBF(0.01), x.astype(np.float32).astype(float), Y, 1e-6).predict(z), atol=1e-3)


def test_early_stopping_returns_the_best_iteration():
    draw = np.random.default_rng(0)
    x = draw.standard_normal((220, 5))
    clean = np.tanh(x[:, 0])
    y = clean + 1.0 * draw.standard_normal(220)
    train, held = slice(0, 150), slice(150, None)
    found = conjugate_gradients(
        KERNEL, x[train], y[train], 0.0, validation=(x[held], clean[held]), iterations=100, patience=3, tolerance=1e-12
    )
    best = int(np.argmin(found.validation))
    assert found.iterations == best + 4 and not found.converged
    assert np.mean((found.predict(x[held]) - clean[held]) ** 2) == pytest.approx(found.validation[best], rel=1e-6)
    # interpolating the noise is worse
    assert found.validation[best] < 0.5 * np.mean((solve(KERNEL, x[train], y[train], 1e-6).predict(x[held]) - clean[held]) ** 2)


def test_iterations_may_run_out_and_are_watched():
    x, Y, _ = problem(100)
    seen = []
    found = conjugate_gradients(
        KERNEL, x, Y, 1e-3, rank=0, iterations=3, tolerance=1e-10, watch=lambda step, residual: seen.append((step, residual))
    )
    assert not found.converged and found.iterations == 3
    assert seen == list(enumerate(found.residuals, start=1))


def test_targets_of_zero():
    x, Y, z = problem()
    Y[:, 1] = 0
    found = conjugate_gradients(KERNEL, x, Y, 0.1)
    assert found.converged
    np.testing.assert_allclose(found.predict(z)[:, 1], 0, atol=1e-12)


class Indefinite(Kernel):
    def __call__(self, x, z):
        return -(x @ z.T)

    def diagonal(self, x):
        return -jnp.sum(x * x, axis=1)


def test_what_is_no_kernel_is_refused():
    x, Y, _ = problem()
    for attempt in (
        lambda: solve(Indefinite(), x, Y, 0.1),
        lambda: conjugate_gradients(Indefinite(), x, Y, 0.1, rank=0),
        lambda: ridge_path(double_gram(Indefinite(), x), Y, [0.1]),
        lambda: learning_curve(double_gram(Indefinite(), x), np.zeros((1, 60)), Y, 0.1),
    ):
        with pytest.raises(BadInput, match="not positive definite"):
            attempt()


def test_estimate():
    small, large = (cost_of(KERNEL, n, 10) for n in (5_000, 50_000))
    assert small.exact_bytes == 2 * 8 * 5_000**2
    assert large.bytes < large.exact_bytes / 10
    assert 20 < large.seconds / small.seconds < 500


def test_too_many_points_are_refused_with_what_they_need(monkeypatch):
    x, Y, _ = problem()
    with pytest.raises(BadInput, match=r"60 points needs 0\.0 GB.*conjugate_gradients"):
        solve(KERNEL, x, Y, 0.1, memory=1000)
    monkeypatch.setattr(solvers, "machine_memory", lambda: 24 * 10**9)
    with pytest.raises(BadInput, match=r"100,000 points needs 160\.0 GB, but there are 24\.0 GB"):
        solve(KERNEL, np.zeros((100_000, 1)), np.zeros(100_000), 0.1)
    assert default_rank(100) == 50 and default_rank(10) == 10


def broken(array, value):
    array = np.array(array)
    array.flat[3] = value
    return array


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_none_are_refused(value):
    x, Y, z = problem()
    K = double_gram(KERNEL, x)
    for attempt in (
        lambda: ridge_path(broken(K, value), Y, RIDGES),
        lambda: ridge_path(K, broken(Y, value), RIDGES),
        lambda: ridge_path(K, Y, [value]),
        lambda: ridge_path(K, Y, RIDGES).predict(broken(K, value)),
        lambda: learning_curve(K, broken(K, value), Y, 0.1),
        lambda: solve(KERNEL, broken(x, value), Y, 0.1),
        lambda: solve(KERNEL, x, broken(Y, value), 0.1),
        lambda: solve(KERNEL, x, Y, 0.1).predict(broken(z, value)),
        lambda: conjugate_gradients(KERNEL, broken(x, value), Y, 0.1),
        lambda: conjugate_gradients(KERNEL, x, Y, 0.1, validation=(broken(z, value), np.zeros((17, 2)))),
    ):
        with pytest.raises(BadInput, match="finite"):
            attempt()


def test_bad_arguments_are_refused():
    x, Y, _ = problem()
    K = double_gram(KERNEL, x)
    path = ridge_path(K, Y, RIDGES)
    for attempt in (
        lambda: ridge_path(K[:5], Y, RIDGES),
        lambda: ridge_path(K, Y[:5], RIDGES),
        lambda: ridge_path(K, Y, [-1.0]),
        lambda: ridge_path(K, Y, []),
        lambda: path.predict(K[:, :5]),
        lambda: path.leave_out(1),
        lambda: path.leave_out(np.zeros(60, int)),
        lambda: path.leave_out([np.arange(30), np.arange(29, 60)]),
        lambda: learning_curve(K, K, Y, 0.1, sizes=[5, 3]),
        lambda: prefix_coefficients(K, Y, 0.1, [5, 3]),
        lambda: learning_curve(K, K, Y, 0.1, sizes=[61]),
        lambda: learning_curve(K, K, Y, -1.0),
        lambda: conjugate_gradients(KERNEL, x, Y, 0.0),
        lambda: conjugate_gradients(KERNEL, x, Y, 0.1, tolerance=0.0),
        lambda: conjugate_gradients(KERNEL, x, Y, 0.1, rank=100),
        lambda: conjugate_gradients(KERNEL, x, Y, 0.1, iterations=0),
        lambda: cost_of(KERNEL, 0, 3),
    ):
        with pytest.raises(BadInput):
            attempt()
