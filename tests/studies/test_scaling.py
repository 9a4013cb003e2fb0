"""Scaling studies: search over n, one pass over fresh examples, fits, and sentences."""

import json
import math

import numpy as np
import pytest

from toys import Halfspace, small_learner
from unlazy import api
from unlazy.core.errors import BadInput
from unlazy.core.metrics import ACCURACY, SQUARED_ERROR
from unlazy.kernels.feature_maps import RawFeatures
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.exponents import SampleComplexity, ScalingOutcome, ScalingRow
from unlazy.lab.power_laws import first_stable_crossing, fit, last_crossing
from unlazy.lab.registry import family_of, learner_of
from unlazy.lab.run import run_one
from unlazy.lab.store import Store
from unlazy.learners.features import FeatureRidge
from unlazy.report.scaling import table
from unlazy.report.view import view_of
from unlazy.studies.from_names import labeled
from unlazy.studies.scaling import EASIER_TARGETS, FIRST_N, TARGET, Scaling, places_of, sizes_to_try
from unlazy.tasks.multi_index import MultiIndex

LINEAR = FeatureRidge(RawFeatures())


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("D=32..256", (32, 64, 128, 256)),
        ("D=32..100", (32, 64)),
        ("D=24,16", (16, 24)),
        ("po=.1..0.5", (0.1, 0.2, 0.4)),
        ("k=5", (5,)),
    ],
)
def test_values_are_parsed(text, row):
    field, places = places_of(family_of("shi2022/task"), text, "shi2022/task")
    assert (
        field == text.partition("=")[0]
        and places == row
        and all(type(a) is type(b) for a, b in zip(places, row, strict=True))
    )


@pytest.mark.parametrize("text", ["n=3", "D=", "D", "D=64..32", "D=0..8", "D=a", "D=1.5", "D=-3,4"])
def test_bad_values_are_refused(text):
    with pytest.raises(BadInput):
        places_of(family_of("shi2022/task"), text, "shi2022/task")


def asked(error, start=FIRST_N, max_n=1000, target=0.1):
    """Return all sizes of a search for seeds with errors `error(n)`."""
    search, found = sizes_to_try(start, max_n, target), []
    try:
        n = next(search)
        while True:
            found.append(n)
            n = search.send(np.array(error(n)))
    except StopIteration:
        return found


def test_a_search_doubles_and_halves_the_bracket():
    assert asked(lambda n: [20 / n, 10 / n]) == [64, 128, 256, 181]
    assert asked(lambda n: [1.0, 0.0]) == [64, 128, 256, 512, 1000], (
        "one seed that never learns keeps the search going to its end"
    )
    assert asked(lambda n: [2 / n]) == [64, 32, 16, 23], (
        "where the first size is enough, smaller ones are asked"
    )
    assert asked(lambda n: [0.0]) == [64, 32, 16, 8]
    assert asked(lambda n: [math.inf]) == [64, 128, 256, 512, 1000]
    assert asked(lambda n: [20 / n], start=1000) == [1000, 500, 250, 125, 177]


def test_the_size_is_interpolated_between_measured_ones():
    assert last_crossing({100: 0.3, 400: 0.1}, 0.2) == pytest.approx(200)
    assert last_crossing({100: 0.3, 200: 0.1, 400: 0.3, 800: 0.0}, 0.1) == pytest.approx(
        400 * 2 ** (2 / 3)
    ), "what comes last counts"
    assert last_crossing({100: 0.05, 200: 0.01}, 0.1) == 100
    assert last_crossing({100: math.inf, 200: 0.01}, 0.1) == 200
    assert last_crossing({100: 0.05, 200: 0.3}, 0.1) is None
    sizes = np.arange(1.0, 8)
    assert first_stable_crossing(
        sizes, np.array([0.4, 0.0, 0.4, 0.2, 0.0, 0.0, 0.0]), 0.1
    ) == pytest.approx(4.5)
    assert first_stable_crossing(sizes, np.array([0.4, 0.4, 0.4, 0.4, 0.4, 0.0, 0.0]), 0.1) is None


def test_a_power_law_is_found_and_one_seed_has_no_interval():
    d = np.array([8.0, 16, 32])
    power_law = fit(d, np.stack([3 * d**1.5, 3.3 * d**1.5]))
    assert (
        power_law.exponent == pytest.approx(1.5)
        and power_law.interval[0] <= 1.5 <= power_law.interval[1]
        and power_law.with_log < 1.5
    )
    alone = fit(d, 3 * d[None] ** 2)
    assert alone.exponent == pytest.approx(2) and alone.interval == (-math.inf, math.inf)
    below = fit(np.array([0.1, 0.2]), np.array([[10.0, 20], [11, 22]]))
    assert below.exponent == pytest.approx(1) and math.isnan(below.with_log), (
        "log d is not positive"
    )


