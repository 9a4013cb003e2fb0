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
    say,
    store_option,
    write_json,
)
from unlazy.core.errors import BadInput

if TYPE_CHECKING:
    from unlazy.lab.maintenance import Compared

#: Maximum number of changed measures or modules printed per trial.
SHOWN = 3


@click.group()
def store() -> None:
    """Check, merge or compact result stores."""


@store.command()
@store_option
def check(store_path: Path | None) -> None:
    """Read a whole store and report damage. Exit status 1 if there is any."""
    from rich.markup import escape

    from unlazy.lab.maintenance import check as checked
    from unlazy.report.labels import count

    path = store_path or default_store()
    found = checked(path)
    screen = console()
    for problem in found.problems:
        screen.print(f"[red]✗[/] {escape(problem)}", highlight=False, soft_wrap=True)
    say(
        f"{path}: {count(found.records, 'record')}, {count(found.runs, 'run')}, "
        f"{count(found.failures, 'failure')}"
    )
    if found.problems:
        say(
            f"{count(len(found.problems), 'problem')}. Copy the intact records: unlazy store merge "
            f"{path} --store NEW"
        )
        sys.exit(1)
    say("No damage found.")


@store.command()
@click.argument("key", default="", metavar="[KEY]")
@click.option("--details", is_flag=True, help="Show all measures and all changed modules.")
@store_option
@json_option
def diff(key: str, details: bool, store_path: Path | None, json_path: Path | None) -> None:
    """Compare records of equal trials made by different code, libraries or data.

    KEY is a key or id of a record, or a prefix; by default all trials are compared.
    """
    prepare_outputs(json_path)
    from rich.markup import escape

    from unlazy.lab.maintenance import compare
    from unlazy.lab.store import Store

    path = store_path or default_store()
    with Store(path, read_only=True) as opened:
        if key and not any(each.startswith(key) for each in opened.all_ids()):
            raise BadInput(f"{path} has no record with a key that begins with {key!r}.")
        found = compare(opened, key.partition(".")[0])
    screen = console()
    screen.print(escape(f"{path}: {_summary(found)}"), highlight=False, soft_wrap=True)
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
    """Return the number of comparable trials, the changed code and the largest change."""
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


def _some(values: Sequence[object], everything: bool = False) -> str:
    shown = list(map(str, values if everything else values[:SHOWN]))
    return ", ".join(shown) + f" and {len(values) - len(shown)} more" * (len(values) > len(shown))


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
    """Copy records, runs and acceptance criteria of other stores into one (--store).

    The other stores are only read. Damaged records are skipped and listed.
    """
    from rich.markup import escape

    from unlazy.lab.maintenance import merge as merged
    from unlazy.lab.store import Store
    from unlazy.report.labels import count

    path = store_path or default_store()
    with Store(path) as target:
        found = merged(target, sources)
    screen = console()
    say(
        f"{path}: {count(found.added, 'record')} added, {found.known} already stored, "
        f"{count(found.runs, 'run')} added"
    )
    for problem in found.damaged:
        screen.print(f"[red]Skipped:[/] {escape(problem)}", highlight=False, soft_wrap=True)
    if found.differing:
        shown = ", ".join(found.differing[:5])
        screen.print(
            f"[yellow]{count(len(found.differing), 'trial')} with different numbers;[/] those of "
            f"{escape(str(path))} are kept: {shown}",
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
    help="Keep records younger than this.",
)
@click.option("--dry-run", is_flag=True, help="Only print what would be removed.")
@store_option
def gc(days: float, dry_run: bool, store_path: Path | None) -> None:
    """Remove records that no run uses, and free their space."""
    from unlazy.lab.maintenance import unreferred
    from unlazy.lab.store import Store
    from unlazy.report.labels import count

    path = store_path or default_store()
    with Store(path, read_only=dry_run) as open_store:
        keys = unreferred(open_store, days)
        if dry_run:
            say(f"{path}: {count(len(keys), 'record')} would be removed")
            return
        open_store.remove(keys)
        freed = open_store.tidy()
    say(f"{path}: {count(len(keys), 'record')} removed, {max(freed, 0) / 2**20:.1f} MiB freed")
