"""The store: one SQLite file of records, keyed by the content of their trials.

A record is written in one transaction, so it is there whole or not at all, whatever kills the
process; a second record of the same trial is ignored, so several processes may share a store.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np

from unlazy.core.errors import StoreError
from unlazy.lab.costs import Cost
from unlazy.lab.plain import dumps, pack, plain, plain_array, plain_numbers, text
from unlazy.lab.trials import Failure, Record, now

Kind = Literal["claim", "control", "contest", "scaling"]
KINDS = get_args(Kind)
#: Written into the file's header: tells a store of ours from any other SQLite file.
APPLICATION_ID = 0x756E6C7A  # "unlz"
SCHEMA_VERSION = 3
#: A run on more seeds is none: it would take for ever to lay its trials out.
MOST_SEEDS = 100_000
_SCHEMA = """
CREATE TABLE records (
    key TEXT PRIMARY KEY, trial TEXT NOT NULL, status TEXT NOT NULL, steps TEXT NOT NULL, names TEXT NOT NULL, measurements BLOB NOT NULL,
    seconds REAL NOT NULL, provenance INTEGER NOT NULL REFERENCES provenance(id), created TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE arrays (
    key TEXT NOT NULL REFERENCES records(key), name TEXT NOT NULL, dtype TEXT NOT NULL, shape TEXT NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (key, name)
);
CREATE TABLE provenance (id INTEGER PRIMARY KEY, content TEXT NOT NULL UNIQUE);
CREATE TABLE rules (claim TEXT NOT NULL, rule TEXT NOT NULL, registered TEXT NOT NULL, PRIMARY KEY (claim, rule)) WITHOUT ROWID;
"""
_RUNS = """
CREATE TABLE runs (
    kind TEXT NOT NULL, name TEXT NOT NULL, setting TEXT NOT NULL, first_seed INTEGER NOT NULL, seeds INTEGER NOT NULL, arms TEXT NOT NULL,
    created TEXT NOT NULL, outcome TEXT NOT NULL, PRIMARY KEY (kind, name, setting, first_seed, seeds)
) WITHOUT ROWID;
"""
#: What could not be run, and what trials have cost.
_SINCE_VERSION_3 = """
CREATE TABLE IF NOT EXISTS failures (
    key TEXT PRIMARY KEY, trial TEXT NOT NULL, reason TEXT NOT NULL, provenance INTEGER NOT NULL REFERENCES provenance(id),
    created TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS costs (kind TEXT NOT NULL, work REAL NOT NULL, seconds REAL NOT NULL, PRIMARY KEY (kind, work)) WITHOUT ROWID;
"""
#: Version 1 knew runs of claims alone. Its records stay, though trials that are described otherwise
#: now have other keys.
_FROM_VERSION_1 = (
    f"ALTER TABLE runs RENAME TO old_runs; {_RUNS} INSERT INTO runs SELECT 'claim', claim, "
    "scale, first_seed, seeds, arms, created, 'null' "
    "FROM old_runs; DROP TABLE old_runs"
)


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


class Store:
    """An open store.

    Use it as a context manager; `read_only` never makes a store and never changes a record.
    """

    def __init__(self, path: Path | str, *, read_only: bool = False) -> None:
        self.path = Path(path)
        self._origin: tuple[dict[str, Any] | None, int] = (
            None,
            0,
        )  # the provenance written last, and its id
        if read_only and not self.path.exists():
            raise StoreError(
                f"There is no store at {self.path}. Make one with `unlazy reproduce ID --store "
                f"{self.path}`."
            )
        try:
            if not read_only:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            target = f"{self.path.resolve().as_uri()}?mode={'ro' if read_only else 'rwc'}"
            self._db = sqlite3.connect(target, uri=True, isolation_level=None, timeout=60)
            with self._explained():
                self._open(read_only)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"The store {self.path} cannot be opened: {error}. Is the folder writable? "
                "Choose another with --store."
            ) from error

    def _open(self, read_only: bool) -> None:
        """Check whose file this is before anything is written to it; make the tables in an empty
        one.
        """
        tables = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        application = self._db.execute("PRAGMA application_id").fetchone()[0]
        if application != APPLICATION_ID and (tables or application):
            raise StoreError(
                f"{self.path} is an SQLite file of another program, not a store of unlazy. It "
                "was left as it is."
            )
        if read_only and not tables:
            raise StoreError(
                f"{self.path} is empty: it holds no run yet. Fill it with `unlazy reproduce ID "
                f"--store {self.path}`."
            )
        if not read_only:
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            with self._transaction():  # another process may be making the same store at this moment
                if not self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    self._execute(_SCHEMA + _RUNS + _SINCE_VERSION_3)
                    self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                    self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
                elif self._version < SCHEMA_VERSION:
                    if self._version == 1:
                        self._execute(_FROM_VERSION_1)
                    self._execute(_SINCE_VERSION_3)
                    self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        if self._version > SCHEMA_VERSION:
            raise StoreError(
                f"{self.path} was written by a newer unlazy (store schema {self._version}, this "
                f"one reads up to {SCHEMA_VERSION}). "
                "Update unlazy, or choose another file with --store."
            )

    @property
    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def _execute(self, script: str) -> None:
        """All statements of a script within the transaction that is open; `executescript` would end
        it.
        """
        for statement in script.split(";"):
            self._db.execute(statement)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn SQLite's errors into sentences that say what to do."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            # What SQLite says of a damaged schema quotes it, and may not be text.
            code = (
                "SQLITE_CORRUPT"
                if isinstance(error, UnicodeDecodeError)
                else getattr(error, "sqlite_errorname", "")
            )
            if code.startswith("SQLITE_NOTADB") or code.startswith("SQLITE_CORRUPT"):
                what = (
                    "it is not an SQLite file, or it is damaged. It was left as it is: move it "
                    "away, or choose another with --store"
                )
            elif code.startswith("SQLITE_FULL") or code.startswith("SQLITE_IOERR"):
                what = (
                    "the disk is full or failing. What was finished is kept: free some space "
                    "and run the same command again"
                )
            elif code.startswith("SQLITE_READONLY") or code.startswith("SQLITE_CANTOPEN"):
                what = "the file or its folder cannot be written. Choose another place with --store"
            elif code.startswith("SQLITE_BUSY"):
                what = (
                    "another process has kept it locked for a minute. What was finished is "
                    "kept: run the same command again"
                )
            else:
                what = str(error)
            raise StoreError(f"The store {self.path} cannot be used: {what}.") from error

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing.

        IMMEDIATE takes the write lock at once, so that two writers queue instead of failing.
        """
        with self._explained():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def __enter__(self) -> Self:
        """The store itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def add(self, record: Record) -> bool:
        """Write a record in one transaction; False where the trial already has one, which is then
        kept.
        """
        row = (
            record.key,
            dumps(record.trial),
            record.status,
            text(record.steps),
            text(tuple(record.measurements)),
            pack(record.measurements),
            record.seconds,
        )
        with self._transaction():
            origin = (
                self._origin[1]
                if record.provenance == self._origin[0]
                else self._provenance_id(dumps(record.provenance))
            )
            insert = "INSERT OR IGNORE INTO records VALUES (?,?,?,?,?,?,?,?,?)"
            written = self._db.execute(insert, (*row, origin, record.created)).rowcount
            for name, a in record.arrays.items() if written else ():
                self._db.execute(
                    "INSERT INTO arrays VALUES (?,?,?,?,?)",
                    (record.key, name, a.dtype.str, text(a.shape), a.tobytes()),
                )
        # Only a committed id may be remembered.
        self._origin = dict(record.provenance), origin
        return bool(written)

    def _provenance_id(self, source: str) -> int:
        self._db.execute("INSERT OR IGNORE INTO provenance (content) VALUES (?)", (source,))
        return int(
            self._db.execute("SELECT id FROM provenance WHERE content = ?", (source,)).fetchone()[0]
        )

    def known(self, keys: Iterable[str]) -> set[str]:
        """Those of `keys` that have a record."""
        with self._explained():
            return {
                key
                for key in keys
                if self._db.execute("SELECT 1 FROM records WHERE key = ?", (key,)).fetchone()
            }

    def get(self, key: str, *, arrays: bool = True) -> Record:
        """The record of a trial."""
        for record in self._read("WHERE r.key = ?", (key,), arrays):
            return record
        if (failure := self.failures().get(key)) is not None:
            raise StoreError(
                f"The trial {key} could not be run: {failure.reason}. The same command tries it "
                "again."
            )
        raise StoreError(f"The store {self.path} holds no record of the trial {key}.")

    def records(self, *, arrays: bool = False) -> Iterator[Record]:
        """All records, in the order of their keys."""
        return self._read("ORDER BY r.key", (), arrays)

    def _read(self, clause: str, values: tuple[Any, ...], arrays: bool) -> Iterator[Record]:
        columns = (
            "r.key, r.trial, r.status, r.steps, r.names, r.measurements, r.seconds, p.content, "
            "r.created"
        )
        query = f"SELECT {columns} FROM records r JOIN provenance p ON p.id = r.provenance {clause}"
        with self._explained():
            for row in self._db.execute(query, values):
                with self._checked(f"The record of the trial {row[0]!s:.40}"):
                    record = self._record(row, arrays)
                yield record

    def _record(self, row: tuple[Any, ...], arrays: bool) -> Record:
        key, trial, status, steps, names, measurements, seconds, origin, created = row
        if status not in ("ok", "diverged"):
            raise ValueError(f"there is no status {status!r:.40}")
        return Record(
            key=str(key),
            trial=plain(trial, dict, "its trial"),
            status=status,
            steps=tuple(map(int, plain(steps, list, "its steps"))),
            measurements=plain_numbers(
                plain(names, list, "the names of its measures"), measurements
            ),
            arrays=self._arrays(key) if arrays else {},
            seconds=float(seconds),
            provenance=plain(origin, dict, "its provenance"),
            created=str(created),
        )

    def _arrays(self, key: str) -> dict[str, np.ndarray]:
        rows = self._db.execute(
            "SELECT name, dtype, shape, data FROM arrays WHERE key = ? ORDER BY name", (key,)
        )
        return {
            str(name): plain_array(dtype, plain(shape, list, "a shape"), data)
            for name, dtype, shape, data in rows
        }

    @contextlib.contextmanager
    def _checked(self, what: str) -> Iterator[None]:
        """Turn whatever is wrong with a row into a sentence that says which."""
        try:
            yield
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise StoreError(
                f"{what} in {self.path} is damaged: {error}. `unlazy store check --store "
                f"{self.path}` lists all."
            ) from error

    def remove(self, keys: Iterable[str]) -> None:
        """Forget records, so that their trials are run anew."""
        with self._transaction():
            for key in keys:
                self._db.execute("DELETE FROM arrays WHERE key = ?", (key,))
                self._db.execute("DELETE FROM records WHERE key = ?", (key,))

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

    def integrity(self) -> list[str]:
        """What is wrong with the file and with references between its tables."""
        with self._explained():
            found = [
                str(line)
                for (line,) in self._db.execute("PRAGMA integrity_check(20)")
                if line != "ok"
            ]
            lost = [
                f"A row of {table} refers to one of {parent} that is not there."
                for table, _, parent, _ in self._foreign()
            ]
        return found + sorted(set(lost))

    def _foreign(self) -> list[tuple[Any, ...]]:
        return self._db.execute("PRAGMA foreign_key_check").fetchall()

    def all_keys(self) -> list[str]:
        """Of all records, in order."""
        return [key for key, _ in self.created()]

    def created(self) -> list[tuple[str, str]]:
        """Keys of all records, in order, and when they were made."""
        with self._explained():
            return [
                (str(key), str(at))
                for key, at in self._db.execute("SELECT key, created FROM records ORDER BY key")
            ]

    def tidy(self) -> int:
        """Forget provenances and failures that nothing refers to, and give the space back; how many
        bytes.
        """
        before = self.path.stat().st_size
        with self._transaction():
            self._db.execute("DELETE FROM failures WHERE key IN (SELECT key FROM records)")
            used = "SELECT provenance FROM records UNION SELECT provenance FROM failures"
            self._db.execute(f"DELETE FROM provenance WHERE id NOT IN ({used})")
        self._origin = None, 0
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
        # A store of version 1 that is only read is not changed.
        columns = (
            "'claim', claim AS name, scale AS setting"
            if self._version == 1
            else "kind, name, setting"
        )
        result = "'null'" if self._version == 1 else "outcome"
        query = (
            f"SELECT {columns}, first_seed, seeds, arms, created, {result} FROM runs ORDER BY "
            "created DESC, name"
        )
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
                and 0 < seeds <= MOST_SEEDS
            )
            if kind not in KINDS or not counted or not _are_keys(keys.values()):
                raise ValueError("it is no run")
            told = plain(outcome, (dict, type(None)), "its outcome")
            return Run(kind, str(name), str(setting), first, seeds, keys, str(created), told)

    def add_failure(self, failure: Failure) -> None:
        """Note that a trial could not be run; the newest reason is kept."""
        with self._transaction():
            origin = self._provenance_id(dumps(failure.provenance))
            row = (failure.key, dumps(failure.trial), failure.reason, origin, failure.created)
            self._db.execute("INSERT OR REPLACE INTO failures VALUES (?,?,?,?,?)", row)

    def failures(self) -> dict[str, Failure]:
        """What could not be run and has no record since, by key."""
        if self._version < 3:
            return {}
        query = (
            "SELECT f.key, f.trial, f.reason, p.content, f.created FROM failures f JOIN "
            "provenance p ON p.id = f.provenance "
            "WHERE f.key NOT IN (SELECT key FROM records) ORDER BY f.key"
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
        if self._version < 3:
            return []
        with self._explained(), self._checked("A cost"):
            rows = self._db.execute("SELECT kind, work, seconds FROM costs")
            return [Cost(str(kind), float(work), float(seconds)) for kind, work, seconds in rows]


def _are_keys(arms: Iterable[Any]) -> bool:
    return all(isinstance(arm, list) and all(isinstance(key, str) for key in arm) for arm in arms)
