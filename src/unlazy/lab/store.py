"""The store: one SQLite file of records, keyed by the content of their trials and by fingerprint.

A record answers for a trial only if both match: the trial's content (`key`), and the code, library
versions and data that made it (`fingerprint`). Records of other fingerprints stay, and are used
only on request. A record is written in one transaction, so it is there whole or not at all,
whatever kills the process; a second record of the same identity is ignored, so several processes
may share a store.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from unlazy.core.errors import StoreError
from unlazy.lab import schema
from unlazy.lab.costs import Cost
from unlazy.lab.database import Database
from unlazy.lab.serialization import dumps, pack, plain, plain_array, plain_numbers, text
from unlazy.lab.trials import Failure, Record, Runnable, now

Kind = Literal["claim", "control", "contest", "scaling", "audit", "ranking"]
KINDS = get_args(Kind)
#: More seeds than any run has: a damaged number would take for ever to lay out.
MAX_SEEDS = 100_000


class Run(NamedTuple):
    """That a claim, its control, a contest or a scaling study was run: on which seeds, and the keys
    of its trials by arm or learner.

    `name` is the claim's or the task's. `setting` tells runs of one name apart: the scale of a
    claim, the command of the others. `outcome` is what became of it, as plain data; a claim is
    judged anew from its records, and has there only which look at them it was.
    """

    kind: Kind
    name: str
    setting: str
    first_seed: int
    seeds: int
    arms: dict[str, list[str]]
    created: str
    outcome: dict[str, Any] | None = None


class Store(Database):
    """An open store. Use it as a context manager; `read_only` never makes a store and never changes
    a record.
    """

    def add(self, record: Record, *, replace: bool = False) -> bool:
        """Write a record in one transaction.

        Returns False if there is one of the same identity, which is kept unless `replace`.
        """
        row = (
            record.id,
            record.key,
            record.fingerprint,
            dumps(record.trial),
            record.status,
            text(record.steps),
            text(tuple(record.measurements)),
            pack(record.measurements),
            dumps(record.details),
            float(record.seconds),
        )
        arrays = [
            (name, a.dtype.str, text(a.shape), a.tobytes())
            for name, a in sorted(record.arrays.items())
        ]
        known = record.provenance == self._origin[0]
        made_by = self._origin[2] if known else dumps(record.provenance)
        sealed = schema.checksum((*row, made_by, record.created), arrays)
        with self._transaction():
            if replace:
                self._remove(record.id)
            origin = self._origin[1] if known else self._provenance_id(made_by)
            insert = "INSERT OR IGNORE INTO records VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"
            written = self._db.execute(insert, (*row, origin, record.created, sealed)).rowcount
            for array in arrays if written else ():
                self._db.execute("INSERT INTO arrays VALUES (?,?,?,?,?)", (record.id, *array))
        # Only a committed id may be remembered.
        self._origin = dict(record.provenance), origin, made_by
        return bool(written)

    def _provenance_id(self, source: str) -> int:
        self._db.execute("INSERT OR IGNORE INTO provenance (content) VALUES (?)", (source,))
        return int(
            self._db.execute("SELECT id FROM provenance WHERE content = ?", (source,)).fetchone()[0]
        )

    def add_fingerprints(self, content: Mapping[str, Mapping[str, Mapping[str, str]]]) -> None:
        """Keep the components of fingerprints, so that differences can be named."""
        with self._transaction():
            self._db.executemany(
                "INSERT OR IGNORE INTO fingerprints VALUES (?,?)",
                [(name, dumps(parts)) for name, parts in content.items()],
            )

    def fingerprint(self, name: str) -> dict[str, dict[str, str]]:
        """Return the components of a fingerprint; nothing if they were not recorded."""
        with self._explained(), self._checked(f"The fingerprint {name!s:.40}"):
            row = self._db.execute(
                "SELECT content FROM fingerprints WHERE id = ?", (name,)
            ).fetchone()
            return plain(row[0], dict, "its content") if row else {}

    def find(
        self, trials: Iterable[Runnable], *, arrays: bool = False, reuse_older: bool = False
    ) -> dict[str, Record]:
        """Return records that answer for trials, by the trials' ids.

        `reuse_older`: for a trial without a record of its own fingerprint, the newest record of
        its key answers.
        """
        found: dict[str, Record] = {}
        for trial in trials:
            clause, values = "WHERE r.id = ?", (trial.id,)
            rows = list(self._read(clause, values, arrays))
            if not rows and reuse_older:
                newest = "WHERE r.key = ? ORDER BY r.created DESC LIMIT 1"
                rows = list(self._read(newest, (trial.key,), arrays))
            if rows:
                found[trial.id] = rows[0]
        return found

    def others(self, key: str) -> list[str]:
        """Return the fingerprints of all records of a key, the newest first."""
        with self._explained():
            query = "SELECT fingerprint FROM records WHERE key = ? ORDER BY created DESC"
            return [str(name) for (name,) in self._db.execute(query, (key,))]

    def known(self, ids: Iterable[str]) -> set[str]:
        """Return those of `ids` that have a record."""
        with self._explained():
            query = "SELECT 1 FROM records WHERE id = ?"
            return {each for each in ids if self._db.execute(query, (each,)).fetchone()}

    def get(self, record: str, *, arrays: bool = True) -> Record:
        """Return a record by its id."""
        for found in self._read("WHERE r.id = ?", (record,), arrays):
            return found
        if (failure := self.failures().get(record)) is not None:
            raise StoreError(
                f"The trial {record} could not be run: {failure.reason}. The same command tries it "
                "again."
            )
        raise StoreError(f"The store {self.path} holds no record of the trial {record}.")

    def records(self, *, arrays: bool = False) -> Iterator[Record]:
        """Yield all records, in the order of their ids."""
        return self._read("ORDER BY r.id", (), arrays)

    def _read(self, clause: str, values: tuple[Any, ...], arrays: bool) -> Iterator[Record]:
        query = (
            f"SELECT {schema.SEALED} FROM records r JOIN provenance p ON p.id = r.provenance "
            f"{clause}"
        )
        with self._explained():
            for row in self._db.execute(query, values):
                with self._checked(f"The record of the trial {row[0]!s:.60}"):
                    record = self._record(row, arrays)
                yield record

    def _record(self, row: tuple[Any, ...], arrays: bool) -> Record:
        name, key, fingerprint, trial, status, steps, names, measurements, details = row[:9]
        seconds, origin, created = row[9:]
        if status not in ("ok", "diverged"):
            raise ValueError(f"there is no status {status!r:.40}")
        return Record(
            key=str(key),
            fingerprint=str(fingerprint),
            trial=plain(trial, dict, "its trial"),
            status=status,
            steps=tuple(map(int, plain(steps, list, "its steps"))),
            measurements=plain_numbers(
                plain(names, list, "the names of its measures"), measurements
            ),
            arrays=self._arrays(name) if arrays else {},
            seconds=float(seconds),
            provenance=plain(origin, dict, "its provenance"),
            created=str(created),
            details=plain(details, (dict, type(None)), "its details"),
        )

    def _arrays(self, record: str) -> dict[str, np.ndarray]:
        rows = self._db.execute(
            "SELECT name, dtype, shape, data FROM arrays WHERE id = ? ORDER BY name", (record,)
        )
        return {
            str(name): plain_array(dtype, plain(shape, list, "a shape"), data)
            for name, dtype, shape, data in rows
        }

    def is_sealed(self, record: str) -> bool:
        """Whether a stored record is what was written: its checksum matches its content."""
        with self._explained():
            (written,) = self._db.execute(
                "SELECT checksum FROM records WHERE id = ?", (record,)
            ).fetchone()
            return bool(written == schema.content(self._db, record))

    def remove(self, ids: Iterable[str]) -> None:
        """Delete records."""
        with self._transaction():
            for each in ids:
                self._remove(each)

    def _remove(self, record: str) -> None:
        self._db.execute("DELETE FROM arrays WHERE id = ?", (record,))
        self._db.execute("DELETE FROM records WHERE id = ?", (record,))

    def register_rules(self, rules: Mapping[str, str]) -> None:
        """Note by which rules claims are judged, before anything is run; a rule already known keeps
        its time.
        """
        with self._transaction():
            self._db.executemany(
                "INSERT OR IGNORE INTO rules VALUES (?,?,?)",
                [(claim, rule, now()) for claim, rule in rules.items()],
            )

    def rule_registered(self, claim: str, rule: str) -> str | None:
        """When this store first saw the rule of a claim."""
        with self._explained():
            row = self._db.execute(
                "SELECT registered FROM rules WHERE claim = ? AND rule = ?", (claim, rule)
            ).fetchone()
        return row[0] if row else None

    def register_rules_at(self, rules: Iterable[tuple[str, str, str]]) -> None:
        """Note rules that another store has seen, with the times at which it did; the earlier time
        of a rule counts.
        """
        earlier = (
            "INSERT INTO rules VALUES (?,?,?) ON CONFLICT DO UPDATE SET registered = "
            "min(registered, excluded.registered)"
        )
        with self._transaction():
            self._db.executemany(earlier, list(rules))

    def rules(self) -> list[tuple[str, str, str]]:
        """Claims, their rules, and when these were first seen."""
        with self._explained():
            return [
                (str(claim), str(rule), str(at))
                for claim, rule, at in self._db.execute("SELECT claim, rule, registered FROM rules")
            ]

    def all_ids(self) -> list[str]:
        """Return the ids of all records, in order."""
        return [record for record, _ in self.created()]

    def created(self) -> list[tuple[str, str]]:
        """Return ids of all records, in order, and when they were made."""
        with self._explained():
            rows = self._db.execute("SELECT id, created FROM records ORDER BY id")
            return [(str(record), str(at)) for record, at in rows]

    def tidy(self) -> int:
        """Forget provenances and failures that nothing refers to, and give the space back; how many
        bytes.
        """
        before = self.path.stat().st_size
        with self._transaction():
            self._db.execute("DELETE FROM failures WHERE id IN (SELECT id FROM records)")
            used = "SELECT provenance FROM records UNION SELECT provenance FROM failures"
            self._db.execute(f"DELETE FROM provenance WHERE id NOT IN ({used})")
            present = "SELECT fingerprint FROM records"
            self._db.execute(f"DELETE FROM fingerprints WHERE id NOT IN ({present})")
        self._origin = None, 0, ""
        with self._explained():
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            before = max(before, self.path.stat().st_size)
            self._db.execute("VACUUM")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return before - self.path.stat().st_size

    def add_run(self, run: Run) -> None:
        """Note that something was run on these trials."""
        with self._transaction():
            row = (*run[:5], dumps(run.arms), run.created, dumps(run.outcome))
            self._db.execute("INSERT OR REPLACE INTO runs VALUES (?,?,?,?,?,?,?,?)", row)

    def runs(self, kind: Kind | None = None) -> list[Run]:
        """All runs, or those of one kind, the newest first."""
        columns = "kind, name, setting, first_seed, seeds, arms, created, outcome"
        query = f"SELECT {columns} FROM runs ORDER BY created DESC, name"
        with self._explained():
            rows = self._db.execute(query).fetchall()
        found = [self._run(row) for row in rows]
        return [run for run in found if kind in (None, run.kind)]

    def _run(self, row: tuple[Any, ...]) -> Run:
        kind, name, setting, first, seeds, arms, created, outcome = row
        with self._checked(f"The run {name!s:.60}"):
            keys = plain(arms, dict, "its list of trials")
            counted = (
                isinstance(first, int)
                and isinstance(seeds, int)
                and 0 <= first < 2**32
                and 0 < seeds <= MAX_SEEDS
            )
            if kind not in KINDS or not counted or not _are_keys(keys.values()):
                raise ValueError("it is no run")
            told = plain(outcome, (dict, type(None)), "its outcome")
            return Run(kind, str(name), str(setting), first, seeds, keys, str(created), told)

    def add_failure(self, failure: Failure) -> None:
        """Note that a trial could not be run; the newest reason is kept."""
        with self._transaction():
            origin = self._provenance_id(dumps(failure.provenance))
            row = (failure.id, dumps(failure.trial), failure.reason, origin, failure.created)
            self._db.execute("INSERT OR REPLACE INTO failures VALUES (?,?,?,?,?)", row)

    def failures(self) -> dict[str, Failure]:
        """Return trials that could not be run and have no record since, by id."""
        query = (
            "SELECT f.id, f.trial, f.reason, p.content, f.created FROM failures f JOIN "
            "provenance p ON p.id = f.provenance "
            "WHERE f.id NOT IN (SELECT id FROM records) ORDER BY f.id"
        )
        with self._explained(), self._checked("A failure"):
            return {
                key: Failure(
                    key,
                    plain(trial, dict, "its trial"),
                    str(reason),
                    plain(origin, dict, "its provenance"),
                    str(created),
                )
                for key, trial, reason, origin, created in self._db.execute(query)
            }

    def add_costs(self, costs: Iterable[Cost]) -> None:
        """Note what trials took; of each kind and size the latest is kept."""
        with self._transaction():
            self._db.executemany("INSERT OR REPLACE INTO costs VALUES (?,?,?)", list(costs))

    def costs(self) -> list[Cost]:
        """What trials took."""
        with self._explained(), self._checked("A cost"):
            rows = self._db.execute("SELECT kind, work, seconds FROM costs")
            return [Cost(str(kind), float(work), float(seconds)) for kind, work, seconds in rows]


@contextlib.contextmanager
def opened(store: Store | Path | str | None) -> Iterator[Store]:
    """Open a store for a while, unless it is open; without one, open a temporary one."""
    if isinstance(store, Store):
        yield store
    elif store is not None:
        with Store(store) as found:
            yield found
    else:
        with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "store.sqlite") as found:
            yield found


def _are_keys(arms: Iterable[Any]) -> bool:
    return all(isinstance(arm, list) and all(isinstance(key, str) for key in arm) for arm in arms)
