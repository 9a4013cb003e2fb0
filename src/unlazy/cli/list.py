"""`unlazy list`."""

from __future__ import annotations

import fnmatch
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unlazy.cli.common import console, default_store, store_option
from unlazy.core.errors import BadInput

if TYPE_CHECKING:
    from unlazy.lab.claims import Claim, NotRun
    from unlazy.lab.judging import Verdict

#: Values of --verdict, with the outcomes that they select.
VERDICTS = {
    "holds": (
        "holds",
        "holds, loosely",
        "holds after correction",
        "holds under reading",
        "definition checked",
    ),
    "fails": ("fails",),
    "undecided": ("undecided",),
    "assumptions-not-met": ("assumptions not met",),
    "not-testable": ("not testable at finite size",),
    "ours": ("ours",),
    "not-run": ("not run",),
}
#: Width of lines that are not printed to a terminal, unless $COLUMNS is set.
PIPED_WIDTH = 100


@click.command("list")
@click.argument("what", type=click.Choice(["tasks", "learners", "kernels", "claims"]))
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...")
@click.option(
    "--verdict",
    type=click.Choice(list(VERDICTS)),
    help="Only claims whose last verdict is this one. 'holds' includes: holds loosely, after "
    "correction, or under a reading; definition checked.",
)
@click.option(
    "--kind",
    type=click.Choice(["task", "learner", "lemma", "table", "figure", "bound"]),
    help="Only claims on this part of a paper.",
)
@click.option(
    "--index",
    "by_statement",
    is_flag=True,
    help="List every numbered statement of the papers, with its claims, code and tests.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@store_option
def list_entries(
    what: str,
    patterns: tuple[str, ...],
    verdict: str | None,
    kind: str | None,
    by_statement: bool,
    as_json: bool,
    store_path: Path | None,
) -> None:
    """List tasks, learners, kernels or claims.

    PATTERN selects by name ('parity*'); claims also by paper (shi2022) or text ('Lemma 6'). Claims
    are listed with the last verdict in the store, one line per claim.
    """
    if what == "claims":
        store = store_path or default_store()
        if by_statement:
            if verdict or kind:
                raise BadInput("--index lists numbered statements; it excludes --verdict, --kind.")
            return _print_index(patterns, as_json, store)
        return _print_claims(patterns, verdict, kind, as_json, store)
    if verdict or kind or by_statement:
        raise BadInput(f"--verdict, --kind and --index apply to claims, not to {what}.")
    return _print_entries(what, patterns, as_json)


def _print_entries(what: str, patterns: tuple[str, ...], as_json: bool) -> None:
    from unlazy.core.naming import describe
    from unlazy.lab import registry
    from unlazy.report.tables import terminal

    entries = {
        "tasks": registry.tasks,
        "learners": registry.learners,
        "kernels": registry.kernels,
    }[what]()
    rows = [
        {"id": name, "what": entry.summary, **describe(entry.value)}
        for name, entry in entries.items()
        if not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    ]
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    table = ["id", "description"], [[str(row["id"]), str(row["what"])] for row in rows]
    console().print(terminal(table))


def _print_claims(
    patterns: tuple[str, ...], verdict: str | None, kind: str | None, as_json: bool, store: Path
) -> None:
    from unlazy.report.index import claim_json, claim_lines, claim_rows

    rows: list[Claim | NotRun] = [
        row for row in claim_rows(patterns) if kind is None or row.kind == kind
    ]
    verdicts = _verdicts({row.id for row in rows}, store)
    if verdict is not None:
        outcomes = {name: each.outcome for name, each in verdicts.items()}
        rows = [row for row in rows if outcomes.get(row.id, "not run") in VERDICTS[verdict]]
    if as_json:
        click.echo(json.dumps(claim_json(rows, verdicts), indent=2, ensure_ascii=False))
    else:
        _print_lines(claim_lines(rows, verdicts, _width(PIPED_WIDTH)))
        if rows:
            # Two lines, since the path of a store may be long.
            _print_lines([f"Verdicts: last runs in {store}", "Full text: unlazy rules ID"])


def _print_index(patterns: tuple[str, ...], as_json: bool, store: Path) -> None:
    from unlazy.lab.paper_index import index
    from unlazy.report.index import index_json, index_lines

    entries = index(patterns)
    verdicts = _verdicts({row.id for entry in entries for row in entry.rows}, store)
    if as_json:
        click.echo(json.dumps(index_json(entries, verdicts), indent=2, ensure_ascii=False))
    else:
        _print_lines(index_lines(entries, verdicts, _width(sys.maxsize)))


def _width(piped: int) -> int:
    screen = console()
    known = screen.is_terminal or os.environ.get("COLUMNS", "").isdigit()
    return int(screen.width) if known else piped


def _print_lines(lines: Any) -> None:
    screen = console()
    for line in lines:
        screen.print(line, markup=False, highlight=False, soft_wrap=True)


def _verdicts(ids: set[str], path: Path) -> dict[str, Verdict]:
    """Return the verdict on the newest stored run of each claim."""
    from unlazy.lab.registry import claims
    from unlazy.lab.store import Store
    from unlazy.studies.claim import newest, verdict_of

    if not path.exists():
        return {}
    found = {}
    with Store(path, read_only=True) as store:
        runs = [run for run in store.runs("claim") if run.name in ids]
        for name in dict.fromkeys(run.name for run in runs):
            claim = claims().get(name)
            run = newest(store, runs, claim, "claim") if claim else None
            if claim and run:
                found[name] = verdict_of(claim, run, store)
    return found
