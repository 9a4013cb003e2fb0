"""`unlazy list`."""

from __future__ import annotations

import json

import click

from unlazy.cli.common import console


@click.command("list")
@click.argument("kind", type=click.Choice(["tasks", "learners", "kernels", "claims"]))
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def list_things(kind: str, as_json: bool) -> None:
    """List what there is."""
    from unlazy.core.naming import describe
    from unlazy.lab import registry
    from unlazy.report.tables import terminal

    if kind == "claims":
        found = [
            {"id": c.id, "kind": c.kind, "where": c.where, "statement": c.statement, "rule": c.rule}
            for c in registry.claims().values()
        ]
        shown = ["id", "kind", "where", "statement"]
    else:
        named = {
            "tasks": registry.tasks,
            "learners": registry.learners,
            "kernels": registry.kernels,
        }[kind]()
        found = [
            {"id": name, "what": entry.what, **describe(entry.thing)}
            for name, entry in named.items()
        ]
        shown = ["id", "what"]
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        console().print(
            terminal((shown, [[str(row[column]) for column in shown] for row in found]))
        )
