"""Files next to the claims of a paper: tables, notes, definitions and the index."""

import re

import pytest

from unlazy.core.errors import BadInput
from unlazy.lab import registry
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.conditions import Condition
from unlazy.lab.paper_files import (
    PAPERS,
    SHARED,
    definition_of,
    definitions,
    note_sections,
    notes,
    published,
    statements,
)
from unlazy.lab.paper_index import ROOT, code_of, files_testing, index
from unlazy.lab.rules import Change, Published, Quantity, arm
from unlazy.papers import PAPERS as NAMES

CLAIMS, NOT_RUN = registry.claims(), registry.not_run()


def of_paper(paper, rows=CLAIMS):
    return {name: row for name, row in rows.items() if name.startswith(f"{paper}/")}


# Published tables


def test_a_table_keeps_digits_variants_and_empty_cells(tmp_path):
    folder = tmp_path / "mine" / "published"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text(
        'variant,measure,deviation,runs,step,net,"ntk, wide"\n'
        "d=1,error,0.5,5,,100.0,\nd=2,error,,,3,99,0.10\n"
    )
    (folder / "b.csv").write_text("arm,error,cosine\nnet,1.00,0.5\n")
    assert published("mine/a.csv", tmp_path) == (
        Published(Quantity("net, d=1", "error"), "100.0", 0.5, 5, "mine/a.csv d=1 error "),
        Published(Quantity("net, d=2", "error", 3), "99", row="mine/a.csv d=2 error 3"),
        Published(Quantity("ntk, wide, d=2", "error", 3), "0.10", row="mine/a.csv d=2 error 3"),
    )
    expected = Published(Quantity("net", "error"), "1.00", row="mine/b.csv  error ")
    assert published("mine/b.csv", tmp_path)[0] == expected
    (folder / "c.csv").write_text("measure,net\nerror,1,2\n")
    with pytest.raises(BadInput, match=r"c\.csv:2: this row"):
        published("mine/c.csv", tmp_path)
    (folder / "d.csv").write_text("net\n1\n")
    with pytest.raises(BadInput, match="an arm or a measure"):
        published("mine/d.csv", tmp_path)


def test_published_tables_belong_to_claims():
    for path in PAPERS.glob("*/published/*.csv"):
        paper = path.parent.parent.name
        printed = set(published(f"{paper}/{path.name}"))
        assert any(printed <= set(claim.published) for claim in of_paper(paper).values()), path


# Notes

NOTES = """# Notes

Any words.

## first

### Deviations

- One, over
  two lines.
- [both](#both)

### History

- 2026-11-17, seeds from 1100
  - what: a bound
    rose
  - why: it was too low

## second

### Deviations

- [both](#both)

## Shared

### both

- Written once.
"""


@pytest.fixture
def folder(tmp_path):
    def write(text):
        path = tmp_path / str(len(list(tmp_path.iterdir())))
        (path / "mine").mkdir(parents=True)
        (path / "mine" / "notes.md").write_text(text, encoding="utf-8")
        return path

    return write


def test_notes_give_deviations_and_history(folder):
    path = folder(NOTES)
    assert notes("mine/first", path) == {
        "deviations": ("One, over two lines.", "Written once."),
        "history": (Change("2026-11-17", "a bound rose", "it was too low", 1100),),
    }
    assert notes("mine/second", path) == {"deviations": ("Written once.",), "history": ()}
    assert note_sections("mine", path) == {"first": ["both"], "second": ["both"], "both": []}
    with pytest.raises(BadInput, match="Did you mean 'first'"):
        notes("mine/frist", path)


@pytest.mark.parametrize(
    ("right", "wrong", "line"),
    [
        ("2026-11-17, seeds from 1100", "17 November, seeds from 1100", 15),
        ("2026-11-17, seeds from 1100", "2026-11-31, seeds from 1100", 15),
        ("2026-11-17, seeds from 1100", "2026-11-17, seeds from a thousand", 15),
        ("2026-11-17, seeds from 1100", "2026-11-17", 15),
        ("  - what: a bound\n    rose\n", "", 15),
        ("  - why: it was too low\n", "", 15),
        ("  - why: it was too low\n", "  - because: it was too low\n", 15),
        ("  - why: it was too low\n", "  it was too low\n", 15),
        ("- [both](#both)\n\n### History", "- [neither](#neither)\n\n### History", 11),
        ("- One, over", "One, over", 9),
        ("### History", "### Histories", None),
        ("## second", "## first", 20),
    ],
)
def test_a_malformed_note_is_an_error_that_names_file_and_line(folder, right, wrong, line):
    assert right in NOTES
    path = folder(NOTES.replace(right, wrong, 1))
    where = str(path / "mine" / "notes.md")
    with pytest.raises(BadInput) as caught:
        notes("mine/first", path)
    assert (where if line is None else f"{where}:{line}: ") in str(caught.value)


