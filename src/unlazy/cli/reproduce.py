"""`unlazy reproduce`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from unlazy.cli.common import (
    console,
    data_option,
    engine_options,
    json_option,
    prepare_outputs,
    running,
    scale_option,
    store_option,
    write_json,
)


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@scale_option
@click.option(
    "--seeds", type=click.IntRange(min=1), help="Number of seeds [default: as the claim says]."
)
@click.option(
    "--first-seed",
    type=click.IntRange(min=0),
    help="First seed; settings were chosen on those below 10, rules looked at on those below "
    "1000 [default: the claim's judging seeds].",
)
@click.option(
    "--controls",
    is_flag=True,
    help="Run the world in which each statement is false, too: there its rule must not hold.",
)
@click.option(
    "--null",
    is_flag=True,
    help="Instead, show all learners labels of other inputs, and count the rules that hold by "
    "error.",
)
@click.option(
    "--until-decided",
    is_flag=True,
    help="Add seeds to what is undecided; repeated looks share the error of one.",
)
@click.option(
    "--most-seeds",
    type=click.IntRange(min=1),
    default=40,
    show_default=True,
    help="Where --until-decided ends.",
)
@store_option
@data_option
@json_option
@click.option(
    "--strict",
    is_flag=True,
    help="Exit with status 1 unless every statement holds, else with 3 unless every number is "
    "reproduced.",
)
@click.option("--fresh", is_flag=True, help="Forget the records of these trials and run them anew.")
@engine_options
def reproduce(
    ids: tuple[str, ...],
    scale: str,
    seeds: int | None,
    first_seed: int | None,
    controls: bool,
    null: bool,
    until_decided: bool,
    most_seeds: int,
    store_path: Path | None,
    json_path: Path | None,
    strict: bool,
    fresh: bool,
    engine: Callable[[Path], Any],
) -> None:
    """Run claims and judge them: the statement, and the published numbers. ID may be a pattern such
    as 'shi2022/*'.

    What is in the store is not run again.
    """
    from unlazy.core.errors import require
    from unlazy.lab.registry import find_claims, find_not_run

    claims, rows = find_claims(ids), find_not_run(ids)
    require(not (null and controls), "--null is a run of its own: it goes without --controls.")
    prepare_outputs(json_path)
    from unlazy.lab.running import controls_of, incomplete, null_of, study, waiting_for_data
    from unlazy.report.live import run_studies, run_until_decided
    from unlazy.report.tables import ledger, null_sentence, terminal, waiting

    claims, without = waiting_for_data(claims, scale)  # type: ignore[arg-type]
    rows = [*rows, *without]
    if null:
        claims, rows = [world for claim in claims if (world := null_of(claim))], []
    studies = [study(claim, scale, seeds=seeds, first_seed=first_seed) for claim in claims]  # type: ignore[arg-type]
    extra = controls_of(studies) if controls else []
    verdicts, failed = [], False
    if studies:
        with running(store_path, engine) as (store, runner):
            if until_decided:
                verdicts = run_until_decided(
                    studies + extra, store, console(), most=most_seeds, engine=runner, fresh=fresh
                )
            else:
                verdicts = run_studies(
                    studies + extra, store, console(), engine=runner, fresh=fresh
                )
            failed = bool(incomplete(studies + extra, store)) and not null
    if len(verdicts) > 1:
        console().print(terminal(ledger(verdicts), "The ledger"))
    if rows:
        console().print(terminal(waiting(rows), "Not run yet"))
    if null:
        console().print(null_sentence(verdicts))
    write_json(
        [*(verdict.to_json() for verdict in verdicts), *(row.to_json() for row in rows)], json_path
    )
    if failed:
        sys.exit(4)
    if strict and not all(verdict.stands for verdict in verdicts):
        sys.exit(1)
    if strict and any(verdict.numbers.reproduced < verdict.numbers.of for verdict in verdicts):
        sys.exit(3)
