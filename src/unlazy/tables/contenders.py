"""Who competes on a table: fixed features, learned features, and the plain methods that people
would use.

A linear model has fixed features, the columns themselves: where it is best, nothing has to be
learned.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

from sklearn.base import BaseEstimator
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, RidgeCV

from unlazy import estimators as e
from unlazy.tasks.tables.problems import Kind

Side = Literal["fixed", "learned", "plain"]
#: What each side is called in a sentence.
SIDES: dict[Side, str] = {
    "fixed": "fixed features",
    "learned": "learned features",
    "plain": "plain methods",
}


@dataclasses.dataclass(frozen=True)
class Contender:
    """A method by name, its side, and the settings that tuning tries for a number of columns, the
    first being the default.
    """

    name: str
    side: Side
    settings: Callable[[Kind, int], list[BaseEstimator]]


def _of(stem: str, kind: Kind, **numbers: Any) -> BaseEstimator:
    return getattr(e, stem + ("Classifier" if kind == "classification" else "Regressor"))(**numbers)


def _kernel(name: str, power: float) -> Callable[[Kind, int], list[BaseEstimator]]:
    return lambda kind, d: [
        _of("KernelRidge", kind, kernel=name, gamma=factor * float(d) ** power)
        for factor in (1.0, 0.25, 4.0, 0.06)
    ]


def _wide(stem: str) -> Callable[[Kind, int], list[BaseEstimator]]:
    numbers = ((1, 0.1), (3, 0.1), (1, 1.0), (2, 0.0))
    return lambda kind, d: [_of(stem, kind, depth=depth, b_variance=b) for depth, b in numbers]


def _random(kind: Kind, d: int) -> list[BaseEstimator]:
    relu = [
        _of("RandomFeature", kind, features="relu", width=width, random_state=0)
        for width in (500, 1500)
    ]
    waves = [
        _of("RandomFeature", kind, features="fourier", width=1000, gamma=factor / d, random_state=0)
        for factor in (1.0, 0.25)
    ]
    return relu + waves


def _machines(kind: Kind, d: int) -> list[BaseEstimator]:
    return [
        _of("RecursiveFeatureMachine", kind, random_state=0),
        _of("RecursiveFeatureMachine", kind, diagonal=True, random_state=0),
    ]


def _linear(kind: Kind, d: int) -> list[BaseEstimator]:
    if kind == "regression":
        return [RidgeCV(alphas=[10.0**power for power in range(-3, 5)])]
    return [LogisticRegression(C=C, max_iter=2000) for C in (1.0, 0.1, 10.0, 0.01)]


def _forest(kind: Kind, d: int) -> list[BaseEstimator]:
    forest = RandomForestClassifier if kind == "classification" else RandomForestRegressor
    settings = ((1, "sqrt"), (1, 0.5), (5, "sqrt"), (5, 0.5))
    return [
        forest(200, min_samples_leaf=leaf, max_features=share, random_state=0, n_jobs=2)
        for leaf, share in settings
    ]


def _boosting(kind: Kind, d: int) -> list[BaseEstimator]:
    boosting = (
        HistGradientBoostingClassifier
        if kind == "classification"
        else HistGradientBoostingRegressor
    )
    settings = ((0.1, 100, 31), (0.03, 300, 8), (0.1, 300, 31), (0.1, 100, 4))
    return [
        boosting(learning_rate=rate, max_iter=steps, max_leaf_nodes=leaves, random_state=0)
        for rate, steps, leaves in settings
    ]


CONTENDERS: dict[str, Contender] = {
    contender.name: contender
    for contender in (
        Contender("linear", "fixed", _linear),
        Contender("RBF kernel", "fixed", _kernel("rbf", -1.0)),
        Contender("Laplace kernel", "fixed", _kernel("laplace", -0.5)),
        Contender("NTK", "fixed", _wide("NTK")),
        Contender("NNGP", "fixed", _wide("ConjugateKernel")),
        Contender("random features", "fixed", _random),
        Contender("RFM", "learned", _machines),
        Contender(
            "two-layer network", "learned", lambda kind, d: [_of("TwoLayer", kind, random_state=0)]
        ),
        Contender(
            "deep network", "learned", lambda kind, d: [_of("DeepMLP", kind, random_state=0)]
        ),
        Contender("random forest", "plain", _forest),
        Contender("gradient boosting", "plain", _boosting),
    )
}
