"""Quantities from theorems, and exact analysis of Boolean functions (`BooleanFunction`)."""

from unlazy.theory.walsh import (
    BooleanFunction,
    fourier,
    influences,
    points,
    risk,
    walsh_hadamard,
    weights_by_degree,
)

__all__ = [
    "BooleanFunction",
    "fourier",
    "influences",
    "points",
    "risk",
    "walsh_hadamard",
    "weights_by_degree",
]
