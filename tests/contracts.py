"""What every task and every learner must satisfy. A new one inherits all of it; planted failures show that each check can fail."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.trials import Measurement
from unlazy.tasks.base import Sampler


def check_family(family, *, n=2000):
    """Shapes, labels, hidden directions, chance, determinism, and a secret that depends on the key."""
    task = family.task(key=jax.random.key(0))
    x, y = task.sample(n, key=jax.random.key(1))
    assert x.shape == (n, family.dimension) and task.dimension == family.dimension
    assert y.shape == (n,)
    assert np.all(np.isfinite(x)) and set(np.unique(y)) <= {-1.0, 1.0}
    np.testing.assert_array_equal(task.target(x), y, err_msg="target does not give the labels that sample gives")

    assert task.features.ndim == 2 and task.features.shape[1] == task.dimension
    np.testing.assert_allclose(np.linalg.norm(task.features, axis=1), 1, atol=1e-5, err_msg="features are not unit rows")

    share = float(np.mean(y > 0))
    sigma = np.sqrt(0.25 / n)
    assert abs(min(share, 1 - share) - float(task.chance)) <= 5 * sigma, "chance is not the error of the best constant"

    if task.basis is not None:
        gram = task.basis @ task.basis.T
        np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-5, err_msg="basis is not orthonormal")
        inside = x @ task.basis.T @ task.basis
        np.testing.assert_allclose(inside, x, atol=1e-5, err_msg="an input lies outside the span of the basis")

    again = family.task(key=jax.random.key(0)).sample(n, key=jax.random.key(1))
    np.testing.assert_array_equal(again.x, x, err_msg="the same keys gave another sample")
    other = family.task(key=jax.random.key(2))
    assert not np.allclose(other.features, task.features), "another key gave the same secret"


class CountingDraw:
    """A sampler's draw that counts the examples it hands out."""

    def __init__(self, draw):
        self.inner, self.examples = draw, 0

    def __call__(self, n, key):
        self.examples += n
        return self.inner(n, key)


def check_learner(learner, family, n):
    """Recorded steps, finite stacked models, determinism, no more examples than allowed; from a bare sampler without a task."""
    task = family.task(key=jax.random.key(3))
    count = CountingDraw(task.draw)
    with jax.enable_x64(learner.precision == 64):
        sampler = Sampler(count, task.dimension, task.basis)
        fit = lambda key: learner.fit(sampler, n, key=key)  # noqa: E731
        fit = fit if learner.on_host else jax.jit(fit)
        trace = fit(jax.random.key(4))
    if not getattr(learner, "fresh", False):
        assert count.examples <= n, f"{count.examples} examples were drawn, {n} were allowed"
    assert trace.steps == learner.recorded(n) == tuple(sorted(set(trace.steps)))
    assert trace.losses.shape == (len(trace.steps),), "there is not one loss for each recorded step"
    leaves = jax.tree.leaves(eqx.filter(trace.models, eqx.is_array))
    assert learner.on_host or all(len(leaf) == len(trace.steps) for leaf in leaves), "models are not stacked over the recorded steps"
    assert all(np.all(np.isfinite(leaf)) for leaf in leaves), "a model is not finite"
    last = trace.at(len(trace.steps) - 1)
    with jax.enable_x64(learner.precision == 64):
        inside = last if task.basis is None else last.enter(task.basis)
        assert inside(trace.seen.x).shape == trace.seen.y.shape
        again = fit(jax.random.key(4))
    for a, b in zip(leaves, jax.tree.leaves(eqx.filter(again.models, eqx.is_array)), strict=True):
        np.testing.assert_array_equal(a, b, err_msg="the same key gave another model")
    assert learner.work(n, family.dimension) > 0


def check_experiment(experiment):
    """Increasing steps, one finite entry for each, names that do not change, determinism."""
    assert tuple(sorted(set(experiment.steps))) == experiment.steps, "steps do not increase"
    first, second = (next(iter(LocalEngine().run([Measurement(experiment, 3)]))) for _ in range(2))
    assert first.measurements, "nothing was measured"
    assert first.status == "ok", "a measurement is not finite"
    assert first.measurements == second.measurements, "the same seed gave other measurements"
    assert experiment.work > 0


def is_close(a, b, tolerance):
    """Whether two pytrees of arrays agree."""
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(jnp.allclose(x, y, rtol=tolerance, atol=tolerance) for x, y in pairs)
