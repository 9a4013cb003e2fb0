"""The store versus direct `sqlite3` inserts of the same rows, one transaction each, in a file of
the same schema and settings.

Rows of the direct inserts are prepared; the time of the store includes building rows from records.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import Comparison, say, seconds
from benchmarks.workloads import SMALL
from unlazy.lab.provenance import provenance
from unlazy.lab.store import Store
from unlazy.lab.trials import Record, now

TARGET = 1.5
ROUNDS = 5
RECORDS = 10_000
MEASURES = 12
#: Records per batch; they are built before the clock starts, so that both find them in memory.
CHUNK = 64
STEPS = (0, 1, 2, 12, 30, 60, 120, 300, 450, 600)
NEURONS = 16
FINGERPRINT = "0123456789abcdef"

Row = tuple[Any, ...]


def record_key(seed: int) -> str:
    """Return a key like that of a trial."""
    return hashlib.sha256(str(seed).encode()).hexdigest()[:32]


def records(seeds: range, *, with_array: bool) -> list[Record]:
    """Return records with a dozen single-precision measurements at ten steps, and optionally a
    small array.
    """
    trial, origin = SMALL.trials()[0].describe(), provenance()

    def record(seed: int) -> Record:
        draw = np.random.default_rng(seed)
        values = draw.random((MEASURES, len(STEPS)), np.float32).tolist()
        return Record(
            key=record_key(seed),
            fingerprint=FINGERPRINT,
            trial=trial | {"seed": seed},
            status="ok",
            steps=STEPS,
            measurements={
                f"measurement_{name:02}": tuple(series) for name, series in enumerate(values)
            },
            arrays={"cosines": draw.random((len(STEPS), NEURONS), np.float32)}
            if with_array
            else {},
            seconds=1.0,
            provenance=origin,
            created=now(),
        )

    return [record(seed) for seed in seeds]


class BareFile:
    """A new file with the store's schema and settings, and rows prepared in another file."""

    def __init__(self, path: Path, prepared: Path) -> None:
        Store(path).close()
        self.source = sqlite3.connect(prepared)
        self.target = sqlite3.connect(path, isolation_level=None)
        self.target.execute("PRAGMA journal_mode = WAL")
        self.target.execute("PRAGMA synchronous = NORMAL")
        self.target.executemany(
            "INSERT INTO provenance VALUES (?, ?)",
            self.source.execute("SELECT * FROM provenance").fetchall(),
        )

    def rows(self, seed: int) -> list[tuple[str, Row]]:
        """Return the statement and the values of each row that the store writes for a record."""
        return [
            (insertion(table, len(row)), row)
            for table in ("records", "arrays")
            for row in self.source.execute(
                f"SELECT * FROM {table} WHERE id = ?", (f"{record_key(seed)}.{FINGERPRINT}",)
            )
        ]

    def insert(self, entries: list[list[tuple[str, Row]]]) -> None:
        """Insert records, one transaction per record."""
        for rows in entries:
            self.target.execute("BEGIN IMMEDIATE")
            for statement, row in rows:
                self.target.execute(statement, row)
            self.target.execute("COMMIT")

    def close(self) -> None:
        """Close both files."""
        self.source.close()
        self.target.close()


@functools.cache
def insertion(table: str, columns: int) -> str:
    """Return the statement that inserts a row, cached as one string."""
    return f"INSERT OR IGNORE INTO {table} VALUES ({','.join('?' * columns)})"


def fill(
    store: Store, bare: BareFile | None, count: int, *, with_array: bool
) -> tuple[float, float]:
    """Return the seconds of the store and of direct inserts, which alternate by batch, so that the
    load of the machine affects both.
    """
    by_store = by_hand = 0.0
    for start in range(0, count, CHUNK):
        seeds = range(start, min(start + CHUNK, count))
        entries = records(seeds, with_array=with_array)
        by_store += seconds(lambda entries=entries: [store.add(entry) for entry in entries])
        if bare is not None:
            rows = [bare.rows(seed) for seed in seeds]
            by_hand += seconds(lambda rows=rows: bare.insert(rows))
    return by_store, by_hand


def compare(with_array: bool, rounds: int = ROUNDS, count: int = RECORDS) -> Comparison:
    """Time both on the same records."""
    what = f"{count:,} records{' with a small array each' if with_array else ''}"
    say(f"Storing {what}: preparing …")
    times = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Store(folder / "prepared.sqlite") as store:
            fill(store, None, count, with_array=with_array)
        for index in range(rounds):
            with (
                Store(folder / f"store-{index}.sqlite") as store,
                contextlib.closing(
                    BareFile(folder / f"bare-{index}.sqlite", folder / "prepared.sqlite")
                ) as bare,
            ):
                times.append(fill(store, bare, count, with_array=with_array))
            say(
                f"Storing {what}: round {index + 1} of {rounds}: store {times[-1][0]:.3f} s, "
                f"bare sqlite3 {times[-1][1]:.3f} s"
            )
    ours, peer = (list(column) for column in zip(*times, strict=True))
    return Comparison(f"store / bare sqlite3 inserts: {what}", "run", ours, peer, TARGET, "lower")


def run() -> list[Comparison]:
    """Run the benchmark for records without and with arrays."""
    return [compare(with_array) for with_array in (False, True)]
