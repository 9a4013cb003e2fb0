"""Kernels: fixed features, given by their inner products."""

from unlazy.kernels.base import Kernel, Points, ProductKernel, squared_norm
from unlazy.kernels.finite import Conjugate, Tangent, conjugate_gram, tangent_gram
from unlazy.kernels.gram import BLOCK, gram
from unlazy.kernels.products import ArcCosine, ArcSine, Linear, Polynomial
from unlazy.kernels.residual import ResidualNNGP, ResidualNTK
from unlazy.kernels.stationary import RBF, Laplace, Stationary
from unlazy.kernels.wide import NNGP, NTK, WideNetwork

__all__ = [
    "BLOCK",
    "NNGP",
    "NTK",
    "RBF",
    "ArcCosine",
    "ArcSine",
    "Conjugate",
    "Kernel",
    "Laplace",
    "Linear",
    "Points",
    "Polynomial",
    "ProductKernel",
    "ResidualNNGP",
    "ResidualNTK",
    "Stationary",
    "Tangent",
    "WideNetwork",
    "conjugate_gram",
    "gram",
    "squared_norm",
    "tangent_gram",
]
