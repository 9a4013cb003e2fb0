"""scikit-learn's estimator checks on every estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from unlazy import estimators as e

#: Small and short, so that hundreds of fits take seconds.
NET = {
    "width": 32,
    "min_steps": 200,
    "max_steps": 200,
    "learning_rate": 0.01,
    "weight_decay": 1e-3,
    "early_stopping": False,
    "ensemble": 1,
}
#: One with a direct solution, and one trained.
ESTIMATORS = [e.KernelRidgeRegressor(), e.TwoLayerClassifier(**NET)]
#: The others share the code of their fits and predictions with one of these.
VARIANTS = [
    e.NTKClassifier(),
    e.NTKRegressor(),
    e.KernelRidgeClassifier(),
    e.KernelCommitteeClassifier(kernels=("laplace", "rbf")),
    e.KernelCommitteeRegressor(kernels=("laplace", "rbf")),
    e.RandomFeatureClassifier(width=100),
    e.RandomFeatureRegressor(width=100),
    e.TwoLayerRegressor(**NET),
    e.RecursiveFeatureMachineClassifier(iterations=1),
    e.RecursiveFeatureMachineRegressor(iterations=1),
    e.ConjugateKernelClassifier(),
    e.ConjugateKernelRegressor(),
    e.ThreeLayerResNetClassifier(**NET),
    e.ThreeLayerResNetRegressor(**NET),
    e.DeepMLPClassifier(**NET),
    e.DeepMLPRegressor(**NET),
]


@parametrize_with_checks(ESTIMATORS)
def test_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(VARIANTS)
def test_contract_of_variants(estimator, check):
    check(estimator)


def test_every_estimator_is_checked():
    names = {type(estimator).__name__ for estimator in [*ESTIMATORS, *VARIANTS]}
    assert names == set(e.__all__)


@pytest.mark.parametrize("name", e.__all__)
def test_every_estimator_is_documented_with_its_parameters(name):
    kind = getattr(e, name)
    text = " ".join(
        base.__doc__ or "" for base in kind.__mro__ if base.__module__.startswith("unlazy")
    )
    missing = [parameter for parameter in kind().get_params() if parameter not in text]
    assert not missing
