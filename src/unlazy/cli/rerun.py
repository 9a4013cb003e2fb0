"""`unlazy rerun`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from unlazy.cli.common import (
    default_store,
    engine_options,
    json_option,
    prepare_outputs,
    say,
    store_option,
    write_json,
)
from unlazy.core.errors import BadInput


@click.command()
@click.argument("key", metavar="KEY")
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    help="Allowed difference |new − old| / max(|old|, 1) [default: 1e-4].",
)
@click.option(
    "--load",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="File that defines classes of the trial (repeatable).",
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
    """Rerun one trial and compare with the stored record.

    KEY is the id of a record or a unique prefix of it. The store is not changed. Exit status 1 if a
    number differs. A fold of a table cannot be rerun alone, because its rows are not stored; the
    command of its audit is printed.
    """
    prepare_outputs(json_path)
    from unlazy.lab.engines.base import NullCallback
    from unlazy.lab.rebuilding import rebuilt
    from unlazy.lab.registry import load_file
    from unlazy.lab.repeating import TOLERANCE, differences
    from unlazy.lab.store import Store
    from unlazy.lab.trials import Failure
    from unlazy.report.labels import count

    path = store_path or default_store()
    with Store(path, read_only=True) as store:
        old = store.get(_whole(key, store.all_ids(), path), arrays=False)
        command = _command(old.id, store)
    try:
        trial = rebuilt(old.key, old.trial, [load_file(file) for file in files])
    except BadInput as error:
        again = f" Rerun its study: {command} --fresh" if command else ""
        raise BadInput(f"{error}{again}") from error
    with engine(path) as runner:
        (new,) = runner.run([trial], NullCallback())
    if isinstance(new, Failure):
        raise BadInput(f"The trial {old.key} could not be run: {new.reason}.")
    allowed = TOLERANCE if tolerance is None else tolerance
    found = differences(old, new, allowed)
    worst = max(found, key=lambda each: each.largest, default=None)
    for each in found:
        if each.largest:
            say(
                f"  {each.measure}: difference "
                f"{each.largest:.2g}{'' if each.equal else f', more than {allowed:g}'}"
            )
    changed = [
        f"{name} {old.provenance.get(name)} → {new.provenance[name]}"
        for name in new.provenance
        if old.provenance.get(name) != new.provenance[name]
    ]
    if changed:
        say(f"  Changed: {', '.join(changed)}")
    good = all(each.equal for each in found)
    result = (
        "bitwise equal"
        if worst is None or worst.largest == 0
        else "equal up to rounding"
        if good
        else "DIFFERENT"
    )
    say(
        f"{old.key}: {result}, {count(len(found), 'measure')}; {old.seconds:.3g} s before, "
        f"{new.seconds:.3g} s now"
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


def _whole(key: str, keys: list[str], path: Path) -> str:
    matching = [each for each in keys if each.startswith(key)]
    if len(matching) == 1 or key in matching:
        return key if key in matching else matching[0]
    if not matching:
        raise BadInput(
            f"{path} has no record with a key that begins with {key!r}. `unlazy export` lists all "
            "keys."
        )
    raise BadInput(
        f"{len(matching)} keys begin with {key!r}: {', '.join(matching[:3])}, … Give a longer "
        "prefix."
    )
