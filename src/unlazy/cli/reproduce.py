"""`unlazy reproduce`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from unlazy.cli.common import (
    console,
    count_option,
    data_option,
    heading,
    json_option,
    prepare_outputs,
    run_options,
    say,
    scale_option,
    write_json,
)
from unlazy.cli.defaults import VERBOSE, is_set


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@scale_option
@click.option(
    "--seeds", type=click.IntRange(min=1), help="Number of seeds [default: set by the claim]."
)
@click.option(
    "--first-seed",
    type=click.IntRange(min=0),
    help="First seed. We used seeds 0 to 9 for tuning and 10 to 999 in development [default: the "
    "claim's held-out seeds].",
)
@click.option(
    "--controls",
    is_flag=True,
    help="Also run the negative controls, on which the criteria must fail.",
)
@click.option(
    "--shuffle-labels",
    is_flag=True,
    help="Train all learners on shuffled labels, and count the claims that still hold "
    "(none should).",
)
@click.option(
    "--until-decided",
    is_flag=True,
    help="Add seeds until the verdict is conclusive; the interim tests are corrected so that the "
    "total error is at most 5 %.",
)
@count_option("--max-seeds", 40, "Maximum number of seeds of --until-decided.")
@click.option(
    "--reading",
    metavar="NAME",
    help="Test the claims under this reading (see 'unlazy readings') [default: set by the claim].",
)
@data_option
@json_option
@click.option(
    "--strict",
    is_flag=True,
    help="Exit with status 1 if a claim does not hold, and with 3 if all hold but a published "
    "number is not reproduced.",
)
@run_options
def reproduce(
    ids: tuple[str, ...],
    scale: str,
    seeds: int | None,
    first_seed: int | None,
    controls: bool,
    shuffle_labels: bool,
    until_decided: bool,
    max_seeds: int,
    reading: str | None,
    json_path: Path | None,
    strict: bool,
    running: Callable[..., Any],
) -> None:
    """Test claims of a paper and report verdicts.

    ID is a claim or a pattern such as 'shi2022/*'. Stored trials are not run again.
    """
    from unlazy.api import claim_studies, judged
    from unlazy.lab.registry import find_claims, find_not_run
    from unlazy.lab.run import Incomplete
    from unlazy.report.tables import ledger, null_sentence, print_verdict, terminal, waiting

    chosen, rows = find_claims(ids), [] if shuffle_labels else find_not_run(ids)
    prepare_outputs(json_path)
    studies, without = claim_studies(
        chosen,
        scale,  # type: ignore[arg-type]
        seeds=seeds,
        first_seed=first_seed,
        controls=controls,
        shuffle_labels=shuffle_labels,
        until_decided=until_decided,
        max_seeds=max_seeds,
        reading=reading,
    )
    rows = [*rows, *without]
    verdicts, failed = [], False
    if studies:
        with running() as session:
            names = ", ".join(study.title for study in studies)
            heading(names, f"{scale} scale", store=session.store.path)
            for outcome in judged(studies, session):
                if isinstance(outcome, Incomplete):
                    say(f"Incomplete: {outcome}")
                    failed = not shuffle_labels
                else:
                    print_verdict(outcome, console(), details=is_set(VERBOSE))
                    verdicts.append(outcome)
    if len(verdicts) > 1:
        console().print(terminal(ledger(verdicts), "Verdicts"))
    if rows:
        console().print(terminal(waiting(rows), "Not run yet"))
    if shuffle_labels:
        say(null_sentence(verdicts))
    write_json(
        [*(verdict.to_json() for verdict in verdicts), *(row.to_json() for row in rows)], json_path
    )
    if failed:
        sys.exit(4)
    if strict and not all(verdict.stands for verdict in verdicts):
        sys.exit(1)
    if strict and any(verdict.numbers.reproduced < verdict.numbers.of for verdict in verdicts):
        sys.exit(3)
