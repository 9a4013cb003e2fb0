"""Folds of tables as trials: a method is tuned, fitted and tested on one fold of a table.

Fitting and selection use training rows only. In each fold, every configuration of a method is
fitted to a part of the training rows (at most `TUNING_ROWS`) and scored on other training rows. If
that part is a subset of the rows that do not score, the best configuration is fitted to all of them
and scored again. The best configuration is fitted to all training rows and predicts the test rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import PRNGKeyArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning

from unlazy.core.metrics import Kind
from unlazy.core.naming import ContentHashed
from unlazy.estimators.catalog import Method
from unlazy.lab.trials import ExactComputation
from unlazy.tasks.tables.problems import FOLDS, Problem

#: Training rows on which settings are tried, and the fraction of the training rows that score them.
TUNING_ROWS, INNER = 2_000, 0.25


def losses_of(kind: Kind, found: np.ndarray, y: np.ndarray, unit: float) -> np.ndarray:
    """Return the loss of each row: 100 if the class is wrong, else 0, so that the mean is a
    percentage; for regression the squared error in percent of the variance.
    """
    result: np.ndarray = (
        100.0 * (found != y) if kind == "classification" else 100.0 * np.square(found - y) / unit
    )
    return result


class Encoded:
    """Training and test rows of a fold, with an encoding fitted to the training rows."""

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
        """Return training rows for tuning, all rows that do not score, and rows that score.

        Every class is in each of them if possible.
        """
        draw = np.random.default_rng([seed, 1])
        order = np.lexsort([draw.random(len(self.y)), self.y])
        scoring = np.zeros(len(order), bool)
        scoring[order[int(draw.integers(4)) :: round(1 / INNER)]] = True
        free = np.flatnonzero(~scoring)
        tried = draw.permutation(free)[:TUNING_ROWS]
        if self.kind == "classification":  # no setting could learn a missing class
            missing = [
                np.flatnonzero(~scoring & (self.y == c))[:1]
                for c in np.setdiff1d(self.y, self.y[tried])
            ]
            tried = np.concatenate([tried, *missing]).astype(int)
        return tried, free, draw.permutation(np.flatnonzero(scoring))[:TUNING_ROWS]

    def losses(self, estimator: Any, rows: np.ndarray | None = None) -> np.ndarray:
        """Return the losses of the test rows after a fit to all training rows, or to `rows`."""
        x, y = (self.x, self.y) if rows is None else (self.x[rows], self.y[rows])
        return losses_of(
            self.kind, fitted(estimator, x, y).predict(self.x_test), self.y_test, self.unit
        )


def fitted(estimator: Any, x: np.ndarray, y: np.ndarray) -> Any:
    """Return a fitted copy of an estimator, without convergence warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(estimator).fit(x, y)


class TableData(ContentHashed):
    """The rows of a prediction problem, identified by a hash of their content."""

    name: str = eqx.field(static=True)
    problem: Problem = eqx.field(static=True)

    held: ClassVar[tuple[str, ...]] = ("problem",)

    @property
    def digest(self) -> str:
        return self.problem.content

    def encoded(self, repeat: int, fold: int) -> Encoded:
        """Return a fold with columns encoded by its training rows; the last two are kept."""
        key = (self.digest, repeat, fold)
        if key not in _ENCODED:
            while len(_ENCODED) > 1:
                _ENCODED.pop(next(iter(_ENCODED)))
            _ENCODED[key] = Encoded(self.problem, self.problem.folds(repeat)[fold])
        return _ENCODED[key]


_ENCODED: dict[tuple[str, int, int], Encoded] = {}


class FoldTrial(ExactComputation):
    """One method on one fold of a table.

    `settings`: its configurations for one column, which identify its estimators. `configurations`
    returns those for any number of encoded columns.
    """

    data: TableData
    method: str = eqx.field(static=True)
    settings: tuple[BaseEstimator, ...] = eqx.field(static=True)
    configurations: Callable[[Kind, int], list[BaseEstimator]] | None = eqx.field(static=True)
    repeat: int = eqx.field(static=True)
    fold: int = eqx.field(static=True)

    @classmethod
    def of(cls, data: TableData, method: Method, repeat: int, fold: int) -> FoldTrial:
        """Return the trial of a method of the catalog."""
        settings = tuple(method.settings(data.problem.kind, 1))
        return cls(data, method.name, settings, method.configurations, repeat, fold)

    def estimators(self, d: int) -> list[BaseEstimator]:
        """Return the configurations for d encoded columns."""
        if self.configurations is None:
            return list(self.settings)
        return self.configurations(self.data.problem.kind, d)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Return the selected configuration, its inner loss, and the losses of the test rows."""
        data = self.data.encoded(self.repeat, self.fold)
        settings = self.estimators(data.x.shape[1])
        setting, inner = tuned(settings, data, seed=self.repeat * FOLDS + self.fold)
        losses = data.losses(settings[setting])
        return {
            "setting": float(setting),
            "inner_loss": inner,
            "loss": float(np.mean(losses)),
            "columns": float(data.x.shape[1]),
            "test_rows": data.test,
            "losses": losses,
        }


def tuned(settings: list[BaseEstimator], data: Encoded, seed: int) -> tuple[int, float]:
    """Return the best configuration on validation rows, and its validation loss after a fit to all
    other training rows.
    """
    tried, free, scoring = data.inner(seed)

    def loss(estimator: Any, rows: np.ndarray) -> float:
        found = fitted(estimator, data.x[rows], data.y[rows]).predict(data.x[scoring])
        return float(np.mean(losses_of(data.kind, found, data.y[scoring], data.unit)))

    losses = [loss(estimator, tried) for estimator in settings]
    best = int(np.argmin(losses))
    return best, losses[best] if len(free) <= len(tried) else loss(settings[best], free)