@pytest.mark.parametrize("paper", NAMES)
def test_every_note_belongs_to_a_claim(paper):
    sections = note_sections(paper)
    linked = {link for links in sections.values() for link in links}
    own = {name.partition("/")[2] for name in of_paper(paper)}
    assert {*sections} - linked <= own and SHARED not in own


# Definitions


def undefined(claim):
    """Return quantities of a claim without a definition."""
    return [name for name in claim.measures if definition_of(claim.id, name) is None]


def test_every_quantity_of_a_claim_is_defined():
    found = {name: undefined(claim) for name, claim in CLAIMS.items()}
    assert {name: left for name, left in found.items() if left} == {}


def test_an_undefined_quantity_is_found():
    one = Quantity("arm", "one")
    claim = Claim(
        id="shi2022/mine",
        where="",
        kind="lemma",
        statement="",
        study=lambda scale: {},
        checks=(arm("arm").test_accuracy - arm("arm").two >= 1,),
        published=(Published(one, "1"),),
        conditions=(Condition("three", arm("arm").three, lambda scale: 1.0),),
        plots=(Plot("", "", "", (PlotLine("arm", "four", "", x="five"),)),),
    )
    assert undefined(claim) == ["two", "one", "three", "four", "five"]


def test_every_definition_is_used_and_says_something():
    used = {definition_of(claim.id, name) for claim in CLAIMS.values() for name in claim.measures}
    for paper in ("", *NAMES):
        found = definitions(paper)
        assert [each for each in found if each not in used] == []
        assert all(each.definition and each.notation and each.unit for each in found)
        assert all(not each.claim or paper for each in found)


def test_the_most_specific_definition_is_used(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "quantities.csv").write_text(
        "measure,claim,definition,notation,unit\n"
        "error,,of the paper,e,1\nerror,table*,of tables,e_t,1\ngap,table1,own,g,1\n"
    )
    told = {
        (claim, measure): getattr(definition_of(claim, measure, tmp_path), "definition", None)
        for claim in ("mine/table1", "mine/lemma1")
        for measure in ("error", "gap")
    }
    assert told == {
        ("mine/table1", "error"): "of tables",
        ("mine/table1", "gap"): "own",
        ("mine/lemma1", "error"): "of the paper",
        ("mine/lemma1", "gap"): None,
    }
    shared = definition_of("mine/table1", "test_accuracy", tmp_path)
    assert shared is not None and shared.unit == "%"


# The index


@pytest.mark.parametrize("paper", NAMES)
def test_the_index_names_every_claim_and_says_why_a_statement_has_none(paper):
    found = statements(paper)
    named = {name for each in found for name in each.claims}
    assert named == {*of_paper(paper), *of_paper(paper, NOT_RUN)}
    assert all(each.statement and each.title for each in found)
    assert all(each.claims or each.note for each in found)


@pytest.mark.parametrize("paper", NAMES)
def test_the_numbers_of_the_index_have_no_gap(paper):
    """Statements share a counter per section, and figures, tables and algorithms have their own."""
    numbers = {}
    for each in statements(paper):
        for kind, section, number in re.findall(r"([A-Z][a-z]+) ((?:\w+\.)*)(\d+)", each.statement):
            own = kind if kind in ("Figure", "Table", "Algorithm", "Section") else "statement"
            numbers.setdefault((own, section), set()).add(int(number))
    for (kind, section), found in numbers.items():
        if kind != "Section":
            assert found == set(range(1, max(found) + 1)), (kind, section)


def test_the_index_has_code_and_tests():
    for claim in CLAIMS.values():
        module, _, line = code_of(claim).partition(":")
        source = ROOT.joinpath("src", *module.split(".")).with_suffix(".py").read_text("utf-8")
        nearby = "".join(source.splitlines()[int(line) - 3 : int(line)])
        assert "Claim(" in nearby or "def " in nearby or "lambda" in nearby, claim.id
        assert files_testing(claim) and all((ROOT / path).exists() for path in files_testing(claim))
    assert files_testing(CLAIMS["daniely2020/lemma6"])[0].endswith("daniely2020/test_first_step.py")


def test_the_index_is_filtered_by_paper_claim_or_statement():
    assert {entry.paper for entry in index(["shi2022"])} == {"shi2022"}
    assert [entry.statement.statement for entry in index(["theorem 26"])] == ["Theorem 26"]
    assert all(
        any(row.id.startswith("shi2022/table") for row in entry.rows)
        for entry in index(["shi2022/table*"])
    )
    with pytest.raises(BadInput, match="Did you mean 'shi2022/table1'"):
        index(["shi2022/tabel1"])
