"""`unlazy show`."""

from __future__ import annotations

from pathlib import Path

import click

from unlazy.cli.common import SCALES, console, data_option, default_store, store_option


@click.command()
@click.argument("pattern", required=False, metavar="[ID or TASK]")
@click.option("--scale", type=SCALES, help="Only runs of claims at this scale.")
@click.option("--details", is_flag=True, help="Show all details.")
@store_option
@data_option
def show(pattern: str | None, scale: str | None, details: bool, store_path: Path | None) -> None:
    """Show what the store holds without running anything: all in short, or claims, contests and
    scaling studies of a name in full.

    The name is that of a claim or of the task of a contest or scaling study, or a pattern such as
    'shi2022/*'.
    """
    from unlazy.lab.store import Store
    from unlazy.report.entries import found_in
    from unlazy.report.terminal import print_view, table
    from unlazy.report.view import overview

    with Store(store_path or default_store(), read_only=True) as store:
        views = found_in(store, pattern, scale).views
    screen = console()
    if pattern is None:
        for each in overview(views):
            screen.print(table(each))
        return
    for view in views:
        print_view(view, screen, details=details)
