"""`unlazy export`."""

from __future__ import annotations

from pathlib import Path

import click

from unlazy.cli.common import default_store, store_option
from unlazy.core.errors import BadInput
from unlazy.report.files import check_writable


@click.command()
@store_option
@click.option(
    "--format",
    "kind",
    type=click.Choice(["csv", "jsonl", "parquet"]),
    default="csv",
    show_default=True,
    help="Format of the output.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File to write [default: standard output].",
)
def export(store_path: Path | None, kind: str, out: Path | None) -> None:
    """Export measurements (CSV, JSON lines, Parquet).

    Writes one row per trial, step and measure.
    """
    from unlazy.lab.store import Store
    from unlazy.report.exporting import rows, write_export

    if out is not None:
        check_writable(out)
    elif kind == "parquet":
        raise BadInput("Parquet needs an output file: add --out FILE.")
    with Store(store_path or default_store(), read_only=True) as store:
        count = write_export(rows(store.records(), store.runs()), kind, out)  # type: ignore[arg-type]
    if out is not None:
        click.echo(f"{count} rows written to {out}", err=True)
