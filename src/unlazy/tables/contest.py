"""A contest on a table by nested cross-validation: everything that is fitted or chosen is fitted
and chosen within the training rows.

In each fold every contender tries its settings on a part of the training rows (at most
`TUNING_ROWS`) and is scored on other training rows, where the part is smaller than it could be with
the best setting once more after a fit to all rows that do not score: who learns most from few rows
need not learn most from many. The best setting is fitted to all training rows and meets the test
rows. Of each side the contender with the best inner score speaks for it in that fold, so that no
side is favoured for having more entrants.

Sides are compared row by row: the loss of a row under one side minus under the other, averaged over
repetitions. The interval is Student's over rows, widened for training rows that overlap between
folds (after Nadeau and Bengio, 2003).
"""

from __future__ import annotations

import dataclasses
import math
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from unlazy.core.errors import require
from unlazy.core.metrics import Kind
from unlazy.estimators.catalog import AUDIT, Group, Method
from unlazy.lab.statistics import LEVEL
from unlazy.tasks.tables.problems import FOLDS, Problem

#: Training rows on which settings are tried, and the share of the training rows that score them.
TUNING_ROWS, INNER = 2_000, 0.25


@dataclasses.dataclass(frozen=True)
class Bout:
    """One contender on one fold: the setting it chose, its inner score, the losses of the test
    rows, and seconds.
    """

    contender: str
    repeat: int
    fold: int
    setting: int
    inner: float
    rows: tuple[int, ...]
    losses: tuple[float, ...]
    seconds: float

    @property
    def key(self) -> tuple[str, int, int]:
        """What it is known by."""
        return self.contender, self.repeat, self.fold

    @property
    def loss(self) -> float:
        """Mean loss of the test rows."""
        return float(np.mean(self.losses))


def losses_of(kind: Kind, found: np.ndarray, y: np.ndarray, unit: float) -> np.ndarray:
    """Of each row: 100 where the class is wrong, so that the mean is a percentage; or the squared
    error in percent of the variance.
    """
    result: np.ndarray = (
        100.0 * (found != y) if kind == "classification" else 100.0 * np.square(found - y) / unit
    )
    return result


