"""`unlazy list`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from unlazy.cli.common import console, default_store, store_option


@click.command("list")
@click.argument("kind", type=click.Choice(["tasks", "learners", "kernels", "claims"]))
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@store_option
def list_things(
    kind: str, patterns: tuple[str, ...], as_json: bool, store_path: Path | None
) -> None:
    """List tasks, learners, kernels, or the numbered statements of papers with the claims that test
    them, their newest verdict, code and tests.

    PATTERN selects by name ('parity*'), and claims also by paper (shi2022) or by statement
    ('Lemma 6').
    """
    import fnmatch

    from unlazy.core.naming import describe
    from unlazy.lab import registry
    from unlazy.report.tables import terminal

    if kind == "claims":
        return _statements(patterns, as_json, store_path or default_store())
    named = {
        "tasks": registry.tasks,
        "learners": registry.learners,
        "kernels": registry.kernels,
    }[kind]()
    found = [
        {"id": name, "what": entry.summary, **describe(entry.value)}
        for name, entry in named.items()
        if not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    ]
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        shown = ["id", "what"]
        console().print(
            terminal((shown, [[str(row[column]) for column in shown] for row in found]))
        )


def _statements(patterns: tuple[str, ...], as_json: bool, store: Path) -> None:
    from unlazy.lab.paper_index import index
    from unlazy.report.index import index_json, index_lines

    entries = index(patterns)
    verdicts = _verdicts({row.id for entry in entries for row in entry.rows}, store)
    if as_json:
        click.echo(json.dumps(index_json(entries, verdicts), indent=2, ensure_ascii=False))
    else:
        screen = console()
        width = screen.width if screen.is_terminal else sys.maxsize
        for line in index_lines(entries, verdicts, width):
            screen.print(line, markup=False, highlight=False, soft_wrap=True)


def _verdicts(ids: set[str], path: Path) -> dict[str, Any]:
    """Judge the newest run of each claim that the store has."""
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
