"""Learners: algorithms that fit a model to examples from a sampler."""

from unlazy.learners.base import Learner, Trace
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.kernel import KernelRidge, KernelSVM
from unlazy.learners.mean_field import mean_field_sgd
from unlazy.learners.parts import Stage
from unlazy.learners.sources import (
    FreshGradients,
    GradientSource,
    PopulationGradients,
    QueryGradients,
    SampleGradients,
)

__all__ = [
    "Descent",
    "FreshGradients",
    "GradientDescent",
    "GradientSource",
    "KernelRidge",
    "KernelSVM",
    "Learner",
    "PopulationGradients",
    "QueryGradients",
    "SampleGradients",
    "Stage",
    "Trace",
    "mean_field_sgd",
]
