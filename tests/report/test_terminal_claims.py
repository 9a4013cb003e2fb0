"""The short form of every claim that has results, on the terminal."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from unlazy.lab import registry
from unlazy.report import labels
from unlazy.report.labels import MARKS
from unlazy.report.terminal import max_lines_at, print_view
from unlazy.report.verdict_json import verdict_from_json
from unlazy.report.verdicts import MAX_LINES
from unlazy.report.view import view_of

RESULTS = Path(__file__).parents[2] / "results"
ROWS = [
    (path.stem, row)
    for path in sorted(RESULTS.glob("*-*.json"))
    for row in json.loads(path.read_text(encoding="utf-8"))
    if row["verdict"] != "not run" and row["id"] in registry.claims()
]


def printed(row, width, **options):
    console = Console(width=width, file=io.StringIO())
    verdict = verdict_from_json(row, registry.claims()[row["id"]])
    print_view(view_of(verdict), console, **options)
    return console.file.getvalue().strip("\n").splitlines()


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("source", sorted({source for source, _ in ROWS}))
def test_the_short_form_fits_thirty_lines_and_starts_with_the_verdict(source, width):
    for row in (row for name, row in ROWS if name == source):
        _check(row, printed(row, width), width)


def _check(row, lines, width):
    assert len(lines) <= max_lines_at(width, MAX_LINES) <= 37
    assert max(map(cell_len, lines)) <= width
    assert lines[0].startswith(row["id"])
    mark = MARKS[row["verdict"]]
    assert any(line.startswith(mark[:2] + mark[2:].upper()) for line in lines[1:4])
    assert any("-v" in line for line in lines), "details are named"
    if width == 100:
        assert not any("\\" in line or "$" in line for line in lines)


def test_details_have_all_checks_and_definitions():
    (row,) = (r for s, r in ROWS if (s, r["id"]) == ("shi2022-paper", "shi2022/table1"))
    brief, full = printed(row, 100), printed(row, 100, details=True)
    assert len(full) > 2 * len(brief)
    words = " ".join(" ".join(full).split())
    assert "Definitions" in words and "deviations from the paper" in words
    assert "Percentage of fresh test examples" in words


def test_quantities_have_labels_in_words():
    """No quantity of a check or published table is shown by its key."""
    for claim in registry.claims().values():
        for measure in dict.fromkeys(m for q in claim.quantities for m in q.measures):
            shared = [row["measure"] for row in labels._labels(claim.id.partition("/")[0])]
            assert measure in shared or measure in labels._MEASURES, (claim.id, measure)
            assert len(labels.label_of(claim, measure)) <= 46, (claim.id, measure)
