"""From a table to a problem: classification or regression, rows that can be used, folds, and the
encoding that is fitted in each fold.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import f_classif, f_regression
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from unlazy.core.errors import require
from unlazy.core.metrics import Kind
from unlazy.tasks.tables.columns import Table

#: A target of numbers with at most so many distinct whole values is taken for classes.
CLASSES = 20
#: A table with fewer rows is refused, and classes with fewer rows than folds are left out.
FEWEST_ROWS, FOLDS = 20, 5
#: Encoded columns beyond which the most telling are kept, chosen on the training rows of each fold.
MAX_COLUMNS = 500
#: Categories of a column that get a column of their own; rarer ones share one.
CATEGORIES = 20


@dataclasses.dataclass(frozen=True)
class Problem:
    """What is to be predicted from what: mixed columns in one array of objects, targets as numbers
    or codes of classes.

    `dates`, `selectors` and `whole` are those of the table's columns: formats of dates, how columns
    are selected from the original data, and whether these are all of it, as numbers.
    """

    name: str
    kind: Kind
    X: np.ndarray
    y: np.ndarray
    names: tuple[str, ...]
    numeric: tuple[int, ...]
    classes: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    selectors: tuple[str | int, ...] = ()
    whole: bool = False

    def __len__(self) -> int:
        return len(self.y)

    @property
    def words(self) -> tuple[int, ...]:
        """Places of the columns that hold words."""
        return tuple(index for index in range(len(self.names)) if index not in self.numeric)

    @functools.cached_property
    def content(self) -> str:
        """Hash of names, kind, classes, columns and target."""
        X = np.array([[str(value) for value in row] for row in self.X]) if self.words else self.X
        about = (self.kind, self.names, self.numeric, self.classes)
        digest = hashlib.sha256(repr(about).encode())
        digest.update(X.tobytes())
        digest.update(self.y.tobytes())
        return digest.hexdigest()[:16]

    @property
    def groups(self) -> np.ndarray:
        """Rows that are the same up to the target have the same number."""
        if not self.words:
            return np.unique(self.X.astype(np.float64), axis=0, return_inverse=True)[1].ravel()
        known: dict[tuple[str, ...], int] = {}
        return np.array([known.setdefault(tuple(map(str, row)), len(known)) for row in self.X])

    def encoder(self) -> Pipeline:
        """Missing numbers become medians with a mark beside, words become columns of 0 and 1; all
        are standardised and softly cut off.
        """
        parts: list[tuple[str, Any, list[int]]] = []
        if self.numeric:
            parts.append(
                (
                    "numbers",
                    SimpleImputer(strategy="median", add_indicator=True),
                    list(self.numeric),
                )
            )
        if self.words:
            coded = OneHotEncoder(
                handle_unknown="infrequent_if_exist", max_categories=CATEGORIES, sparse_output=False
            )
            parts.append(
                (
                    "words",
                    make_pipeline(
                        SimpleImputer(strategy="constant", fill_value="(missing)"), coded
                    ),
                    list(self.words),
                )
            )
        return make_pipeline(
            FunctionTransformer(_with_missing_words, kw_args={"words": self.words}),
            ColumnTransformer(parts),
            StandardScaler(),
            FunctionTransformer(soft_cut),
            MostInformative(self.kind),
        )

    def folds(self, seed: int, count: int = FOLDS) -> list[np.ndarray]:
        """Test rows of each fold.

        Rows that are the same are in one fold, and every class is spread over all.
        """
        draw = np.random.default_rng(seed)
        groups = self.groups
        _, first = np.unique(groups, return_index=True)
        order = np.lexsort([draw.random(len(first)), self.y[first]])
        place = np.empty(len(first), int)
        place[order] = (np.arange(len(first)) + draw.integers(count)) % count
        return [np.flatnonzero(place[groups] == fold) for fold in range(count)]


class MostInformative(TransformerMixin, BaseEstimator):
    """The columns that tell most about the target, one by one, by an F test; all where there are no
    more than `most`.
    """

    def __init__(self, kind: Kind = "classification", most: int = MAX_COLUMNS) -> None:
        self.kind, self.most = kind, most

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Choose."""
        self.n_columns_, self.kept_ = X.shape[1], np.arange(X.shape[1])
        if X.shape[1] > self.most:
            with np.errstate(divide="ignore", invalid="ignore"):
                scores = (f_classif if self.kind == "classification" else f_regression)(X, y)[0]
            self.kept_ = np.sort(np.argsort(-np.nan_to_num(scores), kind="stable")[: self.most])
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Keep the chosen columns."""
        return X[:, self.kept_]


def soft_cut(x: np.ndarray) -> np.ndarray:
    """x/√(1 + (x/4)²): near 0 the identity, never beyond ±4, so that one odd value does not rule a
    distance.
    """
    result: np.ndarray = x / np.sqrt(1 + np.square(x / 4))
    return result


def _with_missing_words(X: np.ndarray, words: tuple[int, ...]) -> np.ndarray:
    """None among words as NaN, which the imputer knows."""
    if not words:
        return X.astype(np.float64)
    X = X.copy()
    for index in words:
        X[:, index] = [np.nan if value is None else value for value in X[:, index]]
    return X


def problem_of(table: Table, kind: Kind | None = None, *, name: str = "the table") -> Problem:
    """Decide what can be asked of a table, or say why nothing can."""
    decisions = list(table.decisions)
    words = table.target.dtype.kind != "f"
    distinct = np.unique(table.target.astype(str) if words else table.target)
    require(
        len(distinct) > 1,
        f"The target {table.target_name!r} is constant ({distinct[0]}): there is nothing to "
        "predict.",
    )
    if kind is None:
        whole = words or bool(np.all(np.mod(distinct, 1) == 0))
        kind = (
            "classification"
            if words or (whole and len(distinct) <= CLASSES) or len(distinct) == 2
            else "regression"
        )
        decisions.append(f"The target has {len(distinct)} distinct values, so this is {kind}.")
    require(
        kind == "classification" or not words,
        f"A regression needs numbers, but {table.target_name!r} holds words: use classification.",
    )
    keep, classes = np.arange(len(table)), tuple[str, ...]()
    y = table.target
    if kind == "classification":
        labels = np.array(
            [
                str(value) if words or value != int(value) else str(int(value))
                for value in table.target
            ]
        )
        names, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        rare = [str(name) for name, count in zip(names, counts, strict=True) if count < FOLDS]
        if rare:
            decisions.append(
                f"Classes with fewer than {FOLDS} rows were left out: "
                f"{', '.join(rare[:10])}{' …' if len(rare) > 10 else ''}."
            )
        keep = np.flatnonzero(counts[codes.ravel()] >= FOLDS)
        require(
            len(names) - len(rare) > 1,
            f"Only {len(names) - len(rare)} class of {table.target_name!r} has at least {FOLDS} "
            "rows; two are needed.",
        )
        labels = labels[keep]
        names, codes = np.unique(labels, return_inverse=True)
        classes, y = tuple(map(str, names)), codes.ravel()
    else:
        y = y.astype(np.float64)
    require(
        len(keep) >= FEWEST_ROWS,
        f"{len(keep)} usable rows are too few for an audit: at least {FEWEST_ROWS} are needed, "
        "and 200 say more.",
    )
    values = [column.values[keep] for column in table.columns]
    numeric = tuple(index for index, column in enumerate(table.columns) if column.is_number)
    X = (
        np.column_stack(values)
        if len(numeric) == len(values)
        else np.stack([v.astype(object) for v in values], axis=1)
    )
    problem = Problem(
        name,
        kind,
        X,
        y,
        tuple(column.name for column in table.columns),
        numeric,
        classes,
        dates=tuple(column.dates for column in table.columns),
        selectors=table.selectors,
        whole=table.whole,
    )
    same = len(keep) - len(np.unique(problem.groups))
    if same:
        decisions.append(
            f"{same:,} rows repeat another one; rows that are the same are always in the same fold."
        )
    if len(table.columns) > MAX_COLUMNS:
        decisions.append(
            f"Of {len(table.columns):,} columns the {MAX_COLUMNS} that tell most about the "
            "target are used, chosen in each fold."
        )
    return dataclasses.replace(problem, decisions=tuple(decisions))
