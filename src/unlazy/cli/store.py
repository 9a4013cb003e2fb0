"""`unlazy store`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from unlazy.cli.common import console, default_store, store_option


@click.group()
def store() -> None:
    """Keep stores: check one, merge those of several machines, remove what no run refers to."""


@store.command()
@store_option
def check(store_path: Path | None) -> None:
    """Read all of a store, and say what is damaged. Exit status 1 where something is."""
    from rich.markup import escape

    from unlazy.lab.maintenance import check as checked

    path = store_path or default_store()
    found = checked(path)
    screen = console()
    for problem in found.problems:
        screen.print(f"[red]✗[/] {escape(problem)}", highlight=False, soft_wrap=True)
    screen.print(
        f"{path}: {found.records} records, {found.runs} runs, {found.failures} failures",
        highlight=False,
        soft_wrap=True,
    )
    if found.problems:
        screen.print(
            f"{len(found.problems)} problems. What is whole can be saved: unlazy store merge "
            f"{path} --store NEW",
            soft_wrap=True,
        )
        sys.exit(1)
    screen.print("The store is whole.")


@store.command()
@click.argument(
    "sources", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="STORE..."
)
@store_option
def merge(sources: tuple[Path, ...], store_path: Path | None) -> None:
    """Bring the records, runs and rules of other stores into one (--store).

    Those are only read. Damaged records are left out and named.
    """
    from rich.markup import escape

    from unlazy.lab.maintenance import merge as merged
    from unlazy.lab.store import Store

    path = store_path or default_store()
    with Store(path) as target:
        found = merged(target, sources)
    screen = console()
    screen.print(
        f"{path}: {found.added} records added, {found.known} were there, {found.runs} runs added",
        highlight=False,
        soft_wrap=True,
    )
    for problem in found.damaged:
        screen.print(f"[red]Left out:[/] {escape(problem)}", highlight=False, soft_wrap=True)
    if found.differing:
        shown = ", ".join(found.differing[:5])
        screen.print(
            f"[yellow]{len(found.differing)} trials have other numbers there;[/] those of "
            f"{path} are kept: {shown}",
            soft_wrap=True,
        )
    if found.damaged or found.differing:
        sys.exit(1)


@store.command()
@click.option(
    "--days",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    help="Spare records younger than this.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@store_option
def gc(days: float, dry_run: bool, store_path: Path | None) -> None:
    """Remove records that no run refers to, and give the space back."""
    from unlazy.lab.maintenance import unreferred
    from unlazy.lab.store import Store

    path = store_path or default_store()
    screen = console()
    with Store(path, read_only=dry_run) as open_store:
        keys = unreferred(open_store, days)
        if dry_run:
            screen.print(
                f"{path}: {len(keys)} records would be removed", highlight=False, soft_wrap=True
            )
            return
        open_store.remove(keys)
        freed = open_store.tidy()
    screen.print(
        f"{path}: {len(keys)} records removed, {max(freed, 0) / 2**20:.1f} MiB given back",
        highlight=False,
        soft_wrap=True,
    )
