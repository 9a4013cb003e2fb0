"""Training in segments equals the trial with the same parameters."""

import dataclasses

import jax
import numpy as np
import pytest

from selection import slow_but
from unlazy import (
    AntisymmetricInit,
    Descent,
    GradientDescent,
    LocalEngine,
    MultiIndex,
    Performance,
    Trial,
)
from unlazy.learners.catalog import LEARNERS
from unlazy.learners.circuits.tree import layerwise_network
from unlazy.learners.one_step import one_step_readout
from unlazy.learners.unit_norm import UnitNorm
from unlazy.play.pacing import paced
from unlazy.play.training import LiveTraining, grid, is_live
from unlazy.tasks.circuits.families import GenerativeCircuits
from unlazy.tasks.dictionary.balance import BalancedParity

INIT = AntisymmetricInit(m=6, w_scale=1.0, b_scale=0.5, a_scale=0.3)
FAMILY = MultiIndex(d=5)
STEEP = Descent(
    {"w": 0.3, "b": 0.3, "a": 0.3}, steps=13, batch=16, loss="logistic", momentum=0.9, drop=0.5
)
MAIN = "rotation to a basis, full-decay step, minibatches with momentum and a drop"
CASES = {
    MAIN: (
        BalancedParity(d=9, D=5, k=3),
        GradientDescent(INIT, (Descent({"w": 1.0}, steps=1, full_decay=("w",), spread=0.5), STEEP)),
        60,
    ),
    "inputs of unit norm": (FAMILY, UnitNorm.of(GradientDescent(INIT, (STEEP,))), 60),
    "closed-form readout in double precision": (FAMILY, one_step_readout(6), 60),
    "layer by layer": (GenerativeCircuits(4), layerwise_network(4, margin=0.4, steps=9, k=8), 60),
}


@pytest.mark.parametrize("case", slow_but(["inputs of unit norm"], CASES))
def test_any_segmentation_equals_the_trial(case):
    family, learner, n = CASES[case]
    training = LiveTraining(family, learner, n, (3, 4), test=200)
    snapshot = training.begin()
    for step in (1, 2, 5, 9, training.steps):
        snapshot = training.advance(snapshot, step)
    found = training.look(snapshot)
    records = list(
        LocalEngine().run([Trial(family, learner, n, seed, (Performance(200),)) for seed in (3, 4)])
    )
    assert snapshot.step == training.steps
    for name in ("test_loss", "train_loss", "test_accuracy"):
        np.testing.assert_allclose(
            found[name], [record.value(name) for record in records], rtol=2e-5, atol=1e-6
        )


def test_training_can_restart_from_a_snapshot():
    family, learner, n = CASES[MAIN]
    training = LiveTraining(family, learner, n, (3,))
    early = training.advance(training.begin(), 6)
    once = training.look(training.advance(early, 14))
    training.advance(early, 9)
    again = training.look(training.advance(early, 14))
    assert all(np.array_equal(once[name], again[name], equal_nan=True) for name in once)


def test_a_changed_rate_applies_from_the_snapshot_on():
    family, learner, n = CASES[MAIN]
    training = LiveTraining(family, learner, n, (3,))
    early = training.advance(training.begin(), 6)
    slow = training.look(training.advance(early, 7))
    assert training.change(family, paced(learner, 3.0))
    fast = training.look(training.advance(early, 7))
    whole = LiveTraining(family, paced(learner, 3.0), n, (3,))
    from_scratch = whole.look(whole.advance(whole.begin(), 7))
    lengths = [each["lengths"].mean() for each in (slow, fast, from_scratch)]
    assert len({round(float(length), 6) for length in lengths}) == 3, (
        "the change had no effect, or restarted training"
    )


@pytest.mark.slow
def test_another_size_needs_another_network():
    family, learner, n = CASES[MAIN]
    training = LiveTraining(family, learner, n, (3,))
    assert not training.change(BalancedParity(d=10, D=5, k=3), learner)
    assert not training.change(
        family, dataclasses.replace(learner, init=dataclasses.replace(INIT, m=7))
    )


def test_neurons_are_drawn_at_their_cosines():
    """For XOR the plane spans the two hidden directions, so places are cosines."""
    training = LiveTraining(FAMILY, GradientDescent(INIT, (STEEP,)), 60, (3,))
    found = training.look(training.begin())
    with jax.enable_x64(False):
        task, model = training.setup.task, training.setup.start.model
        w, features = np.asarray(model.w)[0], np.asarray(jax.vmap(lambda t: t.features)(task))[0]
    cosines = w @ features.T / np.linalg.norm(w, axis=1, keepdims=True)
    np.testing.assert_allclose(found["places"][0], cosines, atol=1e-5)
    np.testing.assert_allclose(found["stars"][0], np.eye(2), atol=1e-5)
    np.testing.assert_allclose(found["tiles"][0][:, :2], cosines, atol=1e-5)
    assert set(found["votes"][0]) == {-1.0, 1.0}, "paired neurons have opposite signs"


@pytest.mark.parametrize("lengths", [(1,), (1, 1, 298), (150, 150, 150), (5000,), (0, 7)])
def test_frames_are_ordered_and_include_the_ends_of_stages(lengths):
    steps = list(grid(lengths, 200))
    assert steps == sorted(set(steps)) and steps[0] == 0
    assert {int(end) for end in np.cumsum(lengths)} <= set(steps)
    assert len(steps) <= 260 and (sum(lengths) < 100 or len(steps) > 90)


def test_only_multi_stage_descent_is_live():
    live = {
        name
        for name, entry in LEARNERS.items()
        if entry.value.suits(FAMILY.outputs) and is_live(entry.value, FAMILY)
    }
    assert {"network", "sgd", "one-step-network", "tangent-sgd", "relu-features-sgd"} <= live
    assert not live & {"linear", "ntk", "rbf", "random-forest", "rfm"}
