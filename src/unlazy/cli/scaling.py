"""`unlazy scaling`."""

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
    say,
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
@click.option(
    "--vary",
    required=True,
    metavar="NAME=VALUES",
    help="Task parameter and its values: d=32..1024 (doubling) or d=16,24,32.",
)
@set_option
@click.option(
    "--target-error",
    type=float,
    help="Target test error: fraction of wrong labels, or squared error [default: 0.05, or, if a "
    "learner misses it at the first value of --vary, the smallest of 0.1, 0.2, 0.3, 0.4 that all "
    "learners reach there].",
)
@count_option("--seeds", 3, "Number of seeds.")
@first_seed_option
@count_option("--budget", 6, "Configurations tried per learner and n.")
@count_option("--max-n", 20_000, "Maximum number of training examples.")
@count_option("--test", 4096, "Number of test examples.")
@data_option
@json_option
@figure_option
@style_option
@run_options
def scaling(
    task: str,
    names: tuple[str, ...],
    vary: str,
    changes: tuple[str, ...],
    target_error: float | None,
    seeds: int,
    first_seed: int,
    budget: int,
    max_n: int,
    test: int,
    json_path: Path | None,
    figure: Path | None,
    style: str,
    running: Callable[..., Any],
) -> None:
    """Measure sample complexity as a task parameter grows.

    Measures the number of examples n needed to reach the target error at each value of the
    parameter, and fits n by a power of the parameter. One-pass learners (SGD on fresh examples)
    train once on up to --max-n examples; from n examples on, the error stays at or below the
    target. For other learners, n is searched up to --max-n, with tuning at each n. Stored trials
    are not run again.
    """
    prepare_outputs(json_path, figure)
    if not names:
        raise BadInput(
            "Name at least one learner by --learner NAME (repeatable). List them with "
            "`unlazy list learners`."
        )
    from unlazy.report.labels import count as counted
    from unlazy.report.terminal import print_outcome
    from unlazy.studies.from_names import study_of

    study = study_of(
        task,
        names,
        vary=vary,
        target=target_error,
        changes=changes,
        seeds=seeds,
        first_seed=first_seed,
        budget=budget,
        max_n=max_n,
        test=test,
    )
    with running(brief=True) as session:
        values = ", ".join(f"{value:g}" for value in study.places)
        heading(
            study.title,
            f"examples needed for error {study.goal:g} at {study.field} = {values}",
            f"seeds {study.seeds[0]} to {study.seeds[-1]}",
            store=session.store.path,
        )
        outcome = session.run_one(study)
        new = session.callback.trials
        say(f"{counted(new, 'trial')} run." if new else "All trials are stored.")
    print_outcome(outcome, console(), details=is_set(VERBOSE))
    write_json(outcome.to_json(), json_path)
    write_figure(outcome, figure, style)
