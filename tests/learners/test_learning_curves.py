import dataclasses

import jax
import numpy as np
import pytest

from contracts import check_learner
from programs import drawn
from toys import Halfspace, small_learner
from unlazy.core.errors import BadInput
from unlazy.kernels.gram import gram
from unlazy.kernels.products import Polynomial
from unlazy.kernels.wide import NTK
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.trials import Trial
from unlazy.learners.base import keys_of
from unlazy.learners.kernel import KernelRidge
from unlazy.learners.learning_curves import OnPrefixes, PrefixRidge
from unlazy.learners.mean_field import mean_field_sgd
from unlazy.probes.performance import Performance
from unlazy.tasks.multi_index import MultiIndex

FAMILY = MultiIndex(d=7, rotated=True)
TASK = drawn(FAMILY, jax.random.key(0))


@pytest.mark.parametrize(
    "learner",
    [
        PrefixRidge(Polynomial(2, 0.0), 1e-3),
        PrefixRidge(NTK(), sizes=(5, 60)),
        OnPrefixes.of(small_learner(), (4, 9, 32)),
        OnPrefixes.of(KernelRidge(NTK(), (0.1, 1.0)), (4, 30)),
    ],
)
def test_learners_on_prefixes_satisfy_the_contract(learner):
    check_learner(learner, Halfspace(6), 60)
    assert all(learner.examples_at(step, 60) == step for step in learner.recorded(60))


def test_the_grid_is_fine_and_ends_at_n():
    sizes = np.array(PrefixRidge(NTK()).recorded(1000))
    assert sizes[-1] == 1000 and sizes[0] == pytest.approx(250, abs=5)
    assert np.all(np.diff(np.log(sizes)) < 0.014)
    assert PrefixRidge(NTK(), sizes=(5, 60, 70)).recorded(60) == (5, 60)


def test_each_prefix_is_its_own_regression():
    """Compare with separate solves on raw inputs, with a ridge in units of k(x, x)."""
    with jax.enable_x64(True):
        task, key = FAMILY.task(key=jax.random.key(0)), jax.random.key(1)
        learner = PrefixRidge(NTK(), 1e-2, sizes=(3, 20, 41))
        trace = learner.fit(task.sampler, 50, key=key)
        x, y = (np.asarray(v) for v in task.sampler.sample(50, key=keys_of(key)[1]))
        z = task.draw(30, jax.random.key(2)).x
        found = trace.models.scores(z, task.basis)
        kernel = np.asarray(gram(NTK(), x))
        test = np.asarray(gram(NTK(), np.asarray(z @ task.basis), x))
    for size, scores in zip((3, 20, 41), found, strict=True):
        ridge = 1e-2 * np.mean(np.diagonal(kernel))
        alpha = np.linalg.solve(kernel[:size, :size] + ridge * np.eye(size), y[:size])
        np.testing.assert_allclose(scores, test[:, :size] @ alpha, atol=1e-8)
        loss = 0.5 * np.mean(np.square(kernel[:size, :size] @ alpha - y[:size]))
        assert float(trace.losses[trace.steps.index(size)]) == pytest.approx(loss, rel=1e-6)


def test_a_prefix_is_a_prefix_of_one_sample():
    """A kernel's curve by general fits is that by one factorization, and a network's last fit is
    the fit to all.
    """
    key = jax.random.key(3)
    ridge = dataclasses.replace(PrefixRidge(Polynomial(2, 0.0), 1e-2), sizes=(10, 25))
    one, other = (
        ridge.fit(TASK.sampler, 25, key=key),
        OnPrefixes.of(dataclasses.replace(ridge, sizes=()), (10, 25)).fit(
            TASK.sampler, 25, key=key
        ),
    )
    z = TASK.draw(30, jax.random.key(2)).x
    np.testing.assert_allclose(
        one.models.scores(z, TASK.basis), other.models.scores(z, TASK.basis), atol=1e-4
    )
    learner = small_learner()
    curve, whole = (
        OnPrefixes.of(learner, (8, 25)).fit(TASK.sampler, 25, key=key),
        learner.fit(TASK.sampler, 25, key=key),
    )
    np.testing.assert_allclose(curve.at(1)(z), whole.at(-1)(z), atol=1e-5)
    assert curve.steps == (8, 25) and curve.losses.shape == (2,)


@pytest.mark.parametrize(
    "learner", [PrefixRidge(NTK(), sizes=(8, 24)), OnPrefixes.of(small_learner(), (8, 24))]
)
def test_the_engine_runs_them(learner):
    trials = [Trial(Halfspace(4), learner, 24, seed, (Performance(100),)) for seed in (0, 1)]
    records = list(LocalEngine().run(trials))
    assert all(
        record.status == "ok"
        and record.steps == (8, 24)
        and len(record.measurements["test_accuracy"]) == 2
        for record in records
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OnPrefixes.of(small_learner(), (8, 4)), "increasing"),
        (lambda: OnPrefixes.of(small_learner(), ()), "must not be empty"),
        (lambda: OnPrefixes.of(mean_field_sgd(width=4, batch=4), (8,)), "use `record`"),
        (lambda: OnPrefixes(small_learner(), (8,), precision=64), "OnPrefixes.of"),
        (
            lambda: OnPrefixes.of(small_learner(), (80,)).fit(
                TASK.sampler, 25, key=jax.random.key(0)
            ),
            "none is at most",
        ),
        (lambda: PrefixRidge(NTK(), sizes=(0, 4)), "positive"),
        (lambda: PrefixRidge(NTK(), fineness=0.0), "fineness"),
    ],
)
def test_invalid_curves_are_refused(make, message):
    with pytest.raises(BadInput, match=message):
        make()


def test_a_step_of_a_curve_that_is_not_finite_is_named():
    trace = PrefixRidge(NTK(), sizes=(5, 20)).fit(TASK.sampler, 20, key=jax.random.key(0))
    assert list(trace.finite) == [True, True]
    broken = trace.models.coefficients.copy()
    broken[1, 3] = np.nan
    trace = dataclasses.replace(
        trace, models=dataclasses.replace(trace.models, coefficients=broken)
    )
    assert list(trace.finite) == [True, False]
