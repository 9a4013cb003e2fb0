"""Measure when networks trained by gradient descent learn features, and when that beats fixed
features.

Data flow:

    paper - claim - study -> trials -> engine -> records -> verdict -> table, figure, page

Public names are imported on first use, so that `import unlazy` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from unlazy.api import audit, compare, readings, reproduce, scaling
    from unlazy.core.activations import activation_of
    from unlazy.core.errors import BadInput, StoreError, UnlazyError, require
    from unlazy.core.metrics import Metric, Outputs
    from unlazy.core.naming import Entry
    from unlazy.core.random import bernoulli, categorical, normal, orthonormal, rademacher
    from unlazy.kernels import (
        NNGP,
        NTK,
        RBF,
        ArcCosine,
        ArcSine,
        Conjugate,
        Kernel,
        Laplace,
        Linear,
        Polynomial,
        ProductKernel,
        RandomFeatures,
        RawFeatures,
        ResidualNNGP,
        ResidualNTK,
        Stationary,
        Tangent,
        WideNetwork,
        gram,
    )
    from unlazy.lab.arms import Arm, Comparison, Repeats, Row, Tuned
    from unlazy.lab.claims import Claim, Plot, PlotLine
    from unlazy.lab.conditions import Condition
    from unlazy.lab.engines import Engine, LocalEngine
    from unlazy.lab.readings import OpenSetting, Reading
    from unlazy.lab.rules import (
        Change,
        Check,
        Control,
        Published,
        Quantity,
        Scale,
        arm,
        arms,
        shuffled,
        variants,
    )
    from unlazy.lab.store import Store
    from unlazy.lab.trials import ExactComputation, Measurement, Record, Trial
    from unlazy.learners.adapters import HostModel, ScikitLearner
    from unlazy.learners.base import Learner, PlainLearner, Trace, keys_of
    from unlazy.learners.features import FeatureRidge, LogisticRegression
    from unlazy.learners.gradient import Descent, GradientDescent
    from unlazy.learners.holdout import HoldOut
    from unlazy.learners.kernel import KernelRidge, KernelSVM
    from unlazy.learners.on_features import OnFeatures
    from unlazy.learners.parts import Stage
    from unlazy.learners.rfm import RecursiveFeatureMachine
    from unlazy.learners.sources import (
        FreshGradients,
        GradientSource,
        PopulationGradients,
        QueryGradients,
        SampleGradients,
    )
    from unlazy.learners.unit_norm import UnitNorm
    from unlazy.networks.adapters import ModuleInit, ModuleNetwork
    from unlazy.networks.base import Init, Model, Network, Predictor
    from unlazy.networks.convolutional import Convolutional, ConvolutionalInit
    from unlazy.networks.image_resnet import ImageResNetInit
    from unlazy.networks.inits import (
        AntisymmetricInit,
        PlainInit,
        ResNetInit,
        SphereInit,
        TangentInit,
    )
    from unlazy.networks.two_layer import TwoLayer
    from unlazy.probes import Alignment, ModelProbe, Performance, Probe
    from unlazy.studies.benchmark import Benchmark
    from unlazy.tasks.base import Batch, Data, Family, Population, Sampler, Task, WeightedBatch
    from unlazy.tasks.dictionary.patterns import ParityMixture
    from unlazy.tasks.images.families import ImageClasses, ImagePatches, StackedDigits
    from unlazy.tasks.multi_index import MultiIndex

#: Where each name is found. The imports above say the same to type checkers.
_PLACES = {
    "unlazy.core.activations": "activation_of",
    "unlazy.core.errors": "BadInput StoreError UnlazyError require",
    "unlazy.core.metrics": "Metric Outputs",
    "unlazy.core.naming": "Entry",
    "unlazy.core.random": "bernoulli categorical normal orthonormal rademacher",
    "unlazy.kernels": "NNGP NTK RBF ArcCosine ArcSine Kernel Laplace "
    "Linear Polynomial ProductKernel "
    "RandomFeatures RawFeatures ResidualNNGP ResidualNTK Stationary Tangent Conjugate "
    "WideNetwork gram",
    "unlazy.api": "audit compare readings reproduce scaling",
    "unlazy.lab.arms": "Arm Comparison Repeats Row Tuned",
    "unlazy.lab.claims": "Claim Plot PlotLine",
    "unlazy.studies.benchmark": "Benchmark",
    "unlazy.lab.engines": "Engine LocalEngine",
    "unlazy.lab.readings": "OpenSetting Reading",
    "unlazy.lab.conditions": "Condition",
    "unlazy.lab.rules": "Change Check Control Published Quantity Scale arm arms shuffled variants",
    "unlazy.lab.store": "Store",
    "unlazy.lab.trials": "ExactComputation Measurement Record Trial",
    "unlazy.learners.base": "Learner PlainLearner Trace keys_of",
    "unlazy.learners.features": "FeatureRidge LogisticRegression",
    "unlazy.learners.adapters": "HostModel ScikitLearner",
    "unlazy.learners.gradient": "Descent GradientDescent",
    "unlazy.learners.holdout": "HoldOut",
    "unlazy.learners.kernel": "KernelRidge KernelSVM",
    "unlazy.learners.on_features": "OnFeatures",
    "unlazy.learners.parts": "Stage",
    "unlazy.learners.rfm": "RecursiveFeatureMachine",
    "unlazy.learners.sources": "FreshGradients GradientSource PopulationGradients "
    "QueryGradients SampleGradients",
    "unlazy.learners.unit_norm": "UnitNorm",
    "unlazy.networks.base": "Init Model Network Predictor",
    "unlazy.networks.convolutional": "Convolutional ConvolutionalInit",
    "unlazy.networks.adapters": "ModuleInit ModuleNetwork",
    "unlazy.networks.image_resnet": "ImageResNetInit",
    "unlazy.networks.inits": "AntisymmetricInit PlainInit ResNetInit SphereInit TangentInit",
    "unlazy.networks.two_layer": "TwoLayer",
    "unlazy.probes": "Alignment ModelProbe Performance Probe",
    "unlazy.tasks.base": "Batch Data Family Population Sampler Task WeightedBatch",
    "unlazy.tasks.dictionary.patterns": "ParityMixture",
    "unlazy.tasks.images.families": "ImageClasses ImagePatches StackedDigits",
    "unlazy.tasks.multi_index": "MultiIndex",
}
_HOMES = {name: module for module, names in _PLACES.items() for name in names.split()}
#: Sub-packages that can be reached as attributes without being imported by name.
_LAYERS = (
    *("core", "tasks", "networks", "kernels", "solvers", "learners", "probes"),
    *("theory", "lab", "papers", "estimators", "tables", "report", "play", "cli"),
)

#: Former names, accepted with a warning for one release.
_RENAMED = {
    "Contest": "Benchmark",
    "Instrument": "ExactComputation",
    "LawGradients": "PopulationGradients",
    "MirroredInit": "AntisymmetricInit",
    "Named": "Entry",
    "signs": "rademacher",
}

__all__ = [
    "NNGP",
    "NTK",
    "RBF",
    "Alignment",
    "AntisymmetricInit",
    "ArcCosine",
    "ArcSine",
    "Arm",
    "BadInput",
    "Batch",
    "Benchmark",
    "Change",
    "Check",
    "Claim",
    "Comparison",
    "Condition",
    "Conjugate",
    "Control",
    "Convolutional",
    "ConvolutionalInit",
    "Data",
    "Descent",
    "Engine",
    "Entry",
    "ExactComputation",
    "Family",
    "FeatureRidge",
    "FreshGradients",
    "GradientDescent",
    "GradientSource",
    "HoldOut",
    "HostModel",
    "ImageClasses",
    "ImagePatches",
    "ImageResNetInit",
    "Init",
    "Kernel",
    "KernelRidge",
    "KernelSVM",
    "Laplace",
    "Learner",
    "Linear",
    "LocalEngine",
    "LogisticRegression",
    "Measurement",
    "Metric",
    "Model",
    "ModelProbe",
    "ModuleInit",
    "ModuleNetwork",
    "MultiIndex",
    "Network",
    "OnFeatures",
    "OpenSetting",
    "Outputs",
    "ParityMixture",
    "Performance",
    "PlainInit",
    "PlainLearner",
    "Plot",
    "PlotLine",
    "Polynomial",
    "Population",
    "PopulationGradients",
    "Predictor",
    "Probe",
    "ProductKernel",
    "Published",
    "Quantity",
    "QueryGradients",
    "RandomFeatures",
    "RawFeatures",
    "Reading",
    "Record",
    "RecursiveFeatureMachine",
    "Repeats",
    "ResNetInit",
    "ResidualNNGP",
    "ResidualNTK",
    "Row",
    "SampleGradients",
    "Sampler",
    "Scale",
    "ScikitLearner",
    "SphereInit",
    "StackedDigits",
    "Stage",
    "Stationary",
    "Store",
    "StoreError",
    "Tangent",
    "TangentInit",
    "Task",
    "Trace",
    "Trial",
    "Tuned",
    "TwoLayer",
    "UnitNorm",
    "UnlazyError",
    "WeightedBatch",
    "WideNetwork",
    "__version__",
    "activation_of",
    "arm",
    "arms",
    "audit",
    "bernoulli",
    "categorical",
    "compare",
    "gram",
    "keys_of",
    "normal",
    "orthonormal",
    "rademacher",
    "readings",
    "reproduce",
    "require",
    "scaling",
    "shuffled",
    "variants",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name in _LAYERS:
        return importlib.import_module(f"unlazy.{name}")
    if name in _RENAMED:
        from unlazy.core.deprecation import warn_renamed

        warn_renamed(f"unlazy.{name}", f"unlazy.{_RENAMED[name]}")
        return __getattr__(_RENAMED[name])
    if name not in _HOMES:
        import difflib

        near = difflib.get_close_matches(name, [*_HOMES, *_LAYERS], n=2, cutoff=0.5)
        # Wrong case is the most common mistake, and difflib ranks it low: ntk for NTK.
        near = [known for known in _HOMES if known.lower() == name.lower()] or near
        hint = (
            f" Did you mean {' or '.join(map(repr, near))}?"
            if near and not name.startswith("__")
            else ""
        )
        raise AttributeError(f"module 'unlazy' has no attribute {name!r}.{hint}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_LAYERS})