class Encoded:
    """Training and test rows of a fold, encoded by what the training rows say, once for all
    contenders.
    """

    def __init__(
        self,
        problem: Problem,
        test: np.ndarray,
        *,
        y: np.ndarray | None = None,
        rotation: int | None = None,
    ) -> None:
        train = np.setdiff1d(np.arange(len(problem)), test)
        y = problem.y if y is None else y
        self.kind, self.train, self.test = problem.kind, train, test
        encoder = problem.encoder()
        self.y, self.y_test = y[train], y[test]
        self.x, self.x_test = (
            encoder.fit_transform(problem.X[train], self.y),
            encoder.transform(problem.X[test]),
        )
        if rotation is not None:
            turn = np.linalg.qr(
                np.random.default_rng(rotation).standard_normal((self.x.shape[1],) * 2)
            )[0]
            self.x, self.x_test = self.x @ turn, self.x_test @ turn
        self.unit = float(np.var(problem.y)) if problem.kind == "regression" else 1.0

    def inner(self, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the training rows: those to try settings on, all that do not score, and those that do;
        every class in each where it can be.
        """
        draw = np.random.default_rng([seed, 1])
        order = np.lexsort([draw.random(len(self.y)), self.y])
        scoring = np.zeros(len(order), bool)
        scoring[order[int(draw.integers(4)) :: round(1 / INNER)]] = True
        free = np.flatnonzero(~scoring)
        tried = draw.permutation(free)[:TUNING_ROWS]
        if self.kind == "classification":  # a class that fell out would be one no setting can learn
            missing = [
                np.flatnonzero(~scoring & (self.y == c))[:1]
                for c in np.setdiff1d(self.y, self.y[tried])
            ]
            tried = np.concatenate([tried, *missing]).astype(int)
        return tried, free, draw.permutation(np.flatnonzero(scoring))[:TUNING_ROWS]

    def losses(self, estimator: Any, rows: np.ndarray | None = None) -> np.ndarray:
        """Losses of the test rows after a fit to all training rows or to some."""
        x, y = (self.x, self.y) if rows is None else (self.x[rows], self.y[rows])
        return losses_of(
            self.kind, fitted(estimator, x, y).predict(self.x_test), self.y_test, self.unit
        )


def fitted(estimator: Any, x: np.ndarray, y: np.ndarray) -> Any:
    """A fresh copy, fitted; warnings of solvers that stop early are not for the user of a
    contest.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(estimator).fit(x, y)


def bout(contender: Method, data: Encoded, repeat: int, fold: int) -> Bout:
    """Tune, fit and meet the test rows."""
    begin = time.perf_counter()
    setting, inner = tuned(contender, data, seed=repeat * FOLDS + fold)
    losses = data.losses(contender.settings(data.kind, data.x.shape[1])[setting])
    rows = tuple(map(int, data.test))
    return Bout(
        contender.name,
        repeat,
        fold,
        setting,
        inner,
        rows,
        tuple(map(float, losses)),
        time.perf_counter() - begin,
    )


def tuned(contender: Method, data: Encoded, seed: int) -> tuple[int, float]:
    """The best setting on rows that are held out of the training rows, and its loss there after a
    fit to all others.
    """
    tried, free, scoring = data.inner(seed)
    settings = contender.settings(data.kind, data.x.shape[1])

    def loss(estimator: Any, rows: np.ndarray) -> float:
        found = fitted(estimator, data.x[rows], data.y[rows]).predict(data.x[scoring])
        return float(np.mean(losses_of(data.kind, found, data.y[scoring], data.unit)))

    losses = [loss(estimator, tried) for estimator in settings]
    best = int(np.argmin(losses))
    return best, losses[best] if len(free) <= len(tried) else loss(settings[best], free)


@dataclasses.dataclass(frozen=True)
class Gap:
    """A mean difference of losses with its interval: positive where the second side is better."""

    mean: float
    low: float
    high: float


class Standings:
    """All bouts so far, and what follows from them."""

    def __init__(self, problem: Problem, names: Sequence[str]) -> None:
        self.problem, self.names = problem, list(names)
        self.bouts: dict[tuple[str, int, int], Bout] = {}

    def add(self, found: Bout) -> None:
        """Take in one bout."""
        self.bouts[found.key] = found

    @property
    def complete(self) -> list[tuple[int, int]]:
        """Repetitions and folds in which all contenders met the test rows."""
        places = sorted({(found.repeat, found.fold) for found in self.bouts.values()})
        return [
            place for place in places if all((name, *place) in self.bouts for name in self.names)
        ]

    def of(self, name: str) -> list[Bout]:
        """The bouts of a contender in complete folds."""
        return [self.bouts[name, *place] for place in self.complete]

    def speakers(self, side: Group) -> list[Bout]:
        """In each complete fold the side's contender with the best inner score."""
        names = [name for name in self.names if AUDIT[name].group == side]
        return [
            min((self.bouts[name, *place] for name in names), key=lambda found: found.inner)
            for place in self.complete
        ]

    def favourite(self, side: Group) -> str:
        """The contender that spoke for its side most often; among equals the one with the least
        inner loss.
        """
        names = [found.contender for found in self.speakers(side)]
        inner = {
            name: float(np.mean([found.inner for found in self.of(name)])) for name in set(names)
        }
        return min(inner, key=lambda name: (-names.count(name), inner[name]))

    def constant(self) -> list[Bout]:
        """What the best constant would have lost in each complete fold."""
        problem, found = self.problem, []
        unit = float(np.var(problem.y)) if problem.kind == "regression" else 1.0
        some = self.names[0]
        for repeat, fold in self.complete:
            rows = np.array(self.bouts[some, repeat, fold].rows)
            train = np.delete(problem.y, rows)
            guess = (
                float(np.mean(train))
                if problem.kind == "regression"
                else np.bincount(train.astype(int)).argmax()
            )
            losses = losses_of(problem.kind, np.full(len(rows), guess), problem.y[rows], unit)
            found.append(
                Bout("constant", repeat, fold, 0, 0.0, tuple(rows), tuple(map(float, losses)), 0.0)
            )
        return found

    def gap(self, first: Sequence[Bout], second: Sequence[Bout], level: float = LEVEL) -> Gap:
        """Mean loss of the first minus of the second, over the same folds."""
        total, count = np.zeros(len(self.problem)), np.zeros(len(self.problem))
        for a, b in zip(first, second, strict=True):
            difference = np.array(a.losses) - np.array(b.losses)
            np.add.at(total, list(a.rows), difference)
            np.add.at(count, list(a.rows), 1)
        seen = count > 0
        rows = total[seen] / count[seen]
        mean = float(np.mean(rows))
        # Training rows of different folds overlap: Nadeau and Bengio's factor, for rows that are
        # all tested equally often.
        error = float(np.std(rows, ddof=1)) * math.sqrt((1 + 1 / (FOLDS - 1)) / len(rows))
        half = float(scipy.stats.t.ppf((1 + level) / 2, len(rows) - 1)) * error
        return Gap(mean, mean - half, mean + half)


def schedule(problem: Problem, repeats: int) -> list[tuple[int, int, np.ndarray]]:
    """Repetitions, folds and their test rows, in the order in which they are run."""
    places = [
        (repeat, fold, test)
        for repeat in range(repeats)
        for fold, test in enumerate(problem.folds(repeat))
    ]
    for _, _, test in places:
        usable = len(test) > 0 and len(np.unique(np.delete(problem.y, test))) > 1
        require(
            usable,
            "A fold would have no test rows, or training rows of one class only: too few rows "
            "differ from each other.",
        )
    return places
