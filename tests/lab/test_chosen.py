"""The best arm of a grid by validation error."""

import dataclasses
import math

import pytest

from toys import Products
from unlazy.lab.arms import Arm, Chosen, shuffled_labels
from unlazy.lab.engines.local import LocalEngine
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.tangent import LastLayerRidge
from unlazy.networks.inits import PlainInit
from unlazy.probes.performance import Performance, Validation
from unlazy.tasks.shuffled_labels import ShuffledLabels

INIT = PlainInit(m=8, w_scale=0.5, b_scale=0.5, a_scale=0.4)


def arm(rate):
    return Arm(
        Products(),
        GradientDescent(INIT, (Descent({"a": rate}, steps=30, loss="squared"),)),
        40,
        (Performance(200), Validation(100)),
    )


@pytest.fixture(scope="module")
def grid():
    chosen = Chosen({rate: arm(rate) for rate in (1e-4, 0.05, 1e9)})
    seeds = [3, 4]
    records = list(LocalEngine().run(chosen.trials(seeds)))
    order = {trial.key: place for place, trial in enumerate(chosen.trials(seeds))}
    return chosen, seeds, sorted(records, key=lambda record: order[record.key])


def test_the_arm_with_the_smallest_validation_error_is_chosen(grid):
    chosen, seeds, records = grid
    joined = chosen.join(records, seeds)
    assert [record.seed for record in joined] == seeds and all(
        record.status == "ok" for record in joined
    )
    assert any(record.status == "diverged" for record in records)
    for place, record in enumerate(joined):
        runs = records[place :: len(seeds)]
        assert record.value("chosen") == 1 and record.key == runs[1].key
        smallest = min(
            value for run in runs if math.isfinite(value := run.value("test_squared_error"))
        )
        assert record.value("best_test_squared_error") == pytest.approx(smallest)
        assert record.seconds == pytest.approx(sum(run.seconds for run in runs))


def test_if_all_runs_diverge_the_record_is_diverged(grid):
    chosen, _, records = grid
    lost = {
        place: dataclasses.replace(
            record,
            measurements={name: (math.nan,) for name in record.measurements},
            status="diverged",
        )
        for place, record in enumerate(records[:2])
    }
    found = chosen.joined(lost)
    assert found.status == "diverged" and math.isinf(found.value("best_test_squared_error"))


def test_along_a_path_the_step_is_chosen():
    chosen = Chosen(
        {
            0: Arm(
                Products(),
                LastLayerRidge(INIT, (1e-3, 1e6)),
                40,
                (Performance(200), Validation(100)),
            )
        },
        along=True,
    )
    trials = chosen.trials([5])
    (record,) = chosen.join(list(LocalEngine().run(trials)), [5])
    assert record.steps == (0,) and record.value("chosen") == 0


def test_shuffled_labels_reach_every_cell(grid):
    null = shuffled_labels(grid[0])
    assert isinstance(null, Chosen) and all(
        isinstance(part.family, ShuffledLabels) for part in null.arms.values()
    )


def test_validation_and_test_examples_differ():
    (record,) = LocalEngine().run(
        [Arm(Products(), arm(0.05).learner, 40, (Performance(100), Validation(100))).trials([7])[0]]
    )
    assert record.value("validation_squared_error") != record.value("test_squared_error")
