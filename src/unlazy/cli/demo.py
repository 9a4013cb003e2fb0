"""`unlazy demo`."""

from __future__ import annotations

from pathlib import Path

import click

from unlazy.cli.common import console, default_store, memory_option, scale_option, store_option
from unlazy.cli.report import write_report
from unlazy.report.files import check_writable


@click.command()
@scale_option
@store_option
@click.option("--out", type=click.Path(path_type=Path), default=Path("page.html"), show_default=True, help="Page to write.")
@memory_option
def demo(scale: str, store_path: Path | None, out: Path, memory: float | None) -> None:
    """Reproduce Table 1 of shi2022 and write the page."""
    from unlazy.lab.registry import claims
    from unlazy.lab.running import study
    from unlazy.lab.store import Store
    from unlazy.report.live import run_studies

    check_writable(out)
    with Store(store_path or default_store()) as store:
        run_studies([study(claims()["shi2022/table1"], scale)], store, console(), memory=memory, fresh=False)  # type: ignore[arg-type]
        write_report(store, out, None, scale)
