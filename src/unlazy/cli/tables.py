"""`unlazy tables`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from pathlib import Path

import click

from unlazy.cli.common import console, figure_option, json_option, prepare_outputs, write_json
from unlazy.core.errors import BadInput


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="The UCI tables as one .npz file [default: $UNLAZY_UCI].",
)
@click.option(
    "--published",
    type=click.Path(path_type=Path),
    help="The published accuracies [default: delgado2014.txt beside the tables].",
)
@click.option(
    "--entrant",
    "names",
    multiple=True,
    metavar="NAME",
    help="An estimator, again for each [default: kernel committee, NTK, RFM].",
)
@click.option(
    "--table", "tables", multiple=True, metavar="NAME", help="Only this table, again for each."
)
@click.option(
    "--least-rows",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Leave shorter tables out.",
)
@click.option("--most-rows", type=click.IntRange(min=1), help="Leave longer tables out.")
@click.option(
    "--journal",
    type=click.Path(path_type=Path),
    help="File for finished fits [default: in the user's cache folder].",
)
@json_option
@figure_option
def tables(
    data: Path | None,
    published: Path | None,
    names: tuple[str, ...],
    tables: tuple[str, ...],
    least_rows: int,
    most_rows: int | None,
    journal: Path | None,
    json_path: Path | None,
    figure: Path | None,
) -> None:
    """Set our estimators beside the 179 published classifiers of Fernández-Delgado et al. (2014),
    on the published folds.

    Every finished fit is kept: a run that was stopped goes on where it was.
    """
    prepare_outputs(json_path, figure)
    data = data or (Path(os.environ["UNLAZY_UCI"]) if "UNLAZY_UCI" in os.environ else None)
    if data is None:
        raise BadInput(
            "Name the file with the UCI tables: --data uci.npz, or the variable UNLAZY_UCI."
        )
    import platformdirs
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from unlazy.report.rankings import print_ranking, ranking_json, save_ranking
    from unlazy.tables.journal import Journal
    from unlazy.tables.yardstick import measure, paired_tests, published_accuracies, standings
    from unlazy.tasks.tables.uci import uci_tables

    classifiers, known = published_accuracies(published or data.parent / "delgado2014.txt")
    chosen = list(uci_tables(data, tables, least_rows=least_rows, most_rows=most_rows))
    if not chosen:
        raise BadInput(
            f"No table has {least_rows} rows or "
            f"more{f' and at most {most_rows}' if most_rows else ''}."
        )
    kept = Journal(journal or Path(platformdirs.user_cache_dir("unlazy")) / "tables.jsonl")
    out = console()
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=out,
    )
    with bar:
        task = bar.add_task("starting", total=None)
        measured = measure(
            chosen,
            names or ("kernel committee", "NTK", "RFM"),
            kept,
            watch=lambda what, done, total: bar.update(
                task, description=what, completed=done, total=total
            ),
        )
    found = standings(measured, classifiers, known)
    tests = paired_tests(measured)
    print_ranking(found, tests, len(chosen), out)
    apart = [table.name for table in chosen if not table.comparable]
    same = (
        standings(measured, classifiers, known, without=apart)
        if 0 < len(apart) < len(chosen)
        else found
    )
    if same is not found:
        out.print(
            f"Without {len(apart)} tables whose published accuracies were measured on a test set:"
        )
        print_ranking(same, (), len(chosen) - len(apart), out)
    write_json(
        {"command": _command(measured, tables, least_rows, most_rows)}
        | ranking_json(found, same, tests, measured),
        json_path,
    )
    if figure is not None:
        save_ranking(found, figure)
        out.print(f"Figure written to {figure}", soft_wrap=True)


def _command(
    names: Iterable[str], tables: Iterable[str], least_rows: int, most_rows: int | None
) -> str:
    """What makes the same again, wherever the tables are."""
    words = ["unlazy", "tables", "--data", "uci.npz"]
    words += [word for name in names for word in ("--entrant", name)] + [
        word for name in tables for word in ("--table", name)
    ]
    words += ["--least-rows", str(least_rows)] if least_rows > 1 else []
    words += ["--most-rows", str(most_rows)] if most_rows is not None else []
    return shlex.join(words)
