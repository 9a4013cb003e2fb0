"""How far a function hides its coordinates: Fourier and Hermite support, information exponent and
leap.

A function of a few coordinates is a sum of basis functions χ_α, α = (degree in each coordinate): on
the cube products of signs (degrees 0 and 1), for Gaussian inputs products of Hermite polynomials.
The information exponent is the least degree of a non-constant part. The leap is the greatest number
of new degrees that must be found at once, in the best order: min over orders of max_i Σ_{j new in
α_i} α_ij.

Reference: Abbe, Boix-Adserà, Misiakiewicz, SGD learning on neural networks: leap complexity and
saddle-to-saddle dynamics, 2023; Ben Arous, Gheissari, Jagannath, Online stochastic gradient descent
on non-convex losses, 2021.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable

import numpy as np
from jaxtyping import Float

from unlazy.core.errors import require

#: Degrees in each of the relevant coordinates.
Index = tuple[int, ...]
Spectrum = dict[Index, float]


def corners(k: int) -> Float[np.ndarray, "2**{k} {k}"]:
    """All 2^k points of the cube {±1}^k."""
    return np.array(list(itertools.product((1.0, -1.0), repeat=k)))


def cube_spectrum(values: Float[np.ndarray, " p"]) -> Spectrum:
    """Fourier coefficients E[f(u)·Π_{j∈S} u_j] of a function given at all `corners`, exact zeros
    left out.
    """
    k = round(math.log2(len(values)))
    points = corners(k)
    found = {}
    for index in itertools.product((0, 1), repeat=k):
        coefficient = float(np.mean(values * np.prod(points ** np.array(index), axis=1)))
        if abs(coefficient) > 1e-12:
            found[index] = coefficient
    return found


def gaussian_spectrum(
    function: Callable[[np.ndarray], np.ndarray], k: int, degree: int, *, nodes: int = 32
) -> Spectrum:
    """Coefficients E[f(u)·Π_j h_{α_j}(u_j)], |α| ≤ degree, with normalised Hermite polynomials h,
    by Gauss quadrature.

    The nodes are symmetric, so that what vanishes by a symmetry of signs vanishes exactly; what is
    below 1e-6 is left out. Functions with jumps are integrated to about a percent, which serves to
    tell zero from the rest.
    """
    require(
        nodes**k <= 2**24,
        f"{nodes} nodes in each of {k} coordinates are too many: at most 2²⁴ points are meant.",
    )
    node, weight = np.polynomial.hermite_e.hermegauss(nodes)
    weight = weight / np.sum(weight)
    points = np.stack(np.meshgrid(*[node] * k, indexing="ij"), axis=-1).reshape(-1, k)
    mass = np.prod(
        np.stack(np.meshgrid(*[weight] * k, indexing="ij"), axis=-1).reshape(-1, k), axis=1
    )
    values = mass * function(points)
    basis = [
        [
            np.polynomial.hermite_e.hermeval(points[:, j], np.eye(degree + 1)[n])
            for n in range(degree + 1)
        ]
        for j in range(k)
    ]
    found = {}
    for index in itertools.product(range(degree + 1), repeat=k):
        if sum(index) <= degree:
            norm = math.sqrt(math.prod(math.factorial(n) for n in index))
            coefficient = (
                float(np.sum(values * math.prod(basis[j][n] for j, n in enumerate(index)))) / norm
            )
            if abs(coefficient) > 1e-6:
                found[index] = coefficient
    return found


def information_exponent(support: Iterable[Index]) -> int:
    """The least degree of a non-constant part; 0 where there is none."""
    return min((sum(index) for index in support if any(index)), default=0)


def leap(support: Iterable[Index]) -> int:
    """The leap.

    Taking the cheapest next part first is the best order, since every part found only makes the
    others cheaper.
    """
    waiting = [index for index in support if any(index)]
    known: set[int] = set()
    greatest = 0
    while waiting:
        cost, index = min(
            (sum(n for j, n in enumerate(index) if j not in known), index) for index in waiting
        )
        greatest = max(greatest, cost)
        known |= {j for j, n in enumerate(index) if n}
        waiting = [
            other for other in waiting if any(n and j not in known for j, n in enumerate(other))
        ]
    return greatest
