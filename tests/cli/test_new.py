"""`unlazy new`: what it writes runs as it is."""

import json
import shlex

import pytest
from click.testing import CliRunner

from contracts import check_family, check_learner
from unlazy.cli.main import main
from unlazy.cli.new import names_of
from unlazy.core.errors import BadInput
from unlazy.lab import registry
from unlazy.lab.trials import Trial


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNLAZY_STORE", str(tmp_path / "store.sqlite"))

    def run(*words):
        return CliRunner().invoke(main, [str(word) for word in words])

    return run


def next_command(result):
    assert result.exit_code == 0, result.output
    (line,) = (line for line in result.output.splitlines() if line.startswith("    unlazy "))
    return shlex.split(line)[1:]


def test_a_task_runs(run, tmp_path):
    command = next_command(run("new", "task", "halfspace"))
    assert command[:2] == ["compare", "./halfspace.py:Halfspace"]
    check_family(registry.family_of(f"{tmp_path}/halfspace.py:Halfspace"))
    command[command.index("100,1000")] = "60"
    result = run(*command, "--seeds", 2, "--budget", 2, "--test", 500, "--json", "out.json")
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "out.json").read_text())
    assert {row["learner"] for row in found["results"]} == {"linear", "ntk"} and min(
        row["mean"] for row in found["means"]
    ) > 70


def test_a_learner_runs(run, tmp_path):
    command = next_command(run("new", "learner", "Perceptron"))
    learner = registry.learner_of(f"{tmp_path}/perceptron.py:Perceptron")
    check_learner(learner, registry.family_of("toys:Blobs", ["classes=2"]), 40)
    with pytest.raises(BadInput, match="cannot learn classes of 10"):
        Trial(registry.family_of("toys:Blobs"), learner, 40, 0, ())
    command[command.index("100,1000")] = "60"
    result = run(*command, "--set", "d=10", "--seeds", 2, "--budget", 2, "--test", 500)
    assert result.exit_code == 0 and "passes" in result.output, result.output


def test_a_claim_runs_and_its_rule_is_older_than_its_records(run, tmp_path):
    command = next_command(run("new", "claim", "my_claim"))
    result = run(*command)
    assert result.exit_code == 0 and "mine/my_claim" in result.output, result.output
    assert "older than the stored" not in result.output


def test_nothing_is_overwritten(run, tmp_path):
    (tmp_path / "halfspace.py").write_text("mine")
    result = run("new", "task", "halfspace")
    assert result.exit_code == 2 and "already exists" in result.output
    assert (tmp_path / "halfspace.py").read_text() == "mine"


@pytest.mark.parametrize("name", ["3x", "a-b", "../x", "class", "a b", "", "_x", "ä"])
def test_an_invalid_name_is_refused(run, tmp_path, name):
    result = run("new", "task", name)
    assert (
        result.exit_code == 2
        and "A name consists of letters" in result.output
        and not list(tmp_path.glob("*.py"))
    )


@pytest.mark.parametrize("name", ["sparse_parity", "SparseParity", "sparseParity"])
def test_words_become_names_of_files_and_classes(name):
    assert names_of(name) == ("sparse_parity", "SparseParity")
