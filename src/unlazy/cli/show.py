"""`unlazy show`."""

from __future__ import annotations

from pathlib import Path

import click

from unlazy.cli.common import SCALES, console, data_option, default_store, store_option
from unlazy.cli.defaults import VERBOSE, is_set


@click.command()
@click.argument("pattern", required=False, metavar="[NAME]")
@click.option("--scale", type=SCALES, help="Only claims at this scale.")
@click.option("--details", is_flag=True, help="Show all details, as -v does.")
@store_option
@data_option
def show(pattern: str | None, scale: str | None, details: bool, store_path: Path | None) -> None:
    """Show stored results without running anything.

    Without a name, prints one line per result. NAME is a claim, the task of a comparison or scaling
    study, an audited file, or a pattern such as 'shi2022/*'.
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
        print_view(view, screen, details=details or is_set(VERBOSE))
