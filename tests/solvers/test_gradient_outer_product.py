"""Recursive feature machines: gradients against automatic differentiation, and what the metric
finds.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unlazy.core.errors import BadInput
from unlazy.kernels.gram import gram
from unlazy.kernels.products import Linear
from unlazy.kernels.stationary import RBF, Laplace
from unlazy.solvers.gradient_outer_product import (
    gradient_outer_product,
    metric_root,
    metric_scores,
    recursive_fits,
)
from unlazy.solvers.ridge import fit_gram

DRAW = np.random.default_rng(0)


def machine(kernel, x, y, ridges=None, iterations=5):
    """All fits of a recursive feature machine that chooses its ridge by leave-one-out."""

    def solve(points):
        with jax.enable_x64(True):
            return fit_gram(np.asarray(gram(kernel, points)), y, ridges)

    return list(recursive_fits(kernel, x, solve, iterations))


def predict(kernel, x, step, z):
    return metric_scores(kernel, x, step.root, step.fit.coefficients, z) + step.fit.intercept


@pytest.mark.parametrize("kernel", [Laplace(0.4), RBF(0.2)], ids=repr)
def test_gradient_outer_product_is_that_of_automatic_differentiation(kernel):
    x, alpha, weight = (
        DRAW.standard_normal((9, 3)),
        DRAW.standard_normal((9, 2)),
        DRAW.uniform(0.5, 2, 9),
    )
    with jax.enable_x64(True):
        expected = np.zeros((3, 3))
        for i in range(9):
            others = np.arange(9) != i  # the kernel has no slope at the point itself
            J = jax.jacobian(
                lambda z, others=others: (kernel(z[None], jnp.asarray(x[others])) @ alpha[others])[
                    0
                ]
            )(jnp.asarray(x[i]))
            expected += weight[i] * np.asarray(J).T @ np.asarray(J)
    found = gradient_outer_product(kernel, x, alpha, weight=weight)
    np.testing.assert_allclose(found, expected / weight.sum(), rtol=1e-8)
    twice = np.concatenate([x, x])
    halves = gradient_outer_product(
        kernel, twice, np.concatenate([alpha, alpha]) / 2, weight=np.concatenate([weight, weight])
    )
    np.testing.assert_allclose(
        halves, found, rtol=1e-6, err_msg="duplicated points are no reason for a gradient"
    )


def test_no_iterations_is_the_kernel():
    x, y, z = DRAW.standard_normal((20, 3)), DRAW.standard_normal(20), DRAW.standard_normal((5, 3))
    kernel = Laplace(0.5)
    (only,) = machine(kernel, x, y, 0.1, 0)
    np.testing.assert_array_equal(only.metric, np.eye(3))
    with jax.enable_x64(True):
        plain = fit_gram(np.asarray(gram(kernel, x)), y, 0.1)
        expected = np.asarray(gram(kernel, z, x)) @ plain.coefficients + plain.intercept
    np.testing.assert_allclose(predict(kernel, x, only, z), expected, rtol=1e-9)


def test_finds_the_direction_of_a_single_index_and_gains_by_it():
    d = 10
    u = DRAW.standard_normal(d)
    u /= np.linalg.norm(u)
    x, z = DRAW.standard_normal((300, d)), DRAW.standard_normal((300, d))
    target = lambda x: np.tanh(2 * x @ u) + 0.5 * (x @ u) ** 2  # noqa: E731
    kernel = Laplace(1 / np.sqrt(d))
    fits = machine(kernel, x, target(x), None, 4)
    assert len(fits) == 5
    errors = [np.mean((predict(kernel, x, fit, z)[:, 0] - target(z)) ** 2) for fit in fits]
    assert errors[-1] < 0.3 * errors[0]
    values, vectors = np.linalg.eigh(fits[-1].metric)
    assert abs(vectors[:, -1] @ u) > 0.99 and values[-1] > 0.9 * d
    assert np.trace(fits[-1].metric) == pytest.approx(d)


def test_root_and_constant_targets():
    A = DRAW.standard_normal((4, 4))
    np.testing.assert_allclose(metric_root(A @ A.T) @ metric_root(A @ A.T), A @ A.T, atol=1e-10)
    fits = machine(Laplace(1.0), A, np.ones((4, 2)), 1.0, 2)
    np.testing.assert_allclose(predict(Laplace(1.0), A, fits[-1], A), np.ones((4, 2)))
    np.testing.assert_allclose(np.trace(fits[-1].metric), 4)


def test_bad_input_is_refused():
    x = DRAW.standard_normal((4, 2))
    with pytest.raises(BadInput, match="stationary kernel"):
        machine(Linear(), x, np.ones(4))
    with pytest.raises(BadInput, match="iterations must be"):
        machine(Laplace(1.0), x, np.ones(4), iterations=-1)


def test_fits_come_one_by_one_in_the_precision_of_the_points():
    """Later fits are not computed if the iterator is not advanced."""
    calls = []

    def solve(points):
        calls.append(points.dtype)
        return fit_gram(points @ points.T, np.arange(6.0), 1.0)

    fits = recursive_fits(Laplace(1.0), DRAW.standard_normal((6, 2)).astype(np.float32), solve, 9)
    next(fits), next(fits)
    assert calls == [np.float32] * 2
