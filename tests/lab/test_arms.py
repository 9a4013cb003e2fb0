import dataclasses

import pytest

from selection import slow_but_first
from toys import Halfspace
from unlazy.lab.arms import Tuned, shuffled_labels
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.run import run_one
from unlazy.lab.store import Store
from unlazy.learners.catalog import LEARNERS
from unlazy.learners.one_step import one_step_readout
from unlazy.probes import Performance
from unlazy.studies.benchmark import Benchmark
from unlazy.tasks.shuffled_labels import ShuffledLabels


def run(arm, seeds):
    trials = arm.trials(seeds)
    records = {record.id: record for record in LocalEngine().run(trials)}
    return arm.join([records[trial.id] for trial in trials], seeds)


@pytest.mark.parametrize("name", slow_but_first(["linear", "rbf", "one-step"]))
def test_a_tuned_arm_is_the_same_learner_as_in_a_benchmark(name, tmp_path):
    family, learner = Halfspace(5), LEARNERS[name].value
    arm = Tuned(family, learner, 40, (Performance(500),), budget=4)
    found = run(arm, (10, 11))
    benchmark = Benchmark(family, {name: learner}, (40,), (10, 11), budget=4, test=500)
    with Store(tmp_path / "store.sqlite") as store:
        outcome = run_one(benchmark, store, LocalEngine())
    for record, result in zip(found, outcome.results.values(), strict=True):
        assert record.seed == result.place.seed
        assert record.value("test_accuracy") == pytest.approx(result.value, abs=1e-4)
        assert record.value("validation") == pytest.approx(result.validation, abs=1e-4)


def test_shuffled_labels_reach_a_tuned_arm():
    arm = Tuned(Halfspace(5), LEARNERS["linear"].value, 40, (Performance(500),), budget=2)
    null = shuffled_labels(arm)
    assert isinstance(null, Tuned) and isinstance(null.family, ShuffledLabels)
    assert run(null, (10,))[0].value("test_accuracy") < run(arm, (10,))[0].value("test_accuracy")


def test_settings_of_one_step_are_spreads_and_ridges():
    learner = one_step_readout(4)
    tried = learner.tuning(12)
    assert len(tried) == 12 and len({tuple(one.settings.items()) for one in tried}) == 12
    assert (
        learner in learner.tuning(1)
        and dataclasses.replace(tried[3]).settings["ridge"] != tried[0].settings["ridge"]
    )
