"""Kernels and feature maps."""

from unlazy.kernels.base import BLOCK, Kernel, Points, ProductKernel, squared_norm
from unlazy.kernels.catalog import KERNELS, kernel_named
from unlazy.kernels.feature_maps import (
    FeatureMap,
    Features,
    RandomFeatures,
    RandomGradients,
    RawFeatures,
)
from unlazy.kernels.finite import Conjugate, Tangent
from unlazy.kernels.gram import gram
from unlazy.kernels.products import ArcCosine, ArcSine, Linear, Polynomial
from unlazy.kernels.residual import ResidualNNGP, ResidualNTK
from unlazy.kernels.stationary import RBF, Laplace, Stationary
from unlazy.kernels.wide import NNGP, NTK, WideNetwork

__all__ = [
    "BLOCK",
    "KERNELS",
    "NNGP",
    "NTK",
    "RBF",
    "ArcCosine",
    "ArcSine",
    "Conjugate",
    "FeatureMap",
    "Features",
    "Kernel",
    "Laplace",
    "Linear",
    "Points",
    "Polynomial",
    "ProductKernel",
    "RandomFeatures",
    "RandomGradients",
    "RawFeatures",
    "ResidualNNGP",
    "ResidualNTK",
    "Stationary",
    "Tangent",
    "WideNetwork",
    "gram",
    "kernel_named",
    "squared_norm",
]
