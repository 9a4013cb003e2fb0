"""Benchmarks: equal examples and budget, selection on validation examples, paired differences."""

import dataclasses
import itertools
import json
import math
from html import escape

import jax
import pytest

from toys import Halfspace, absent, hand_record, small_learner
from unlazy.core.errors import BadInput
from unlazy.core.metrics import ACCURACY, SQUARED_ERROR
from unlazy.kernels.feature_maps import RawFeatures
from unlazy.kernels.stationary import RBF
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.outcomes import BenchmarkResult, Cell, Result
from unlazy.lab.run import run_one
from unlazy.lab.statistics import estimate
from unlazy.lab.store import Store
from unlazy.learners.direction import DirectionHistogram
from unlazy.learners.features import FeatureRidge
from unlazy.learners.kernel import KernelRidge
from unlazy.report.benchmarks import chosen, curves, standings
from unlazy.studies.benchmark import Benchmark, choose

LINEAR = FeatureRidge(RawFeatures())
BENCHMARK = Benchmark(
    Halfspace(4),
    {"linear": LINEAR, "net": small_learner(record=())},
    (40, 80),
    (0, 1),
    budget=4,
    test=500,
)


def all_rehearsals(benchmark):
    return [trial for cell in benchmark.cells for trial in benchmark.rehearsals(cell)]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("benchmark") / "s.sqlite") as store:
        found = run_one(BENCHMARK, store, LocalEngine())
        assert absent(all_rehearsals(BENCHMARK), store) == []
        again = run_one(BENCHMARK, store, Refusing())
    assert again.to_json() == found.to_json(), "the store was not used"
    return found


class Refusing(LocalEngine):
    """An engine that raises an error if it is used."""

    def run(self, trials, callback=None):
        assert not trials
        yield from ()


def test_every_cell_has_settings_a_test_and_costs(outcome):
    assert set(outcome.results) == set(BENCHMARK.cells) and len(BENCHMARK.cells) == 8
    for place, result in outcome.results.items():
        told = result.to_json(outcome.metric)
        assert (
            told["learner"] == place.learner and told["n"] == place.n and told["seed"] == place.seed
        )
        assert 1 <= told["tried"] <= 4 and told["tuning_seconds"] > 0 and told["chosen"]
        assert 30 < told["test_accuracy"] <= 100
    json.dumps(outcome.to_json(), allow_nan=False)


def test_the_selected_setting_is_refitted_to_all_examples(outcome):
    result = outcome.results[Cell("linear", 80, 1)]
    trace = result.learner.fit(
        Halfspace(4).task(key=jax.random.split(jax.random.key(1), 3)[0]).sampler,
        80,
        key=_learner_key(1),
    )
    assert len(trace.seen.y) == 80
    trial = BENCHMARK.final(Cell("linear", 80, 1), result.learner)
    assert result.trial == trial.id


def _learner_key(seed):
    return jax.random.split(jax.random.key(seed), 3)[1]


def test_the_best_setting_on_validation_examples_is_selected():
    trials = BENCHMARK.rehearsals(Cell("linear", 40, 0))
    steps = trials[0].steps
    right = [60.0, 90.0, 90.0, 70.0]
    loss = [0.1, 0.9, 0.5, 0.2]
    record = hand_record(steps=steps, validation_accuracy=right, validation_loss=loss)
    options = list(trials[0].learner.options(40).values())
    choice = choose(trials, {trials[0].id: record})
    assert (choice.validation, choice.learner, choice.tried) == (90, options[2], 4)
    broken = record.measurements | {"validation_loss": (0.1, 0.9, math.nan, 0.2)}
    broken = dataclasses.replace(record, measurements=broken)
    assert choose(trials, {trials[0].id: broken}).learner == options[1]


class Greedy(KernelRidge):
    """Has more settings than the budget."""

    def tuning(self, budget):
        return (dataclasses.replace(self, ridges=tuple(range(1, budget + 2))),)


