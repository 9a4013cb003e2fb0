import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from programs import drawn, sampled
from toys import Halfspace, small_init
from unlazy.core.errors import BadInput
from unlazy.learners.gradient import GradientDescent
from unlazy.learners.readout import RidgeReadout
from unlazy.learners.sources import FreshGradients, SampleGradients
from unlazy.tasks.base import Batch


def test_equals_ridge_regression_on_standardized_features():
    with jax.enable_x64(True):
        net = small_init(m=10)(5, key=jax.random.key(0))
        # Mirrored neurons are copies: the penalty makes the solution unique all the same.
        x, y = sampled(drawn(Halfspace(5), jax.random.key(1)), 200, jax.random.key(2))
        models, loss = RidgeReadout(0.01).run(
            net, SampleGradients(), Batch(x, y), jnp.array([1]), jax.random.key(3)
        )
        features = np.asarray(net.hidden(x))
        peer = Ridge(alpha=0.01 * len(y)).fit(
            StandardScaler().fit_transform(features), np.asarray(y)
        )
        predicted = peer.predict(StandardScaler().fit_transform(features))
        solved = jax.tree.map(lambda leaf: leaf[0], models)
        np.testing.assert_allclose(solved(x), predicted, atol=1e-8)
        assert loss[0] == pytest.approx(np.mean((predicted - np.asarray(y)) ** 2) / 2)


@pytest.mark.parametrize("bias", [-50.0, 50.0])
@pytest.mark.parametrize("n", [100, 50_000])
def test_a_neuron_that_is_constant_on_the_sample_gets_no_weight(bias, n):
    """The compiled mean of n ones may differ from one by rounding, which is no feature."""
    net = small_init(m=3)(5, key=jax.random.key(0))
    net = net.put({"b": net.b.at[0].set(bias)})
    x, y = sampled(drawn(Halfspace(5), jax.random.key(1)), n, jax.random.key(2))
    solve = jax.jit(
        jax.vmap(
            lambda key: RidgeReadout(0.01).run(
                net, SampleGradients(), Batch(x, y), jnp.array([1]), key
            )[0]
        )
    )
    models = solve(jax.random.split(jax.random.key(3), 1))
    assert (
        models.a[0, 0, 0] == 0 and np.all(np.isfinite(models.a)) and np.max(np.abs(models.a)) < 1e3
    )


def test_does_not_depend_on_the_scale_of_the_features():
    """Features of size 1e-8 around their mean, as after one theorem-sized step, give the same
    classifier in double precision.
    """
    with jax.enable_x64(True):
        net = small_init(m=4)(5, key=jax.random.key(0)).put({"b": jnp.full(8, 0.5)})
        x, y = sampled(drawn(Halfspace(5), jax.random.key(1)), 100, jax.random.key(2))
        scores = [
            RidgeReadout().run(
                net.put({"w": scale * net.w}),
                SampleGradients(),
                Batch(x, y),
                jnp.array([1]),
                jax.random.key(3),
            )[0]
            for scale in (1e-2, 1e-8)
        ]
        large, tiny = (jax.tree.map(lambda leaf: leaf[0], model)(x) for model in scores)
        np.testing.assert_allclose(large, tiny, atol=1e-4)


def test_bad_settings_are_refused():
    with pytest.raises(BadInput, match="ridge must be positive"):
        RidgeReadout(0.0)
    learner = GradientDescent(small_init(), (RidgeReadout(),), source=FreshGradients())
    with pytest.raises(BadInput, match="fixed sample"):
        learner.fit(drawn(Halfspace(3), jax.random.key(0)).sampler, 10, key=jax.random.key(1))
