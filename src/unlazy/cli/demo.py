"""`unlazy demo`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unlazy.cli.common import console, engine_options, running, scale_option, store_option
from unlazy.cli.report import write_report
from unlazy.report.files import check_writable

if TYPE_CHECKING:
    from unlazy.lab.rules import Scale


@click.command()
@scale_option
@store_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("page.html"),
    show_default=True,
    help="Page to write.",
)
@engine_options
def demo(scale: Scale, store_path: Path | None, out: Path, engine: Callable[[Path], Any]) -> None:
    """Reproduce Table 1 of shi2022 and write the page."""
    from unlazy.lab.registry import claims
    from unlazy.lab.running import study
    from unlazy.report.live import run_studies

    check_writable(out)
    with running(store_path, engine) as (store, runner):
        run_studies(
            [study(claims()["shi2022/table1"], scale)], store, console(), engine=runner, fresh=False
        )
        write_report(store, out, None, scale)
