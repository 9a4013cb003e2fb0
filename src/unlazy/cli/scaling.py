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
    set_option,
    style_option,
    write_figure,
    write_json,
)
from unlazy.core.errors import BadInput


@click.command()
@click.argument("task", metavar="TASK")
@learner_option
@click.option(
    "--vary",
    required=True,
    metavar="NAME=VALUES",
    help="A number of the task and its values: d=32..1024, which doubles, or d=16,24,32.",
)
@set_option
@click.option(
    "--target-error",
    type=float,
    help="Test error to be reached: share of wrong labels, or squared [default: 0.05, or the "
    "least of 0.1, 0.2, 0.3, 0.4 that all reach].",
)
@count_option("--seeds", 3, "Number of seeds.")
@first_seed_option
@count_option("--budget", 6, "Settings that each learner may try at each n.")
@count_option("--max-n", 20_000, "Examples that no learner may exceed.")
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
    """Measure how many examples learners need on TASK as one of its numbers grows, and fit the
    exponents.

    Learners on fresh examples are run in one pass; for all others n is searched, and they are tuned
    at each n as in a contest. What is in the store is not run again.
    """
    prepare_outputs(json_path, figure)
    if not names:
        raise BadInput(
            "A scaling study needs learners: add --learner NAME once for each. `unlazy list "
            "learners` names them."
        )
    from unlazy.api import study_of
    from unlazy.report.terminal import print_outcome

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
        places = ", ".join(f"{place:g}" for place in study.places)
        heading(
            study.title,
            f"examples to an error of {study.goal:g} at {study.field} = {places}",
            f"seeds {study.seeds[0]} to {study.seeds[-1]}",
            f"store {session.store.path}",
        )
        outcome = session.run_one(study)
        new = session.callback.trials
        console().print(f"{new} trials were run." if new else "All trials are stored.")
    print_outcome(outcome, console())
    write_json(outcome.to_json(), json_path)
    write_figure(outcome, figure, style)
