"""`unlazy reproduce`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from unlazy.cli.common import (
    console,
    default_store,
    first_seed_option,
    json_option,
    memory_option,
    prepare_outputs,
    scale_option,
    store_option,
    write_json,
)


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@scale_option
@click.option("--seeds", type=click.IntRange(min=1), help="Number of seeds [default: as the claim says].")
@first_seed_option
@store_option
@json_option
@click.option("--strict", is_flag=True, help="Exit with status 1 unless every verdict is 'holds'.")
@click.option("--fresh", is_flag=True, help="Forget the records of these trials and run them anew.")
@memory_option
def reproduce(
    ids: tuple[str, ...],
    scale: str,
    seeds: int | None,
    first_seed: int,
    store_path: Path | None,
    json_path: Path | None,
    strict: bool,
    fresh: bool,
    memory: float | None,
) -> None:
    """Run claims and judge them. ID may be a pattern such as 'shi2022/*'. What is in the store is not run again."""
    from unlazy.lab.registry import find_claims

    claims = find_claims(ids)
    prepare_outputs(json_path)
    from unlazy.lab.running import study
    from unlazy.lab.store import Store
    from unlazy.report.live import run_studies

    studies = [study(claim, scale, seeds=seeds, first_seed=first_seed) for claim in claims]  # type: ignore[arg-type]
    with Store(store_path or default_store()) as store:
        verdicts = run_studies(studies, store, console(), memory=memory, fresh=fresh)
    write_json([verdict.to_json() for verdict in verdicts], json_path)
    if strict and any(verdict.outcome != "holds" for verdict in verdicts):
        sys.exit(1)
