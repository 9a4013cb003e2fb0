"""Numbers from theorems; and functions of signs, exactly: see `BooleanFunction`."""

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
