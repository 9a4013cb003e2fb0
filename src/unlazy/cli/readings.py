"""`unlazy readings`."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from unlazy.cli.common import (
    console,
    count_option,
    data_option,
    first_seed_option,
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
@count_option("--seeds", 5, "Number of development seeds.")
@first_seed_option
@click.option(
    "--reading", "names", multiple=True, metavar="NAME", help="Only this reading (repeatable)."
)
@click.option(
    "--search",
    is_flag=True,
    help="Try all combinations of the open settings, by successive halving.",
)
@data_option
@json_option
@click.option("--out", type=click.Path(path_type=Path), help="Also write an HTML page.")
@run_options
def readings(
    ids: tuple[str, ...],
    scale: str,
    seeds: int,
    first_seed: int,
    names: tuple[str, ...],
    search: bool,
    json_path: Path | None,
    out: Path | None,
    running: Callable[..., Any],
) -> None:
    """Compare choices of settings that a paper leaves open.

    ID is a claim with readings or a pattern such as 'shi2022/table[1-5]'. All readings run on
    development seeds. One is chosen by a fixed rule, for a test on held-out seeds with 'unlazy
    reproduce ID --reading NAME'.
    """
    from unlazy.lab.registry import find_claims
    from unlazy.report.files import check_writable
    from unlazy.report.terminal import print_view
    from unlazy.report.view import view_of
    from unlazy.studies.readings import readings_study

    prepare_outputs(json_path)
    if out is not None:
        check_writable(out)
    words = ["unlazy", "readings", *ids, "--scale", scale, "--seeds", str(seeds)]
    words += ["--first-seed", str(first_seed), *(["--search"] if search else [])]
    words += [word for name in names for word in ("--reading", name)]
    study = readings_study(
        find_claims(ids),
        scale,  # type: ignore[arg-type]
        seeds=seeds,
        first_seed=first_seed,
        search=search,
        names=names,
        command=shlex.join(words),
    )
    with running() as session:
        heading(study.title, f"{scale} scale", f"store {session.store.path}")
        outcome = session.run_one(study)
    print_view(view_of(outcome), console(), details=is_set(VERBOSE))
    write_json(outcome.to_json(), json_path)
    if out is not None:
        outcome.page(out)
        say(f"Page written to {out}")
