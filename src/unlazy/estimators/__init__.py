"""scikit-learn estimators: kernels of wide networks, random features, trained networks and
recursive feature machines.
"""

from unlazy.estimators.committee import KernelCommitteeClassifier, KernelCommitteeRegressor
from unlazy.estimators.features import RandomFeatureClassifier, RandomFeatureRegressor
from unlazy.estimators.kernel import (
    ConjugateKernelClassifier,
    ConjugateKernelRegressor,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    NTKClassifier,
    NTKRegressor,
)
from unlazy.estimators.network import (
    DeepMLPClassifier,
    DeepMLPRegressor,
    ThreeLayerResNetClassifier,
    ThreeLayerResNetRegressor,
    TwoLayerClassifier,
    TwoLayerRegressor,
)
from unlazy.estimators.recursion import (
    RecursiveFeatureMachineClassifier,
    RecursiveFeatureMachineRegressor,
)

__all__ = [
    "ConjugateKernelClassifier",
    "ConjugateKernelRegressor",
    "DeepMLPClassifier",
    "DeepMLPRegressor",
    "KernelCommitteeClassifier",
    "KernelCommitteeRegressor",
    "KernelRidgeClassifier",
    "KernelRidgeRegressor",
    "NTKClassifier",
    "NTKRegressor",
    "RandomFeatureClassifier",
    "RandomFeatureRegressor",
    "RecursiveFeatureMachineClassifier",
    "RecursiveFeatureMachineRegressor",
    "ThreeLayerResNetClassifier",
    "ThreeLayerResNetRegressor",
    "TwoLayerClassifier",
    "TwoLayerRegressor",
]
