"""scikit-learn methods shared by benchmarks, audits and rankings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from unlazy.core.metrics import Kind
from unlazy.learners.adapters import ScikitLearner


@dataclasses.dataclass(frozen=True)
class ScikitMethod:
    """A classifier, the regressor of the same method, and the grid for tuning in benchmarks."""

    classifier: type[BaseEstimator]
    regressor: type[BaseEstimator]
    grid: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)

    def estimator(self, kind: Kind, **parameters: Any) -> BaseEstimator:
        """Return the estimator for a kind of target."""
        chosen = self.classifier if kind == "classification" else self.regressor
        return chosen(**parameters)

    @property
    def learner(self) -> ScikitLearner:
        """The method as a learner."""
        return ScikitLearner.of(self.classifier(), regressor=self.regressor(), grid=self.grid)


FOREST = ScikitMethod(
    RandomForestClassifier,
    RandomForestRegressor,
    {
        "max_features": ["sqrt", 0.2, 0.5, 1.0],
        "min_samples_leaf": [1, 3, 10],
        "max_depth": [None, 8],
    },
)
BOOSTING = ScikitMethod(
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    {
        "learning_rate": [0.03, 0.1, 0.3],
        "max_leaf_nodes": [4, 31],
        "l2_regularization": [0.0, 10.0],
    },
)
NEIGHBORS = ScikitMethod(
    KNeighborsClassifier,
    KNeighborsRegressor,
    {
        "n_neighbors": [1, 2, 3, 5, 8, 13, 21, 34],
        "weights": ["uniform", "distance"],
        "metric": ["euclidean"],
    },
)
