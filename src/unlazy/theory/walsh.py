"""Functions of up to some 22 signs, exactly: Fourier coefficients by a fast Walsh–Hadamard
transform, influences, weights, risks.

A function is given by its values at all 2^m points, in the order of `points`: the bits of the place
tell which signs are −1, the first sign by the highest bit. Coefficients come in the same order: the
bits of the place tell the set S of f̂(S) = E[f(z)·Π_{j∈S} z_j].

    network = BooleanFunction.of(model, 12, scale=12**-0.5)
    network.largest(5), network.influences, network.risk(parity)

The transform is a product with H⊗…⊗H. Its factors of two are gathered in Hadamard matrices of 8 or
16 rows, which are applied two by two to parts that fit the cache: small products run in registers,
and 2^20 values come from memory three times instead of twenty. All is in double precision. An entry
is wrong by at most Σ|f|·2^−53 times the sum of (rows − 1), which is 58 for 2^20 values; sums of
whole numbers below 2^53 are exact.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float

from unlazy.core.errors import require
from unlazy.core.threads import cores

#: Most signs of which all points are listed.
MOST = 24
#: One pair of products takes at most so many factors of two, of parts of at most so many numbers
#: and columns.
_PAIR, _PART, _COLUMNS = 8, 1 << 16, 256
#: From so many numbers on, so many threads share the parts.
_SHARED, _THREADS = 1 << 18, min(4, cores())


def signs_in(values: Float[Array, " p"] | np.ndarray) -> int:
    """The number m of signs that 2^m values, along the last axis, belong to."""
    count = values.shape[-1] if values.ndim else 0
    m = max(count, 1).bit_length() - 1
    require(count == 1 << m, f"A function of m signs has 2^m values, but {count} were given.")
    require(m <= MOST, f"At most 2^{MOST} values are taken, but 2^{m} were given.")
    return m


def _one(values: Float[Array, " p"] | np.ndarray) -> int:
    """The number of signs of one function."""
    require(
        values.ndim == 1,
        f"The values of one function are one row, but they have {values.ndim} axes.",
    )
    return signs_in(values)


def points(m: int, start: int = 0, stop: int | None = None) -> Float[np.ndarray, "p m"]:
    """The points of {±1}^m from place `start` to `stop`, in the order of all values here."""
    require(0 < m <= MOST, f"Up to {MOST} signs have their points listed, but m={m}.")
    places = np.arange(start, (1 << m) if stop is None else stop)
    return 1.0 - 2.0 * ((places[:, None] >> np.arange(m - 1, -1, -1)) & 1)


@functools.cache
def _hadamard(factors: int) -> Float[np.ndarray, "w w"]:
    result: np.ndarray = scipy.linalg.hadamard(1 << factors).astype(float)
    return result


def _pair(source: np.ndarray, target: np.ndarray, low: int, high: int, right: int) -> None:
    """Transform `low` and the next `high` bits, below which there are `right` values.

    Source and target may be the same.
    """
    columns = min(_COLUMNS, right)
    shape = (-1, 1 << high, 1 << low, right // columns, columns)
    x, y = source.reshape(shape), target.reshape(shape)
    depth = max(1, _PART // (columns << (low + high)))
    parts = [
        (start, column) for start in range(0, len(x), depth) for column in range(right // columns)
    ]

    def transform(mine: Sequence[tuple[int, int]]) -> None:
        scratch = np.empty((min(depth, len(x)), 1 << high, 1 << low, columns))
        for start, column in mine:
            part, place = (
                x[start : start + depth, :, :, column],
                y[start : start + depth, :, :, column],
            )
            between = scratch[: len(part)]
            # Rows by hundreds: a library would share more of them between threads, part by part,
            # which costs much.
            if right == 1:
                rows = (-1, math.gcd(_COLUMNS, len(part) << high), 1 << low)
                np.matmul(part.reshape(rows), _hadamard(low), out=between.reshape(rows))
            else:
                np.matmul(_hadamard(low), part, out=between)
            if columns == right:  # all below is one row
                flat = (len(part), 1 << high, -1)
                np.matmul(_hadamard(high), between.reshape(flat), out=place.reshape(flat))
            else:
                np.matmul(_hadamard(high), between.swapaxes(1, 2), out=place.swapaxes(1, 2))

    if len(source) < _SHARED:
        transform(parts)
    else:
        list(_threads().map(transform, [parts[i::_THREADS] for i in range(_THREADS)]))


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, "walsh")


def walsh_hadamard(values: Float[Array, "*b p"] | np.ndarray) -> Float[np.ndarray, "*b p"]:
    """Σ_z f(z)·Π_{j∈S} z_j for all sets S, along the last axis.

    Applied twice it gives 2^m times the values.
    """
    given = np.ascontiguousarray(values, np.float64)
    m, source = signs_in(given), given.reshape(-1)
    if m == 0:
        return given.copy()
    target, right = np.empty_like(source), 1
    groups = [len(group) for group in np.array_split(np.arange(m), 2 * -(-m // _PAIR))]
    for low, high in zip(groups[0::2], groups[1::2], strict=True):
        _pair(source, target, low, high, right)
        source, right = target, right << (low + high)
    return target.reshape(given.shape)


def fourier(values: Float[Array, "*b p"] | np.ndarray) -> Float[np.ndarray, "*b p"]:
    """f̂(S) for all sets S, along the last axis."""
    return walsh_hadamard(values) / values.shape[-1]


def degrees(m: int) -> np.ndarray:
    """|S| for all sets S."""
    return (
        np.bitwise_count(np.arange(1 << m, dtype=np.uint32))
        if hasattr(np, "bitwise_count")
        else _counted(m)
    )


def _counted(m: int) -> np.ndarray:
    counts = np.zeros(1, np.uint8)
    for _ in range(m):
        counts = np.concatenate([counts, counts + 1])
    return counts


def weights_by_degree(values: Float[Array, " p"] | np.ndarray) -> Float[np.ndarray, " degrees"]:
    """Σ_{|S|=i} f̂(S)² for i = 0, …, m. They sum to E f²."""
    m = _one(values)
    return np.bincount(degrees(m), weights=fourier(values) ** 2, minlength=m + 1)


def influences(values: Float[Array, " p"] | np.ndarray) -> Float[np.ndarray, " m"]:
    """Σ_{S∋j} f̂(S)² for each sign j: for a function with values ±1, the chance that flipping z_j
    changes it.
    """
    _one(values)
    return _influences(fourier(values))


def _influences(coefficients: Float[np.ndarray, " p"]) -> Float[np.ndarray, " m"]:
    squares = coefficients**2
    return np.array(
        [np.sum(squares.reshape(1 << j, 2, -1)[:, 1]) for j in range(signs_in(squares))]
    )


def on_all_points(
    function: Callable[[Array], Array], m: int, *, scale: float = 1.0, block: int = 1 << 16
) -> Float[np.ndarray, " p"]:
    """The values of a function, such as a trained network, at all points of {±scale}^m, by blocks
    of bounded size.
    """
    run = jax.jit(lambda x: function(x))  # a network itself cannot be hashed
    count = 1 << m
    step = min(block, count)
    return np.concatenate(
        [
            np.asarray(run(jnp.asarray(scale * points(m, at, at + step))))
            for at in range(0, count, step)
        ]
    )


def risk(
    values: Float[Array, " p"] | np.ndarray,
    labels: Float[Array, " p"] | np.ndarray,
    weights: np.ndarray | None = None,
) -> float:
    """The share of points whose sign is not the label, a score of zero being wrong; under `weights`
    that sum to one, or uniformly.
    """
    require(
        len(values) == len(labels), f"{len(values)} values were given for {len(labels)} labels."
    )
    wrong = np.asarray(values) * np.asarray(labels) <= 0
    return (
        float(np.mean(wrong)) if weights is None else float(math.fsum(np.asarray(weights)[wrong]))
    )


@dataclasses.dataclass(frozen=True)
class BooleanFunction:
    """A function of m signs by all its values, with everything that its Fourier coefficients tell,
    exactly.

    `coefficients`: f̂(S) for all S in the order of `points`; sets are given and returned as tuples
    of places from 0 to m − 1.
    """

    values: Float[np.ndarray, " p"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", np.asarray(self.values, np.float64))
        _one(self.values)

    @classmethod
    def of(
        cls, function: Callable[[Array], Array], m: int, *, scale: float = 1.0
    ) -> BooleanFunction:
        """A function of rows of signs, such as a trained network whose inputs are ±scale."""
        return cls(on_all_points(function, m, scale=scale))

    @property
    def m(self) -> int:
        """The number of signs."""
        return signs_in(self.values)

    @functools.cached_property
    def coefficients(self) -> Float[np.ndarray, " p"]:
        """f̂(S) for all sets S."""
        return fourier(self.values)

    def coefficient(self, places: Collection[int]) -> float:
        """f̂(S) of one set."""
        require(
            all(0 <= j < self.m for j in places),
            f"A set holds places from 0 to {self.m - 1}, but is {sorted(places)}.",
        )
        return float(self.coefficients[sum(1 << (self.m - 1 - j) for j in set(places))])

    def largest(self, count: int) -> list[tuple[tuple[int, ...], float]]:
        """The sets with the coefficients that are greatest in size, with them."""
        found = np.argsort(-np.abs(self.coefficients), kind="stable")[:count]
        return [
            (
                tuple(j for j in range(self.m) if place >> (self.m - 1 - j) & 1),
                float(self.coefficients[place]),
            )
            for place in found
        ]

    @property
    def mean(self) -> float:
        """E f."""
        return float(self.coefficients[0])

    @property
    def variance(self) -> float:
        """The weight of all sets but the empty one."""
        return float(np.sum(self.coefficients[1:] ** 2))

    @property
    def weights(self) -> Float[np.ndarray, " {self.m}+1"]:
        """Σ_{|S|=i} f̂(S)² by degree i."""
        return np.bincount(degrees(self.m), weights=self.coefficients**2, minlength=self.m + 1)

    @property
    def influences(self) -> Float[np.ndarray, " m"]:
        """Σ_{S∋j} f̂(S)² for each sign j."""
        return _influences(self.coefficients)

    def stability(self, correlation: float) -> float:
        """E f(z)f(z′) where each sign of z′ agrees with that of z with this correlation."""
        return float(correlation ** np.arange(self.m + 1) @ self.weights)

    def risk(self, labels: BooleanFunction, weights: np.ndarray | None = None) -> float:
        """The share of points at which its sign is not the label."""
        return risk(self.values, labels.values, weights)
