"""What all estimators share: checked data, targets as columns of scores, labels from scores.

An estimator gives `_fit_scores` and `_scores`. Parameters are dataclass fields: stored as they are
and checked in `fit`.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from typing import Any, Self

import jax
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from unlazy.core.errors import require
from unlazy.core.threefry import new_key


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class Scoring(BaseEstimator):
    """An estimator that learns columns of scores."""

    @abstractmethod
    def _fit_scores(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> None:
        """Learn the columns of Y; all weights are positive."""

    @abstractmethod
    def _scores(self, X: np.ndarray) -> np.ndarray:
        """One column for each column of Y."""

    def _found(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self._scores(validate_data(self, X, reset=False, dtype=[np.float64, np.float32]))


def weighted(
    X: np.ndarray, y: np.ndarray, sample_weight: Any, *, least: int = 2
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Without the examples of weight 0, which count as not there; at least so many must be left."""
    if sample_weight is None:
        return X, y, np.ones(len(X))
    weight = np.asarray(sample_weight, np.float64)
    if weight.ndim == 0:
        weight = np.full(len(X), float(weight))
    require(
        weight.shape == (len(X),),
        f"sample_weight must be {len(X)} numbers, one for each sample, but has the shape "
        f"{weight.shape}.",
    )
    require(
        bool(np.all(np.isfinite(weight)) and np.all(weight >= 0)),
        "sample_weight must be finite numbers ≥ 0.",
    )
    keep = weight > 0
    require(
        int(keep.sum()) >= least, f"At least {least} samples must have a weight that is not zero."
    )
    return X[keep], y[keep], weight[keep]


class Classifier(ClassifierMixin, Scoring):
    """One score for each class, or with two classes one score, positive for the second; coded
    ±1.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from labelled samples; a sample of weight 2 counts as two samples."""
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], ensure_min_samples=2)
        check_classification_targets(y)
        X, y, weight = weighted(X, y, sample_weight)
        self.classes_, codes = np.unique(y, return_inverse=True)
        require(
            len(self.classes_) > 1,
            "A classifier needs samples of at least 2 classes, but all are of class "
            f"{self.classes_[0]!r}.",
        )
        self._fit_scores(X, self._coded(codes), weight)
        return self

    def _coded(self, codes: np.ndarray) -> np.ndarray:
        """Places of classes as the columns that are learned."""
        columns = codes[:, None] == np.arange(len(self.classes_))
        return np.where(columns if len(self.classes_) > 2 else columns[:, 1:], 1.0, -1.0)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: a column for each class, or one number with two classes."""
        scores = self._found(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of the greatest score."""
        scores = self.decision_function(X)
        result: np.ndarray = self.classes_[
            (scores > 0).astype(int) if scores.ndim == 1 else np.argmax(scores, axis=1)
        ]
        return result


class Regressor(MultiOutputMixin, RegressorMixin, Scoring):
    """Real targets, one or several.

    Several are learned in units of their standard deviations, so that none outweighs the others.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from samples with targets; a sample of weight 2 counts as two samples."""
        X, y = validate_data(
            self,
            X,
            y,
            dtype=[np.float64, np.float32],
            ensure_min_samples=2,
            multi_output=True,
            y_numeric=True,
        )
        X, y, weight = weighted(X, np.asarray(y, np.float64), sample_weight)
        self.n_outputs_ = 1 if y.ndim == 1 else y.shape[1]
        self._single = y.ndim == 1
        Y = y.reshape(len(y), -1)
        self._units = np.ones(1) if self.n_outputs_ == 1 else standard(Y, weight)[1]
        self._fit_scores(X, Y / self._units, weight)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Targets, of the shape that they had in `fit`."""
        found = self._found(X) * self._units
        result: np.ndarray = found[:, 0] if self._single else found
        return result


def standard(values: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and standard deviation of each column; 1 for a column that is constant up to
    rounding.
    """
    mean = weight @ values / weight.sum()
    scale = np.sqrt(weight @ np.square(values - mean) / weight.sum())
    rounding = 16 * np.finfo(np.float64).eps * np.max(np.abs(values), axis=0)
    return mean, np.where(scale > rounding, scale, 1.0)


def random_key(random_state: Any) -> jax.Array:
    """A key for JAX from scikit-learn's `random_state`."""
    return new_key(int(check_random_state(random_state).randint(2**31 - 1)))
