"""Printed numbers as draws: size and power of the comparison."""

import itertools

import numpy as np
import pytest
import scipy.stats

from toys import hand_record
from unlazy.lab.draws import Evaluation, Tally, draws, prediction
from unlazy.lab.rules import Published, Quantity

METHODS = {"Network": 99.0, "NTK": 84.0, "RF": 76.0, "One Step": 50.0}
SEEDS, RUNS, EXAMPLES = 5, 5, 1_000


def records(values):
    """Return records of test accuracies by method."""
    return {
        name: [hand_record(f"{name}{i}", seed=i, test_accuracy=v) for i, v in enumerate(each)]
        for name, each in values.items()
    }


def table(printed, row="test"):
    return tuple(
        Published(Quantity(name, "test_accuracy"), f"{value:.1f}", runs=RUNS, row=row)
        for name, value in printed.items()
    )


def drawn(rng, mean, deviation=0.8):
    """Return the accuracy of a run on a finite test set."""
    chance = np.clip(rng.normal(mean, deviation), 0, 100) / 100
    return 100 * rng.binomial(EXAMPLES, chance) / EXAMPLES


def outcomes(rng, printed_means):
    """Return the comparisons of a table whose methods have other means than our runs."""
    ours = {name: np.clip(rng.normal(mean, 0.8, SEEDS), 0, 100) for name, mean in METHODS.items()}
    printed = {
        name: np.mean([drawn(rng, mean) for _ in range(RUNS)])
        for name, mean in printed_means.items()
    }
    return draws(table(printed), records(ours), Evaluation(RUNS, EXAMPLES))


def test_a_table_of_the_same_experiment_is_consistent_at_the_nominal_rate():
    rng = np.random.default_rng(0)
    found = [each for _ in range(500) for each in outcomes(rng, METHODS)]
    rate = np.mean([each.outcome == "consistent" for each in found])
    assert 0.92 <= rate <= 0.98, rate


def test_a_table_with_permuted_methods_is_not_consistent():
    rng = np.random.default_rng(1)
    names = list(METHODS)
    for order in itertools.permutations(names):
        moved = {name: METHODS[other] for name, other in zip(names, order, strict=True)}
        found = outcomes(rng, moved)
        for each in found:
            if moved[each.arm] != METHODS[each.arm]:
                assert each.outcome == "inconsistent", each


def test_the_interval_is_that_of_hahn_and_meeker():
    values = [83.0, 84.5, 85.1]
    half = scipy.stats.t.ppf(0.975, 2) * np.std(values, ddof=1) * np.sqrt(1 / 3 + 1 / 5)
    low, high = prediction(values, "test_loss", runs=5)
    assert (low, high) == pytest.approx((np.mean(values) - half, np.mean(values) + half))
    wider = prediction(values, "test_accuracy", runs=5, examples=100)
    assert wider[1] - wider[0] > high - low


def test_equal_values_have_the_width_of_rounding_and_of_the_test_set():
    assert prediction([100.0] * 5, "test_accuracy", half_digit=0.05) == (99.95, 100.0)
    low, high = prediction([50.0] * 5, "test_accuracy", runs=1, examples=1_000)
    half = 1.96 * np.sqrt(0.25 / 1_000) * 100
    assert (low, high) == pytest.approx((50 - half, 50 + half), rel=1e-3)


def test_one_seed_has_no_interval_and_confirms_nothing():
    (found,) = draws(table({"NTK": 84.0}), records({"NTK": [84.0]}))
    assert found.outcome == "inconsistent" and found.low is None


def test_an_interval_that_contains_another_method_is_not_informative():
    wide = {"NTK": [70.0, 76.0, 82.0, 88.0, 79.0], "RF": [75.9, 76.0, 76.1, 76.0, 75.9]}
    ntk, rf = draws(table({"NTK": 80.0, "RF": 76.0}), records(wide))
    assert ntk.outcome == "consistent", "the methods do not differ significantly"
    shifted = {"NTK": [v + 6 for v in wide["NTK"]], "RF": wide["RF"]}
    ntk, rf = draws(table({"NTK": 80.0, "RF": 76.0}), records(shifted))
    assert ntk.outcome == "not informative" and ntk.other == "RF"
    assert rf.outcome == "consistent"


def test_numbers_at_the_end_of_the_range_are_counted_apart():
    values = {"Network": [100.0] * 5, "NTK": [84.0, 84.5, 83.5, 84.2, 83.8]}
    found = draws(table({"Network": 100.0, "NTK": 84.1}), records(values))
    assert Tally.of_draws(found) == Tally(2, 2, 1, 1, 0)
    assert str(Tally.of_draws(found)) == "2 of 2 consistent (1 of 1 trivial ones)"


def test_values_of_curves_are_compared_at_their_steps():
    quantity = Quantity("Network", "test_loss", step=0)
    record = {"Network": [hand_record(f"{i}", seed=i, test_loss=1.0 + i / 10) for i in range(3)]}
    step = record["Network"][0].steps[-1]
    found = draws((Published(Quantity("Network", "test_loss", step), "1.1"),), record)
    assert found[0].outcome == "consistent"
    missing = Quantity("Network", "test_loss", step=quantity.step or step + 1)
    assert draws((Published(missing, "1.1"),), record) == ()
