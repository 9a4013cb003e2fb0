"""Numbers from theorems; and functions of signs, exactly: see `CubeFunction`."""

from unlazy.theory.walsh import (
    CubeFunction,
    fourier,
    influences,
    points,
    risk,
    walsh_hadamard,
    weights_by_degree,
)

__all__ = [
    "CubeFunction",
    "fourier",
    "influences",
    "points",
    "risk",
    "walsh_hadamard",
    "weights_by_degree",
]
