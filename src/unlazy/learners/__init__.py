"""Learners: algorithms that are handed a sampler and a number of examples."""

from unlazy.learners.base import Learner, Trace
from unlazy.learners.emergence import TwoStep
from unlazy.learners.gradient import Descent, GradientDescent, Stage
from unlazy.learners.mean_field import SphereInit, mean_field_sgd
from unlazy.learners.readout import RidgeReadout

__all__ = ["Descent", "GradientDescent", "Learner", "RidgeReadout", "SphereInit", "Stage", "Trace", "TwoStep", "mean_field_sgd"]
