"""Contracts of tasks and learners; deliberate violations show that each check can fail."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
import pytest
from jaxtyping import Array

from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.trials import Measurement
from unlazy.learners.sources import QueryGradients
from unlazy.tasks.base import Batch, Data, Task
from unlazy.tasks.images.families import ImageFamily


def skip_without_data(family):
    """Skip a test whose data are missing."""
    if family.missing is not None:
        pytest.skip(family.missing)


def check_family(family, *, n=2000):
    """Check shapes, labels, hidden directions, chance, determinism, and dependence on the key."""
    skip_without_data(family)
    n = min(n, family.most_examples or n)
    drawn = _drawing(family, n)
    facts = drawn(family, jax.random.key(0), jax.random.key(1))
    task, (x, y), basis = facts.task, facts.batch, facts.basis
    assert x.shape == (n, *task.shape) and task.dimension == family.dimension == np.prod(task.shape)
    assert task.outputs == family.outputs and task.metric == family.metric, (
        "task and family disagree about outputs or metric"
    )
    family.outputs.check()
    assert np.all(np.isfinite(x))
    check_labels(np.asarray(y), n, family.outputs)
    if basis is not None:
        basis, inputs = np.asarray(basis, np.float64), np.asarray(x, np.float64)
        gram = basis @ basis.T
        np.testing.assert_allclose(
            gram, np.eye(len(gram)), atol=1e-5, err_msg="basis is not orthonormal"
        )
        inside = inputs @ basis.T @ basis
        np.testing.assert_allclose(
            inside, inputs, atol=1e-5, err_msg="an input lies outside the span of the basis"
        )
        assert len(gram) == family.coordinates, (
            "the family counts other coordinates than its basis has"
        )

    # Traced again: hidden state would be a constant of the first program.
    again = _drawing(family, n)(family, jax.random.key(0), jax.random.key(1))
    np.testing.assert_array_equal(again.batch.x, x, err_msg="the same keys gave another sample")
    other = drawn(family, jax.random.key(2), jax.random.key(1))
    if isinstance(task, Task):
        check_ground_truth(facts)
        assert not np.allclose(other.features, facts.features), "another key gave the same features"
    else:
        assert not np.array_equal(other.batch.x, x), "another key gave the same split"


class Facts(NamedTuple):
    """A drawn task, a sample, and its arrays; the last three are None without ground truth."""

    task: Data
    batch: Batch
    basis: Array | None
    target: Array | None = None
    features: Array | None = None
    chance: Array | None = None


def _drawing(family, n):
    """Return a function that draws one task and `n` examples.

    It is one compiled program, except for images, whose dataset would be a constant of it.
    """

    def drawing(family, key, sample_key):
        task = family.task(key=key)
        batch = task.sample(n, key=sample_key)
        facts = Facts(task, batch, task.basis)
        if not isinstance(task, Task):
            return facts
        return facts._replace(
            target=task.target(batch.x), features=task.features, chance=task.chance
        )

    return drawing if isinstance(family, ImageFamily) else eqx.filter_jit(drawing)


def check_labels(y, n, outputs):
    """Check that labels agree with `outputs`."""
    assert y.shape == ((n,) if outputs.count is None else (n, outputs.count)), (
        "labels have another shape than outputs says"
    )
    if outputs.kind == "signs":
        assert set(np.unique(y)) <= {-1.0, 1.0}, "labels are no signs"
    elif outputs.kind == "classes":
        assert set(np.unique(y)) <= {0.0, 1.0} and np.all(y.sum(axis=1) == 1), (
            "labels are no one-hot rows"
        )
    else:
        assert np.all(np.isfinite(y)), "a label is not finite"


def check_ground_truth(facts):
    """Check that the target gives the labels, features are directions, and chance is the risk of
    the best constant.
    """
    task, y, features = facts.task, facts.batch.y, np.asarray(facts.features)
    np.testing.assert_array_equal(
        facts.target, y, err_msg="target does not give the labels that sample gives"
    )
    assert features.ndim == 2 and features.shape[1] == task.dimension
    np.testing.assert_allclose(
        np.linalg.norm(features, axis=1), 1, atol=1e-5, err_msg="features are not unit rows"
    )
    each = np.asarray(y, np.float64).reshape(len(y), -1)
    if task.outputs.kind == "reals":
        risks = np.sum(np.square(each - each.mean(axis=0)), axis=1)
        found, sigma = risks.mean(), risks.std() / np.sqrt(len(y))
    else:
        shares = (
            each.mean(axis=0)
            if task.outputs.kind == "classes"
            else np.array([np.mean(each > 0), np.mean(each < 0)])
        )
        found, sigma = 1 - shares.max(), np.sqrt(0.25 / len(y))
    assert abs(found - float(facts.chance)) <= 5 * sigma, (
        "chance is not the risk of the best constant"
    )


class CountingDraw:
    """A sampler's draw that counts the examples."""

    def __init__(self, draw):
        self.inner, self.examples = draw, 0

    def __call__(self, n, key):
        self.examples += n
        return self.inner(n, key)


