"""Tables from files (CSV, Parquet, `.npz`) and data frames, as columns of numbers and words.

Text is split by Python's `csv`, which detects rows that are too short and is faster than pandas for
text of unknown types. Types, missing values and dates are handled by pandas.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unlazy.core.errors import BadInput, require
from unlazy.tasks.limits import Limited, archived, require_within
from unlazy.tasks.reading import reading
from unlazy.tasks.tables.columns import MISSING, Table, check_names, cleaned, table_from

if TYPE_CHECKING:
    from pandas import DataFrame

#: Suffixes of text files, and of all table files.
TEXT = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt")
SUFFIXES = (*TEXT, ".parquet", ".pq", ".npz")
#: Column separators with their names.
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
#: Maximum number of rows; longer tables are sampled at random.
MAX_ROWS = 20_000
#: Number of lines compared with the first one to detect a header.
FIRST_LINES = 100
#: Number with a decimal comma, possibly with points as thousands separators.
_WITH_COMMA = r"[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?([eE][+-]?\d+)?"


def names_column(name: str) -> bool:
    """Return whether a text such as `table.csv:y` denotes a column of a table."""
    return name.rpartition(":")[0].lower().endswith(SUFFIXES)


def read_table(path: Path, target: str | None, *, drop: Sequence[str] = ()) -> Table:
    """Read a table from a file.

    `target` names the column to predict; an `.npz` file may contain `X` and `y` instead. In a text
    file without a header the target is the number of a column, from 1.
    """
    if not path.exists():
        raise BadInput(f"There is no file {path}.")
    kind = ("".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix).lower()
    with reading(path, "a table"):
        if kind in TEXT:
            frame, notes = _from_text(path, target)
        elif kind in (".parquet", ".pq"):
            frame, notes = _from_parquet(path)
        elif kind == ".npz":
            return _from_arrays(path, target, drop)
        else:
            raise BadInput(
                f"The file name must end with .csv, .tsv, .csv.gz, .parquet or .npz, got "
                f"{path.name!r}."
            )
    return table_from(frame, target, drop, notes, where=path.name, typed=kind not in TEXT)


def table_of(X: Any, y: Any) -> Table:
    """Return a table from arrays, or from a data frame, whose columns keep their names.

    `y` holds the targets, or is a column name of the data frame.
    """
    import pandas as pd

    if hasattr(X, "to_pandas"):
        X = X.to_pandas()
    if isinstance(y, str) or y is None:
        require(
            isinstance(X, pd.DataFrame),
            "y must contain one target per row of X; it may be a column name only if X is a data "
            "frame.",
        )
        require(
            y is not None,
            "y must contain the targets or name the column to predict: audit(frame, 'y').",
        )
        frame, name = X, str(y)
    else:
        if not isinstance(X, pd.DataFrame):
            X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
            require(X.ndim == 2, f"X must have two axes, got shape {X.shape}.")
        frame = pd.DataFrame(X)
        shape = np.shape(y)
        require(len(shape) == 1, f"y must have one axis, got shape {shape}.")
        require(shape[0] == len(frame), f"X has {len(frame)} rows, but y has {shape[0]}.")
        name = "y"
        while name in frame.columns:
            name += "_"
        frame = frame.assign(**{name: pd.Series(y).array})
    frame, notes = _sampled(frame)
    return table_from(frame, name, (), notes, where="the data frame")


def _sampled(frame: DataFrame) -> tuple[DataFrame, list[str]]:
    rows = len(frame)
    if rows <= MAX_ROWS:
        return frame, []
    kept = np.sort(np.random.default_rng(0).permutation(rows)[:MAX_ROWS])
    return frame.iloc[kept], [_sample_note(rows)]


def _sample_note(rows: int) -> str:
    return f"Used a random sample of {MAX_ROWS:,} of {rows:,} rows."


def _from_text(path: Path, target: str | None) -> tuple[DataFrame, list[str]]:
    """Read lines of text as a frame of strings, as UTF-8 if valid."""
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        raw = Limited(file, str(path))
        wide = raw.read(2) in (b"\xff\xfe", b"\xfe\xff")
        raw.seek(0)
        try:
            return _from_lines(raw, "utf-16" if wide else "utf-8-sig", path, target)
        except UnicodeDecodeError:
            raw.seek(0)
            frame, notes = _from_lines(raw, "cp1252", path, target)
            return frame, ["The file is not UTF-8 and was read as Windows-1252.", *notes]


def _from_lines(
    raw: Any, encoding: str, path: Path, target: str | None
) -> tuple[DataFrame, list[str]]:
    import pandas as pd

    errors = "replace" if encoding == "cp1252" else "strict"
    text = io.TextIOWrapper(raw, encoding=encoding, errors=errors, newline="")
    try:
        line = text.readline()
        require_within("UNLAZY_MAX_COLUMNS", max(map(line.count, SEPARATORS)) + 1, path.name)
        require(
            bool(line.strip()),
            f"{path.name} is empty; a header line with column names was expected.",
        )
        present = [mark for mark in SEPARATORS if mark in line] or [","]
        mark = max(present, key=lambda mark: len(next(csv.reader([line], delimiter=mark))))
        names = [name.strip() for name in next(csv.reader([line], delimiter=mark))]
        require(
            len(names) > 1,
            f"{path.name} has only one column; a target and at least one other were expected.",
        )
        lines = (row for row in csv.reader(text, delimiter=mark) if row and row != [""])
        head = list(itertools.islice(lines, FIRST_LINES))
        require(bool(head), f"{path.name} has a header but no rows.")
        notes = []
        if mark != "," and not (mark == "\t" and ".tsv" in path.suffixes):
            notes.append(f"Columns are separated by {SEPARATORS[mark]}.")
        if _first_line_is_data(names, head, target, path.name):
            head = [names, *head]
            names = [str(number) for number in range(1, len(names) + 1)]
            notes.append(
                f"{path.name} has no header: columns are numbered from 1, and the target is column "
                f"{target}."
            )
        check_names(names, path.name)
        rows, count = _sample(itertools.chain(head, lines), len(names), path.name)
    finally:
        text.detach()
    if count > MAX_ROWS:
        notes.append(_sample_note(count))
    frame = pd.DataFrame(rows, columns=names, dtype=object)
    if mark != ",":
        frame, more = _with_points(frame)
        notes += more
    return frame, notes


def _first_line_is_data(
    names: Sequence[str], rows: Sequence[Sequence[str]], target: str | None, where: str
) -> bool:
    """Return whether the first line is data: numbers in every numeric column."""
    numeric = [
        j
        for j, column in enumerate(zip(*rows, strict=False))
        if not all(map(_is_mark, column)) and all(_is_mark(v) or _is_number(v) for v in column)
    ]
    if not numeric or not all(_is_number(names[j]) for j in numeric):
        return False
    numbered = target is not None and target.isdecimal() and 1 <= int(target) <= len(names)
    if target in names and not numbered:
        return False
    require(
        numbered and target not in names,
        f"The first line of {where} ({', '.join(names[:4])}{', …' if len(names) > 4 else ''}) "
        "seems to contain values, not column names. Add a header"
        + (
            f": {target!r} may be a column name or number."
            if numbered
            else f", or give the target as a column number from 1 to {len(names)}."
        ),
    )
    return True


def _is_mark(value: str) -> bool:
    return value.strip().lower() in MISSING


def _is_number(value: str) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except ValueError:
        return False


def _sample(lines: Iterator[Sequence[str]], width: int, name: str) -> tuple[list[Any], int]:
    """Return all rows, or a uniform sample of them (Vitter's reservoir), in their order."""
    kept: list[tuple[int, Sequence[str]]] = []
    draw, count = np.random.default_rng(0), 0
    for line in lines:
        if len(line) != width:
            raise BadInput(
                f"Row {count + 1} of {name} has {len(line)} values, but the first line has {width}."
            )
        if count < MAX_ROWS:
            kept.append((count, line))
        else:
            slot = int(draw.integers(count + 1))
            if slot < MAX_ROWS:
                kept[slot] = (count, line)
        count += 1
    return [line for _, line in sorted(kept, key=lambda pair: pair[0])], count


def _with_points(frame: DataFrame) -> tuple[DataFrame, list[str]]:
    """Return the frame with decimal points instead of commas, if any, and a note."""
    present = {name: cleaned(frame[name]).dropna() for name in frame}
    numbers = [p for p, values in present.items() if values.str.fullmatch(_WITH_COMMA).all()]
    if not any(present[name].str.contains(",").any() for name in numbers):
        return frame, []
    change = str.maketrans({".": "", ",": "."})
    frame = frame.assign(**{name: frame[name].str.translate(change) for name in numbers})
    return frame, ["Numbers have decimal commas (points, if any, separate thousands)."]


def _from_parquet(path: Path) -> tuple[DataFrame, list[str]]:
    import pandas as pd

    try:
        import pyarrow.parquet
    except ImportError:
        raise BadInput(
            "Parquet files need pyarrow; install unlazy[parquet], or use a CSV file."
        ) from None
    about = pyarrow.parquet.ParquetFile(path).metadata
    groups = map(about.row_group, range(about.num_row_groups))
    require_within("UNLAZY_MAX_COLUMNS", about.num_columns, path.name)
    require_within("UNLAZY_MAX_BYTES", sum(each.total_byte_size for each in groups), path.name)
    return _sampled(pd.read_parquet(path, engine="pyarrow").reset_index(drop=True))


def _from_arrays(path: Path, target: str | None, drop: Sequence[str]) -> Table:
    import pandas as pd

    with archived(path).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        held = {name: arrays[name] for name in arrays.files}
    if "X" in held and "y" in held and target in (None, "y"):
        require(not drop, f"Columns of X in {path.name} have no names, so none can be dropped.")
        return table_of(held["X"], held["y"])
    flat = {name: array for name, array in held.items() if array.ndim == 1}
    sizes = {len(array) for array in flat.values()}
    require(
        len(flat) > 1 and len(sizes) == 1,
        f"{path.name} must contain X and y, or one array of equal length per column, got "
        f"{', '.join(f'{name} {array.shape}' for name, array in held.items()) or 'nothing'}.",
    )
    frame, notes = _sampled(pd.DataFrame({name: pd.Series(flat[name]) for name in flat}))
    return table_from(frame, target, drop, notes, where=path.name)
