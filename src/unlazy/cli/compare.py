"""`unlazy compare`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from unlazy.cli.common import (
    console,
    count_option,
    data_option,
    figure_option,
    first_seed_option,
    heading,
    json_option,
    learner_option,
    prepare_outputs,
    run_options,
    set_option,
    style_option,
    whole_numbers,
    write_figure,
    write_json,
)
from unlazy.core.errors import BadInput


@click.command()
@click.argument("task", metavar="TASK")
@learner_option
@set_option
@click.option(
    "--n",
    "sizes",
    default="1000",
    show_default=True,
    metavar="N,N,...",
    help="Numbers of examples.",
)
@count_option("--seeds", 5, "Number of seeds.")
@first_seed_option
@count_option("--budget", 24, "Settings that each learner may try.")
@count_option("--test", 10_000, "Number of test examples.")
@data_option
@json_option
@figure_option
@style_option
@run_options
def compare(
    task: str,
    names: tuple[str, ...],
    changes: tuple[str, ...],
    sizes: str,
    seeds: int,
    first_seed: int,
    budget: int,
    test: int,
    json_path: Path | None,
    figure: Path | None,
    style: str,
    running: Callable[..., Any],
) -> None:
    """Let learners compete on TASK: the same examples and the same tuning budget for each, and say
    who is ahead.

    TASK is a name ('unlazy list tasks'), your own, as file.py:Name, or a column of a table, as
    table.csv:column, of which a fifth of the rows is held back for the test. What is in the store
    is not run again; a contest that was stopped goes on where it was.
    """
    prepare_outputs(json_path, figure)
    if not names:
        raise BadInput(
            "A contest needs learners: add --learner NAME once for each. `unlazy list learners` "
            "names them."
        )
    from unlazy.api import benchmark_of
    from unlazy.report.terminal import print_outcome

    wanted = whole_numbers("--n", sizes)
    benchmark = benchmark_of(
        task,
        names,
        n=wanted,
        changes=changes,
        seeds=seeds,
        first_seed=first_seed,
        budget=budget,
        test=test,
    )
    with running() as session:
        seeds_shown = f"seeds {benchmark.seeds[0]} to {benchmark.seeds[-1]}"
        configurations = f"{budget} configurations per learner"
        heading(benchmark.title, seeds_shown, configurations, f"store {session.store.path}")
        outcome = session.run_one(benchmark)
    print_outcome(outcome, console())
    write_json(outcome.to_json(), json_path)
    write_figure(outcome, figure, style)
