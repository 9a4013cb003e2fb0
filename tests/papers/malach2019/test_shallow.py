"""Depth separation at small sizes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from selection import slow_but_first
from unlazy.core.errors import BadInput
from unlazy.lab.engines.local import LocalEngine
from unlazy.networks.two_layer import TwoLayer
from unlazy.papers.malach2019 import shallow
from unlazy.papers.malach2019.shallow import (
    AndOfOrs,
    NetworkRank,
    SignRank,
    WrongInputs,
    deep_recovery,
    errors_by_width,
)
from unlazy.tasks.circuits.examples import and_of_ors, razborov_sherstov
from unlazy.tasks.circuits.families import evaluate_signs
from unlazy.theory.sign_rank import is_no_product, shattered_rows, sign_matrix


def run(arm, seed=10):
    trials = arm.trials([seed])
    found = {
        record.key: record
        for record in LocalEngine().run(list({trial.key: trial for trial in trials}.values()))
    }
    return arm.join([found[trial.key] for trial in trials], [seed])[0]


def numbers(computation):
    with jax.enable_x64(True):
        return {
            name: np.atleast_1d(value)
            for name, value in computation.measure(key=jax.random.key(0)).items()
        }


def test_lemma_23_and_the_rounding():
    right, wrong = (
        numbers(NetworkRank(6, networks=4)),
        numbers(NetworkRank(7, networks=4, coarse=True)),
    )
    assert right["rank_ratio"] <= 1 and 0.99 < right["rounding_ratio"] <= 1
    assert wrong["rank_ratio"] > 1 and wrong["rounding_ratio"] > 1


def test_the_sign_rank_grows_from_f_1_to_f_2():
    found = numbers(SignRank())
    assert (
        found["lower"].tolist() == [2, 6]
        and found["upper"].tolist() == [2, 17]
        and found["growth"][-1] == 4
    )
    assert np.all(found["spectral"] <= found["lower"]) and found["width_bound"][-1] < 0.1
    assert numbers(SignRank(conjunction=True))["growth"][-1] == 0


def test_rows_are_shattered_only_if_all_patterns_occur():
    matrix = sign_matrix(razborov_sherstov(2))
    rows = [shallow._row(2, i, j) for i in range(2) for j in range(1, 4)]
    assert shattered_rows(matrix, rows) == 6 and shattered_rows(-np.ones((4, 4)), [0, 1]) == 0
    assert shattered_rows(np.array([[1, -1], [1, -1]]), [0, 1]) == 1
    assert is_no_product(matrix) and not is_no_product(np.outer([1, -1], [1, -1, -1]))


@pytest.mark.slow
def test_a_deep_tree_is_recovered():
    for sample in (False, True):
        deep = run(deep_recovery((1, 2), sample=sample))
        assert (
            deep.value("error") == 0
            and deep.value("worst_recovered") == 100
            and deep.value("separated") == 1
        )
        assert deep.steps == (1, 2) and deep.value("inputs") == 16


def test_a_tree_that_is_not_learned_is_detected():
    # Under a generative distribution the gates of a parity have no correlation with the label.
    deep = run(deep_recovery((2,), sample=False, gates=("XNOR", "XOR")))
    assert (
        deep.value("worst_recovered") < 100
        and deep.value("error") > 0
        and deep.value("separated") == 0
    )


@pytest.mark.parametrize(("m", "r"), slow_but_first([(1, 1), (2, 2)]))
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


def test_functions_that_cannot_be_enumerated_are_rejected():
    with pytest.raises(BadInput, match="at most 16"):
        AndOfOrs(3, 3)
    with pytest.raises(BadInput, match="positive integers"):
        AndOfOrs(0, 1)


@pytest.mark.slow
def test_wrong_inputs_are_counted_under_balanced_labels():
    task = AndOfOrs(1, 1).task(key=jax.random.key(0))
    probe = WrongInputs()
    for sign, error in ((1.0, 0), (-1.0, 100), (0.0, 100)):
        found = probe.look(
            task, lambda x, s=sign: s * task.target(x), seen=None, key=jax.random.key(1)
        )
        assert float(found["error"]) == error and float(found["exact"]) == (error == 0)
    constant = probe.look(task, lambda x: -jnp.ones(len(x)), seen=None, key=jax.random.key(1))
    assert float(constant["error"]) == 50


def test_the_margin_is_that_of_weights_in_the_unit_interval():
    task = AndOfOrs(1, 1).task(key=jax.random.key(0))
    model = TwoLayer(
        jnp.array([[2.0, 2.0]]),
        jnp.array([-2.0]),
        jnp.array([4.0]),
        jnp.array(-4.0),
        activation="relu",
    )  # 4(2 − 1), or −4
    found = WrongInputs().look(task, model, seen=None, key=jax.random.key(1))
    assert float(found["exact"]) == 1 and float(found["unit_margin"]) == pytest.approx(0.5)


@pytest.mark.slow
def test_errors_are_measured_at_every_width():
    row = errors_by_width(1, 1, (2, 4), repeats=2, steps=20, batch=16)
    trials = row.trials([10])
    (record,) = LocalEngine().run(trials[:1])
    assert set(record.measurements) >= {"error", "exact", "unit_margin"}

    def answer(trial, first):
        width = 2 * trial.learner.init.m
        exact = float(width >= first and trial.seed > 10)  # one of two initializations suffices
        return dataclasses.replace(
            record, measurements=record.measurements | {"exact": (exact,), "error": (float(width),)}
        )

    (joined,) = row.join([answer(trial, 4) for trial in trials], [10])
    assert joined.measurements["error"] == (2.0, 4.0) and joined.value("least_exact") == 4
    (never,) = row.join([answer(trial, 8) for trial in trials], [10])
    assert never.value("least_exact") == 8  # twice the largest width
