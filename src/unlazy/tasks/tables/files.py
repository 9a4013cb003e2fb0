"""Tables from files: CSV, Parquet and NumPy's `.npz`, as columns of numbers and of categories.

What is done to a table on the way (rows left out, columns dropped, dates as days) is a decision
that the report tells.
"""

from __future__ import annotations

import csv
import dataclasses
import datetime
import gzip
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unlazy.core.errors import BadInput, require, unknown
from unlazy.tasks.reading import reading

#: How the names of text files, and of all files that hold a table, end.
TEXT = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt")
SUFFIXES = (*TEXT, ".parquet", ".pq", ".npz")
#: What stands for a value that is not there.
MISSING = frozenset({"", "na", "nan", "n/a", "null", "none", "?"})
#: Rows that are kept of a longer table, drawn at random.
MOST_ROWS = 20_000
#: A column of words with more distinct values than this share of the rows is a name or a text, not
#: a category.
NAMES = 0.5
#: Share of the values of a column that must be dates for it to be one.
DATES = 0.95


@dataclasses.dataclass(frozen=True)
class Column:
    """A column: numbers with NaN where one is missing, or words (None where one is missing)."""

    name: str
    values: np.ndarray

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers."""
        return self.values.dtype.kind == "f"


@dataclasses.dataclass(frozen=True)
class Table:
    """Columns, the target as it came, and what was decided on the way."""

    columns: tuple[Column, ...]
    target: np.ndarray
    target_name: str
    decisions: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.target)


def names_column(place: str) -> bool:
    """Whether a text such as `table.csv:y` names a column of a table."""
    return place.rpartition(":")[0].lower().endswith(SUFFIXES)


def read_table(path: Path, target: str | None, *, drop: Sequence[str] = ()) -> Table:
    """Read a file.

    `target` names the column to predict; an `.npz` file may hold `X` and `y` instead.
    """
    if not path.exists():
        raise BadInput(f"There is no file {path}.")
    kind = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    with reading(path, "a table"):
        if kind in TEXT:
            names, columns, notes = _from_text(path)
        elif kind in (".parquet", ".pq"):
            names, columns, notes = _from_parquet(path)
        elif kind == ".npz":
            return _from_arrays(path, target, drop)
        else:
            raise BadInput(
                f"A table ends with .csv, .tsv, .csv.gz, .parquet or .npz, but {path.name!r} "
                "does not."
            )
    return _table(dict(zip(names, columns, strict=True)), target, drop, notes)


def table_of(X: Any, y: Any, *, names: Sequence[str] | None = None) -> Table:
    """A table from arrays, or from a data frame, whose columns keep their names."""
    if hasattr(X, "columns") and hasattr(X, "iloc"):
        names = [str(name) for name in X.columns]
        columns = [np.asarray(X.iloc[:, index]) for index in range(len(names))]
    else:
        if hasattr(X, "toarray"):
            X = X.toarray()
        X = np.asarray(X)
        require(X.ndim == 2, f"X must have rows and columns, but has the shape {X.shape}.")
        columns = list(X.T)
        names = [f"x{index}" for index in range(len(columns))] if names is None else list(names)
    y = np.asarray(y)
    require(y.ndim == 1, f"y must be one column, but has the shape {y.shape}.")
    rows = len(columns[0]) if columns else 0
    require(len(y) == rows, f"X has {rows} rows, but y has {len(y)}.")
    name = "y"
    while name in names:
        name += "_"
    notes: list[str] = []
    if rows > MOST_ROWS:
        kept = np.sort(np.random.default_rng(0).permutation(rows)[:MOST_ROWS])
        columns, y = [column[kept] for column in columns], y[kept]
        notes.append(_sampled(rows))
    return _table({**dict(zip(names, columns, strict=True)), name: y}, name, (), notes)


def _sampled(rows: int) -> str:
    return f"{MOST_ROWS:,} of {rows:,} rows were drawn at random; the others were not used."


def _from_text(path: Path) -> tuple[list[str], list[np.ndarray], list[str]]:
    """Lines of text.

    Of a long file a random sample is kept while it is read, so that memory stays flat.
    """
    opened: Any = gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb")  # noqa: SIM115
    with (
        opened as raw,
        io.TextIOWrapper(raw, encoding="utf-8-sig", errors="replace", newline="") as text,
    ):
        first = text.readline()
        require(
            bool(first.strip()),
            f"{path.name} is empty; a line with the names of the columns was expected.",
        )
        mark = max(",;\t|", key=first.count)
        names = [name.strip() for name in next(csv.reader([first], delimiter=mark))]
        twice = sorted({name for name in names if names.count(name) > 1})
        require(
            not twice,
            f"The names of columns must differ, but {', '.join(map(repr, twice))} stand more "
            f"than once in {path.name}.",
        )
        require(
            len(names) > 1,
            f"{path.name} has one column only; a target and at least one other were expected, "
            "with commas between.",
        )
        rows, count = _sample(csv.reader(text, delimiter=mark), len(names), path.name)
    require(count > 0, f"{path.name} has names of columns but no rows.")
    notes = [_sampled(count)] if count > MOST_ROWS else []
    return names, [np.array(column, object) for column in zip(*rows, strict=True)], notes


def _sample(lines: Iterator[list[str]], width: int, name: str) -> tuple[list[list[str]], int]:
    """All rows, or a uniform sample of them (Vitter's reservoir), in their order."""
    kept: list[tuple[int, list[str]]] = []
    draw, count = np.random.default_rng(0), 0
    for line in lines:
        if not line or line == [""]:
            continue
        if len(line) != width:
            raise BadInput(
                f"Row {count + 1} of {name} has {len(line)} values, but the first line names "
                f"{width} columns."
            )
        if count < MOST_ROWS:
            kept.append((count, line))
        else:
            place = int(draw.integers(count + 1))
            if place < MOST_ROWS:
                kept[place] = (count, line)
        count += 1
    return [line for _, line in sorted(kept, key=lambda pair: pair[0])], count


def _from_parquet(path: Path) -> tuple[list[str], list[np.ndarray], list[str]]:
    try:
        import pyarrow.parquet
    except ImportError:
        raise BadInput(
            "Parquet files need pyarrow: install unlazy[parquet], or bring a CSV file."
        ) from None
    try:
        found = pyarrow.parquet.read_table(path)
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise BadInput(f"{path.name} cannot be read as Parquet: {error}") from None
    rows, notes = found.num_rows, []
    if rows > MOST_ROWS:
        found = found.take(np.sort(np.random.default_rng(0).permutation(rows)[:MOST_ROWS]))
        notes.append(_sampled(rows))
    columns = [np.array(column.to_pylist(), object) for column in found.columns]
    return [str(name) for name in found.column_names], columns, notes


def _from_arrays(path: Path, target: str | None, drop: Sequence[str]) -> Table:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        held = {name: arrays[name] for name in arrays.files}
    if "X" in held and "y" in held and target in (None, "y"):
        return dataclasses.replace(table_of(held["X"], held["y"]), target_name="y")
    flat = {name: array for name, array in held.items() if array.ndim == 1}
    sizes = {len(array) for array in flat.values()}
    require(
        len(flat) > 1 and len(sizes) == 1,
        f"{path.name} must hold X and y, or one array of one length for each column, but holds "
        f"{', '.join(f'{name} {array.shape}' for name, array in held.items()) or 'nothing'}.",
    )
    return _table(flat, target, drop, [])


def _table(
    named: Mapping[str, np.ndarray], target: str | None, drop: Sequence[str], notes: Iterable[str]
) -> Table:
    if target is None:
        raise BadInput(
            f"Name the column to predict with --target. Columns: {', '.join(list(named)[:20])}."
        )
    for name in (target, *drop):
        if name not in named:
            raise unknown("column", name, named)
    decisions = list(notes)
    wanted = named[target]
    there = np.array([not _is_missing(value) for value in wanted])
    if not there.all():
        decisions.append(
            f"{int((~there).sum()):,} rows without a value of {target!r} were left out."
        )
    require(bool(there.any()), f"The column {target!r} holds no value at all.")
    columns = []
    for name, values in named.items():
        if name == target or name in drop:
            continue
        column, note = _column(name, values[there])
        if note:
            decisions.append(note)
        if column is not None:
            columns.append(column)
    if drop:
        decisions.append(f"Left out as asked: {', '.join(drop)}.")
    target_values = _typed(wanted[there])
    text = [str(value) for value in target_values]
    copies = [column.name for column in columns if [str(value) for value in column.values] == text]
    if copies:
        decisions.append(f"Dropped, for they repeat the target: {', '.join(copies)}.")
        columns = [column for column in columns if column.name not in copies]
    require(
        bool(columns),
        "No column is left to predict from: all are constant, names or copies of the target.",
    )
    return Table(tuple(columns), target_values, target, tuple(decisions))


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, str):
        return value.strip().lower() in MISSING
    return isinstance(value, float | np.floating) and not np.isfinite(value)


