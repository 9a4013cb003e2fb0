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
    help="Run one small trial on this engine: local, processes, dask, tls://host:port, slurm.",
)
@store_option
def doctor(engine: str | None, store_path: Path | None) -> None:
    """Check installation, devices, store and engines.

    Exit status 1 if a check fails.
    """
    from rich.markup import escape

    from unlazy.lab.health import signs
    from unlazy.report.labels import count

    failed = 0
    screen = console()
    for sign in signs(store_path or default_store(), engine):
        failed += not sign.healthy
        mark = "–" if sign.optional else "[green]✓[/]" if sign.healthy else "[red]✗[/]"
        screen.print(
            f"{mark} {escape(f'{sign.what}: {sign.found}')}", highlight=False, soft_wrap=True
        )
    screen.print(f"{count(failed, 'check')} failed." if failed else "All checks passed.")
    if failed:
        sys.exit(1)
