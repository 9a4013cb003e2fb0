"""The SQLite file of a store: opening, migration, transactions, error messages."""

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
    """An open SQLite file of a store."""

    def __init__(self, path: Path | str, *, read_only: bool = False) -> None:
        self.path = Path(path)
        # The most recently written provenance, its id, and its text.
        self._origin: tuple[dict[str, Any] | None, int, str] = (None, 0, "")
        if read_only and not self.path.exists():
            raise StoreError(
                f"There is no store at {self.path}. Create one with `unlazy reproduce ID --store "
                f"{self.path}`."
            )
        try:
            if not read_only:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = self._connect("mode=ro" if read_only else "mode=rwc")
            try:
                with self._explained():
                    self._open_as_it_can_be(read_only)
            except BaseException:
                self._db.close()
                raise
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"The store {self.path} cannot be opened: {error}. Is the folder writable? "
                "Choose another with --store."
            ) from error

    def _open_as_it_can_be(self, read_only: bool) -> None:
        try:
            self._open(read_only)
        except sqlite3.OperationalError as error:
            locked_out = error.sqlite_errorname.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN"))
            if not (read_only and locked_out) or self._has_unmerged_writes:
                raise
            # In a folder that cannot be written, SQLite cannot create the file of its locks. If
            # no writes wait to be merged, the file is complete without it.
            self._db.close()
            self._db = self._connect("immutable=1")
            self._open(read_only)

    def _connect(self, options: str) -> sqlite3.Connection:
        target = f"{self.path.resolve().as_uri()}?{options}"
        return sqlite3.connect(target, uri=True, isolation_level=None, timeout=60)

    @property
    def _has_unmerged_writes(self) -> bool:
        log = self.path.with_name(f"{self.path.name}-wal")
        return log.exists() and log.stat().st_size > 0

    def _open(self, read_only: bool) -> None:
        """Check that the file is a store or empty before writing to it."""
        tables = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        application = self._db.execute("PRAGMA application_id").fetchone()[0]
        if application != APPLICATION_ID and (tables or application):
            raise StoreError(
                f"{self.path} is an SQLite file of another program, not a store of unlazy. It was "
                "not changed."
            )
        if read_only and not tables:
            raise StoreError(
                f"{self.path} is empty. Add a run with `unlazy reproduce ID --store {self.path}`."
            )
        if not read_only:
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            with self._transaction():  # another process may create the same store now
                if not self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    schema.create(self._db)
                elif self._version < SCHEMA_VERSION:
                    schema.migrate(self._db, self._version)
        elif self._version < SCHEMA_VERSION:
            # A read-only store is not changed: a copy in memory is migrated.
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
        """Raise errors of SQLite as `StoreError` with advice."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            # The error message for a damaged schema quotes it, and may not be valid text.
            code = (
                "SQLITE_CORRUPT"
                if isinstance(error, UnicodeDecodeError)
                else getattr(error, "sqlite_errorname", "")
            )
            if code.startswith("SQLITE_NOTADB") or code.startswith("SQLITE_CORRUPT"):
                what = (
                    "it is not an SQLite file, or it is damaged. It was not changed: move it "
                    "away, or choose another with --store"
                )
            elif code.startswith("SQLITE_FULL") or code.startswith("SQLITE_IOERR"):
                what = (
                    "the disk is full or failing. Finished trials are saved: free some space "
                    "and run the same command again"
                )
            elif code.startswith("SQLITE_READONLY") or code.startswith("SQLITE_CANTOPEN"):
                what = "the file or its folder is not writable. Choose another path with --store"
            elif code.startswith("SQLITE_BUSY"):
                what = (
                    "another process has locked it for a minute. Finished trials are saved: run "
                    "the same command again"
                )
            else:
                what = str(error)
            raise StoreError(f"The store {self.path} cannot be used: {what}.") from error

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """Open a transaction, which is rolled back on an error.

        IMMEDIATE takes the write lock at once, so that two writers wait instead of failing.
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
        """Raise errors of a damaged row as `StoreError` that names the row."""
        try:
            yield
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise StoreError(
                f"{what} in {self.path} is damaged: {error}. `unlazy store check --store "
                f"{self.path}` lists all."
            ) from error

    def integrity(self) -> list[str]:
        """Return problems of the file and of references between its tables."""
        with self._explained():
            found = [
                str(line)
                for (line,) in self._db.execute("PRAGMA integrity_check(20)")
                if line != "ok"
            ]
            dangling = [
                f"A row of {table} refers to a missing row of {parent}."
                for table, _, parent, _ in self._foreign()
            ]
        return found + sorted(set(dangling))

    def _foreign(self) -> list[tuple[Any, ...]]:
        return self._db.execute("PRAGMA foreign_key_check").fetchall()
