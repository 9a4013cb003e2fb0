"""Prediction problems from tables: type of target, usable rows, folds, and encoding per fold."""

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

#: A numeric target with at most this number of distinct integers is treated as classes.
CLASSES = 20
#: Minimum number of rows, and number of folds; classes with fewer rows than folds are dropped.
MIN_ROWS, FOLDS = 20, 5
#: Maximum number of encoded columns; the most informative are selected on the training rows.
MAX_COLUMNS = 500
#: Maximum number of categories per column; rarer ones are merged.
CATEGORIES = 20


@dataclasses.dataclass(frozen=True)
class Problem:
    """Prediction problem: mixed columns in one array of objects, targets as numbers or class codes.

    `dates`, `selectors` and `whole` are those of the table: date formats, how columns are selected
    from the original data, and whether these are all of its columns, as numbers.
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
        """Indices of the columns that hold words."""
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
        """Group index per row; rows with equal inputs have the same index."""
        if not self.words:
            return np.unique(self.X.astype(np.float64), axis=0, return_inverse=True)[1].ravel()
        known: dict[tuple[str, ...], int] = {}
        return np.array([known.setdefault(tuple(map(str, row)), len(known)) for row in self.X])

    def encoder(self) -> Pipeline:
        """Return the preprocessing pipeline.

        Missing numbers become medians with an indicator column, words are one-hot encoded. All
        columns are standardized and softly clipped.
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
        """Return the test rows of each fold.

        Rows with equal inputs are in the same fold, and every class is spread over all folds.
        """
        draw = np.random.default_rng(seed)
        groups = self.groups
        _, first = np.unique(groups, return_index=True)
        order = np.lexsort([draw.random(len(first)), self.y[first]])
        fold_of = np.empty(len(first), int)
        fold_of[order] = (np.arange(len(first)) + draw.integers(count)) % count
        return [np.flatnonzero(fold_of[groups] == fold) for fold in range(count)]


class MostInformative(TransformerMixin, BaseEstimator):
    """Selection of at most `most` columns by univariate F tests with the target."""

    def __init__(self, kind: Kind = "classification", most: int = MAX_COLUMNS) -> None:
        self.kind, self.most = kind, most

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Select the columns."""
        self.n_columns_, self.kept_ = X.shape[1], np.arange(X.shape[1])
        if X.shape[1] > self.most:
            with np.errstate(divide="ignore", invalid="ignore"):
                scores = (f_classif if self.kind == "classification" else f_regression)(X, y)[0]
            self.kept_ = np.sort(np.argsort(-np.nan_to_num(scores), kind="stable")[: self.most])
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return the selected columns."""
        return X[:, self.kept_]


def soft_cut(x: np.ndarray) -> np.ndarray:
    """Return x/√(1 + (x/4)²), which bounds outliers by ±4 and is the identity near 0."""
    result: np.ndarray = x / np.sqrt(1 + np.square(x / 4))
    return result


def _with_missing_words(X: np.ndarray, words: tuple[int, ...]) -> np.ndarray:
    """Replace None by NaN in columns of words, as the imputer expects."""
    if not words:
        return X.astype(np.float64)
    X = X.copy()
    for index in words:
        X[:, index] = [np.nan if value is None else value for value in X[:, index]]
    return X


def problem_of(table: Table, kind: Kind | None = None, *, name: str = "the table") -> Problem:
    """Return the prediction problem of a table, or raise `BadInput` if there is none."""
    decisions = list(table.decisions)
    words = table.target.dtype.kind != "f"
    distinct = np.unique(table.target.astype(str) if words else table.target)
    require(
        len(distinct) > 1,
        f"The target {table.target_name!r} is constant ({distinct[0]}).",
    )
    if kind is None:
        whole = words or bool(np.all(np.mod(distinct, 1) == 0))
        kind = (
            "classification"
            if words or (whole and len(distinct) <= CLASSES) or len(distinct) == 2
            else "regression"
        )
        decisions.append(f"The target has {len(distinct)} distinct values: {kind}.")
    require(
        kind == "classification" or not words,
        f"Regression needs a numeric target, but {table.target_name!r} holds words.",
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
                f"Dropped classes with fewer than {FOLDS} rows: "
                f"{', '.join(rare[:10])}{' …' if len(rare) > 10 else ''}."
            )
        keep = np.flatnonzero(counts[codes.ravel()] >= FOLDS)
        require(
            len(names) - len(rare) > 1,
            f"At least two classes of {table.target_name!r} need {FOLDS} or more rows, got "
            f"{len(names) - len(rare)}.",
        )
        labels = labels[keep]
        names, codes = np.unique(labels, return_inverse=True)
        classes, y = tuple(map(str, names)), codes.ravel()
    else:
        y = y.astype(np.float64)
    require(
        len(keep) >= MIN_ROWS,
        f"At least {MIN_ROWS} usable rows are needed (200 recommended), got {len(keep)}.",
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
        decisions.append(f"{same:,} rows are duplicates; duplicates are always in the same fold.")
    if len(table.columns) > MAX_COLUMNS:
        decisions.append(
            f"Of {len(table.columns):,} columns the {MAX_COLUMNS} most informative are used, "
            "selected in each fold."
        )
    return dataclasses.replace(problem, decisions=tuple(decisions))
