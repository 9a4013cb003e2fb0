"""Networks linear in what is trained: against ridge regression on explicit derivatives and
features, and against gradient descent.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contracts import check_learner
from programs import drawn
from selection import slow_but_first
from toys import Halfspace, Products
from unlazy.learners.tangent import LastLayerRidge, TangentRidge
from unlazy.networks.inits import PlainInit, ResNetInit, TangentInit
from unlazy.networks.linearized import Linearized


def resnet(skip=True, m=6):
    return ResNetInit(
        m=m,
        w_scale=0.5,
        b_scale=0.5,
        v_scale=0.5,
        e_scale=0.5,
        a_scale=0.4,
        skip=skip,
        bottleneck=skip,
    )


INITS = {
    "2layer": PlainInit(m=6, w_scale=0.5, b_scale=0.5, a_scale=0.4),
    "3resnet": resnet(),
    "3layer": resnet(skip=False),
}


@pytest.mark.parametrize("name", slow_but_first(INITS))
@pytest.mark.parametrize("kind", [TangentRidge, LastLayerRidge])
def test_learners_satisfy_the_contract(kind, name):
    check_learner(kind(INITS[name], (0.1, 1.0)), Products(), 40)
    check_learner(kind(INITS[name], (0.1, 1.0)), Halfspace(5), 40)


@pytest.mark.parametrize("name", slow_but_first(INITS))
def test_the_tangent_path_is_ridge_regression_on_all_derivatives(name):
    with jax.enable_x64(True):
        task = drawn(Products(), jax.random.key(0))
        learner = TangentRidge(INITS[name], (0.01, 1.0), precision=64)
        trace = learner.fit(task.sampler, 30, key=jax.random.key(1))
        network, (x, y) = trace.models.network, trace.seen
        arrays, rest = eqx.partition(network, eqx.is_inexact_array)
        jacobian = jax.jit(jax.jacrev(lambda arrays: eqx.combine(arrays, rest)(x).ravel()))(arrays)
        J = np.concatenate(
            [np.asarray(leaf).reshape(y.size, -1) for leaf in jax.tree.leaves(jacobian)], axis=1
        )
        missing = np.asarray(y - network(x)).ravel()
        probe = np.random.default_rng(0).choice([-1.0, 1.0], y.shape).ravel()
        unit = probe @ (J @ (J.T @ probe)) / y.size
        for index, ridge in enumerate(learner.ridges):
            fitted = J @ (J.T @ np.linalg.solve(J @ J.T + ridge * unit * np.eye(y.size), missing))
            found = np.asarray(trace.models.scores(x)[index] - network(x)).ravel()
            np.testing.assert_allclose(found, fitted, rtol=5e-3, atol=5e-3 * np.abs(fitted).max())


def test_the_last_layer_is_ridge_regression_on_the_hidden_layer():
    task = drawn(Products(), jax.random.key(0))
    learner = LastLayerRidge(resnet(), (0.1,))
    trace = learner.fit(task.sampler, 50, key=jax.random.key(1))
    x, y = trace.seen
    phi = np.asarray(trace.models.network.hidden(x), float)
    unit = np.mean(np.sum(phi**2, axis=1))
    weights = np.linalg.solve(phi.T @ phi + 0.1 * unit * np.eye(6), phi.T @ np.asarray(y, float))
    np.testing.assert_allclose(trace.at(0)(x), phi @ weights, rtol=1e-3, atol=1e-4)
    assert float(trace.losses[0]) == pytest.approx(
        0.5 * np.mean(np.sum((phi @ weights - np.asarray(y)) ** 2, axis=1)), rel=1e-4
    )


def test_tangents_of_three_layers_follow_the_structure_of_their_layers():
    """The kernel by layers, with and without the skip, against derivatives."""
    from unlazy.kernels.finite import Tangent

    x = jax.random.normal(jax.random.key(0), (5, 4))
    for skip in (True, False):
        init = ResNetInit(
            m=7,
            w_scale=0.5,
            b_scale=0.5,
            v_scale=0.4,
            e_scale=0.5,
            a_scale=0.4,
            skip=skip,
            bottleneck=False,
        )
        network = init(4, outputs=3, key=jax.random.key(1))
        slopes = jax.jacrev(lambda net, x=x: net(x))(network)
        direct = sum(
            jnp.einsum("nop,mop->nm", leaf.reshape(5, 3, -1), leaf.reshape(5, 3, -1)) / 3
            for leaf in jax.tree.leaves(slopes)
        )
        np.testing.assert_allclose(Tangent(network)(x, x), direct, rtol=1e-4)


@pytest.mark.parametrize("name", slow_but_first(INITS))
def test_gradient_descent_on_the_linearized_network_leads_to_the_ridge_solution(name):
    """With weight decay: the same convex problem, λ‖δ‖² plus the mean of ½‖·‖² over n
    examples.
    """
    n, ridge = 20, 1.0
    with jax.enable_x64(True):
        task = drawn(Products(), jax.random.key(0))
        solved = TangentRidge(INITS[name], (ridge,), precision=64).fit(
            task.sampler, n, key=jax.random.key(1)
        )
        network, (x, y) = solved.models.network, solved.seen
        delta = jax.tree.map(lambda leaf: leaf[0], solved.models.deltas)
        slopes = jax.grad(
            lambda d: 0.5 * jnp.mean(jnp.sum((Linearized(network, d)(x) - y) ** 2, axis=1))
        )(eqx.combine(delta, network))
        # At the solution the slope of the loss is −λ·δ/n, the same multiple for all parameters.

        def flat(tree):
            leaves = jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array))
            return np.concatenate([np.asarray(leaf).ravel() for leaf in leaves])

        g, d = flat(slopes), flat(delta)
        multiple = -(g @ d) / (d @ d)
        assert multiple > 0 and np.linalg.norm(g + multiple * d) < 1e-2 * np.linalg.norm(g)
        start = TangentInit(INITS[name])(
            task.dimension, outputs=task.outputs.count, key=jax.random.key(2)
        )
        np.testing.assert_allclose(start(x), start.base(x), rtol=1e-9)