#: One compiled program, since drawing a task may train a teacher.
drawn_task = eqx.filter_jit(lambda family, key: family.task(key=key))


def check_learner(learner, family, n):
    """Check recorded steps, finite stacked models, determinism and the number of examples, with a
    sampler only.
    """
    skip_without_data(family)
    learner = learner.suited(family)
    assert learner.suits(family.outputs), f"it cannot learn {family.outputs}"
    with jax.enable_x64(learner.precision == 64):
        task = drawn_task(family, jax.random.key(3))
        count = CountingDraw(task.draw)
        sampler = dataclasses.replace(task.sampler, draw=count)
        fit = lambda key: learner.fit(sampler, n, key=key)  # noqa: E731
        fit = fit if learner.on_host else jax.jit(fit)
        trace = fit(jax.random.key(4))
    if not learner.draws_fresh and not isinstance(getattr(learner, "source", None), QueryGradients):
        assert count.examples <= n, f"{count.examples} examples were drawn, {n} were allowed"
    assert trace.steps == learner.recorded(n) == tuple(sorted(set(trace.steps)))
    assert trace.losses.shape == (len(trace.steps),), "there is not one loss for each recorded step"
    leaves = jax.tree.leaves(eqx.filter(trace.models, eqx.is_array))
    assert learner.on_host or all(len(leaf) == len(trace.steps) for leaf in leaves), (
        "models are not stacked over the recorded steps"
    )
    assert all(np.all(np.isfinite(leaf)) for leaf in leaves), "a model is not finite"
    last = trace.at(len(trace.steps) - 1)
    with jax.enable_x64(learner.precision == 64):
        score = (_scores if learner.on_host else eqx.filter_jit(_scores))(
            last, task.basis, trace.seen.x
        )
        assert score.shape == trace.seen.y.shape, "scores have another shape than labels"
        assert np.all(np.isfinite(score)), "a score is not finite"
        check_labels(np.asarray(trace.seen.y), len(trace.seen.y), family.outputs)
        again = fit(jax.random.key(4))
    for a, b in zip(leaves, jax.tree.leaves(eqx.filter(again.models, eqx.is_array)), strict=True):
        np.testing.assert_array_equal(a, b, err_msg="the same key gave another model")
    assert learner.work(n, family.dimension) > 0


def _scores(model, basis, x):
    return (model if basis is None else model.enter(basis))(x)


def check_computation(computation):
    """Check increasing steps, one finite entry per step, fixed names, and determinism."""
    assert tuple(sorted(set(computation.steps))) == computation.steps, "steps do not increase"
    engine = LocalEngine()
    first, second = (next(iter(engine.run([Measurement(computation, 3)]))) for _ in range(2))
    assert first.measurements, "nothing was measured"
    assert first.status == "ok", "a measurement is not finite"
    assert first.measurements == second.measurements, "the same seed gave other measurements"


def is_close(a, b, tolerance):
    """Return whether two pytrees of arrays agree."""
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(np.allclose(x, y, rtol=tolerance, atol=tolerance) for x, y in pairs)
