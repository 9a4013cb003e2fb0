"""`unlazy rules`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from unlazy.cli.common import console, default_store, store_option


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@store_option
def rules(ids: tuple[str, ...], as_json: bool, store_path: Path | None) -> None:
    """Show how a claim is tested: checks, control, history.

    Prints the statement, the definition of every measured quantity, the bounds with their source,
    assumptions, negative control, and changes made after a run.
    """
    from unlazy.lab.registry import find_claims, find_not_run
    from unlazy.lab.store import Store
    from unlazy.report.rules import print_rule, rule_json
    from unlazy.report.tables import terminal, waiting

    if as_json:
        found = [rule_json(claim) for claim in find_claims(ids)]
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
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
