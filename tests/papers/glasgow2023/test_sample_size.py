import math

import jax
import numpy as np
import pytest

from selection import slow_but_first
from toys import hand_record
from unlazy.kernels.products import Polynomial
from unlazy.kernels.wide import NTK
from unlazy.lab.arms import Row
from unlazy.lab.engines.local import LocalEngine
from unlazy.papers.glasgow2023.below import below_the_bound
from unlazy.papers.glasgow2023.sample_size import (
    PredictedSizes,
    crossover,
    exponents,
    kernel_row,
    samples_at,
    sgd_row,
)


def run(arm, seeds=(0,)):
    trials = arm.trials(seeds)
    found = {
        record.key: record
        for record in LocalEngine().run(list({trial.key: trial for trial in trials}.values()))
    }
    return arm.join([found[trial.key] for trial in trials], seeds)


def samples(errors, steps):
    return samples_at(0.05, lambda d: d)(10, hand_record(steps=steps, error=tuple(errors)))[
        "samples"
    ]


def test_samples_are_those_at_which_the_error_stays_below_the_target():
    assert samples([0.5, 0.1, 0.0, 0.0, 0.0], (0, 1, 2, 3, 4)) == pytest.approx(15)


def test_a_target_that_is_not_reached_gives_infinity():
    assert samples([0.5, 0.1, 0.0, 0.1, 0.0], (0, 1, 2, 3, 4)) == math.inf
    assert math.isnan(samples([0.0, 0.0, 0.0], (1, 2, 3)))  # fewer examples may do
    d = np.array([8.0, 16.0])
    assert math.isnan(exponents(d, {"samples": np.array([5.0, math.inf])})["exponent"])
    assert exponents(d, {"samples": 3 * d**2})["exponent"] == pytest.approx(2)


@pytest.mark.slow
def test_a_kernels_sample_size_is_as_predicted():
    (record,) = run(kernel_row(Polynomial(2, 0.0), (12, 20), target=0.1, test=1000))
    assert record.steps == (12, 20)
    np.testing.assert_allclose(record.measurements["ratio"], 1, atol=0.2)
    assert (
        record.value("ratio_lowest") == record.value("ratio_highest") == record.value("ratio", 20)
    )
    assert 1.6 < record.value("exponent") < 2.5 and record.value("exponent_log") < record.value(
        "exponent"
    )


@pytest.mark.slow
def test_sgd_finds_xor():
    (record,) = run(sgd_row((16,), width=32, target=0.1, test=512))
    assert 100 < record.value("samples") < 96 * 16


def test_the_crossover_of_two_rows():
    """The rows of the crossing are trials of the other rows, and the crossing lies between what was
    measured.
    """
    sgd, ntk = (
        sgd_row((12, 16), width=8, target=0.2, test=64),
        kernel_row(NTK(), (12, 16), target=0.2, test=64),
    )
    both = crossover(sgd, ntk)
    assert {t.key for t in both.trials([3])} == {
        t.key for row in (sgd, ntk) for t in row.trials([3])
    }

    def made(values):
        return hand_record(steps=(10, 100, 1000), samples=tuple(map(float, values)))

    d = np.array([10, 100, 1000])
    assert both.measure({"first": made(100 * d), "second": made(d**2)})[
        "crossover"
    ] == pytest.approx(100)
    assert both.measure({"first": made(d), "second": made(2 * d)})["crossover"] == 10
    assert both.measure({"first": made(2 * d), "second": made(d)})["crossover"] == 1000
    assert math.isnan(
        both.measure({"first": made([1, 2, math.inf]), "second": made(d)})["crossover"]
    )


def test_predictions_alone():
    found = PredictedSizes(NTK(), (1000, 10_000)).measure(key=jax.random.key(0))
    assert found["exponent"][0] == pytest.approx(2, abs=0.02)


@pytest.mark.parametrize("name", slow_but_first(["ntk", "quadratic", "sgd"]))
def test_below_the_bound_nothing_is_learned(name):
    row = below_the_bound(name, (64,), test=400, length=5)
    assert isinstance(row, Row) and row.trials([0])[0].n == int(64 / math.log(64) ** 2)
    (record,) = run(row)
    assert 0.35 < record.value("error") < 0.65
