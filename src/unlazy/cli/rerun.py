"""`unlazy rerun`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from unlazy.cli.common import (
    console,
    default_store,
    engine_options,
    json_option,
    prepare_outputs,
    store_option,
    write_json,
)
from unlazy.core.errors import BadInput


@click.command()
@click.argument("key", metavar="KEY")
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    help="By how much numbers may differ, relative to them or to 1 [default: 1e-4].",
)
@click.option(
    "--load",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A file that defines classes of the trial, again for each.",
)
@store_option
@json_option
@engine_options
def rerun(
    key: str,
    tolerance: float | None,
    files: tuple[Path, ...],
    store_path: Path | None,
    json_path: Path | None,
    engine: Callable[[Path], Any],
) -> None:
    """Run the trial of one record again, alone, and compare.

    KEY may be the beginning of a record's id, if it is the only one.

    The store is not changed. Exit status 1 where a number differs. A fold of a table cannot be run
    alone, since its rows are not in the record; the command that runs its audit again is named.
    """
    prepare_outputs(json_path)
    from unlazy.lab.engines.base import NullCallback
    from unlazy.lab.rebuilding import rebuilt
    from unlazy.lab.registry import load_file
    from unlazy.lab.repeating import TOLERANCE, differences
    from unlazy.lab.store import Store
    from unlazy.lab.trials import Failure

    place = store_path or default_store()
    with Store(place, read_only=True) as store:
        old = store.get(_whole(key, store.all_ids(), place), arrays=False)
        command = _command(old.id, store)
    try:
        trial = rebuilt(old.key, old.trial, [load_file(file) for file in files])
    except BadInput as error:
        again = f" Its whole study can be run again: {command} --fresh" if command else ""
        raise BadInput(f"{error}{again}") from error
    with engine(place) as runner:
        (new,) = runner.run([trial], NullCallback())
    if isinstance(new, Failure):
        raise BadInput(f"The trial {old.key} could not be run: {new.reason}.")
    allowed = TOLERANCE if tolerance is None else tolerance
    found = differences(old, new, allowed)
    worst = max(found, key=lambda each: each.largest, default=None)
    screen = console()
    for each in found:
        if each.largest:
            screen.print(
                f"  {each.measure}: {each.largest:.2g} "
                f"apart{'' if each.equal else f', more than {allowed:g}'}",
                highlight=False,
            )
    changed = [
        f"{name} {old.provenance.get(name)} → {new.provenance[name]}"
        for name in new.provenance
        if old.provenance.get(name) != new.provenance[name]
    ]
    if changed:
        screen.print(f"  Since then: {', '.join(changed)}", highlight=False, soft_wrap=True)
    good = all(each.equal for each in found)
    said = (
        "equal bit by bit"
        if worst is None or worst.largest == 0
        else "equal up to rounding"
        if good
        else "DIFFERENT"
    )
    screen.print(
        f"{old.key}: {said}, {len(found)} measures; {old.seconds:.3g} s then, {new.seconds:.3g} "
        "s now",
        highlight=False,
    )
    write_json(
        {
            "key": old.key,
            "equal": good,
            "tolerance": allowed,
            "apart": {each.measure: str(each.largest) for each in found},
        },
        json_path,
    )
    if not good:
        sys.exit(1)


def _command(record: str, store: Any) -> str:
    """Return the command of the newest run that used a record, if it has one."""
    for run in store.runs():
        if any(record in ids for ids in run.arms.values()):
            return str((run.outcome or {}).get("command") or "")
    return ""


def _whole(key: str, keys: list[str], place: Path) -> str:
    matching = [each for each in keys if each.startswith(key)]
    if len(matching) == 1 or key in matching:
        return key if key in matching else matching[0]
    if not matching:
        raise BadInput(
            f"The store {place} holds no record whose key begins with {key!r}. `unlazy export` "
            "lists all keys."
        )
    raise BadInput(
        f"{len(matching)} records begin with {key!r}: {', '.join(matching[:3])}, … Give more of "
        "the key."
    )