def _typed(values: np.ndarray) -> np.ndarray:
    """Numbers as floats where all values are, else words."""
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    try:
        return np.array([np.nan if _is_missing(value) else float(value) for value in values])
    except (TypeError, ValueError):
        return np.array(
            [None if _is_missing(value) else str(value).strip() for value in values], object
        )


def _column(name: str, values: np.ndarray) -> tuple[Column | None, str]:
    """A column as numbers or words, and what was decided on it."""
    if values.dtype.kind == "M":
        values = np.array(
            [None if np.isnat(value) else value.astype("datetime64[s]").item() for value in values],
            object,
        )
    typed = _typed(values)
    if typed.dtype.kind == "f":
        infinite = int(np.isinf(typed).sum())
        typed = np.where(np.isfinite(typed), typed, np.nan)
        there = typed[~np.isnan(typed)]
        if there.size == 0 or (np.all(there == there[0]) and there.size == len(typed)):
            return (
                None,
                f"The column {name!r} was dropped: it is "
                f"{'empty' if there.size == 0 else 'constant'}.",
            )
        return Column(
            name, typed
        ), f"{infinite} infinite values of {name!r} count as missing." if infinite else ""
    days = _days(values)
    if days is not None:
        return Column(name, days), f"The column {name!r} holds dates and is used as days."
    words = typed
    distinct = {value for value in words if value is not None}
    if len(distinct) < 2:
        return None, f"The column {name!r} was dropped: it has one value only."
    if len(words) > 50 and len(distinct) > NAMES * len(words):
        return (
            None,
            f"The column {name!r} was dropped: with {len(distinct):,} distinct words in "
            f"{len(words):,} rows it is a name or a text.",
        )
    return Column(name, words), ""


def _days(values: np.ndarray) -> np.ndarray | None:
    """Days since 1970, where nearly all values are dates."""
    there = [index for index, value in enumerate(values) if not _is_missing(value)]
    if not there or not any(_moment(values[index]) for index in there[:20]):
        return None
    found = np.full(len(values), np.nan)
    for index in there:
        moment = _moment(values[index])
        if moment is not None:
            found[index] = (moment - datetime.datetime(1970, 1, 1)).total_seconds() / 86_400
    return found if np.isfinite(found).sum() >= DATES * len(there) else None


def _moment(value: Any) -> datetime.datetime | None:
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day)
    try:
        return datetime.datetime.fromisoformat(str(value).strip()).replace(tzinfo=None)
    except ValueError:
        return None
