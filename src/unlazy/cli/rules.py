"""`unlazy rules`."""

from __future__ import annotations

from pathlib import Path

import click

from unlazy.cli.common import console, default_store, store_option


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@store_option
def rules(ids: tuple[str, ...], store_path: Path | None) -> None:
    """Print by what a claim is judged: statement, checks, conditions, control, and every change
    that was made after a run.
    """
    from unlazy.lab.registry import find_claims, find_not_run
    from unlazy.lab.store import Store
    from unlazy.report.rules import print_rule
    from unlazy.report.tables import terminal, waiting

    path = store_path or default_store()
    store = Store(path, read_only=True) if path.exists() else None
    try:
        for claim in find_claims(ids):
            print_rule(claim, store, console())
    finally:
        if store is not None:
            store.close()
    rows = find_not_run(ids)
    if rows:
        console().print(terminal(waiting(rows), "Not run yet"))
