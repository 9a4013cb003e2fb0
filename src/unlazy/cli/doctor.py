"""`unlazy doctor`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from unlazy.cli.common import console, default_store, store_option


@click.command()
@click.option(
    "--engine",
    metavar="NAME",
    help="Run one small trial there: local, processes, dask, tcp://host:port or slurm.",
)
@store_option
def doctor(engine: str | None, store_path: Path | None) -> None:
    """Say what machine, versions, cache, store and engines there are, and whether they are healthy.

    Exit status 1 where one is not.
    """
    from rich.markup import escape

    from unlazy.lab.health import signs

    ill = 0
    screen = console()
    for sign in signs(store_path or default_store(), engine):
        ill += not sign.healthy
        mark = "[green]✓[/]" if sign.healthy else "[red]✗[/]"
        screen.print(f"{mark} {sign.what}: {escape(sign.found)}", highlight=False, soft_wrap=True)
    screen.print("All is well." if not ill else f"{ill} things need a hand.")
    if ill:
        sys.exit(1)
