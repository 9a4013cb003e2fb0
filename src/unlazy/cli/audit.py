"""`unlazy audit`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from unlazy.cli.common import (
    console,
    heading,
    json_option,
    prepare_outputs,
    run_options,
    say,
    write_json,
)
from unlazy.core.errors import BadInput


def seconds_of(text: str | None) -> float | None:
    """Return the seconds of a duration such as 90s, 10m or 1.5h."""
    if text is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|m|min|h|)\s*", text)
    if found is None or float(found[1]) == 0:
        raise BadInput(f"--time takes a duration such as 90s, 10m or 1.5h, got {text!r}.")
    return float(found[1]) * {"s": 1, "m": 60, "min": 60, "h": 3600, "": 60}[found[2]]


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--target", help="Column to predict (required, except for an .npz file with X and y)."
)
@click.option(
    "--task",
    type=click.Choice(["classification", "regression"]),
    help="Type of the target [default: inferred from its values].",
)
@click.option("--drop", multiple=True, metavar="COLUMN", help="Ignore this column (repeatable).")
@click.option(
    "--time",
    "limit",
    metavar="TIME",
    default="15m",
    show_default=True,
    help="Time limit: 90s, 10m, 1.5h.",
)
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME",
    help="Compare only this method (repeatable): linear, RBF kernel, Laplace kernel, NTK, NNGP, "
    "random features, RFM, two-layer network, deep network, random forest, gradient boosting.",
)
@click.option(
    "--explain/--no-explain",
    default=True,
    show_default=True,
    help="Whether to run diagnostics that explain the result.",
)
@json_option
@click.option(
    "--out",
    "page",
    type=click.Path(path_type=Path),
    help="Write an HTML report with figures to this file.",
)
@run_options
def audit(
    file: Path,
    target: str | None,
    task: str | None,
    drop: tuple[str, ...],
    limit: str,
    methods: tuple[str, ...],
    explain: bool,
    json_path: Path | None,
    page: Path | None,
    running: Callable[..., Any],
) -> None:
    """Test whether feature learning helps on a tabular dataset.

    FILE is .csv, .tsv, .csv.gz, .parquet or .npz. Nested cross-validation compares fixed kernels,
    learned features and tree ensembles; diagnostics then explain the result. Interrupt it at any
    time; the same command resumes it.
    """
    prepare_outputs(json_path)
    if page is not None:
        if page.suffix != ".html":
            raise BadInput(f"The name of the report must end with .html, got {page.name!r}.")
        from unlazy.report.files import check_writable

        check_writable(page)
    seconds = seconds_of(limit)
    from unlazy.report.audits import write_audit
    from unlazy.report.terminal import print_outcome
    from unlazy.studies.audit import audit_of, plan
    from unlazy.tasks.tables.files import read_table

    words = [file.name, *(["--target", target] if target else [])]
    words += [*(["--task", task] if task else []), "--time", limit]
    words += [word for value in drop for word in ("--drop", value)]
    words += [word for value in methods for word in ("--method", value)]
    words += [] if explain else ["--no-explain"]
    study = audit_of(
        read_table(file, target, drop=drop),
        task=task,  # type: ignore[arg-type]
        seconds=seconds,
        methods=methods or None,
        explain=explain,
        name=file.name,
        command=shlex.join(["unlazy", "audit", *words]),
    )
    with running(brief=True) as session:
        heading(study.title, plan(study.data.problem), f"store {session.store.path}")
        outcome = session.run_one(study)
    print_outcome(outcome, console())
    write_json(outcome.to_json(), json_path)
    if page is not None:
        write_audit(outcome, page)
        say(f"Report written to {page}")
