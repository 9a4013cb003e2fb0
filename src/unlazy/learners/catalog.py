"""Built-in learners by name, for any task.

Their hyperparameters are the first values that tuning tries.
"""

from __future__ import annotations

import importlib

from unlazy.core.naming import Deferred, Entry
from unlazy.kernels.catalog import kernel_named
from unlazy.kernels.feature_maps import RandomFeatures, RawFeatures
from unlazy.kernels.patchwise import ConvolutionalNTK, RandomConvolutions
from unlazy.learners.direction import DirectionHistogram
from unlazy.learners.features import FeatureRidge, LogisticRegression
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.kernel import KernelRidge, KernelSVM, TangentFeatures
from unlazy.learners.mean_field import MeanFieldSGD
from unlazy.learners.on_features import OnFeatures
from unlazy.learners.one_step import first_step_network, one_step_readout
from unlazy.learners.rfm import RecursiveFeatureMachine
from unlazy.learners.unit_norm import UnitNorm
from unlazy.networks.inits import AntisymmetricInit, TangentInit

#: Networks have 2·M neurons in antisymmetric pairs.
M = 100


def _network(init: AntisymmetricInit | TangentInit, rates: dict[str, float]) -> UnitNorm:
    descent = Descent(rates, steps=2000, batch=100, loss="natural", momentum=0.9, drop=0.75)
    return UnitNorm.of(GradientDescent(init, (descent,)))


_RELU = AntisymmetricInit(m=M, w_scale=1.0, b_scale=0.5, a_scale=0.1, activation="relu")


def _scikit(name: str) -> Deferred:
    """Return a scikit-learn method, imported on first use because the import takes a second."""
    module = "unlazy.learners.scikit_methods"
    return Deferred(lambda: getattr(importlib.import_module(module), name).learner)


_KERNELS = {
    "polynomial": "polynomial kernel of degree 2 to 7, ridge regression",
    "quadratic": "kernel ⟨x, z⟩² (all products of two coordinates), ridge regression",
    "rbf": "Gaussian kernel exp(−γ‖x − z‖²), ridge regression",
    "laplace": "Laplace kernel exp(−γ‖x − z‖), ridge regression",
    "arc-cosine": "arc-cosine kernel (limit of random ReLU features), ridge regression",
    "arcsine": "arcsine kernel (limit of random erf features), ridge regression",
    "nngp": "NNGP kernel of a ReLU network of depth 1 to 3, ridge regression",
    "ntk": "NTK of a ReLU network of depth 1 to 3, ridge regression",
}
LEARNERS = {
    "linear": Entry(FeatureRidge(RawFeatures()), "linear model, ridge regression"),
    "logistic": Entry(LogisticRegression(RawFeatures()), "linear model, logistic regression"),
    "linear-kernel": Entry(KernelRidge(kernel_named("linear")), "linear kernel, ridge regression"),
    **{name: Entry(KernelRidge(kernel_named(name)), summary) for name, summary in _KERNELS.items()},
    "convolutional-ntk": Entry(
        KernelRidge(ConvolutionalNTK()),
        "convolutional NTK of depth 1 to 3, ridge regression",
    ),
    "convolutional-rbf": Entry(
        OnFeatures.of(KernelRidge(kernel_named("rbf")), RandomConvolutions()),
        "Gaussian kernel on 200 random ReLU filters with average pooling, ridge regression",
    ),
    "rbf-svm": Entry(KernelSVM(kernel_named("rbf")), "Gaussian kernel, support vector machine"),
    "ntk-svm": Entry(KernelSVM(kernel_named("ntk")), "NTK, support vector machine"),
    "relu-features": Entry(
        FeatureRidge(RandomFeatures("relu")), "2000 random ReLU features, ridge regression"
    ),
    "truncated-relu-features": Entry(
        FeatureRidge(RandomFeatures("truncated_relu")),
        "2000 random truncated ReLU features, ridge regression",
    ),
    "convolutional-features": Entry(
        FeatureRidge(RandomConvolutions()),
        "200 random ReLU filters with average pooling, ridge regression",
    ),
    "fourier-features": Entry(
        FeatureRidge(RandomFeatures("fourier")), "2000 random Fourier features, ridge regression"
    ),
    "tangent-features": Entry(
        KernelRidge(TangentFeatures(_RELU)),
        "gradients of a random ReLU network of 200 neurons, ridge regression",
    ),
    "relu-features-sgd": Entry(
        _network(_RELU, {"a": 0.05}),
        "200 random ReLU features, SGD on the second layer",
    ),
    "tangent-sgd": Entry(
        _network(TangentInit(_RELU), {"w": 0.01, "b": 0.01, "a": 0.01}),
        "linearized ReLU network of 200 neurons, SGD",
    ),
    "network": Entry(
        _network(_RELU, {"w": 0.1, "b": 0.1, "a": 0.1}),
        "two-layer ReLU network of 200 neurons, SGD",
    ),
    "one-step": Entry(
        UnitNorm.of(one_step_readout()),
        "two-layer ReLU network, one large gradient step, then ridge regression on its neurons",
    ),
    "one-step-network": Entry(
        UnitNorm.of(first_step_network()),
        "as one-step, with SGD on both layers before the ridge regression",
    ),
    "sgd": Entry(
        MeanFieldSGD(),
        "two-layer ReLU network in mean-field scaling, one-pass SGD with batch size d",
    ),
    "sgd-frozen": Entry(MeanFieldSGD(freeze_second=True), "as sgd, only the first layer trained"),
    "sgd-bias": Entry(
        MeanFieldSGD(bias=True),
        "as sgd, with biases (needed for odd parities)",
    ),
    "rfm": Entry(
        RecursiveFeatureMachine(),
        "recursive feature machine, a Laplace kernel with learned metric",
    ),
    "random-forest": Entry(_scikit("FOREST"), "random forest (scikit-learn)"),
    "gradient-boosting": Entry(_scikit("BOOSTING"), "histogram gradient boosting (scikit-learn)"),
    "knn": Entry(_scikit("NEIGHBORS"), "nearest neighbors (scikit-learn)"),
    "mean-histogram": Entry(
        DirectionHistogram("mean"), "mean label per bin along the direction E[y·x]"
    ),
    "principal-histogram": Entry(
        DirectionHistogram("principal"),
        "mean label per bin along the first principal component",
    ),
}
