"""`unlazy store`."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unlazy.cli.common import (
    console,
    default_store,
    json_option,
    prepare_outputs,
    store_option,
    write_json,
)
from unlazy.core.errors import BadInput

if TYPE_CHECKING:
    from unlazy.lab.maintenance import Compared

#: So many changed measures or modules of a trial are named.
SHOWN = 3


@click.group()
def store() -> None:
    """Keep stores: check one, compare its records, merge stores of several machines, remove what
    no run refers to.
    """


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
@click.argument("key", default="", metavar="[KEY]")
@click.option("--details", is_flag=True, help="Show all measures and all changed modules.")
@store_option
@json_option
def diff(key: str, details: bool, store_path: Path | None, json_path: Path | None) -> None:
    """Compare records of equal trials made by different code, libraries or data: what changed, and
    by how much each measure did.

    KEY may be the beginning of a record's key or its id; without it, all trials are compared.
    """
    prepare_outputs(json_path)
    from rich.markup import escape

    from unlazy.lab.maintenance import compare
    from unlazy.lab.store import Store

    path = store_path or default_store()
    with Store(path, read_only=True) as opened:
        if key and not any(each.startswith(key) for each in opened.all_ids()):
            raise BadInput(f"The store {path} holds no record whose key begins with {key!r}.")
        found = compare(opened, key.partition(".")[0])
    screen = console()
    screen.print(f"{path}: {escape(_summary(found))}", highlight=False, soft_wrap=True)
    for pair in found:
        changed = _some([each for each in pair.differences if each.largest], details)
        screen.print(
            f"{pair.new.key[:8]} {escape(pair.trial)}: {escape(changed or 'no measure changed')} "
            f"(changed: {escape(_some(pair.changes, details))})",
            highlight=False,
            soft_wrap=True,
        )
    write_json([_plain(pair) for pair in found], json_path)


def _summary(found: Sequence[Compared]) -> str:
    """Say how many trials can be compared, what changed, and the largest change."""
    if not found:
        return "no trial has records of different fingerprints."
    trials = len({pair.new.key for pair in found})
    changed = list(dict.fromkeys(name for pair in found for name in pair.changes))
    worst = found[0].differences[0] if found[0].largest else None
    return (
        f"{trials} trial{'s have' if trials > 1 else ' has'} records of different fingerprints; "
        f"changed: {_some(changed)}; "
        + (f"largest change: {worst}." if worst else "all measures are equal.")
    )


def _some(things: Sequence[object], everything: bool = False) -> str:
    shown = list(map(str, things if everything else things[:SHOWN]))
    return ", ".join(shown) + f" and {len(things) - len(shown)} more" * (len(things) > len(shown))


def _plain(pair: Compared) -> dict[str, Any]:
    """Return a comparison as plain data; JSON has no NaN and no infinity."""
    return {
        "key": pair.new.key,
        "trial": pair.trial,
        "fingerprints": [pair.old.fingerprint, pair.new.fingerprint],
        "created": [pair.old.created, pair.new.created],
        "changed": list(pair.changes),
        "measures": {
            each.measure: {
                name: value if math.isfinite(value) else str(value)
                for name, value in each._asdict().items()
                if name in ("before", "after", "largest")
            }
            for each in pair.differences
        },
    }


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
