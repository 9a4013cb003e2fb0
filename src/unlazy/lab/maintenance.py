"""Maintenance of stores: check integrity, merge stores, compare records of different fingerprints,
and remove records to which no run refers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from unlazy.core.errors import StoreError
from unlazy.lab.provenance import changes
from unlazy.lab.repeating import Difference, differences
from unlazy.lab.store import Store
from unlazy.lab.trials import Record, computation_of

#: Number of problems after which the check of a store ends.
MAX_LISTED = 50


class Checked(NamedTuple):
    """Contents of a store, and its problems."""

    records: int
    runs: int
    failures: int
    problems: tuple[str, ...]


def check(path: Path) -> Checked:
    """Check the file, every record with its arrays and checksum, and every run of a store."""
    problems: list[str] = []
    records = runs = failures = 0
    with Store(path, read_only=True) as store:
        problems += store.integrity()
        for each in store.all_ids():
            records += 1
            try:
                store.get(each)
                if not store.is_sealed(each):
                    problems.append(_changed(each))
            except StoreError as error:
                problems.append(str(error))
            if len(problems) > MAX_LISTED:
                problems.append("… (further problems are not listed)")
                break
        try:
            runs, failures = len(store.runs()), len(store.failures())
            store.costs()
        except StoreError as error:
            problems.append(str(error))
    return Checked(records, runs, failures, tuple(problems))


def _changed(record: str) -> str:
    return f"The record {record:.60} was changed: its checksum does not match."


class Merged(NamedTuple):
    """Counts of new and known records and of new runs, trials whose records differ by more than
    rounding, and damaged records.
    """

    added: int
    known: int
    runs: int
    differing: tuple[str, ...]
    damaged: tuple[str, ...]


def merge(target: Store, sources: Iterable[Path]) -> Merged:
    """Merge other stores into `target`, whose records are kept.

    Acceptance criteria keep the earlier of two registration times.
    """
    added = known = runs = 0
    differing, damaged = [], []
    for path in sources:
        with Store(path, read_only=True) as source:
            target.register_rules_at(source.rules())
            for each in source.all_ids():
                try:
                    record = source.get(each)
                except StoreError as error:
                    damaged.append(str(error))
                    continue
                if not source.is_sealed(each):
                    damaged.append(_changed(each))
                elif target.add(record):
                    added += 1
                    prints = source.fingerprint(record.fingerprint)
                    target.add_fingerprints({record.fingerprint: prints} if prints else {})
                else:
                    known += 1
                    here = target.get(each, arrays=False)
                    if any(not found.equal for found in differences(here, record)):
                        differing.append(each)
            there = {run[:5]: run.created for run in target.runs()}
            for run in source.runs():
                if run.created > there.get(run[:5], ""):
                    target.add_run(run)
                    runs += 1
            for failure in source.failures().values():
                target.add_failure(failure)
    return Merged(added, known, runs, tuple(differing), tuple(damaged))


def unreferred(store: Store, days: float, *, interrupted: bool = False) -> list[str]:
    """Return ids of records to which no run refers and that are older than `days`.

    A run is stored when it ends. So the newest record of a trial may belong to a run that is in
    progress or was interrupted, and it is kept unless `interrupted`.
    """
    wanted = {each for run in store.runs() for arm in run.arms.values() for each in arm}
    before = (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="microseconds")
    made = store.created()
    newest: dict[str, tuple[str, str]] = {}  # by key: time and id
    for each, at in made:
        key = each.partition(".")[0]
        newest[key] = max(newest.get(key, ("", "")), (at, each))
    kept = wanted if interrupted else wanted | {each for _, each in newest.values()}
    return [each for each, at in made if each not in kept and at < before]


class Compared(NamedTuple):
    """Two records of one trial, made one after the other by different code, libraries or data.

    `changes` names what differs between their fingerprints, `differences` has all measures, the
    largest change first.
    """

    trial: str
    old: Record
    new: Record
    changes: tuple[str, ...]
    differences: tuple[Difference, ...]

    @property
    def largest(self) -> float:
        """The largest change of a measure, relative to the numbers or to 1."""
        return max((each.largest for each in self.differences), default=0.0)


def compare(store: Store, prefix: str = "") -> list[Compared]:
    """Compare records of equal keys across fingerprints, the largest changes first."""
    by_key: dict[str, list[Record]] = {}
    for record in store.records():
        if record.key.startswith(prefix):
            by_key.setdefault(record.key, []).append(record)
    found = []
    for records in by_key.values():
        records.sort(key=lambda record: record.created)
        for old, new in itertools.pairwise(records):
            before, after = store.fingerprint(old.fingerprint), store.fingerprint(new.fingerprint)
            named = tuple(changes(before, after)) if before and after else ("not recorded",)
            apart = sorted(differences(old, new), key=lambda each: -each.largest)
            found.append(Compared(_named(new), old, new, named, tuple(apart)))
    return sorted(found, key=lambda pair: -pair.largest)


def _named(record: Record) -> str:
    """Return a short name of a trial: its classes, and the parameters of an exact computation."""
    trial = record.trial
    parts = [
        trial[part]["type"].partition("#")[0] for part in ("family", "learner") if part in trial
    ]
    computation = computation_of(trial)
    if computation is not None:
        plain = {
            name: value
            for name, value in computation.items()
            if isinstance(value, (str, int, float)) and name not in ("type", "precision")
        }
        inner = ", ".join(f"{name}={value}" for name, value in plain.items())
        kind = computation["type"].partition("#")[0]
        parts.append(f"{kind}({inner})" if inner else kind)
    size = f", n = {trial['n']:,}" if "n" in trial else ""
    return f"{' · '.join(parts)}{size}, seed {trial['seed']}"
