"""Keeping stores: is one whole, joining those of several machines, and removing what no run refers
to.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from unlazy.core.errors import StoreError
from unlazy.lab.repeating import differences
from unlazy.lab.store import Store

#: So many problems are listed; a file that is broken everywhere would list as many as it has rows.
MOST_LISTED = 50


class Checked(NamedTuple):
    """What a store holds, and what is wrong with it."""

    records: int
    runs: int
    failures: int
    problems: tuple[str, ...]


def check(path: Path) -> Checked:
    """Read all of a store: the file, every record with its arrays and its key, every run."""
    problems: list[str] = []
    records = runs = failures = 0
    with Store(path, read_only=True) as store:
        problems += store.integrity()
        for key in store.all_keys():
            records += 1
            try:
                record = store.get(key)
                if key_of(record.trial) != key:
                    problems.append(
                        f"The record {key:.40} does not belong to the trial that it describes."
                    )
            except StoreError as error:
                problems.append(str(error))
            if len(problems) > MOST_LISTED:
                problems.append("… and no further.")
                break
        try:
            runs, failures = len(store.runs()), len(store.failures())
            store.costs()
        except StoreError as error:
            problems.append(str(error))
    return Checked(records, runs, failures, tuple(problems))


def key_of(description: object) -> str:
    """The key of a trial from its description, as `Trial.key` makes it."""
    text = json.dumps(description, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class Merged(NamedTuple):
    """What came in new, what was there already, trials whose two records differ by more than
    rounding, and what is damaged.
    """

    added: int
    known: int
    runs: int
    differing: tuple[str, ...]
    damaged: tuple[str, ...]


def merge(target: Store, sources: Iterable[Path]) -> Merged:
    """Bring other stores into one.

    What is there is kept; of two times at which a rule was seen, the earlier.
    """
    added = known = runs = 0
    differing, damaged = [], []
    for path in sources:
        with Store(path, read_only=True) as source:
            target.register_rules_at(source.rules())
            for key in source.all_keys():
                try:
                    record = source.get(key)
                except StoreError as error:
                    damaged.append(str(error))
                    continue
                if key_of(record.trial) != key:
                    damaged.append(
                        f"The record {key:.40} of {path} does not belong to the trial that it "
                        "describes."
                    )
                elif target.add(record):
                    added += 1
                else:
                    known += 1
                    if any(
                        not each.equal
                        for each in differences(target.get(key, arrays=False), record)
                    ):
                        differing.append(key)
            there = {run[:5]: run.created for run in target.runs()}
            for run in source.runs():
                if run.created > there.get(run[:5], ""):
                    target.add_run(run)
                    runs += 1
            for failure in source.failures().values():
                target.add_failure(failure)
    return Merged(added, known, runs, tuple(differing), tuple(damaged))


def unreferred(store: Store, days: float) -> list[str]:
    """Keys of records that no run refers to and that are older than so many days: a run is noted
    when it ends, so the young are spared.
    """
    wanted = {key for run in store.runs() for arm in run.arms.values() for key in arm}
    before = (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="microseconds")
    return [key for key, created in store.created() if key not in wanted and created < before]
