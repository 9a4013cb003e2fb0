"""Functions of up to some 22 signs, exactly: Fourier coefficients by a fast Walsh–Hadamard transform, influences, weights by degree.

A function is given by its values at all 2^m points, in the order of `points`: the bits of the place tell which signs are −1, the first sign
by the highest bit. Coefficients come in the same order: the bits of the place tell the set S of f̂(S) = E[f(z)·Π_{j∈S} z_j].

The transform is a product with H⊗…⊗H. Its factors of two are gathered in Hadamard matrices of at most 128 rows, so that it runs at the
speed of matrix products rather than of memory.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float

from unlazy.core.errors import require

#: Most signs of which all points are listed.
MOST = 24
#: Greatest number of factors of two that one matrix takes.
_GATHERED = 7


def signs_in(values: Float[Array, " p"] | np.ndarray) -> int:
    """The number m of signs that 2^m values belong to."""
    m = max(len(values), 1).bit_length() - 1
    require(len(values) == 1 << m, f"A function of m signs has 2^m values, but {len(values)} were given.")
    require(m <= MOST, f"At most 2^{MOST} values are taken, but 2^{m} were given.")
    return m


def points(m: int, start: int = 0, stop: int | None = None) -> Float[np.ndarray, "p m"]:
    """The points of {±1}^m from place `start` to `stop`, in the order of all values here."""
    require(0 < m <= MOST, f"Up to {MOST} signs have their points listed, but m={m}.")
    places = np.arange(start, (1 << m) if stop is None else stop)
    return 1.0 - 2.0 * ((places[:, None] >> np.arange(m - 1, -1, -1)) & 1)


@functools.partial(jax.jit, static_argnums=1)
def _transform(values: Float[Array, " p"], m: int) -> Float[Array, " p"]:
    sizes = [len(part) for part in np.array_split(np.arange(m), -(-m // _GATHERED))] if m else []
    left, right = 1, 1 << m
    for size in sizes:
        width = 1 << size
        right //= width
        hadamard = jnp.asarray(scipy.linalg.hadamard(width), values.dtype)
        values = jnp.einsum("hw,lwr->lhr", hadamard, values.reshape(left, width, right), precision="highest")
        left *= width
    return values.reshape(-1)


def walsh_hadamard(values: Float[Array, " p"] | np.ndarray) -> Float[Array, " p"]:
    """Σ_z f(z)·Π_{j∈S} z_j for all sets S. Applied twice it gives 2^m times the values."""
    return _transform(jnp.asarray(values), signs_in(values))


def fourier(values: Float[Array, " p"] | np.ndarray) -> Float[Array, " p"]:
    """f̂(S) for all sets S."""
    return walsh_hadamard(values) / len(values)


def degrees(m: int) -> np.ndarray:
    """|S| for all sets S."""
    return np.bitwise_count(np.arange(1 << m, dtype=np.uint32)) if hasattr(np, "bitwise_count") else _counted(m)


def _counted(m: int) -> np.ndarray:
    counts = np.zeros(1, np.uint8)
    for _ in range(m):
        counts = np.concatenate([counts, counts + 1])
    return counts


def weights_by_degree(values: Float[Array, " p"] | np.ndarray) -> Float[np.ndarray, " m+1"]:
    """Σ_{|S|=i} f̂(S)² for i = 0, …, m. They sum to E f²."""
    m = signs_in(values)
    return np.bincount(degrees(m), weights=np.asarray(fourier(values), float) ** 2, minlength=m + 1)


def influences(values: Float[Array, " p"] | np.ndarray) -> Float[np.ndarray, " m"]:
    """Σ_{S∋j} f̂(S)² for each sign j: for a function with values ±1, the chance that flipping z_j changes it."""
    m = signs_in(values)
    squares = (np.asarray(fourier(values), float) ** 2).reshape((2,) * m)
    return np.array([np.sum(np.take(squares, 1, axis=j)) for j in range(m)])


def on_all_points(function: Callable[[Array], Array], m: int, *, scale: float = 1.0, block: int = 1 << 16) -> Float[np.ndarray, " p"]:
    """The values of a function, such as a trained network, at all points of {±scale}^m, by blocks of bounded size."""
    run = jax.jit(function)
    count = 1 << m
    step = min(block, count)
    return np.concatenate([np.asarray(run(jnp.asarray(scale * points(m, at, at + step)))) for at in range(0, count, step)])


def risk(values: Float[Array, " p"] | np.ndarray, labels: Float[Array, " p"] | np.ndarray, weights: np.ndarray | None = None) -> float:
    """The share of points whose sign is not the label, a score of zero being wrong; under `weights` that sum to one, or uniformly."""
    require(len(values) == len(labels), f"{len(values)} values were given for {len(labels)} labels.")
    wrong = np.asarray(values) * np.asarray(labels) <= 0
    return float(np.mean(wrong)) if weights is None else float(math.fsum(np.asarray(weights)[wrong]))
