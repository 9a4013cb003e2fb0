"""Lists of claims and of numbered statements, for the terminal, JSON and the documentation."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from unlazy.lab.claims import Claim, NotRun
from unlazy.lab.judging import Verdict
from unlazy.lab.paper_index import IndexEntry, code_of, files_testing, index
from unlazy.report.formulas import plain
from unlazy.report.labels import MARKS, count

Row = Claim | NotRun


def claim_rows(patterns: Iterable[str] = ()) -> list[Row]:
    """Return the claims that match any pattern (none: all), in the order of the papers.

    A pattern is a paper, an id with wildcards, or a part of a claim's text.
    """
    patterns = list(patterns)
    entries = index(patterns)

    def selected(entry: IndexEntry, row: Row) -> bool:
        one = dataclasses.replace(entry, rows=(row,))
        return not patterns or any(one.matches(pattern) for pattern in patterns)

    rows = {row.id: row for each in entries for row in each.rows if selected(each, row)}
    papers = list(dict.fromkeys(entry.paper for entry in entries))
    return sorted(rows.values(), key=lambda row: papers.index(row.id.partition("/")[0]))


def claim_json(rows: Iterable[Row], verdicts: Mapping[str, Verdict]) -> list[dict[str, Any]]:
    """Return claims with their last verdict as plain data."""
    return [
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
        for row in rows
    ]


def claim_lines(rows: Sequence[Row], verdicts: Mapping[str, Verdict], width: int) -> Iterator[str]:
    """Yield one line per claim, cut to a width: last verdict, name, title, place."""
    if not rows:
        yield "No claim matches."
    for paper, group in itertools.groupby(rows, key=lambda row: row.id.partition("/")[0]):
        claims, titles = list(group), _titles(paper)
        yield f"{paper} ({count(len(claims), 'claim')}, named {paper}/...)"
        name_width = max(len(row.id) for row in claims) - len(paper) - 1
        for row in claims:
            verdict = verdicts.get(row.id)
            mark = MARKS[verdict.outcome if verdict else "not run"]
            name = row.id.partition("/")[2]
            where, title = _SECTION.sub("", row.where), titles.get(row.id)
            text = f"{title} ({where})" if title else f"{where}: {plain(row.statement)}"
            yield _cut(f"  {_SHORT.get(mark, mark):13} {name:{name_width}}  {text}", width)


#: The section in which a numbered statement is found.
_SECTION = re.compile(r" \((Section|Appendi)[^()]*(\([^()]*\)[^()]*)*\)")


def _titles(paper: str) -> dict[str, str]:
    """Return the titles of a paper's statements by the claim that tests them first.

    A claim of several statements has the title of the one that it is named after, or of the first.
    """
    found: dict[str, str] = {}
    for entry in index([paper]):
        named = re.sub(r"\W", "", entry.statement.statement.lower())
        for row in entry.rows:
            if row.id == f"{paper}/{named}":
                found[row.id] = entry.statement.title
        if entry.rows:
            found.setdefault(entry.rows[0].id, entry.statement.title)
    return found


#: Marks that do not fit a column.
_SHORT = {
    MARKS["holds after correction"]: "✓ corrected",
    MARKS["holds under reading"]: "✓ reading",
    MARKS["assumptions not met"]: "○ assumptions",
    MARKS["not testable at finite size"]: "○ asymptotic",
    MARKS["definition checked"]: "✓ definition",
}


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 1] + "…"


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
            "claims": claim_json(entry.rows, verdicts),
        }
        for entry in entries
    ]


def index_lines(
    entries: Iterable[IndexEntry], verdicts: Mapping[str, Verdict], width: int
) -> Iterator[str]:
    """Yield one line per numbered statement, cut to a width.

    Columns: the statement, its claims with the mark of the last verdict, code and test of the first
    claim, title.
    """
    for paper, group in itertools.groupby(entries, key=lambda entry: entry.paper):
        rows = [_cells(entry, verdicts) for entry in group]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        yield f"{paper} ({count(len(rows), 'statement')}; claims are {paper}/...)"
        for row in rows:
            cells = zip(row, widths, strict=True)
            line = "  " + "  ".join(cell.ljust(longest) for cell, longest in cells).rstrip()
            yield _cut(line, width)


def _cells(entry: IndexEntry, verdicts: Mapping[str, Verdict]) -> list[str]:
    named, code, test = [], "", ""
    for row in entry.rows:
        mark = f" {MARKS[verdicts[row.id].outcome][0]}" if row.id in verdicts else ""
        named.append(row.id.removeprefix(f"{entry.paper}/") + mark)
    if entry.rows:
        code = code_of(entry.rows[0]).removeprefix(f"unlazy.papers.{entry.paper}.")
        test = next(iter(files_testing(entry.rows[0])), "").rpartition("/")[2]
    title = [entry.statement.title, entry.statement.note and f"({entry.statement.note})"]
    return [
        entry.statement.statement,
        ", ".join(named) or "–",
        code,
        test,
        " ".join(filter(None, title)),
    ]
