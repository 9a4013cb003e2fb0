"""`unlazy demo`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from unlazy.cli.common import console, heading, out_option, run_options, scale_option
from unlazy.cli.defaults import VERBOSE, is_set
from unlazy.cli.report import write_report
from unlazy.report.files import check_writable


@click.command()
@scale_option
@out_option
@run_options
def demo(scale: str, out: Path, running: Callable[..., Any]) -> None:
    """Compare runs with Table 1 of shi2022 and write an HTML report."""
    from unlazy.api import claim_studies, judged
    from unlazy.lab.registry import find_claims
    from unlazy.lab.run import Incomplete
    from unlazy.report.tables import print_verdict

    check_writable(out)
    studies, _ = claim_studies(find_claims(["shi2022/table1"]), scale)  # type: ignore[arg-type]
    with running() as session:
        heading("shi2022/table1", f"{scale} scale", store=session.store.path)
        for outcome in judged(studies, session):
            if isinstance(outcome, Incomplete):
                raise SystemExit(str(outcome))
            print_verdict(outcome, console(), details=is_set(VERBOSE))
        write_report(session.store, out, None, scale)
