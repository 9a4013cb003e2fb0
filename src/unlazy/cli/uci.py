"""`unlazy uci`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from unlazy.cli.common import (
    console,
    count_option,
    figure_option,
    heading,
    json_option,
    prepare_outputs,
    run_options,
    say,
    write_json,
)
from unlazy.core.errors import BadInput


@click.command(short_help="Rank estimators on UCI data (Fernández-Delgado et al. 2014)")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="UCI datasets as one .npz file [default: $UNLAZY_UCI].",
)
@click.option(
    "--published",
    type=click.Path(path_type=Path),
    help="Published accuracies [default: delgado2014.txt next to the datasets].",
)
@click.option(
    "--method",
    "names",
    multiple=True,
    metavar="NAME",
    help="Estimator (repeatable) [default: kernel committee, NTK, RFM].",
)
@click.option(
    "--table", "tables", multiple=True, metavar="NAME", help="Only this dataset (repeatable)."
)
@count_option("--min-rows", 1, "Minimum number of rows.")
@click.option("--max-rows", type=click.IntRange(min=1), help="Maximum number of rows.")
@json_option
@figure_option
@run_options
def uci(
    data: Path | None,
    published: Path | None,
    names: tuple[str, ...],
    tables: tuple[str, ...],
    min_rows: int,
    max_rows: int | None,
    json_path: Path | None,
    figure: Path | None,
    running: Callable[..., Any],
) -> None:
    """Rank estimators on UCI datasets among the 179 classifiers of Fernández-Delgado et al. (2014).

    Uses the published folds. Interrupt it at any time; the same command resumes it.
    """
    prepare_outputs(json_path, figure)
    data = data or (Path(os.environ["UNLAZY_UCI"]) if "UNLAZY_UCI" in os.environ else None)
    if data is None:
        raise BadInput(
            "Give the file of UCI datasets: --data uci.npz or the environment variable UNLAZY_UCI."
        )
    from unlazy.report.rankings import save_ranking
    from unlazy.report.terminal import print_outcome
    from unlazy.studies.ranking import Ranking
    from unlazy.tables.uci_benchmark import published_accuracies
    from unlazy.tasks.tables.uci import uci_tables

    classifiers, known = published_accuracies(published or data.parent / "delgado2014.txt")
    chosen = tuple(uci_tables(data, tables, min_rows=min_rows, max_rows=max_rows))
    if not chosen:
        limit = f" and at most {max_rows}" if max_rows else ""
        raise BadInput(f"No dataset has at least {min_rows} rows{limit}.")
    methods = names or ("kernel committee", "NTK", "RFM")
    command = _command(methods, tables, min_rows, max_rows)
    study = Ranking(chosen, methods, classifiers, known, command)
    with running() as session:
        heading(study.title, f"store {session.store.path}")
        outcome = session.run_one(study)
    print_outcome(outcome, console())
    write_json(outcome.to_json(), json_path)
    if figure is not None:
        save_ranking(outcome.standings, figure)
        say(f"Figure written to {figure}")


def _command(
    names: Iterable[str], tables: Iterable[str], min_rows: int, max_rows: int | None
) -> str:
    """Return the command that reproduces the ranking."""
    words = ["unlazy", "uci", "--data", "uci.npz"]
    words += [word for name in names for word in ("--method", name)] + [
        word for name in tables for word in ("--table", name)
    ]
    words += ["--min-rows", str(min_rows)] if min_rows > 1 else []
    words += ["--max-rows", str(max_rows)] if max_rows is not None else []
    return shlex.join(words)
