"""Depth separation in small."""

import dataclasses

import jax
import numpy as np
import pytest

from unlazy.core.errors import BadInput
from unlazy.lab.arms import Repeats
from unlazy.lab.engines.local import LocalEngine
from unlazy.papers.malach2019 import shallow
from unlazy.papers.malach2019.depth import DEPTH_SEPARATION, WIDTHS
from unlazy.papers.malach2019.shallow import AndOfOrs, SignRank, WrongInputs, deep_recovery, least_widths
from unlazy.tasks.circuits.circuit import Circuit
from unlazy.tasks.circuits.examples import and_of_ors
from unlazy.tasks.circuits.families import evaluate_signs


def run(arm, seed=10):
    trials = arm.trials([seed])
    found = {record.key: record for record in LocalEngine().run(list({trial.key: trial for trial in trials}.values()))}
    return arm.join([found[trial.key] for trial in trials], [seed])[0]


def test_sign_rank_in_small():
    with jax.enable_x64(True):
        rank = {name: float(value) for name, value in SignRank(6, networks=2).measure(key=jax.random.key(0)).items()}
    assert rank["rank_ratio"] <= 1 and rank["inner_product"] == pytest.approx(1) and rank["razborov_sherstov"] >= 1


def test_a_deep_tree_is_recovered():
    deep = run(deep_recovery((1, 2), 4096))
    assert deep.value("error") == deep.value("error_sample") == 0 and deep.value("recovered") == 100
    assert deep.steps == (1, 2) and deep.value("inputs") == 16 and deep.value("gates") == 15


def test_a_tree_that_is_not_learned_would_be_seen(monkeypatch):
    # Under a generative law the gates of a parity have no correlation with the label.
    monkeypatch.setattr(shallow, "razborov_sherstov", lambda m: Circuit.parse("XNOR / XNOR XNOR"))
    deep = run(deep_recovery((2,), 64))
    assert deep.value("recovered") < 100 and deep.value("error") > 0


@pytest.mark.parametrize(("m", "r"), [(1, 1), (2, 2)])
def test_balanced_inputs_have_their_label_and_are_uniform_given_it(m, r):
    task = AndOfOrs(m, r).task(key=jax.random.key(0))
    n = task.dimension
    x, y = task.sample(40_000, key=jax.random.key(1))
    np.testing.assert_array_equal(task.target(x), y)
    np.testing.assert_array_equal(evaluate_signs(np.asarray(and_of_ors(m, r).gates, int), x), y)
    assert abs(float(np.mean(y))) < 0.03
    number = (np.asarray(x) > 0) @ (1 << np.arange(n)[::-1])
    for sign in (True, False):
        members = np.flatnonzero(shallow._labels(m, r) == sign)
        counted = np.bincount(number[np.asarray(y > 0) == sign], minlength=2**n)
        assert counted[members].sum() == counted.sum()
        expected = counted.sum() / len(members)
        assert np.all(np.abs(counted[members] - expected) < 6 * np.sqrt(expected))


def test_functions_that_cannot_be_listed_are_refused():
    with pytest.raises(BadInput, match="at most 16"):
        AndOfOrs(3, 3)
    with pytest.raises(BadInput, match="at least 1"):
        AndOfOrs(0, 1)


def test_wrong_inputs_are_counted_one_by_one():
    task = AndOfOrs(1, 1).task(key=jax.random.key(0))
    probe = WrongInputs()
    for sign, wrong in ((1.0, 0), (-1.0, 4), (0.0, 4)):
        found = probe.look(task, lambda x, s=sign: s * task.target(x), seen=None, key=jax.random.key(1))
        assert int(found["wrong"]) == wrong and float(found["exact"]) == (wrong == 0)


def test_the_least_width_is_the_first_with_an_exact_network():
    row = least_widths({(1, 1): (2, 4), (1, 2): (4,)}, starts=2, steps=20, batch=16)
    assert list(row.arms) == [2, 4] and all(isinstance(part, Repeats) for part in row.arms[2].arms.values())
    trials = row.trials([10])
    (record,) = LocalEngine().run(trials[:1])
    assert set(record.measurements) >= {"wrong", "exact"}

    def answer(trial):
        width = 2 * trial.learner.init.m
        exact = float(trial.family.r == 1 and width == 4 and trial.seed > 10)  # one of two starts is enough
        return dataclasses.replace(record, measurements=record.measurements | {"exact": (exact,)})

    (joined,) = row.join([answer(trial) for trial in trials], [10])
    assert joined.measurements["width"] == (4.0, 8.0)  # none of (1, 2): twice the greatest tried
    assert joined.measurements["tree"] == (4.0, 12.0) and joined.measurements["parameters"] == (17.0, 49.0)


def test_the_check_of_the_width_can_fail():
    """A width below its bound is among those tried at every scale that is judged."""
    (check,) = (check for check in DEPTH_SEPARATION.checks if check.quantity.measure == "width")
    assert all(min(widths) < check.lower for scale in check.scales for widths in WIDTHS[scale].values())
