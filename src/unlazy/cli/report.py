"""`unlazy report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from unlazy.cli.common import (
    SCALES,
    console,
    data_option,
    default_store,
    open_in_browser,
    out_option,
    say,
    store_option,
    style_option,
)
from unlazy.report.files import check_writable

if TYPE_CHECKING:
    from unlazy.lab.store import Store


@click.command()
@store_option
@data_option
@out_option
@click.option(
    "--figures",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also write print figures to this folder.",
)
@click.option("--scale", type=SCALES, help="Only claims at this scale.")
@style_option
@click.option("--open", "show", is_flag=True, help="Open the report in the browser.")
def report(
    store_path: Path | None,
    out: Path,
    figures: Path | None,
    scale: str | None,
    style: str,
    show: bool,
) -> None:
    """Write an HTML report of all stored results.

    The report is one file that needs no network. It contains verdicts, learning curves, neurons,
    comparisons and scaling studies.
    """
    from unlazy.lab.store import Store

    check_writable(out)
    with Store(store_path or default_store(), read_only=True) as store:
        write_report(store, out, figures, scale, style)
    if show:
        open_in_browser(out)


def write_report(
    store: Store, out: Path, figures: Path | None, scale: str | None, style: str = "page"
) -> None:
    """Write the report, and figures if a folder is given."""
    from unlazy.report.entries import found_in
    from unlazy.report.figures import save_plots
    from unlazy.report.html import write_page
    from unlazy.report.view import distinct

    with console().status("Drawing"):
        views = distinct(found_in(store, scale=scale, arrays=True).views)
        write_page(views, out)
        written = []
        if figures is not None:
            written = [path for view in views for path in save_plots(view, figures, style)]
    say(f"Report written to {out.resolve()} (one file, works offline).")
    for path in written:
        say(f"{'Data' if path.suffix == '.csv' else 'Figure'} written to {path}")
