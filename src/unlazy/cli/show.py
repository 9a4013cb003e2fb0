"""`unlazy show`."""

from __future__ import annotations

from pathlib import Path

import click

from unlazy.cli.common import SCALES, console, data_option, default_store, store_option


@click.command()
@click.argument("pattern", required=False, metavar="[ID or TASK]")
@click.option("--scale", type=SCALES, help="Only runs of claims at this scale.")
@store_option
@data_option
def show(pattern: str | None, scale: str | None, store_path: Path | None) -> None:
    """Show what the store holds without running anything: all in short, or claims, contests and
    scaling studies of a name in full.

    The name is that of a claim or of the task of a contest or scaling study, or a pattern such as
    'shi2022/*'.
    """
    from unlazy.lab.store import Store
    from unlazy.report.contests import contests_ledger, print_outcome
    from unlazy.report.entries import found_in
    from unlazy.report.scaling import print_scaling, scaling_ledger
    from unlazy.report.tables import ledger, print_verdict, terminal

    with Store(store_path or default_store(), read_only=True) as store:
        found = found_in(store, pattern, scale)
    verdicts = [verdict for verdict, _ in found.claims]
    screen = console()
    if pattern is None:
        tables = {
            "Claims": ledger(verdicts),
            "Contests": contests_ledger(found.contests),
            "Scaling studies": scaling_ledger(found.scalings),
        }
        for title, table in tables.items():
            if table[1]:
                screen.print(terminal(table, title))
        return
    for verdict in verdicts:
        print_verdict(verdict, screen)
    for contest in found.contests:
        print_outcome(contest, screen)
    for study in found.scalings:
        print_scaling(study, screen)
