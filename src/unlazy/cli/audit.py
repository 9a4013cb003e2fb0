"""`unlazy audit`."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click

from unlazy.cli.common import console, json_option, prepare_outputs, write_json
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
    "--contender",
    "contenders",
    multiple=True,
    metavar="NAME",
    help="Only these contenders, again for each.",
)
@click.option(
    "--explain/--no-explain", default=True, help="Whether instruments explain the answer."
)
@click.option(
    "--fresh", is_flag=True, help="Forget what an earlier audit of this table has finished."
)
@json_option
@click.option(
    "--out",
    "page",
    type=click.Path(path_type=Path),
    help="Write a page with figures to this file (.html).",
)
def audit(
    file: Path,
    target: str | None,
    task: str | None,
    drop: tuple[str, ...],
    limit: str,
    contenders: tuple[str, ...],
    explain: bool,
    fresh: bool,
    json_path: Path | None,
    page: Path | None,
) -> None:
    """Does the table in FILE reward feature learning, or is a kernel enough?

    FILE is .csv, .tsv, .csv.gz, .parquet or .npz. Fixed kernels, learned features and tree
    ensembles compete by nested cross-validation; then instruments explain the answer. What is
    finished is kept: an audit that was stopped goes on where it was.
    """
    prepare_outputs(json_path)
    if page is not None:
        if page.suffix != ".html":
            raise BadInput(f"A page ends with .html, but {page.name!r} does not.")
        from unlazy.report.files import check_writable

        check_writable(page)
    seconds = seconds_of(limit)
    from unlazy.report.audits import AuditBar, print_audit, write_audit
    from unlazy.tables.audit import audit as run
    from unlazy.tasks.tables.files import read_table

    out = console()
    table = read_table(file, target, drop=drop)
    import platformdirs

    journal = Path(platformdirs.user_cache_dir("unlazy")) / "audits" / f"{file.stem}.jsonl"
    if fresh:
        journal.unlink(missing_ok=True)
    with AuditBar(out) as bar:
        outcome = run(
            table,
            task=task,  # type: ignore[arg-type]
            seconds=seconds,
            contenders=contenders or None,
            explain=explain,
            journal=journal,
            watcher=bar,
            name=file.name,
        )
    print_audit(outcome, out)
    words = [
        file.name,
        *(["--target", target] if target else []),
        *(["--task", task] if task else []),
        "--time",
        limit,
    ]
    words += [
        word
        for name, values in (("--drop", drop), ("--contender", contenders))
        for value in values
        for word in (name, value)
    ]
    command = shlex.join(["unlazy", "audit", *words, *([] if explain else ["--no-explain"])])
    write_json({"command": command} | outcome.to_json(), json_path)
    if page is not None:
        write_audit(outcome, page)
        out.print(f"Page written to {page}", soft_wrap=True)
