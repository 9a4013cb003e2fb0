"""Columns of a table: numbers, words, and dates as days, from the columns of a data frame.

Every change (rows left out, columns dropped, dates as days) is a decision that the report lists.
"""

from __future__ import annotations

import contextlib
import dataclasses
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
NAMES = 0.5
#: Fraction of the values of a column that must be dates for it to be one.
DATES = 0.95
#: Formats of dates by their names, in the order in which they are tried.
DATE_FORMATS = {
    "ISO8601": "year-month-day",
    "%d.%m.%Y": "day.month.year",
    "%m/%d/%Y": "month/day/year",
    "%d/%m/%Y": "day/month/year",
}


@dataclasses.dataclass(frozen=True)
class Column:
    """A column: numbers with NaN for missing ones, or words with None for missing ones.

    `dates` is the format of the dates from which the numbers were made, if they were.
    """

    name: str
    values: np.ndarray
    dates: str = ""

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers."""
        return self.values.dtype.kind == "f"


@dataclasses.dataclass(frozen=True)
class Table:
    """Columns, the target, and the decisions that were made.

    `selectors` are the names (positions, if there were no names) by which the columns are selected
    from the original data; `whole` says that these are all columns, as numbers.
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
    """Return the table of a frame; `typed` says that its columns have types, not only texts."""
    given = [name for name in frame.columns if name != target]
    counted = list(map(str, range(1, frame.shape[1] + 1)))  # names of a file without any
    by_name = all(isinstance(name, str) for name in given) and list(frame.columns) != counted
    numbered = given == list(range(len(given)))
    names = [f"x{name}" if numbered and name != target else str(name) for name in frame.columns]
    check_names(names, where)
    if target is None:
        raise BadInput(
            f"Name the column to predict with --target. Columns: {', '.join(names[:20])}."
        )
    for name in (target, *drop):
        if name not in names:
            raise unknown("column", name, names)
    decisions = list(notes)
    target_values, _, note = _typed(target, frame.iloc[:, names.index(target)])
    there = (
        np.isfinite(target_values)
        if target_values.dtype.kind == "f"
        else np.array([value is not None for value in target_values], bool)
    )
    decisions += [note] if note else []
    if not there.all():
        decisions.append(
            f"{int((~there).sum()):,} rows without a value of {target!r} were left out."
        )
    require(bool(there.any()), f"The column {target!r} holds no value at all.")
    target_values = target_values[there]
    columns: list[Column] = []
    for place, name in enumerate(names):
        if name != target and name not in drop:
            column, note = _column(name, frame.iloc[:, place][there])
            decisions += [note] if note else []
            columns += [] if column is None else [column]
    if drop:
        decisions.append(f"Left out as asked: {', '.join(drop)}.")
    text = list(map(str, target_values))
    copies = [column.name for column in columns if list(map(str, column.values)) == text]
    if copies:
        decisions.append(f"Dropped, for they repeat the target: {', '.join(copies)}.")
        columns = [column for column in columns if column.name not in copies]
    require(
        bool(columns),
        "No column is left to predict from: all are constant, names or copies of the target.",
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
    """Refuse a name that two columns have."""
    twice = sorted({name for name in names if names.count(name) > 1})
    require(
        not twice,
        f"The names of columns must differ, but {', '.join(map(repr, twice))} stand more than "
        f"once in {where}.",
    )


def cleaned(series: Series) -> Series:
    """Return the values as objects: texts without spaces around, NaN for marks of a missing one."""
    import pandas as pd

    absent = series.isna().to_numpy(bool)
    values = [v.strip() if isinstance(v, str) else v for v in series.astype(object)]
    for place, value in enumerate(values):
        if absent[place] or (isinstance(value, str) and value.lower() in MISSING):
            values[place] = np.nan
    return pd.Series(values, series.index, dtype=object)


def _numbers(series: Series) -> np.ndarray | None:
    """Return the values as floats, NaN for missing ones, or None if some are no numbers."""
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
    """Return dates as days since 1970, NaN for values that are none."""
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
    """Return numbers, or else dates as days, or else words; the format of the dates; and a note."""
    numbers = _numbers(series)
    if numbers is not None:
        infinite = int(np.isinf(numbers).sum())
        return (
            np.where(np.isfinite(numbers), numbers, np.nan),
            "",
            f"{infinite} infinite values of {name!r} count as missing." if infinite else "",
        )
    present = cleaned(series)
    some = present.dropna().iloc[:20]
    for form, words in DATE_FORMATS.items():
        if len(some) and np.isfinite(_days(some, form)).any():
            days = _days(series, form)
            if np.isfinite(days).sum() >= DATES * present.notna().sum():
                note = f"The column {name!r} holds dates ({words}) and is used as days."
                return days, form, note
    texts = present.map(str, na_action="ignore").to_numpy(object)
    texts[present.isna().to_numpy()] = None
    return texts, "", ""


def _column(name: str, series: Series) -> tuple[Column | None, str]:
    """Return a column as numbers or words, and the decision that was made on it."""
    values, dates, note = _typed(name, series)
    column = Column(name, values, dates)
    if column.is_number:
        there = values[~np.isnan(values)]
        if there.size == 0 or (np.all(there == there[0]) and there.size == len(values)):
            what = "empty" if there.size == 0 else "constant"
            return None, f"The column {name!r} was dropped: it is {what}."
        return column, note
    distinct = {value for value in values if value is not None}
    if len(distinct) < 2:
        return None, f"The column {name!r} was dropped: it has one value only."
    if len(values) > 50 and len(distinct) > NAMES * len(values):
        return (
            None,
            f"The column {name!r} was dropped: with {len(distinct):,} distinct words in "
            f"{len(values):,} rows it is a name or a text.",
        )
    return column, note


def as_numbers(columns: Any, dates: Mapping[int, str] | None = None) -> np.ndarray:
    """Return columns of a data frame or an array as an audit reads them: numbers with NaN for
    missing ones.

    `dates` gives the formats of those that hold dates, by their position among these columns.
    """
    import pandas as pd

    frame = pd.DataFrame(columns)
    found = []
    for place, name in enumerate(frame.columns):
        form = (dates or {}).get(place)
        column = frame.iloc[:, place]
        values = _numbers(column) if form is None else _days(column, form)
        if values is None:
            raise BadInput(f"The column {name!r} must hold numbers.")
        found.append(np.where(np.isfinite(values), values, np.nan))
    return np.column_stack(found)


def as_words(columns: Any) -> np.ndarray:
    """Return columns of a data frame or an array as texts, NaN for missing ones."""
    import pandas as pd

    frame = pd.DataFrame(columns)
    texts = [
        cleaned(frame.iloc[:, place]).map(str, na_action="ignore").to_numpy(object)
        for place in range(frame.shape[1])
    ]
    return np.column_stack(texts)
