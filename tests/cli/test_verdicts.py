"""Controls, shuffled labels, added seeds and rules on the command line, for user claims."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from unlazy.cli import main
from unlazy.lab import registry

TEXT = '''
import jax
from unlazy import Arm, Change, Check, Claim, Condition, Control, FeatureRidge, ExactComputation
from unlazy import MultiIndex, Performance, Published, Quantity, RawFeatures, shuffled
from unlazy.tasks.multi_index import product


class Noisy(ExactComputation):
    """A noisy number around `mean`."""

    mean: float = 1.0


    def measure(self, *, key):
        return {"value": self.mean + 0.5 * jax.random.normal(key)}


def study(scale):
    return {"noisy": Noisy(1.0)}


SURE = Claim(
    id="mine/sure", where="here", kind="bound", statement="The number is positive.", study=study,
    checks=(Check(Quantity("noisy", "value"), lower=0.0),),
    control=Control("a negative number", lambda scale: {"noisy": Noisy(-1.0)}),
    published=(Published(Quantity("noisy", "value"), "5.0"),),
    seeds={"smoke": 1, "laptop": 6, "paper": 6},
    history=(Change("2026-01-01", "the bound rose", "it was too low", 1200),),
    conditions=(Condition("m ≥ 3", lambda scale: 4.0, lambda scale: 3.0),),
)
CLOSE = Claim(
    id="mine/close", where="here", kind="bound", statement="The number is above 0.8.", study=study,
    checks=(Check(Quantity("noisy", "value"), lower=0.6),),
    seeds={"smoke": 1, "laptop": 3, "paper": 3},
)


def learning(scale):
    family, ridge = MultiIndex(d=6, polynomial=product(1)), FeatureRidge(RawFeatures())
    return {"linear": Arm(family, ridge, 400, (Performance(1000),))}


LEARNS = Claim(
    id="mine/learns", where="here", kind="bound", study=learning,
    statement="A linear model learns one coordinate.",
    checks=(Check(Quantity("linear", "test_accuracy"), lower=90.0),), control=shuffled(learning),
)
'''


def written(name):
    return json.loads(Path(name).read_text(encoding="utf-8"))


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(TEXT)

    def call(*arguments):
        return CliRunner().invoke(
            main, [*map(str, arguments), "--store", "s.sqlite"], catch_exceptions=False
        )

    return call


def test_a_control_is_run_and_does_not_hold(run):
    before = run("reproduce", "mine.py:SURE", "--json", "a.json")
    assert "not run (add --controls)" in before.output
    result = run("reproduce", "mine.py:SURE", "--controls", "--json", "b.json")
    (old,), (new,) = (written(name) for name in ("a.json", "b.json"))
    control = new["control"]
    (check,), power = control.pop("checks"), control.pop("power")
    assert old["control"]["verdict"] == "not run" and control == {
        "what": "a negative number",
        "verdict": "fails",
        "held": [],
        "seeds": 6,
    }
    assert check["check"] == "noisy value ≥ 0" and check["outcome"] == "fails"
    assert check["mean"] < 0 < check["deviation"] and 0 < power < 1
    assert (
        new["verdict"] == "holds"
        and new["numbers"] == {"reproduced": 0, "of": 1}
        and new["seeds"][0] == 1200
    )
    assert new["hypotheses"][0][
        "met"
    ] and "0 of 1 published number consistent with our runs" in " ".join(result.output.split())
    assert (
        run("reproduce", "mine.py:SURE", "--strict").exit_code == 3
    )  # the statement holds, the number does not come out


def test_interim_analyses_until_decided(run):
    result = run(
        "reproduce", "mine.py:CLOSE", "--until-decided", "--max-seeds", 200, "--json", "c.json"
    )
    (verdict,) = written("c.json")
    assert (
        verdict["verdict"] == "holds"
        and verdict["look"] >= 2
        and len(verdict["seeds"]) == 3 * 2 ** (verdict["look"] - 1)
    )
    assert f"this is interim analysis {verdict['look']}" in " ".join(result.output.split())
    again = run("show", "mine.py:CLOSE")
    assert f"this is interim analysis {verdict['look']}" in " ".join(again.output.split())
    few = run("reproduce", "mine.py:CLOSE", "--until-decided", "--max-seeds", 3)
    assert "undecided" in few.output


def test_shuffled_labels(run):
    result = run("reproduce", "mine.py:LEARNS", "mine.py:SURE", "--shuffle-labels")
    assert "0 of 1 claims hold by error." in result.output and "mine/learns (null)" in result.output
    control = run("reproduce", "mine.py:LEARNS", "--controls", "--json", "d.json")
    (verdict,) = written("d.json")
    assert (
        verdict["verdict"] == "holds"
        and verdict["control"]["verdict"] == "fails"
        and control.exit_code == 0
    )
    assert run("reproduce", "mine.py:LEARNS", "--shuffle-labels", "--controls").exit_code == 2


def test_rules_show_how_a_claim_is_tested(run):
    words = " ".join(run("rules", "mine.py:SURE").output.split())
    for part in (
        "The number is positive.",
        "value ≥ 0",
        "m ≥ 3",
        "a negative number",
        "the bound rose",
        "from 1200",
        "Not yet run with this store.",
    ):
        assert part in words, part
    run("reproduce", "mine.py:SURE")
    assert "These criteria are in the store since" in run("rules", "mine.py:SURE").output
    assert "No bound, size or arm was changed" in run("rules", "mine.py:CLOSE").output
    name, row = next(iter(registry.not_run().items()))
    assert set(row.reason.split()) <= set(run("rules", name).output.split()), (
        "the reason has its own column"
    )


def test_claims_that_are_not_run_are_listed(run):
    names = list(registry.not_run())[:2]
    result = run("reproduce", *names, "--json", "e.json")
    rows = written("e.json")
    assert (
        result.exit_code == 0
        and len(rows) == len(names) > 0
        and {row["verdict"] for row in rows} == {"not run"}
    )
