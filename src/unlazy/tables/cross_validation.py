"""Cross-validation results of methods and groups of methods, and differences with intervals.

In each fold the method of a group with the best inner loss is selected for it, so that no group is
favored for having more methods. Groups are compared row by row: the loss of a row under one group
minus under the other, averaged over repetitions. The interval is Student's over rows, widened for
training rows that overlap between folds.

Reference: Nadeau, Bengio. Inference for the generalization error. Machine Learning 52, 2003.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import scipy.stats

from unlazy.core.errors import require
from unlazy.estimators.catalog import AUDIT, Group
from unlazy.lab.statistics import LEVEL
from unlazy.lab.trials import Record
from unlazy.tables.folds import FoldTrial, losses_of
from unlazy.tasks.tables.problems import FOLDS, Problem


@dataclasses.dataclass(frozen=True)
class FoldResult:
    """One method on one fold.

    `setting`: index of the selected setting; `inner`: its inner validation loss; `rows` and
    `losses`: test rows and their losses.
    """

    method: str
    repeat: int
    fold: int
    setting: int
    inner: float
    rows: tuple[int, ...]
    losses: tuple[float, ...]
    seconds: float
    columns: int = 0

    @property
    def key(self) -> tuple[str, int, int]:
        """Method, repetition and fold."""
        return self.method, self.repeat, self.fold

    @property
    def loss(self) -> float:
        """Mean loss of the test rows."""
        return float(np.mean(self.losses))

    @classmethod
    def of(cls, trial: FoldTrial, record: Record) -> FoldResult:
        """Build from a trial and its record."""
        return cls(
            trial.method,
            trial.repeat,
            trial.fold,
            int(record.value("setting")),
            record.value("inner_loss"),
            tuple(map(int, record.arrays["test_rows"][0])),
            tuple(map(float, record.arrays["losses"][0])),
            record.seconds,
            int(record.value("columns")),
        )


@dataclasses.dataclass(frozen=True)
class Gap:
    """A mean difference of losses with its interval; positive if the second group is better."""

    mean: float
    low: float
    high: float


class CVResults:
    """Results of all methods on all folds that were run."""

    def __init__(self, problem: Problem, names: Sequence[str]) -> None:
        self.problem, self.names = problem, list(names)
        self.results: dict[tuple[str, int, int], FoldResult] = {}

    def add(self, found: FoldResult) -> None:
        """Add the result of one method on one fold."""
        self.results[found.key] = found

    @property
    def complete(self) -> list[tuple[int, int]]:
        """Repetitions and folds on which all methods were run."""
        folds = sorted({(found.repeat, found.fold) for found in self.results.values()})
        return [fold for fold in folds if all((name, *fold) in self.results for name in self.names)]

    def of(self, name: str) -> list[FoldResult]:
        """Return the results of a method on complete folds."""
        return [self.results[name, *fold] for fold in self.complete]

    def selected(self, group: Group) -> list[FoldResult]:
        """Return the result of the method with the best inner loss, for each complete fold."""
        names = [name for name in self.names if AUDIT[name].group == group]
        return [
            min((self.results[name, *fold] for name in names), key=lambda found: found.inner)
            for fold in self.complete
        ]

    def most_selected(self, group: Group) -> str:
        """Return the method that was selected most often; ties are broken by the inner loss."""
        names = [found.method for found in self.selected(group)]
        inner = {
            name: float(np.mean([found.inner for found in self.of(name)])) for name in set(names)
        }
        return min(inner, key=lambda name: (-names.count(name), inner[name]))

    def constant(self) -> list[FoldResult]:
        """Return the results of the best constant on each complete fold."""
        problem, found = self.problem, []
        unit = float(np.var(problem.y)) if problem.kind == "regression" else 1.0
        some = self.names[0]
        for repeat, fold in self.complete:
            rows = np.array(self.results[some, repeat, fold].rows)
            train = np.delete(problem.y, rows)
            guess = (
                float(np.mean(train))
                if problem.kind == "regression"
                else np.bincount(train.astype(int)).argmax()
            )
            losses = losses_of(problem.kind, np.full(len(rows), guess), problem.y[rows], unit)
            found.append(
                FoldResult(
                    "constant", repeat, fold, 0, 0.0, tuple(rows), tuple(map(float, losses)), 0.0
                )
            )
        return found

    def gap(
        self, first: Sequence[FoldResult], second: Sequence[FoldResult], level: float = LEVEL
    ) -> Gap:
        """Return the mean loss of the first minus that of the second, over the same folds."""
        total, count = np.zeros(len(self.problem)), np.zeros(len(self.problem))
        for a, b in zip(first, second, strict=True):
            difference = np.array(a.losses) - np.array(b.losses)
            np.add.at(total, list(a.rows), difference)
            np.add.at(count, list(a.rows), 1)
        tested = count > 0
        rows = total[tested] / count[tested]
        mean = float(np.mean(rows))
        # Training rows of different folds overlap: Nadeau and Bengio's factor, for rows that are
        # all tested equally often.
        error = float(np.std(rows, ddof=1)) * math.sqrt((1 + 1 / (FOLDS - 1)) / len(rows))
        half = float(scipy.stats.t.ppf((1 + level) / 2, len(rows) - 1)) * error
        return Gap(mean, mean - half, mean + half)


def schedule(problem: Problem, repeats: int) -> list[tuple[int, int, np.ndarray]]:
    """Return repetitions, folds and their test rows, in the order in which they are run."""
    folds = [
        (repeat, fold, test)
        for repeat in range(repeats)
        for fold, test in enumerate(problem.folds(repeat))
    ]
    for _, _, test in folds:
        usable = len(test) > 0 and len(np.unique(np.delete(problem.y, test))) > 1
        require(
            usable,
            "Too few distinct rows: a fold would have no test rows, or training rows of one class "
            "only.",
        )
    return folds
