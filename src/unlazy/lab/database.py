"""The SQLite file of a store: opening, migrating, transactions, and errors that say what to do."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from unlazy.core.errors import StoreError
from unlazy.lab import schema
from unlazy.lab.schema import APPLICATION_ID, SCHEMA_VERSION


class Database:
    """An open file of a store: whose it is, its version, transactions, and errors in words."""

    def __init__(self, path: Path | str, *, read_only: bool = False) -> None:
        self.path = Path(path)
        # The provenance written last, its id, and its text.
        self._origin: tuple[dict[str, Any] | None, int, str] = (None, 0, "")
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
        """Check whose file this is before anything is written; make the tables in an empty one."""
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
                    schema.create(self._db)
                elif self._version < SCHEMA_VERSION:
                    schema.migrate(self._db, self._version)
        elif self._version < SCHEMA_VERSION:
            # What is only read is not changed: a copy in memory is brought up to date.
            copy = sqlite3.connect(":memory:", isolation_level=None)
            self._db.backup(copy)
            self._db.close()
            self._db = copy
            with self._transaction():
                schema.migrate(self._db, self._version)
        if self._version > SCHEMA_VERSION:
            raise StoreError(
                f"{self.path} was written by a newer unlazy (store schema {self._version}, this "
                f"one reads up to {SCHEMA_VERSION}). "
                "Update unlazy, or choose another file with --store."
            )

    @property
    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

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
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

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