def hand_row(name, examples, places=(8, 16, 32), how="search", predicted=None):
    """Return a row with the examples of two seeds; None: not reached."""
    cells = []
    for place, n in zip(places, examples, strict=True):
        found = (None, None) if n is None else (n, 1.1 * n)
        cells.append(
            SampleComplexity(
                place,
                found,
                (500, 1000),
                ((0.4, 0.4), (0.156, 0.156) if n is None else (0.01, 0.02)),
            )
        )
    return ScalingRow(name, how, tuple(cells), predicted or {})


def hand_outcome(*rows, metric=ACCURACY):
    return ScalingOutcome("toy/task", "d", rows, 0.05, metric, (10, 11), 6, 1000, 4096)


def test_sentences_state_exponents_crossings_and_targets_not_reached():
    slow, quick = hand_row("slow", (64, 256, 1024)), hand_row("quick", (128, 256 * 0.8, 512))
    never, partly = hand_row("never", (None,) * 3), hand_row("partly", (100, 200, None))
    told = hand_outcome(slow, quick, never, partly).sentences
    assert any(
        "For slow, the number of examples needed grows as d^2.00 (95 % CI" in each for each in told
    )
    assert (
        "never at d = 16: target not reached (error 0.156 at n = 1,000); excluded from the fit."
        in told
    )
    assert any(
        "For partly, the number of examples needed grows as d^1.00" in each
        and "fitted at d = 8, 16" in each
        for each in told
    )
    assert any("quick needs fewer examples than slow above d ≈ 1" in each for each in told)
    assert never.power_law is None and not any("never needs" in each for each in told)
    alike = hand_outcome(hand_row("a", (64, 256, 1024)), hand_row("b", (65, 255, 1020))).sentences
    assert len(alike) == 2, "learners whose seeds overlap are not ordered"
    apart = hand_outcome(hand_row("a", (64, 256, 1024)), hand_row("b", (128, 600, 3000))).sentences
    assert any(each.startswith("a needs 2 to 2.9 times fewer examples than b") for each in apart)


def test_an_outcome_survives_the_store_and_is_drawn():
    outcome = hand_outcome(
        hand_row("kernel", (64, 256, 1024), predicted={8: 60.0, 16: 250.0, 32: 1000.0}),
        hand_row("never", (None,) * 3),
        metric=SQUARED_ERROR,
    )
    told = json.loads(json.dumps(outcome.to_json(), allow_nan=False))
    again = ScalingOutcome.from_json(told)
    assert again.to_json() == told and again.sentences == outcome.sentences
    header, rows = table(again).columns, table(again).rows
    names = ["kernel", "kernel, predicted from its spectrum (ridge → 0)", "never"]
    assert [row[0] for row in rows] == names and header[-1] == "d = 32"
    assert rows[0][1].startswith("2.00 [")
    assert rows[2][-1] == "not reached (error 0.156 at n = 1,000)"
    shown = view_of(again)
    assert "squared error" in shown.plots[0].y
    assert shown.plots[0].series[-2].name == "kernel, predicted from its spectrum (ridge → 0)"
    assert "data:image/png;base64," in again._repr_html_()
    assert shown.facts["exponents"] == "kernel 2.00, never not reached"
    assert view_of(hand_outcome(hand_row("never", (None,) * 3))).plots[0].series[0].kind == "missed"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"learners": {}}, "at least one learner"),
        ({"target": 0.0}, "must be positive"),
        ({"target": 1.0}, "fraction of wrong labels"),
        ({"max_n": 8}, "must be at least"),
        ({"places": ()}, "at least one value"),
    ],
)
def test_invalid_studies_are_refused(change, says):
    with pytest.raises(BadInput, match=says):
        Scaling(
            **(
                {
                    "family": Halfspace(4),
                    "field": "d",
                    "places": (4,),
                    "learners": {"linear": LINEAR},
                    "seeds": (0,),
                }
                | change
            )
        )


def test_an_interrupted_study_resumes(tmp_path):
    study = Scaling(
        Halfspace(4), "d", (4, 8), {"linear": LINEAR}, (0, 1), target=0.1, budget=2, test=500
    )

    class Stopped(LocalEngine):
        """Stops in its fourth round."""

        rounds = 0

        def run(self, trials, callback):
            self.rounds += 1
            if self.rounds == 4:
                raise KeyboardInterrupt
            yield from super().run(trials, callback)

    class Counting(LocalEngine):
        """Records which trials it runs."""

        ran = ()

        def run(self, trials, callback):
            self.ran += tuple(trial.id for trial in trials)
            yield from super().run(trials, callback)

    with Store(tmp_path / "s.sqlite") as store:
        with pytest.raises(KeyboardInterrupt):
            run_one(study, store, Stopped())
        kept = set(store.all_ids())
        outcome = run_one(study, store, engine := Counting())
        assert kept and not kept & {*engine.ran}, "a trial was run twice"
        (noted,) = store.runs("scaling")
        assert noted.outcome == json.loads(json.dumps(outcome.to_json()))
        assert {*noted.arms["linear"]} == {*store.all_ids()} == kept | {*engine.ran}
    assert outcome.provenance["records"] == len(kept) + len(engine.ran)
    (row,) = outcome.rows
    assert (
        row.how == "search"
        and all(cell.whole for cell in row.cells)
        and row.samples.shape == (2, 2)
    )
    assert np.all(row.means[1] > row.means[0]), "more dimensions need more examples"


