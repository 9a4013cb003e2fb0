"""The index of the papers: a line per numbered statement, for the terminal, JSON and the site."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from unlazy.lab.claims import Claim
from unlazy.lab.judging import Verdict
from unlazy.lab.paper_index import IndexEntry, code_of, files_testing
from unlazy.report.labels import MARKS


def index_json(
    entries: Iterable[IndexEntry], verdicts: Mapping[str, Verdict]
) -> list[dict[str, Any]]:
    """Return the entries as plain data."""
    return [
        {
            "paper": entry.paper,
            "statement": entry.statement.statement,
            "section": entry.statement.section,
            "title": entry.statement.title,
            "note": entry.statement.note,
            "claims": [
                {
                    "id": row.id,
                    "kind": row.kind,
                    "where": row.where,
                    "statement": row.statement,
                    "rule": row.rule if isinstance(row, Claim) else None,
                    "verdict": verdicts[row.id].outcome if row.id in verdicts else None,
                    "scale": verdicts[row.id].scale if row.id in verdicts else None,
                    "code": code_of(row),
                    "tests": files_testing(row),
                }
                for row in entry.rows
            ],
        }
        for entry in entries
    ]


def index_lines(
    entries: Iterable[IndexEntry], verdicts: Mapping[str, Verdict], width: int
) -> Iterator[str]:
    """Yield one line per statement, paper by paper, cut to a width: the statement, the claims that
    test it (marked by their newest verdict), code and test of the first, and what it is about.
    """
    for paper, group in itertools.groupby(entries, key=lambda entry: entry.paper):
        rows = [_cells(entry, verdicts) for entry in group]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        count = f"{len(rows)} statement{'s' * (len(rows) > 1)}"
        yield f"{paper} ({count}; claims are {paper}/...)"
        for row in rows:
            cells = zip(row, widths, strict=True)
            line = "  " + "  ".join(cell.ljust(longest) for cell, longest in cells).rstrip()
            yield line if len(line) <= width else line[: width - 1] + "…"


def _cells(entry: IndexEntry, verdicts: Mapping[str, Verdict]) -> list[str]:
    named, code, test = [], "", ""
    for row in entry.rows:
        mark = f" {MARKS[verdicts[row.id].outcome][0]}" if row.id in verdicts else ""
        named.append(row.id.removeprefix(f"{entry.paper}/") + mark)
    if entry.rows:
        code = code_of(entry.rows[0]).removeprefix(f"unlazy.papers.{entry.paper}.")
        test = next(iter(files_testing(entry.rows[0])), "").rpartition("/")[2]
    about = [entry.statement.title, entry.statement.note and f"({entry.statement.note})"]
    return [
        entry.statement.statement,
        ", ".join(named) or "–",
        code,
        test,
        " ".join(filter(None, about)),
    ]
