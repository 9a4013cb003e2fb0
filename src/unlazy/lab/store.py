"""The store: one SQLite file of records, identified by content hash and fingerprint.

A record is used for a trial only if both match: the content of the trial (`key`), and the code,
library versions and data that made it (`fingerprint`). Records of other fingerprints are kept, and
used only on request. A record is written in one transaction, so a killed process leaves no partial
record. A second record with the same id is ignored, so several processes may use one store.
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

Kind = Literal["claim", "control", "contest", "scaling", "audit", "ranking", "readings"]
KINDS = get_args(Kind)
#: Upper limit of the seeds of a run, which detects damaged numbers.
MAX_SEEDS = 100_000


class Run(NamedTuple):
    """A run of a study: its seeds, and the ids of its records by arm or learner.

    `name`: that of the claim or task. `setting` distinguishes runs of one name: the scale of a
    claim, the command of other studies. `outcome`: the outcome as JSON data; for a claim, whose
    verdict is computed from its records, only the number of the interim analysis.
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
    """An open store, used as a context manager; with `read_only` it is not created or changed."""

    def add(self, record: Record, *, replace: bool = False) -> bool:
        """Write a record in one transaction.

        Return False if the id exists; that record is kept unless `replace`.
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
            origin = self._provenance_id(made_by, self._origin[1] if known else None)
            insert = "INSERT OR IGNORE INTO records VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"
            written = self._db.execute(insert, (*row, origin, record.created, sealed)).rowcount
            for array in arrays if written else ():
                self._db.execute("INSERT INTO arrays VALUES (?,?,?,?,?)", (record.id, *array))
        # Only a committed id may be remembered.
        self._origin = dict(record.provenance), origin, made_by
        return bool(written)

    def _provenance_id(self, source: str, known: int | None = None) -> int:
        """Return the id of a provenance; `known` is its last one, which `tidy` may have removed."""
        found = self._db.execute("SELECT content FROM provenance WHERE id = ?", (known,)).fetchone()
        if known is not None and found == (source,):
            return known
        self._db.execute("INSERT OR IGNORE INTO provenance (content) VALUES (?)", (source,))
        return int(
            self._db.execute("SELECT id FROM provenance WHERE content = ?", (source,)).fetchone()[0]
        )

    def add_fingerprints(self, content: Mapping[str, Mapping[str, Mapping[str, str]]]) -> None:
        """Store the components of fingerprints, so that differences can be named."""
        with self._transaction():
            self._db.executemany(
                "INSERT OR IGNORE INTO fingerprints VALUES (?,?)",
                [(name, dumps(parts)) for name, parts in content.items()],
            )

    def fingerprint(self, name: str) -> dict[str, dict[str, str]]:
        """Return the components of a fingerprint; empty if they were not recorded."""
        with self._explained(), self._checked(f"The fingerprint {name!s:.40}"):
            row = self._db.execute(
                "SELECT content FROM fingerprints WHERE id = ?", (name,)
            ).fetchone()
            return plain(row[0], dict, "its content") if row else {}

    def find(
        self, trials: Iterable[Runnable], *, arrays: bool = False, reuse_older: bool = False
    ) -> dict[str, Record]:
        """Return the records of trials, by the trials' ids.

        `reuse_older`: for a trial without a record of its fingerprint, use the newest of its key.
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
                f"The trial {record} could not be run: {failure.reason}. Rerun to try again."
            )
        raise StoreError(f"The store {self.path} has no record of the trial {record}.")

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
            raise ValueError(f"{status!r:.40} is not a status")
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
        """Return whether the checksum of a stored record matches its content."""
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
        """Register acceptance criteria of claims before a run; known ones keep their time."""
        with self._transaction():
            self._db.executemany(
                "INSERT OR IGNORE INTO rules VALUES (?,?,?)",
                [(claim, rule, now()) for claim, rule in rules.items()],
            )

    def rule_registered(self, claim: str, rule: str) -> str | None:
        """Return when the acceptance criteria of a claim were registered, or None."""
        with self._explained():
            row = self._db.execute(
                "SELECT registered FROM rules WHERE claim = ? AND rule = ?", (claim, rule)
            ).fetchone()
        return row[0] if row else None

    def register_rules_at(self, rules: Iterable[tuple[str, str, str]]) -> None:
        """Register acceptance criteria of another store; the earlier of two times is kept."""
        earlier = (
            "INSERT INTO rules VALUES (?,?,?) ON CONFLICT DO UPDATE SET registered = "
            "min(registered, excluded.registered)"
        )
        with self._transaction():
            self._db.executemany(earlier, list(rules))

    def rules(self) -> list[tuple[str, str, str]]:
        """Return claims, their acceptance criteria, and the times of registration."""
        with self._explained():
            return [
                (str(claim), str(rule), str(at))
                for claim, rule, at in self._db.execute("SELECT claim, rule, registered FROM rules")
            ]

    def all_ids(self) -> list[str]:
        """Return the ids of all records, in order."""
        return [record for record, _ in self.created()]

    def created(self) -> list[tuple[str, str]]:
        """Return ids and creation times of all records, in order."""
        with self._explained():
            rows = self._db.execute("SELECT id, created FROM records ORDER BY id")
            return [(str(record), str(at)) for record, at in rows]

    def tidy(self) -> int:
        """Delete provenances and failures without references; return the number of bytes freed."""
        before = self.path.stat().st_size
        with self._transaction():
            self._db.execute("DELETE FROM failures WHERE id IN (SELECT id FROM records)")
            used = "SELECT provenance FROM records UNION SELECT provenance FROM failures"
            # The largest id stays, so that none is used twice.
            last = "SELECT max(id) FROM provenance"
            self._db.execute(f"DELETE FROM provenance WHERE id NOT IN ({used} UNION {last})")
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
        """Store a run."""
        with self._transaction():
            row = (*run[:5], dumps(run.arms), run.created, dumps(run.outcome))
            self._db.execute("INSERT OR REPLACE INTO runs VALUES (?,?,?,?,?,?,?,?)", row)

    def runs(self, kind: Kind | None = None) -> list[Run]:
        """Return all runs, or those of one kind, the newest first."""
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
                raise ValueError("it is not a run")
            told = plain(outcome, (dict, type(None)), "its outcome")
            return Run(kind, str(name), str(setting), first, seeds, keys, str(created), told)

    def add_failure(self, failure: Failure) -> None:
        """Store that a trial could not be run; the newest reason is kept."""
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
        """Store costs of trials; the newest of each kind and size is kept."""
        with self._transaction():
            self._db.executemany("INSERT OR REPLACE INTO costs VALUES (?,?,?)", list(costs))

    def costs(self) -> list[Cost]:
        """Return the costs of trials."""
        with self._explained(), self._checked("A cost"):
            rows = self._db.execute("SELECT kind, work, seconds FROM costs")
            return [Cost(str(kind), float(work), float(seconds)) for kind, work, seconds in rows]


@contextlib.contextmanager
def opened(store: Store | Path | str | None) -> Iterator[Store]:
    """Open a store unless it is open; None opens a temporary store."""
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
