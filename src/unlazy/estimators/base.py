"""Base classes of the estimators: input validation, targets as score columns, labels from scores.

Subclasses implement `_fit_scores` and `_scores`. Parameters are dataclass fields, stored unchanged
and validated in `fit`.
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

#: Largest absolute value of inputs and targets.
LARGEST = 1e75


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class Scoring(BaseEstimator):
    """Base class of estimators that fit columns of scores."""

    @abstractmethod
    def _fit_scores(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> None:
        """Fit the columns of Y; all weights are positive."""

    @abstractmethod
    def _scores(self, X: np.ndarray) -> np.ndarray:
        """Return one column of scores per column of Y."""

    def _checked_scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        require_in_range(X=X)
        scores = self._scores(X)
        require(
            bool(np.isfinite(scores).all()),
            "X has values so far outside of the range of the training data that predictions "
            "overflow.",
        )
        return scores


def require_in_range(**arrays: np.ndarray) -> None:
    """Raise `BadInput` if squares of values could overflow in double precision."""
    for name, values in arrays.items():
        largest = float(np.max(np.abs(values), initial=0.0))
        require(
            largest <= LARGEST,
            f"{name} has values up to {largest:.1e}; at most {LARGEST:.0e} is supported. Divide "
            f"{name} by a constant.",
        )


def weighted(
    X: np.ndarray, y: np.ndarray, sample_weight: Any, *, min_samples: int = 2
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return X, y and the weights without the samples of weight 0; require `min_samples` others.

    Values out of range are refused.
    """
    require_in_range(X=X, **({"y": y} if y.dtype.kind == "f" else {}))
    if sample_weight is None:
        return X, y, np.ones(len(X))
    weight = np.asarray(sample_weight, np.float64)
    if weight.ndim == 0:
        weight = np.full(len(X), float(weight))
    require(
        weight.shape == (len(X),),
        f"sample_weight must have shape ({len(X)},), one weight per sample, got {weight.shape}.",
    )
    require(
        bool(np.all(np.isfinite(weight)) and np.all(weight >= 0)),
        "sample_weight must be finite and ≥ 0.",
    )
    keep = weight > 0
    require(
        int(keep.sum()) >= min_samples,
        f"At least {min_samples} samples must have a weight above zero, got {keep.sum()}.",
    )
    return X[keep], y[keep], weight[keep]


class Classifier(ClassifierMixin, Scoring):
    """Base class of classifiers, fitted to labels ±1.

    There is one score per class. Two classes have one score, positive for the second.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to labeled samples; a sample of weight 2 counts as two samples."""
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], ensure_min_samples=2)
        check_classification_targets(y)
        X, y, weight = weighted(X, y, sample_weight)
        self.classes_, codes = np.unique(y, return_inverse=True)
        require(
            len(self.classes_) > 1,
            "A classifier needs samples of at least 2 classes, got only class "
            f"{self.classes_[0]!r}.",
        )
        self._fit_scores(X, self._coded(codes), weight)
        return self

    def _coded(self, codes: np.ndarray) -> np.ndarray:
        """Return class indices as columns of ±1."""
        columns = codes[:, None] == np.arange(len(self.classes_))
        return np.where(columns if len(self.classes_) > 2 else columns[:, 1:], 1.0, -1.0)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores, one column per class, or a vector for two classes."""
        scores = self._checked_scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of the largest score."""
        scores = self.decision_function(X)
        result: np.ndarray = self.classes_[
            (scores > 0).astype(int) if scores.ndim == 1 else np.argmax(scores, axis=1)
        ]
        return result


class Regressor(MultiOutputMixin, RegressorMixin, Scoring):
    """Base class of regressors for one or several real targets.

    Several targets are divided by their standard deviations, so that they weigh the same.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to samples with targets; a sample of weight 2 counts as two samples."""
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
        """Return the predicted targets, shaped as in `fit`."""
        scores = self._checked_scores(X) * self._units
        result: np.ndarray = scores[:, 0] if self._single else scores
        return result


def standard(values: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return weighted mean and standard deviation per column (1 if constant up to rounding)."""
    mean = weight @ values / weight.sum()
    scale = np.sqrt(weight @ np.square(values - mean) / weight.sum())
    rounding = 16 * np.finfo(np.float64).eps * np.max(np.abs(values), axis=0)
    return mean, np.where(scale > rounding, scale, 1.0)


def random_key(random_state: Any) -> jax.Array:
    """Return a JAX key drawn from scikit-learn's `random_state`."""
    return new_key(int(check_random_state(random_state).randint(2**31 - 1)))
