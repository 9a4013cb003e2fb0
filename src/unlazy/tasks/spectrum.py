"""Fourier and Hermite support, information exponent and leap of a function of few coordinates.

Such a function is a sum of basis functions χ_α, α = (degree in each coordinate): on the cube
products of signs (degrees 0 and 1), for Gaussian inputs products of Hermite polynomials. The
information exponent is the smallest degree of a non-constant part. The leap is the largest number
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
    """Return all 2^k points of the cube {±1}^k."""
    return np.array(list(itertools.product((1.0, -1.0), repeat=k)))


def cube_spectrum(values: Float[np.ndarray, " p"]) -> Spectrum:
    """Return the nonzero Fourier coefficients E[f(u)·Π_{j∈S} u_j].

    `values` are those of f at all `corners`.
    """
    k = round(math.log2(len(values)))
    points = corners(k)
    spectrum = {}
    for index in itertools.product((0, 1), repeat=k):
        coefficient = float(np.mean(values * np.prod(points ** np.array(index), axis=1)))
        if abs(coefficient) > 1e-12:
            spectrum[index] = coefficient
    return spectrum


def gaussian_spectrum(
    function: Callable[[np.ndarray], np.ndarray], k: int, degree: int, *, nodes: int = 32
) -> Spectrum:
    """Return the coefficients E[f(u)·Π_j h_{α_j}(u_j)], |α| ≤ degree, by Gauss quadrature.

    h are normalized Hermite polynomials. The nodes are symmetric, so that coefficients that vanish
    by a sign symmetry vanish exactly; coefficients below 1e-6 are omitted. Functions with jumps are
    integrated to about one percent, enough to separate zero from nonzero.
    """
    require(
        nodes**k <= 2**24,
        f"nodes^k must be at most 2²⁴, got {nodes}^{k}.",
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
    spectrum = {}
    for index in itertools.product(range(degree + 1), repeat=k):
        if sum(index) <= degree:
            norm = math.sqrt(math.prod(math.factorial(n) for n in index))
            coefficient = (
                float(np.sum(values * math.prod(basis[j][n] for j, n in enumerate(index)))) / norm
            )
            if abs(coefficient) > 1e-6:
                spectrum[index] = coefficient
    return spectrum


def information_exponent(support: Iterable[Index]) -> int:
    """Return the smallest degree of a non-constant part, or 0 if there is none."""
    return min((sum(index) for index in support if any(index)), default=0)


def leap(support: Iterable[Index]) -> int:
    """Return the leap.

    Adding the cheapest next part first is optimal, since every part only makes the others cheaper.
    """
    remaining = [index for index in support if any(index)]
    known: set[int] = set()
    largest = 0
    while remaining:
        cost, index = min(
            (sum(n for j, n in enumerate(index) if j not in known), index) for index in remaining
        )
        largest = max(largest, cost)
        known |= {j for j, n in enumerate(index) if n}
        remaining = [
            other for other in remaining if any(n and j not in known for j, n in enumerate(other))
        ]
    return largest
