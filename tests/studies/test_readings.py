"""Readings of claims: choice by a fixed rule, search, verdicts under a reading, own claims."""

import json

import equinox as eqx
import pytest
from click.testing import CliRunner

import unlazy
from unlazy.cli.main import main
from unlazy.core.errors import BadInput
from unlazy.core.random import normal
from unlazy.lab.claims import Claim
from unlazy.lab.readings import AS_WRITTEN, OpenSetting, Reading, halving, product
from unlazy.lab.registry import claims
from unlazy.lab.rules import Control, Published, arm
from unlazy.lab.store import Store
from unlazy.lab.trials import ExactComputation
from unlazy.report.view import view_of
from unlazy.studies.claim import claim_study
from unlazy.studies.readings import ReadingsOutcome, readings_study

NET = arm("net")
WRITTEN = Reading(AS_WRITTEN, "the mean of the text", {"mean": 60.0})
LARGER = Reading("larger mean", "the text gives none", {"mean": 88.0}, ("a statement",))


class Accuracy(ExactComputation):
    """A normal variable with the given mean, as a test accuracy."""

    mean: float = eqx.field(static=True)
    width: int = eqx.field(static=True, default=4)

    def measure(self, *, key):
        return {"test_accuracy": self.mean + 0.5 * normal(key, ())}


def study(scale, mean=50.0, width=4):
    return {"net": Accuracy(mean, width)}


def claim(**changes):
    fields = {
        "id": "own/claim",
        "where": "Table 1",
        "kind": "table",
        "statement": "The network learns.",
        "study": study,
        "checks": (NET.test_accuracy >= 75.0,),
        "published": (Published(NET.test_accuracy, "88.0"),),
        "readings": (WRITTEN, LARGER),
        "control": Control("a smaller mean", lambda scale, **settings: study(scale, 50.0)),
    }
    return Claim(**(fields | changes))


def test_the_reading_with_most_consistent_numbers_is_chosen_and_kept(tmp_path):
    path = tmp_path / "store.sqlite"
    outcome = unlazy.readings(claim(), seeds=3, store=path, progress=False)
    assert outcome.chosen == "larger mean" and outcome.best.tally.consistent == 1
    assert [each.reading.name for each in outcome.results] == [AS_WRITTEN, "larger mean"]
    assert outcome.seeds == (10, 11, 12), "readings are chosen on development seeds"
    again = ReadingsOutcome.from_json(json.loads(json.dumps(outcome.to_json())))
    assert again == outcome
    text = view_of(outcome).takeaway
    assert "'larger mean'" in text and "1 of 1 printed number" in text
    with Store(path, read_only=True) as store:
        assert [run.kind for run in store.runs()] == ["readings"]


def test_a_tie_goes_to_the_fewest_departures():
    same = Reading("same", "no departure", {"mean": 88.0})
    outcome = unlazy.readings(claim(readings=(WRITTEN, LARGER, same)), seeds=2, progress=False)
    assert outcome.chosen == "same"


def test_the_verdict_names_its_reading_and_how_many_were_tried(tmp_path):
    path = tmp_path / "store.sqlite"
    chosen = claim(reading="larger mean")
    with unlazy.api.session(path, progress=False) as place:
        place.run_one(readings_study([chosen], "laptop", seeds=5))
        verdict = place.run_one(claim_study(chosen, "laptop", with_control=True))
        written = place.run_one(claim_study(chosen, "laptop", reading=AS_WRITTEN))
    assert verdict.outcome == "holds under reading" and verdict.stands
    assert verdict.control.outcome != "holds"
    assert [each.name for each in verdict.tried] == [AS_WRITTEN, "larger mean"]
    assert "--reading 'larger mean'" in verdict.command
    assert verdict.to_json()["reading"]["name"] == "larger mean"
    assert written.outcome == "fails"
    assert "Readings tried on development seeds: 2; it holds under larger mean" in written.reason
    shown = dict(view_of(verdict).lines)["Reading"]
    assert shown.startswith("larger mean: the text gives none. It departs from the text in 1 point")
    with Store(path, read_only=True) as store:
        names = {run.name for run in store.runs("claim")}
    assert names == {"own/claim", f"own/claim ({AS_WRITTEN})"}, "the judged run must be kept"


