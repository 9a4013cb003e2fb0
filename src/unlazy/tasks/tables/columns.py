"""Columns of a table: numbers, words, and dates as days, from the columns of a data frame.

Every change (dropped rows and columns, dates as days) is a decision listed in the report.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from unlazy.core.errors import BadInput, require, unknown

if TYPE_CHECKING:
    from pandas import DataFrame, Series

#: Marks of a missing value.
MISSING = frozenset({"", "na", "nan", "n/a", "null", "none", "?"})
#: A column of words with more distinct values than this fraction of the rows is an identifier or a
#: text, not a category.
MAX_DISTINCT = 0.5
#: Minimum fraction of dates in a date column.
MIN_DATES = 0.95
#: Date formats with their names, in the order in which they are tried.
DATE_FORMATS = {
    "ISO8601": "year-month-day",
    "%d.%m.%Y": "day.month.year",
    "%m/%d/%Y": "month/day/year",
    "%d/%m/%Y": "day/month/year",
}


@dataclasses.dataclass(frozen=True)
class Column:
    """Column of numbers (NaN if missing) or words (None if missing).

    `dates` is the format of the dates from which the numbers were computed, if any.
    """

    name: str
    values: np.ndarray
    dates: str = ""

    @property
    def is_number(self) -> bool:
        """Whether the column holds numbers."""
        return self.values.dtype.kind == "f"


@dataclasses.dataclass(frozen=True)
class Table:
    """Columns, the target, and the decisions made.

    `selectors` are the names (positions, if there were no names) of the columns in the original
    data. `whole` is true if these are all its columns, as numbers.
    """

    columns: tuple[Column, ...]
    target: np.ndarray
    target_name: str
    decisions: tuple[str, ...] = ()
    selectors: tuple[str | int, ...] = ()
    whole: bool = False

    def __len__(self) -> int:
        return len(self.target)


def table_from(
    frame: DataFrame,
    target: str | None,
    drop: Sequence[str],
    notes: Iterable[str],
    *,
    where: str,
    typed: bool = True,
) -> Table:
    """Return the table of a frame; `typed` is false if its columns are only text."""
    given = [name for name in frame.columns if name != target]
    counted = list(map(str, range(1, frame.shape[1] + 1)))  # names of a file without any
    by_name = all(isinstance(name, str) for name in given) and list(frame.columns) != counted
    numbered = given == list(range(len(given)))
    names = [f"x{name}" if numbered and name != target else str(name) for name in frame.columns]
    check_names(names, where)
    if target is None:
        raise BadInput(
            f"Give the column to predict with --target. Columns: {', '.join(names[:20])}."
        )
    for name in (target, *drop):
        if name not in names:
            raise unknown("column", name, names)
    decisions = list(notes)
    target_values, _, note = _typed(target, frame.iloc[:, names.index(target)])
    has_target = (
        np.isfinite(target_values)
        if target_values.dtype.kind == "f"
        else np.array([value is not None for value in target_values], bool)
    )
    decisions += [note] if note else []
    if not has_target.all():
        decisions.append(
            f"Dropped {int((~has_target).sum()):,} rows without a value of {target!r}."
        )
    require(bool(has_target.any()), f"The column {target!r} is empty.")
    target_values = target_values[has_target]
    columns: list[Column] = []
    for j, name in enumerate(names):
        if name != target and name not in drop:
            column, note = _column(name, frame.iloc[:, j][has_target])
            decisions += [note] if note else []
            columns += [] if column is None else [column]
    if drop:
        decisions.append(f"Dropped as requested: {', '.join(drop)}.")
    text = list(map(str, target_values))
    copies = [column.name for column in columns if list(map(str, column.values)) == text]
    if copies:
        decisions.append(f"Dropped copies of the target: {', '.join(copies)}.")
        columns = [column for column in columns if column.name not in copies]
    require(
        bool(columns),
        "No input column is left: all are constant, identifiers or copies of the target.",
    )
    names.remove(target)
    chosen = tuple(column.name for column in columns)
    selectors = chosen if by_name else tuple(names.index(name) for name in chosen)
    whole = (
        typed
        and list(chosen) == names
        and all(column.is_number and not column.dates for column in columns)
    )
    return Table(tuple(columns), target_values, target, tuple(decisions), selectors, whole)


def check_names(names: Sequence[str], where: str) -> None:
    """Raise `BadInput` if two columns have the same name."""
    twice = sorted(name for name, number in Counter(names).items() if number > 1)
    require(
        not twice,
        f"Column names must be unique, got duplicates {', '.join(map(repr, twice))} in {where}.",
    )


def cleaned(series: Series) -> Series:
    """Return the values as objects, with text stripped and NaN for missing values."""
    import pandas as pd

    absent = series.isna().to_numpy(bool)
    values = [v.strip() if isinstance(v, str) else v for v in series.astype(object)]
    for i, value in enumerate(values):
        if absent[i] or (isinstance(value, str) and value.lower() in MISSING):
            values[i] = np.nan
    return pd.Series(values, series.index, dtype=object)


def _numbers(series: Series) -> np.ndarray | None:
    """Return the values as floats, NaN if missing, or None if some are not numbers."""
    import pandas as pd

    if isinstance(series.dtype, pd.CategoricalDtype):
        return None
    if pd.api.types.is_timedelta64_dtype(series.dtype):
        days: np.ndarray = (series / pd.Timedelta(days=1)).to_numpy(np.float64)
        return days
    if pd.api.types.is_bool_dtype(series.dtype) or (
        pd.api.types.is_numeric_dtype(series.dtype) and series.dtype.kind != "c"
    ):
        plain: np.ndarray = series.to_numpy(np.float64, na_value=np.nan)
        return plain
    if series.dtype.kind == "M":
        return None
    for clean in (False, True):  # most columns need no cleaning
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            values = cleaned(series) if clean else series
            read: np.ndarray = values.to_numpy(object).astype(np.float64)
            return read
    return None


def _days(series: Series, form: str) -> np.ndarray:
    """Return dates as days since 1970, NaN for invalid dates."""
    import pandas as pd

    if isinstance(series.dtype, pd.PeriodDtype):
        series = series.dt.to_timestamp()
    if series.dtype.kind != "M":
        series = cleaned(series).map(str, na_action="ignore")
    moments = pd.to_datetime(series, format=form, errors="coerce", utc=True)
    epoch = pd.Timestamp(0, tz="UTC")
    days: np.ndarray = ((moments - epoch) / pd.Timedelta(days=1)).to_numpy(np.float64)
    return days


def _typed(name: str, series: Series) -> tuple[np.ndarray, str, str]:
    """Return numbers, dates as days, or words; the format of the dates; and a note."""
    numbers = _numbers(series)
    if numbers is not None:
        infinite = int(np.isinf(numbers).sum())
        return (
            np.where(np.isfinite(numbers), numbers, np.nan),
            "",
            f"Treated {infinite} infinite values of {name!r} as missing." if infinite else "",
        )
    present = cleaned(series)
    some = present.dropna().iloc[:20]
    for form, words in DATE_FORMATS.items():
        if len(some) and np.isfinite(_days(some, form)).any():
            days = _days(series, form)
            if np.isfinite(days).sum() >= MIN_DATES * present.notna().sum():
                note = f"Converted {name!r} from dates ({words}) to days."
                return days, form, note
    texts = present.map(str, na_action="ignore").to_numpy(object)
    texts[present.isna().to_numpy()] = None
    return texts, "", ""


def _column(name: str, series: Series) -> tuple[Column | None, str]:
    """Return a column as numbers or words, and the decision made on it."""
    values, dates, note = _typed(name, series)
    column = Column(name, values, dates)
    if column.is_number:
        present = values[~np.isnan(values)]
        if present.size == 0 or (np.all(present == present[0]) and present.size == len(values)):
            return None, f"Dropped {name!r} ({'empty' if present.size == 0 else 'constant'})."
        return column, note
    distinct = {value for value in values if value is not None}
    if len(distinct) < 2:
        return None, f"Dropped {name!r} (only one value)."
    if len(values) > 50 and len(distinct) > MAX_DISTINCT * len(values):
        return (
            None,
            f"Dropped {name!r} ({len(distinct):,} distinct words in {len(values):,} rows).",
        )
    return column, note


def as_numbers(columns: Any, dates: Mapping[int, str] | None = None) -> np.ndarray:
    """Return columns of a data frame or an array as numbers, NaN if missing.

    `dates` gives the formats of date columns, by their position among these columns.
    """
    import pandas as pd

    frame = pd.DataFrame(columns)
    arrays = []
    for j, name in enumerate(frame.columns):
        form = (dates or {}).get(j)
        column = frame.iloc[:, j]
        values = _numbers(column) if form is None else _days(column, form)
        if values is None:
            raise BadInput(f"The column {name!r} must contain numbers.")
        arrays.append(np.where(np.isfinite(values), values, np.nan))
    return np.column_stack(arrays)


def as_words(columns: Any) -> np.ndarray:
    """Return columns of a data frame or an array as text, NaN if missing."""
    import pandas as pd

    frame = pd.DataFrame(columns)
    texts = [
        cleaned(frame.iloc[:, j]).map(str, na_action="ignore").to_numpy(object)
        for j in range(frame.shape[1])
    ]
    return np.column_stack(texts)