@pytest.mark.slow
def test_an_easier_target_is_selected_if_the_default_is_not_reached(tmp_path):
    """With at most 128 examples in 16 dimensions, a linear model has error 0.06 and reaches 0.1."""
    study = Scaling(
        Halfspace(16), "d", (16, 32), {"linear": LINEAR}, (0, 1), budget=2, max_n=128, test=500
    )
    with Store(tmp_path / "s.sqlite") as store:
        outcome = run_one(study, store, LocalEngine())
    worst = outcome.rows[0].cells[0].last_error
    assert (
        worst > 0.05
        and outcome.target in EASIER_TARGETS
        and worst <= outcome.target
        and outcome.rows[0].cells[0].whole
    )
    assert (
        outcome.sentences[0] == outcome.note
        and f"{TARGET:g} is more than linear reaches at d = 16" in outcome.note
    )
    assert ScalingOutcome.from_json(outcome.to_json()).note == outcome.note
    options = {"seeds": 2, "first_seed": 10, "budget": 6, "max_n": 1000, "test": 100}
    assert (
        "--target-error"
        not in api.study_of(
            "shi2022/task", ["ntk"], vary="D=50..100", target=None, **options
        ).command
    )


def test_a_learner_on_fresh_examples_is_run_once():
    learner = learner_of("sgd")
    outcome = api.scaling(
        MultiIndex(d=6),
        {"sgd": learner},
        vary={"d": [6, 12]},
        target_error=0.2,
        seeds=2,
        max_n=6000,
        test=500,
    )
    (row,) = outcome.rows
    assert (
        row.how == "one pass"
        and all(cell.whole for cell in row.cells)
        and outcome.task.startswith("MultiIndex(d=6")
    )
    assert all(
        1 <= a < b <= 6000
        for cell in row.cells
        for a, b in zip(cell.sizes, cell.sizes[1:], strict=False)
    )
    assert len(row.cells[0].sizes) > 50 and row.cells[0].sizes[0] == 6, (
        "batches of d examples, looked at from the first step on"
    )


def test_the_prediction_is_shown_for_its_kernel():
    study = Scaling(
        MultiIndex(d=16), "d", (16, 32), {"ntk": learner_of("ntk"), "rbf": learner_of("rbf")}, (0,)
    )
    predicted = study.predicted("ntk")
    assert (
        list(predicted) == [16, 32]
        and 3 < predicted[32] / predicted[16] < 4.5
        and study.predicted("rbf") == {}
    )
    assert Scaling(Halfspace(4), "d", (4,), {"ntk": learner_of("ntk")}, (0,)).predicted("ntk") == {}


def test_learners_are_labeled():
    assert list(labeled("ntk")) == ["ntk"] and list(labeled([LINEAR, small_learner()])) == [
        "FeatureRidge",
        "GradientDescent",
    ]
    assert list(labeled([LINEAR, FeatureRidge(RawFeatures(), (2.0,))])) == [
        "FeatureRidge 1",
        "FeatureRidge 2",
    ]
    with pytest.raises(BadInput, match="given twice"):
        labeled(["ntk", "ntk"])


def test_a_study_of_names_has_its_command():
    options = {"target": 0.1, "seeds": 2, "first_seed": 10, "budget": 6, "max_n": 1000, "test": 100}
    named = api.study_of("shi2022/task", ["ntk"], vary="D=50..100", changes=["k=3"], **options)
    assert named.command.startswith(
        "unlazy scaling shi2022/task --set k=3 --learner ntk --vary D=50..100 --target-error "
        "0.1 --seeds 2"
    )
    assert api.study_of(Halfspace(4), ["ntk"], vary="d=4,8", **options).command == ""


def test_compare_and_reproduce_keep_nothing_without_a_store():
    outcome = api.compare(Halfspace(4), {"mine": LINEAR}, n=[40, 20], seeds=1, budget=1, test=100)
    assert (
        outcome.sizes == (20, 40)
        and outcome.learners == ("mine",)
        and outcome.task == "Halfspace(d=4)"
    )