def test_a_learner_that_exceeds_the_budget_is_refused():
    benchmark = dataclasses.replace(BENCHMARK, learners={"greedy": Greedy(RBF(1.0))})
    with pytest.raises(BadInput, match="greedy has 5 configurations, but the budget is 4"):
        benchmark.rehearsals(benchmark.cells[0])


def test_tuning_helps_if_the_default_is_bad(tmp_path):
    """The default kernel is far too narrow; the tuned one must be wider and better on the test."""
    narrow = KernelRidge(RBF(200.0))
    benchmark = Benchmark(Halfspace(4), {"kernel": narrow}, (150,), (0, 1, 2), budget=24, test=1000)
    bare = dataclasses.replace(benchmark, budget=1)
    with Store(tmp_path / "s.sqlite") as store:
        tuned, untuned = (run_one(c, store, LocalEngine()) for c in (benchmark, bare))
    assert tuned.mean("kernel", 150).mean > untuned.mean("kernel", 150).mean + 3


def hand_outcome(accuracies, n=100, metric=ACCURACY):
    """Return an outcome with the given values by learner and seed."""
    seeds = tuple(range(len(next(iter(accuracies.values())))))
    places = {
        Cell(name, n, seed): value
        for name, values in accuracies.items()
        for seed, value in zip(seeds, values, strict=True)
    }
    results = {
        place: Result(place, value, 0.0, {}, 1, 0, 1.0, 0.1, "k") for place, value in places.items()
    }
    return BenchmarkResult("toy", tuple(accuracies), (n,), seeds, metric, results, 24, 0.2, 1000)


def test_an_outcome_survives_the_store(outcome):
    told = outcome.to_json()
    again = BenchmarkResult.from_json(json.loads(json.dumps(told, allow_nan=False)))
    assert again.to_json() == told and again.conclusion(80) == outcome.conclusion(80)
    lost = hand_outcome({"a": [math.nan, 90.0]})
    assert math.isnan(
        BenchmarkResult.from_json(json.loads(json.dumps(lost.to_json(), allow_nan=False)))
        .mean("a", 100)
        .mean
    )


def test_lower_is_better_for_losses():
    outcome = hand_outcome({"a": [0.1, 0.11, 0.12], "b": [0.3, 0.31, 0.32]}, metric=SQUARED_ERROR)
    assert outcome.order(100) == ["a", "b"] and outcome.differences(100)[1][0].decided
    assert "a is best (0.11 squared error): −0.2 ± " in outcome.conclusion(100)
    assert " versus b (significant, 3 paired seeds)." in outcome.conclusion(100)
    assert curves(outcome).y.startswith("test squared error")


def test_a_notebook_shows_the_table_and_the_figure(outcome):
    text = outcome._repr_html_()
    assert (
        "data:image/png;base64," in text
        and "<table" in text
        and escape(outcome.conclusion(80)) in text
    )


def test_differences_are_paired():
    """Seeds differ far more than learners: only paired differences are significant."""
    hard = [60.0, 70.0, 80.0, 90.0, 65.0]
    outcome = hand_outcome({"a": [v + 1.0 + 0.1 * (i % 2) for i, v in enumerate(hard)], "b": hard})
    leader, ((other, ahead, decided),) = outcome.differences(100)
    assert (leader, other, decided) == ("a", "b", True)
    assert ahead.mean == pytest.approx(1.04) and ahead.half < 0.1 < outcome.mean("a", 100).half
    assert outcome.conclusion(100) == (
        f"At n = 100, a is best (74.04 %): +1.04 ± {ahead.half:.2f} points over b (significant, "
        "5 paired seeds)."
    )


