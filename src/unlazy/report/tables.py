"""Small tables for commands: one line per verdict, and claims that are not run."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, RenderableType

from unlazy.lab.claims import NotRun
from unlazy.lab.judging import Verdict
from unlazy.report.terminal import print_view
from unlazy.report.terminal import table as drawn
from unlazy.report.verdicts import view
from unlazy.report.view import ViewTable, overview

Rows = tuple[Sequence[str], Sequence[Sequence[str]]]


def terminal(table: Rows, title: str = "") -> RenderableType:
    """Return columns and rows as a table for the terminal."""
    columns, rows = table
    return drawn(ViewTable(tuple(columns), tuple(map(tuple, rows)), title))


def ledger(verdicts: Sequence[Verdict]) -> Rows:
    """Return one row per claim."""
    if not verdicts:
        return (), ()
    (table,) = overview([view(verdict) for verdict in verdicts])
    return table.columns, table.rows


def waiting(rows: Sequence[NotRun]) -> Rows:
    """Return the claims that are not run."""
    return ["claim", "where", "reason"], [[row.id, row.where, row.reason] for row in rows]


def null_sentence(verdicts: Sequence[Verdict]) -> str:
    """Return how many claims hold with shuffled labels, by error."""
    able = [verdict for verdict in verdicts if any(j.check.counts for j in verdict.check_results)]
    held = [verdict.claim.id for verdict in able if verdict.seen == "holds"]
    names = f": {', '.join(held)}" if held else ""
    return f"{len(held)} of {len(able)} claims hold by error{names}."


def print_verdict(verdict: Verdict, console: Console, *, details: bool = False) -> None:
    """Print a verdict."""
    print_view(view(verdict), console, details=details)
