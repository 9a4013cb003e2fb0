"""The shelf: learners for any task, by name.

Their numbers are where tuning starts; a contest gives all of them the same budget.
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

#: Neurons of networks and of finite-width features: 2·M in mirrored pairs, so that the initial
#: network is zero.
M = 100


def _network(init: AntisymmetricInit | TangentInit, rates: dict[str, float]) -> UnitNorm:
    descent = Descent(rates, steps=2000, batch=100, loss="natural", momentum=0.9, drop=0.75)
    return UnitNorm.of(GradientDescent(init, (descent,)))


_RELU = AntisymmetricInit(m=M, w_scale=1.0, b_scale=0.5, a_scale=0.1, activation="relu")


def _scikit(name: str) -> Deferred:
    """Return a method of scikit-learn, whose import takes a second, when it is first used."""
    module = "unlazy.learners.scikit_methods"
    return Deferred(lambda: getattr(importlib.import_module(module), name).learner)


_KERNELS = {
    "polynomial": "polynomial kernel, ridge regression; degree 2 to 7",
    "quadratic": "products of two coordinates alone, ⟨x, z⟩², ridge regression",
    "rbf": "Gaussian kernel, ridge regression",
    "laplace": "Laplace kernel exp(−γ‖x − z‖), ridge regression",
    "arc-cosine": "arc-cosine kernel: infinitely many random ReLU features",
    "arcsine": "arcsine kernel: infinitely many random erf features",
    "nngp": "conjugate kernel of an infinitely wide ReLU network; depth 1 to 3",
    "ntk": "tangent kernel of an infinitely wide ReLU network; depth 1 to 3",
}
LEARNERS = {
    "linear": Entry(FeatureRidge(RawFeatures()), "linear model, ridge regression"),
    "logistic": Entry(LogisticRegression(RawFeatures()), "linear model, logistic regression"),
    "linear-kernel": Entry(
        KernelRidge(kernel_named("linear")), "the linear model again, solved with its kernel"
    ),
    **{name: Entry(KernelRidge(kernel_named(name)), what) for name, what in _KERNELS.items()},
    "convolutional-ntk": Entry(
        KernelRidge(ConvolutionalNTK()),
        "tangent kernel of a convolutional network with infinitely many filters; depth 1 to 3",
    ),
    "convolutional-rbf": Entry(
        OnFeatures.of(KernelRidge(kernel_named("rbf")), RandomConvolutions()),
        "Gaussian kernel on 200 random filters, averaged over parts",
    ),
    "rbf-svm": Entry(KernelSVM(kernel_named("rbf")), "Gaussian kernel, support vector machine"),
    "ntk-svm": Entry(KernelSVM(kernel_named("ntk")), "tangent kernel, support vector machine"),
    "relu-features": Entry(
        FeatureRidge(RandomFeatures("relu")), "2000 random ReLU features, ridge regression"
    ),
    "truncated-relu-features": Entry(
        FeatureRidge(RandomFeatures("truncated_relu")), "2000 random truncated ReLU features, ridge"
    ),
    "convolutional-features": Entry(
        FeatureRidge(RandomConvolutions()),
        "200 random ReLU filters, averaged over parts of a picture, ridge",
    ),
    "fourier-features": Entry(
        FeatureRidge(RandomFeatures("fourier")), "2000 random Fourier features, ridge regression"
    ),
    "tangent-features": Entry(
        KernelRidge(TangentFeatures(_RELU)),
        "all derivatives of a random ReLU network of 200 neurons, ridge regression",
    ),
    "relu-features-sgd": Entry(
        _network(_RELU, {"a": 0.05}),
        "200 random ReLU features, gradient descent on the second layer",
    ),
    "tangent-sgd": Entry(
        _network(TangentInit(_RELU), {"w": 0.01, "b": 0.01, "a": 0.01}),
        "tangent model of 200 neurons, gradient descent",
    ),
    "network": Entry(
        _network(_RELU, {"w": 0.1, "b": 0.1, "a": 0.1}),
        "two-layer ReLU network of 200 neurons, gradient descent",
    ),
    "one-step": Entry(
        UnitNorm.of(one_step_readout()),
        "two-layer ReLU network after one large step, and the best readout of its neurons",
    ),
    "one-step-network": Entry(
        UnitNorm.of(first_step_network()),
        "the same with gradient descent on both layers before the readout",
    ),
    "sgd": Entry(
        MeanFieldSGD(),
        "two-layer ReLU network in mean-field scaling, one pass of SGD, fresh minibatches of d "
        "examples",
    ),
    "sgd-frozen": Entry(MeanFieldSGD(freeze_second=True), "the same, the first layer alone"),
    "sgd-bias": Entry(
        MeanFieldSGD(bias=True),
        "the same on both layers, with a constant coordinate, for odd parities",
    ),
    "rfm": Entry(
        RecursiveFeatureMachine(),
        "recursive feature machine: a Laplace kernel that learns its metric",
    ),
    "random-forest": Entry(_scikit("FOREST"), "random forest by scikit-learn"),
    "gradient-boosting": Entry(_scikit("BOOSTING"), "histogram gradient boosting by scikit-learn"),
    "knn": Entry(_scikit("NEIGHBORS"), "nearest neighbors by scikit-learn"),
    "mean-histogram": Entry(
        DirectionHistogram("mean"), "the direction E[y·x] and a histogram of the label along it"
    ),
    "principal-histogram": Entry(
        DirectionHistogram("principal"),
        "the top principal direction and a histogram of the label along it",
    ),
}
