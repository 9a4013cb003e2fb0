"""Solver of the lower bounds, compared with a general one, and its certificate."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from unlazy.core.errors import BadInput
from unlazy.papers.shi2022.best_hinge import FixedFeatures, KernelBall, best_hinge, draw_features


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4))
    return x, np.sign(x @ [1.0, -1.0, 0.5, 0.0] + 0.7 * rng.normal(size=60))


@pytest.mark.parametrize("B", [0.3, 1.0, 5.0])
def test_the_minimum_equals_that_of_a_general_solver(problem, B):
    x, y = problem
    # Linear program with a quadratic constraint: minimize the mean slack.
    n, N = x.shape
    initial = np.concatenate([np.zeros(N), np.ones(n)])
    constraints = [
        {
            "type": "ineq",
            "fun": lambda v: v[N:] - 1 + y * (x @ v[:N]),
            "jac": lambda v: np.hstack([y[:, None] * x, np.eye(n)]),
        },
        {
            "type": "ineq",
            "fun": lambda v: B**2 - v[:N] @ v[:N],
            "jac": lambda v: np.concatenate([-2 * v[:N], np.zeros(n)])[None],
        },
    ]
    gradient = np.concatenate([np.zeros(N), np.full(n, 1 / n)])
    bounds = [(None, None)] * N + [(0, None)] * n
    expected = scipy.optimize.minimize(
        lambda v: v @ gradient,
        initial,
        jac=lambda v: gradient,
        bounds=bounds,
        constraints=constraints,
        method="SLSQP",
    )
    assert expected.success
    best = jax.jit(best_hinge)(jnp.asarray(x), jnp.asarray(y), B)
    assert float(best.loss) == pytest.approx(expected.fun, abs=0.01)
    assert float(best.certified) <= expected.fun + 1e-4 and float(best.gap) < 0.02
    assert float(jnp.linalg.norm(best.w)) <= B * (1 + 1e-5)


def test_an_inaccurate_solution_has_a_large_gap(problem):
    """With too few iterations the duality gap is large."""
    x, y = problem
    assert (
        float(
            jax.jit(lambda x, y: best_hinge(x, y, 5.0, iterations=1).gap)(
                jnp.asarray(x), jnp.asarray(y)
            )
        )
        > 0.05
    )


@pytest.mark.parametrize("kind", ["random", "tangent", "fourier"])
def test_features_are_bounded(kind):
    z = jax.random.normal(jax.random.key(0), (50, 6))
    features = draw_features(kind, z, 20, key=jax.random.key(1))
    assert (
        features.shape == (50, 20)
        and float(jnp.max(jnp.abs(features))) <= 1
        and float(jnp.std(features)) > 0.1
    )


def test_sizes_outside_the_theorem_are_rejected():
    with pytest.raises(BadInput, match="`k` must be at most D/16, got k=5, D=40"):
        FixedFeatures("random", 5, 40, (8,), (1.0,))


@pytest.mark.slow
def test_losses_decrease_with_more_features_and_larger_norms():
    found = FixedFeatures("random", 5, 80, (8, 32), (1.0, 4.0), n=200).measure(
        key=jax.random.key(0)
    )
    assert (
        found["loss, B=4"][1] < found["loss, B=4"][0] <= found["loss, B=1"][0] + 1e-3
        and found["least_excess"][-1] > 0
    )
    kernel = KernelBall(5, 80, (1, 4), n=100).measure(key=jax.random.key(0))
    assert kernel["loss"][1] < kernel["loss"][0] and np.all(kernel["bound"] <= 0.5)
