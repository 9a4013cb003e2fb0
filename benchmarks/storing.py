"""Storing records against bare `sqlite3` inserts of the same rows, one transaction each, in a file of the same schema and settings.

The bare inserts are handed rows that were made beforehand; the store makes its rows from records within the time.
"""

from __future__ import annotations

import hashlib
import itertools
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import Comparison, interleaved, say, seconds
from benchmarks.workloads import SMALL
from unlazy.lab.provenance import provenance
from unlazy.lab.store import Store
from unlazy.lab.trials import Record, now

TARGET = 1.5
ROUNDS = 3
RECORDS = 10_000
MEASURES = 12
#: Records that are made at a time, outside the clock: both sides find their input fresh in memory, as in a run.
CHUNK = 64
STEPS = (0, 1, 2, 12, 30, 60, 120, 300, 450, 600)
NEURONS = 16

Row = tuple[Any, ...]


def record_key(seed: int) -> str:
    """A key like that of a trial."""
    return hashlib.sha256(str(seed).encode()).hexdigest()[:32]


def records(seeds: range, *, with_array: bool) -> list[Record]:
    """Records as a study makes them: a dozen single-precision measurements at ten steps, perhaps with a small array."""
    trial, origin = SMALL.trials()[0].describe(), provenance()

    def record(seed: int) -> Record:
        draw = np.random.default_rng(seed)
        values = draw.random((MEASURES, len(STEPS)), np.float32).tolist()
        return Record(
            key=record_key(seed),
            trial=trial | {"seed": seed},
            status="ok",
            steps=STEPS,
            measurements={f"measurement_{name:02}": tuple(series) for name, series in enumerate(values)},
            arrays={"cosines": draw.random((len(STEPS), NEURONS), np.float32)} if with_array else {},
            seconds=1.0,
            provenance=origin,
            created=now(),
        )

    return [record(seed) for seed in seeds]


def chunks(count: int) -> list[range]:
    """The seeds, cut as the engine hands over records."""
    return [range(start, min(start + CHUNK, count)) for start in range(0, count, CHUNK)]


def by_store(path: Path, count: int, *, with_array: bool) -> float:
    """Seconds to add records to a new store, without the making of the records."""
    took = 0.0
    with Store(path) as store:
        for seeds in chunks(count):
            entries = records(seeds, with_array=with_array)
            took += seconds(lambda entries=entries: [store.add(entry) for entry in entries])
    return took


def by_hand(path: Path, prepared: Path, count: int) -> float:
    """Seconds to insert the rows of `prepared` into a new file of the store's schema, one transaction a record."""
    Store(path).close()
    source, target = sqlite3.connect(prepared), sqlite3.connect(path, isolation_level=None)
    target.execute("PRAGMA journal_mode = WAL")
    target.execute("PRAGMA synchronous = NORMAL")
    target.executemany("INSERT INTO provenance VALUES (?, ?)", source.execute("SELECT * FROM provenance").fetchall())
    # The same order of the keys as in the store, which inserts them as they come.
    keys = [record_key(seed) for seed in range(count)]

    def insert(entries: list[list[tuple[str, Row]]]) -> None:
        for rows in entries:
            target.execute("BEGIN IMMEDIATE")
            for statement, row in rows:
                target.execute(statement, row)
            target.execute("COMMIT")

    took = 0.0
    for seeds in chunks(count):
        entries = [rows_of(source, keys[seed]) for seed in seeds]
        took += seconds(lambda entries=entries: insert(entries))
    source.close()
    target.close()
    return took


def rows_of(source: sqlite3.Connection, key: str) -> list[tuple[str, Row]]:
    """What was written for a record: a statement and its values for each row."""
    return [
        (f"INSERT INTO {table} VALUES ({','.join('?' * len(row))})", row)
        for table in ("records", "arrays")
        for row in source.execute(f"SELECT * FROM {table} WHERE key = ?", (key,))
    ]


def compare(with_array: bool, rounds: int = ROUNDS, count: int = RECORDS) -> Comparison:
    """Time both on the same records."""
    what = f"{count:,} records{' with a small array each' if with_array else ''}"
    say(f"Storing {what}: preparing …")
    with tempfile.TemporaryDirectory() as folder:
        prepared = Path(folder) / "prepared.sqlite"
        by_store(prepared, count, with_array=with_array)
        names = (Path(folder) / f"{index}.sqlite" for index in itertools.count())
        contenders = {
            "store": lambda: by_store(next(names), count, with_array=with_array),
            "bare sqlite3": lambda: by_hand(next(names), prepared, count),
        }
        times = interleaved(contenders, rounds, f"Storing {what}")
    return Comparison(f"store / bare sqlite3 inserts: {what}", "run", times["store"], times["bare sqlite3"], TARGET, "lower")


def run() -> list[Comparison]:
    """Records without and with arrays."""
    return [compare(with_array) for with_array in (False, True)]
