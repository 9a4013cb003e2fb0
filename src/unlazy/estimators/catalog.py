"""Methods for tabular data, shared by audits and UCI rankings.

Audits use the groups and hyperparameter configurations, rankings the default estimators. Linear
models belong to the fixed features: their features are the columns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.svm import SVC, SVR

from unlazy import estimators as e
from unlazy.core.metrics import Kind
from unlazy.learners.scikit_methods import BOOSTING, FOREST, ScikitMethod

Group = Literal["fixed", "learned", "tree"]
#: Labels of the groups.
GROUPS: dict[Group, str] = {
    "fixed": "fixed features",
    "learned": "learned features",
    "tree": "tree ensembles",
}


@dataclasses.dataclass(frozen=True)
class Method:
    """A method with its group, default estimator and hyperparameter configurations.

    `default(kind)` is the estimator for a kind of target. `configurations(kind, d)` are those that
    audits try on d encoded columns.
    """

    name: str
    group: Group
    default: Callable[[Kind], BaseEstimator]
    configurations: Callable[[Kind, int], list[BaseEstimator]] | None = None

    def settings(self, kind: Kind, d: int) -> list[BaseEstimator]:
        """Return the configurations for d columns, by default only the default estimator."""
        return [self.default(kind)] if self.configurations is None else self.configurations(kind, d)


#: The classifier and the regressor of each method of this package.
KERNEL_RIDGE = ScikitMethod(e.KernelRidgeClassifier, e.KernelRidgeRegressor)
NTK = ScikitMethod(e.NTKClassifier, e.NTKRegressor)
NNGP = ScikitMethod(e.ConjugateKernelClassifier, e.ConjugateKernelRegressor)
RANDOM_FEATURES = ScikitMethod(e.RandomFeatureClassifier, e.RandomFeatureRegressor)
RFM = ScikitMethod(e.RecursiveFeatureMachineClassifier, e.RecursiveFeatureMachineRegressor)
TWO_LAYER = ScikitMethod(e.TwoLayerClassifier, e.TwoLayerRegressor)
DEEP_MLP = ScikitMethod(e.DeepMLPClassifier, e.DeepMLPRegressor)
RESNET = ScikitMethod(e.ThreeLayerResNetClassifier, e.ThreeLayerResNetRegressor)
COMMITTEE = ScikitMethod(e.KernelCommitteeClassifier, e.KernelCommitteeRegressor)


def _of(method: ScikitMethod, **parameters: Any) -> Callable[[Kind], BaseEstimator]:
    return lambda kind: method.estimator(kind, **parameters)


def _kernel(name: str, power: float) -> Callable[[Kind, int], list[BaseEstimator]]:
    return lambda kind, d: [
        KERNEL_RIDGE.estimator(kind, kernel=name, gamma=factor * float(d) ** power)
        for factor in (1.0, 0.25, 4.0, 0.06)
    ]


def _wide(method: ScikitMethod) -> Callable[[Kind, int], list[BaseEstimator]]:
    parameters = ((1, 0.1), (3, 0.1), (1, 1.0), (2, 0.0))
    return lambda kind, d: [
        method.estimator(kind, depth=depth, b_variance=b) for depth, b in parameters
    ]


def _random(kind: Kind, d: int) -> list[BaseEstimator]:
    def features(**parameters: Any) -> BaseEstimator:
        return RANDOM_FEATURES.estimator(kind, random_state=0, **parameters)

    relu = [features(features="relu", width=width) for width in (500, 1500)]
    return relu + [
        features(features="fourier", width=1000, gamma=factor / d) for factor in (1.0, 0.25)
    ]


def _machines(kind: Kind, d: int) -> list[BaseEstimator]:
    return [
        RFM.estimator(kind, random_state=0),
        RFM.estimator(kind, diagonal=True, random_state=0),
    ]


def _linear(kind: Kind, d: int) -> list[BaseEstimator]:
    if kind == "regression":
        return [RidgeCV(alphas=[10.0**power for power in range(-3, 5)])]
    return [LogisticRegression(C=C, max_iter=2000) for C in (1.0, 0.1, 10.0, 0.01)]


def _forest(kind: Kind, d: int) -> list[BaseEstimator]:
    common = {"n_estimators": 200, "random_state": 0, "n_jobs": 2}
    return [
        FOREST.estimator(kind, min_samples_leaf=leaf, max_features=fraction, **common)
        for leaf, fraction in ((1, "sqrt"), (1, 0.5), (5, "sqrt"), (5, 0.5))
    ]


def _boosting(kind: Kind, d: int) -> list[BaseEstimator]:
    return [
        BOOSTING.estimator(
            kind, learning_rate=rate, max_iter=steps, max_leaf_nodes=leaves, random_state=0
        )
        for rate, steps, leaves in ((0.1, 100, 31), (0.03, 300, 8), (0.1, 300, 31), (0.1, 100, 4))
    ]


def _mlp(kind: Kind) -> BaseEstimator:
    return ScikitMethod(MLPClassifier, MLPRegressor).estimator(kind, random_state=0)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("linear", "fixed", lambda kind: _linear(kind, 1)[0], _linear),
        Method("RBF kernel", "fixed", _of(KERNEL_RIDGE, kernel="rbf"), _kernel("rbf", -1.0)),
        Method(
            "Laplace kernel",
            "fixed",
            _of(KERNEL_RIDGE, kernel="laplace"),
            _kernel("laplace", -0.5),
        ),
        Method("NTK", "fixed", _of(NTK), _wide(NTK)),
        Method("NNGP", "fixed", _of(NNGP), _wide(NNGP)),
        Method("random features", "fixed", _of(RANDOM_FEATURES, random_state=0), _random),
        Method("RFM", "learned", _of(RFM, random_state=0), _machines),
        Method("two-layer network", "learned", _of(TWO_LAYER, random_state=0)),
        Method("deep network", "learned", _of(DEEP_MLP, random_state=0)),
        Method(
            "random forest",
            "tree",
            lambda kind: FOREST.estimator(kind, n_estimators=500, random_state=0),
            _forest,
        ),
        Method(
            "gradient boosting",
            "tree",
            lambda kind: BOOSTING.estimator(kind, random_state=0),
            _boosting,
        ),
        Method("kernel committee", "fixed", _of(COMMITTEE)),
        Method("residual network", "learned", _of(RESNET, random_state=0)),
        Method("MLPClassifier", "learned", _mlp),
        Method("SVC", "fixed", ScikitMethod(SVC, SVR).estimator),
    )
}
#: Methods that an audit compares.
AUDIT: dict[str, Method] = {
    name: method
    for name, method in METHODS.items()
    if name not in ("kernel committee", "residual network", "MLPClassifier", "SVC")
}
#: Methods with default settings, under their names in rankings on UCI tables.
RANKING: dict[str, Method] = {
    **{
        name: METHODS[name]
        for name in (
            *("kernel committee", "RFM", "NTK", "Laplace kernel", "two-layer network"),
            *("residual network", "deep network", "random features"),
        )
    },
    **{
        f"{name} (scikit-learn)": METHODS[name]
        for name in ("MLPClassifier", "random forest", "SVC")
    },
}
