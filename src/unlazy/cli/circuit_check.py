"""`unlazy circuit-check`."""

from __future__ import annotations

from pathlib import Path

import click

from unlazy.cli.common import console


@click.command("circuit-check")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--target",
    required=True,
    help="Column of the labels; all others are inputs. Values: −1 and 1, or 0 and 1.",
)
def circuit_check(file: Path, target: str) -> None:
    """Predict whether layerwise training works on binary data.

    Layerwise training learns a tree of gates from binary data, one layer at a time. FILE is a CSV
    file with a header. The circuit that would be learned is printed.
    """
    from unlazy.report.terminal import print_outcome
    from unlazy.theory.diagnosis import diagnose_file

    print_outcome(diagnose_file(file, target), console())
