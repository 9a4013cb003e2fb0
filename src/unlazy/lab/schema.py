"""Tables of a store, and migration of stores of older versions."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable
from typing import Any

#: Application id in the header of the file, which identifies stores.
APPLICATION_ID = 0x756E6C7A  # "unlz"
SCHEMA_VERSION = 4
#: The fingerprint of records made before fingerprints were recorded.
UNKNOWN = "unknown"

_RECORDS = """
CREATE TABLE records (
    id TEXT PRIMARY KEY, key TEXT NOT NULL, fingerprint TEXT NOT NULL, trial TEXT NOT NULL,
    status TEXT NOT NULL, steps TEXT NOT NULL, names TEXT NOT NULL, measurements BLOB NOT NULL,
    details TEXT NOT NULL, seconds REAL NOT NULL,
    provenance INTEGER NOT NULL REFERENCES provenance(id), created TEXT NOT NULL,
    checksum TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX records_by_key ON records(key);
CREATE TABLE arrays (
    id TEXT NOT NULL REFERENCES records(id), name TEXT NOT NULL, dtype TEXT NOT NULL,
    shape TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (id, name)
);
CREATE TABLE failures (
    id TEXT PRIMARY KEY, trial TEXT NOT NULL, reason TEXT NOT NULL,
    provenance INTEGER NOT NULL REFERENCES provenance(id), created TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE fingerprints (id TEXT PRIMARY KEY, content TEXT NOT NULL) WITHOUT ROWID
"""
_PROVENANCE = "CREATE TABLE provenance (id INTEGER PRIMARY KEY, content TEXT NOT NULL UNIQUE)"
_RULES = """
CREATE TABLE rules (
    claim TEXT NOT NULL, rule TEXT NOT NULL, registered TEXT NOT NULL, PRIMARY KEY (claim, rule)
) WITHOUT ROWID
"""
_RUNS = """
CREATE TABLE runs (
    kind TEXT NOT NULL, name TEXT NOT NULL, setting TEXT NOT NULL, first_seed INTEGER NOT NULL,
    seeds INTEGER NOT NULL, arms TEXT NOT NULL, created TEXT NOT NULL, outcome TEXT NOT NULL,
    PRIMARY KEY (kind, name, setting, first_seed, seeds)
) WITHOUT ROWID
"""
_COSTS = """
CREATE TABLE IF NOT EXISTS costs (
    kind TEXT NOT NULL, work REAL NOT NULL, seconds REAL NOT NULL, PRIMARY KEY (kind, work)
) WITHOUT ROWID
"""
#: Version 1 had only runs of claims.
_FROM_VERSION_1 = f"""
ALTER TABLE runs RENAME TO old_runs;
{_RUNS};
INSERT INTO runs SELECT 'claim', claim, scale, first_seed, seeds, arms, created, 'null'
FROM old_runs;
DROP TABLE old_runs
"""


def execute(db: sqlite3.Connection, script: str) -> None:
    """Run all statements within the open transaction; `executescript` would end it."""
    for statement in script.split(";"):
        db.execute(statement)


def create(db: sqlite3.Connection) -> None:
    """Create the tables in an empty file."""
    for script in (_PROVENANCE, _RECORDS, _RULES, _RUNS, _COSTS):
        execute(db, script)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def migrate(db: sqlite3.Connection, version: int) -> None:
    """Migrate a store of an older version within the open transaction.

    Records keep their content. They get the current keys of their trials and the fingerprint
    `UNKNOWN`, so they count as made by other code.
    """
    from unlazy.lab.rebuilding import brief
    from unlazy.lab.trials import key_of

    if version == 1:
        execute(db, _FROM_VERSION_1)
    execute(db, _COSTS)
    db.execute("ALTER TABLE records RENAME TO old_records")
    db.execute("ALTER TABLE arrays RENAME TO old_arrays")
    db.execute("DROP TABLE IF EXISTS failures")  # these trials are run again anyway
    execute(db, _RECORDS)
    ids: dict[str, str] = {}
    columns = "key, trial, status, steps, names, measurements, seconds, provenance, created"
    # Of several records of what is now one trial, the newest is kept.
    newest_first = f"SELECT {columns} FROM old_records ORDER BY created DESC"
    for old, trial, *rest in db.execute(newest_first).fetchall():
        try:
            key = key_of(brief(json.loads(trial)))
        except (ValueError, TypeError, RecursionError):
            key = old  # damaged: `unlazy store check` reports it
        ids[old] = f"{key}.{UNKNOWN}"
        status, steps, names, numbers, seconds, origin, created = rest
        row = (ids[old], key, UNKNOWN, trial, status, steps, names, numbers, "null", seconds)
        written = db.execute(
            "INSERT OR IGNORE INTO records VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
            (*row, origin, created, ""),
        ).rowcount
        if written:
            db.execute(
                "INSERT INTO arrays SELECT ?, name, dtype, shape, data FROM old_arrays "
                "WHERE key = ?",
                (ids[old], old),
            )
            seal(db, ids[old])
    for *run, arms in db.execute(
        "SELECT kind, name, setting, first_seed, seeds, arms FROM runs"
    ).fetchall():
        try:
            renamed = {
                arm: [ids.get(key, key) for key in keys] for arm, keys in json.loads(arms).items()
            }
        except (ValueError, TypeError, AttributeError):
            continue
        where = "kind = ? AND name = ? AND setting = ? AND first_seed = ? AND seeds = ?"
        db.execute(f"UPDATE runs SET arms = ? WHERE {where}", (json.dumps(renamed), *run))
    execute(db, "DROP TABLE old_arrays; DROP TABLE old_records")
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def checksum(row: Iterable[Any], arrays: Iterable[Iterable[Any]]) -> str:
    """Return the hash of a stored record: all columns except the checksum, and its arrays."""
    digest = hashlib.sha256()
    for value in (*row, *(value for array in arrays for value in array)):
        if not isinstance(value, bytes):
            value = (value if isinstance(value, str) else repr(value)).encode()
        digest.update(len(value).to_bytes(8, "little"))
        digest.update(value)
    return digest.hexdigest()[:32]


#: Columns of a record that its checksum covers, with the content of its provenance.
SEALED = (
    "r.id, r.key, r.fingerprint, r.trial, r.status, r.steps, r.names, r.measurements, r.details, "
    "r.seconds, p.content, r.created"
)


def content(db: sqlite3.Connection, record: str) -> str:
    """Return the checksum of the current content of a stored record."""
    row = db.execute(
        f"SELECT {SEALED} FROM records r JOIN provenance p ON p.id = r.provenance WHERE r.id = ?",
        (record,),
    ).fetchone()
    arrays = db.execute(
        "SELECT name, dtype, shape, data FROM arrays WHERE id = ? ORDER BY name", (record,)
    ).fetchall()
    return checksum(row or (), arrays)


def seal(db: sqlite3.Connection, record: str) -> None:
    """Write the checksum of a stored record."""
    db.execute("UPDATE records SET checksum = ? WHERE id = ?", (content(db, record), record))
