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
    write_json,
)
from unlazy.core.errors import BadInput


def seconds_of(text: str | None) -> float | None:
    """A length of time such as 90s, 10m or 1.5h."""
    if text is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|m|min|h|)\s*", text)
    if found is None or float(found[1]) == 0:
        raise BadInput(f"--time takes a length of time such as 90s, 10m or 1.5h, but is {text!r}.")
    return float(found[1]) * {"s": 1, "m": 60, "min": 60, "h": 3600, "": 60}[found[2]]


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--target", help="Name of the column to predict [an .npz file may hold X and y instead]."
)
@click.option(
    "--task",
    type=click.Choice(["classification", "regression"]),
    help="What kind of target it is [default: by its values].",
)
@click.option(
    "--drop", multiple=True, metavar="COLUMN", help="Leave this column out, again for each."
)
@click.option(
    "--time",
    "limit",
    metavar="TIME",
    default="15m",
    show_default=True,
    help="How long it may take: 90s, 10m, 1.5h.",
)
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME",
    help="Only these contenders, again for each.",
)
@click.option(
    "--explain/--no-explain", default=True, help="Whether instruments explain the answer."
)
@json_option
@click.option(
    "--out",
    "page",
    type=click.Path(path_type=Path),
    help="Write a page with figures to this file (.html).",
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
    """Does the table in FILE reward feature learning, or is a kernel enough?

    FILE is .csv, .tsv, .csv.gz, .parquet or .npz. Fixed kernels, learned features and tree
    ensembles compete by nested cross-validation; then instruments explain the answer. What is
    finished is kept: the same command resumes an audit that was interrupted.
    """
    prepare_outputs(json_path)
    if page is not None:
        if page.suffix != ".html":
            raise BadInput(f"A page ends with .html, but {page.name!r} does not.")
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
        console().print(f"Page written to {page}", soft_wrap=True)
