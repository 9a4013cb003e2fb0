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
    integers,
    json_option,
    learner_option,
    prepare_outputs,
    run_options,
    set_option,
    style_option,
    write_figure,
    write_json,
)
from unlazy.cli.defaults import VERBOSE, is_set
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
    help="Numbers of training examples.",
)
@count_option("--seeds", 5, "Number of seeds.")
@first_seed_option
@count_option("--budget", 24, "Configurations tried per learner.")
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
    """Compare learners with equal data and tuning budget.

    TASK is a built-in task ('unlazy list tasks'), your own as file.py:Name, or a column of a table
    as table.csv:column (a fifth of its rows are test rows). Stored trials are not run again.
    Interrupt it at any time; the same command resumes it.
    """
    prepare_outputs(json_path, figure)
    if not names:
        raise BadInput(
            "Name at least one learner by --learner NAME (repeatable). List them with "
            "`unlazy list learners`."
        )
    from unlazy.report.terminal import print_outcome
    from unlazy.studies.from_names import benchmark_of

    wanted = integers("--n", sizes)
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
        configurations = f"at most {budget} configurations per learner"
        heading(benchmark.title, seeds_shown, configurations, store=session.store.path)
        outcome = session.run_one(benchmark)
    print_outcome(outcome, console(), details=is_set(VERBOSE))
    write_json(outcome.to_json(), json_path)
    write_figure(outcome, figure, style)