def test_settings_of_a_reading_reach_the_study_and_its_control():
    with pytest.raises(BadInput, match=r"'lager mean'.*larger mean"):
        claim(reading="lager mean")
    assert claim().judged is WRITTEN
    assert claim().arms("smoke")["net"].mean == 60.0
    assert claim().under("larger mean").control_arms("smoke")["net"].mean == 50.0


def test_a_search_halves_the_product_of_open_settings(tmp_path):
    settings = (
        OpenSetting("mean", (WRITTEN, LARGER, Reading("tiny", "why", {"mean": 5.0}))),
        OpenSetting("width", tuple(Reading(f"m={m}", "why", {"width": m}) for m in (4, 5, 6, 7))),
    )
    every = product(settings)
    assert len(every) == 12 and every[0].name == AS_WRITTEN
    assert {"mean": 88.0, "width": 6} in [dict(each.settings) for each in every]
    outcome = unlazy.readings(claim(open_settings=settings), seeds=4, search=True, progress=False)
    assert outcome.tried == 12 and len(outcome.results) == 8
    assert dict(outcome.best.reading.choices)["mean"] == "larger mean"
    tables = {table.title for table in view_of(outcome).tables}
    assert "Consistent numbers by setting" in tables


@pytest.mark.parametrize(
    ("count", "seeds", "rounds"),
    [
        (5, 5, [(5, 5)]),
        (8, 3, [(8, 3)]),
        (12, 4, [(12, 2), (8, 4)]),
        (64, 8, [(64, 2), (32, 2), (16, 4), (8, 8)]),
    ],
)
def test_rounds_of_successive_halving(count, seeds, rounds):
    assert halving(count, seeds) == rounds


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"readings": ()}, {}, "has no readings"),
        ({}, {"first_seed": 1000}, "development seeds 10 to 999"),
        ({}, {"seeds": 1}, "at least 2 seeds"),
        ({}, {"names": ("smaller step",)}, "smaller step"),
        ({}, {"search": True}, "same open settings"),
    ],
)
def test_bad_requests_are_refused(changes, options, message):
    with pytest.raises(BadInput, match=message):
        unlazy.readings(claim(**changes), progress=False, **options)


OWN = """
from unlazy import *
def study(scale, rate=0.1):
    init = AntisymmetricInit(m=4, w_scale=1.0, b_scale=0.1, a_scale=0.5)
    learner = GradientDescent(init, (Descent({{"w": rate, "a": rate}}, steps=40, batch=8),))
    return {{"net": Arm(MultiIndex(d=4), learner, 64, (Performance(100),))}}
net = arm("net").test_accuracy
CLAIM = Claim("own/mine", "Table 1", "table", "It learns.", study, (net >= 60,),
    published=(Published(net, "80"),), control=shuffled(study), readings=(
    Reading("as written", "the text's step size", {{"rate": 1e-6}}),
    Reading("larger step", "the text gives none", {{"rate": 0.5}})))
"""


def test_readings_of_an_own_claim_in_a_file_of_ten_lines(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(OWN.format())
    assert len(OWN.strip().splitlines()) <= 10
    store = ["--store", str(tmp_path / "store.sqlite")]
    words = ["readings", f"{file}:CLAIM", "--seeds", "2", "--json", str(tmp_path / "out.json")]
    found = CliRunner().invoke(main, [*words, *store])
    assert found.exit_code == 0, found.output
    assert "larger step" in found.output and "as written" in found.output
    told = json.loads((tmp_path / "out.json").read_text())
    assert {each["reading"]["name"] for each in told["results"]} == {"as written", "larger step"}
    words = ["reproduce", f"{file}:CLAIM", "--reading", "larger step", "--seeds", "2"]
    assert "larger step" in CliRunner().invoke(main, [*words, *store]).output


def test_one_reading_for_all_five_tables():
    """The tables of shi2022 share their readings, and only Table 4 may have another dimension."""
    tables = [claims()[f"shi2022/table{number}"] for number in range(1, 6)]
    assert len({each.reading for each in tables}) == 1
    names = {tuple(reading.name for reading in each.readings) for each in tables}
    assert len(names) == 1 and len(next(iter(names))) >= 8
    printed = sum(len(each.published) for each in tables)
    assert printed == 136
    assert all(isinstance(each.control, Control) for each in tables)
    shown = CliRunner().invoke(main, ["rules", "shi2022/table1"]).output
    assert "as written" in shown and "(judged)" in shown
