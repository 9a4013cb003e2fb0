"""UCI tables in the format of Fernández-Delgado et al. (2014), with their four published folds.

Two further halves are for tuning. Some tables also have a test set, on which the published
accuracies were measured. In several of these files only one part is standardized, so that
accuracies on the test set measure this error. Here all tables are used by their folds.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from unlazy.core.errors import require, unknown
from unlazy.tasks.limits import archived
from unlazy.tasks.reading import reading

#: Environment variable with the path of the file.
VARIABLE = "UNLAZY_UCI"


class Split(NamedTuple):
    """Training and test rows."""

    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray


@dataclasses.dataclass(frozen=True)
class UciTable:
    """A table by name, with its published folds and the halves for tuning.

    `tested`: test rows of the folds. `comparable`: whether the published accuracies were measured
    on these folds, not on a test set.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    splits: tuple[Split, ...]
    tune_train: np.ndarray
    tune_val: np.ndarray
    tested: tuple[np.ndarray, ...]
    comparable: bool = True

    @functools.cached_property
    def content(self) -> str:
        """Hash of the inputs, the classes and the rows of every split."""
        digest = hashlib.sha256(self.X.tobytes() + self.y.tobytes())
        for part in itertools.chain.from_iterable(self.splits):
            digest.update(repr(part.shape).encode() + np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()[:16]


def uci_tables(
    path: Path, names: Sequence[str] = (), *, min_rows: int = 1, max_rows: int | None = None
) -> Iterator[UciTable]:
    """Yield the tables of a file, the smallest first.

    Keys are NAME/X, NAME/y, NAME/fold0_train and so on.
    """
    require(
        path.exists(),
        f"There is no file {path}. Give the UCI tables with --data or the environment variable "
        "UNLAZY_UCI.",
    )
    with reading(path, "UCI tables"), np.load(archived(path), allow_pickle=False) as held:
        known = sorted(
            {key.split("/")[0] for key in held.files if key.endswith("/X")},
            key=lambda name: (len(held[f"{name}/y"]), name),
        )
        require(
            bool(known), f"{path} contains no tables; keys such as NAME/X and NAME/y were expected."
        )
        for name in names:
            if name not in known:
                raise unknown("table", name, known)
        for name in known:
            if names and name not in names:
                continue
            X, y = held[f"{name}/X"].astype(np.float64), held[f"{name}/y"].ravel()
            if len(y) < min_rows or (max_rows is not None and len(y) > max_rows):
                continue
            folds = [
                (
                    held[f"{name}/fold{k}_train"].astype(int),
                    held[f"{name}/fold{k}_test"].astype(int),
                )
                for k in range(4)
            ]
            splits = tuple(Split(X[train], y[train], X[test], y[test]) for train, test in folds)
            halves = [held[f"{name}/tune_{part}"].astype(int) for part in ("train", "val")]
            yield UciTable(
                name,
                X,
                y,
                splits,
                halves[0],
                halves[1],
                tuple(test for _, test in folds),
                f"{name}/X_test" not in held,
            )
