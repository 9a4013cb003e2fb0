"""`unlazy --help`, `unlazy list` and `unlazy rules`, over all commands and claims."""

import json

import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from unlazy.cli.list import PIPED_WIDTH
from unlazy.cli.main import GROUPS, main
from unlazy.estimators.catalog import AUDIT
from unlazy.lab import registry
from unlazy.lab.paper_files import definition_of
from unlazy.report.formulas import plain


def call(*arguments):
    return CliRunner().invoke(main, [*map(str, arguments)], catch_exceptions=False)


def test_help_groups_all_commands_by_purpose_within_80_columns():
    output = call("--help").output
    lines = output.splitlines()
    names = []
    for purpose, commands in GROUPS.items():
        start = lines.index(f"{purpose}:")
        shown = lines[start + 1 : start + 1 + len(commands)]
        assert [line.split()[0] for line in shown] == [command.name for command in commands]
        assert all(len(line.split()) > 2 for line in shown), "every command has a description"
        names += [command.name for command in commands]
    assert sorted(names) == sorted(main.commands) and "uci" in names and "tables" not in names
    assert max(map(cell_len, lines)) <= 80 and "..." not in output.partition("Experiments")[2]


@pytest.mark.parametrize("command", sorted(main.commands))
def test_every_command_has_help(command):
    output = call(command, "--help").output
    assert output.startswith("Usage:") and len(output.splitlines()) > 5


def test_every_claim_has_one_line(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    *lines, store, last = call("list", "claims", "--store", "none.sqlite").output.splitlines()
    assert store == "Verdicts: last runs in none.sqlite"
    assert last == "Full text: unlazy rules ID"
    every = {**registry.claims(), **registry.not_run()}
    papers = {name.partition("/")[0] for name in every}
    assert len(lines) == len(every) + len(papers)
    assert max(map(cell_len, lines)) <= PIPED_WIDTH
    for name in every:
        paper, _, short = name.partition("/")
        assert any(f" {short} " in line for line in lines), name
        assert any(line.startswith(f"{paper} (") for line in lines)


def test_lines_of_claims_are_cut_to_the_width_of_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    lines = call("list", "claims", "--store", "none.sqlite").output.splitlines()
    assert max(map(cell_len, lines)) <= 60


def test_the_help_of_audit_lists_all_methods():
    words = " ".join(call("audit", "--help").output.split())
    assert all(name in words for name in AUDIT)


def test_claims_are_selected_by_paper_kind_verdict_and_text():
    def ids(*options):
        output = call("list", "claims", *options, "--json", "--store", "none.sqlite").output
        return [row["id"] for row in json.loads(output)]

    assert {name.partition("/")[0] for name in ids("shi2022")} == {"shi2022"}
    tables = ids("shi2022", "--kind", "table")
    assert "shi2022/table1" in tables and "shi2022/lemma6" not in tables
    assert ids("shi2022/table1") == ["shi2022/table1"]
    assert "malach2019/lemma8" in ids("Lemma 8")
    assert ids("--verdict", "holds") == []
    assert len(ids("--verdict", "not-run")) == len(ids())
    none = call("list", "claims", "--verdict", "fails", "--store", "none.sqlite")
    assert none.output == "No claim matches.\n"


@pytest.mark.parametrize(
    "options", [("claims", "--index", "--kind", "table"), ("tasks", "--verdict", "holds")]
)
def test_options_that_exclude_each_other_are_refused(options):
    assert call("list", *options).exit_code == 2


def test_the_index_lists_numbered_statements():
    output = call("list", "claims", "malach2019", "--index", "--store", "none.sqlite").output
    assert output.startswith("malach2019 (") and "statements" in output.splitlines()[0]


@pytest.mark.parametrize("name", registry.claims())
def test_rules_define_every_quantity_of_a_claim(name, monkeypatch):
    """Every quantity of a check, table or plot has its definition in words and notation."""
    monkeypatch.setenv("COLUMNS", "100")
    output = call("rules", name, "--store", "none.sqlite").output
    words = "".join(output.split())
    claim = registry.claims()[name]
    assert claim.measures
    for measure in claim.measures:
        found = definition_of(name, measure)
        assert found is not None, measure
        for part in (found.definition, plain(f"${found.notation}$")):
            assert "".join(part.split()) in words, measure
    assert "\\" not in output, "LaTeX is shown as Unicode"
    assert max(cell_len(line.rstrip()) for line in output.splitlines()) <= 100
    sources = {"paper": "paper", "ours": "ours", "identity": "notcounted"}
    for check in claim.checks:
        assert sources[check.origin] in words


def test_rules_tell_strict_from_other_bounds():
    output = call("rules", "malach2019/lemma8", "--store", "none.sqlite").output
    for part in ("≥ 1 + 1e-12", "≥ 1 − 1e-12", "> 0", "1±1e-9", "2 changes after a run"):
        assert part in output