@pytest.mark.parametrize(
    ("accuracies", "says"),
    [
        (
            {"a": [90.0, 91, 92], "b": [91.0, 90, 91.5]},
            "a has the highest mean (91.00 %), but is not significantly better than b (+0.17 ± ",
        ),
        ({"a": [90.0], "b": [50.0]}, "is not significantly better than b (+40.0 points, 1 seed)."),
        ({"a": [90.0, 91]}, "a has 90.50 % (no other learner)."),
        (
            {"a": [99.0, 99, 99], "b": [98.9, 99, 99], "c": [50.0, 51, 52]},
            "; significantly better than 1 other.",
        ),
        (
            {"a": [99.0, 99.1, 99], "b": [80.0, 80, 80], "c": [50.0, 51, 52]},
            "a is best (99.03 %): +19",
        ),
        (
            {"a": [99.0, 99.1, 99], "b": [80.0, 80, 80], "c": [50.0, 51, 52]},
            " points over b, the runner-up (significant, 3 paired seeds).",
        ),
        (
            {"sgd": [100.0, 100], "ntk": [100.0, 100], "rbf": [100.0, 100]},
            "At n = 100, sgd, ntk and rbf tie at 100.00 %.",
        ),
        (
            {"a": [100.0, 99, 98], "b": [98.0, 99, 100], "c": [50.0, 51, 52]},
            "a and b tie at 99.00 %; significantly better than 1 other.",
        ),
        (
            {"a": [100.0, 100], "b": [100.0, 100], "c": [90.0, 100]},
            "a and b tie at 100.00 %; not significantly better than c (+5.00 ± ",
        ),
    ],
)
def test_the_conclusion(accuracies, says):
    assert says in hand_outcome(accuracies).conclusion(100)


def test_more_learners_widen_the_intervals():
    """The best learner is selected from the data, so intervals are corrected for comparisons."""
    values = {"a": [90.0, 91, 92, 93], "b": [89.0, 90.5, 91, 92]}
    one = hand_outcome(values).differences(100)[1][0].ahead
    three = hand_outcome(values | {"c": [1.0] * 4, "d": [2.0] * 4}).differences(100)[1][0].ahead
    assert three.mean == one.mean and three.half > 1.3 * one.half
    assert one == estimate([1.0, 0.5, 1.0, 1.0])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"learners": {}}, "at least one learner"),
        ({"sizes": (1,)}, "integers ≥ 2"),
        ({"sizes": (9, 9)}, "must be distinct"),
        ({"seeds": ()}, "at least one seed"),
        ({"budget": 0}, "positive number of configurations"),
    ],
)
def test_invalid_benchmarks_are_refused(change, says):
    with pytest.raises(BadInput, match=says):
        dataclasses.replace(BENCHMARK, **change)


def test_the_table_lists_the_best_first_with_its_settings(outcome):
    table = standings(outcome)
    rows = table.rows
    assert table.columns[:4] == ("learner", "features", "n = 40", "n = 80")
    assert table.columns[4:] == ("tried", "tuning (s/seed)", "fit (s/seed)", "chosen")
    assert len(rows) == 2
    means = [outcome.mean(row[0], 80).mean for row in rows]
    assert all(a >= b for a, b in itertools.pairwise(means))
    learners = [DirectionHistogram("mean", (bins,)) for bins in (20, 50)]
    results = [
        Result(Cell("x", 1, s), 0.0, 0.0, each.settings, 1, 0, 0.1, 0.1, "k")
        for s, each in enumerate(learners)
    ]
    assert chosen(results) == "bins 20…50"


def test_the_plot_has_a_line_per_learner_and_categories_for_one_size(outcome):
    assert [series.x for series in curves(outcome).series] == [(40, 80), (40, 80)]
    assert curves(hand_outcome({"a": [90.0], "b": [50.0]})).categories == ("a", "b")


def test_an_outcome_has_its_provenance(outcome):
    told = outcome.to_json()["provenance"]
    used = {trial.id for trial in all_rehearsals(BENCHMARK)} | {
        result.trial for result in outcome.results.values()
    }
    assert told["records"] == len(used) and told["older"] == 0
    assert told["fingerprints"] == sorted({name.partition(".")[2] for name in used})
