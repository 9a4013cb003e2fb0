"""Multi-index functions: the label is the sign of a polynomial in k of the d input coordinates.

    z uniform in {±1}^d, or z ~ N(0, I);   u = (z_i)_{i ∈ A}, |A| = k;
    y = sign g(u),   g(u) = Σ_S c_S·Π_{j∈S} u_j;   x = z·R

`polynomial` = the pairs (c_S, S), `where` = A in order, `basis` = R (orthogonal; None: the axes).
XOR is g(u) = −u₀u₁: its clusters ±μ₁ = ±(e_i − e_j) have the label +1, ±μ₂ = ±(e_i + e_j) the label
−1.

Reference: glasgow2023, Section 2.1 and Remark 2.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from unlazy.core.deprecation import renamed_parameters
from unlazy.core.errors import require, require_one_of
from unlazy.core.linear_algebra import orthogonal_triangular
from unlazy.core.random import normal, rademacher
from unlazy.tasks.base import Batch, Family, Population, Task, error_of_constant
from unlazy.tasks.spectrum import (
    Spectrum,
    corners,
    cube_spectrum,
    gaussian_spectrum,
    information_exponent,
    leap,
)

InputDistribution = Literal["cube", "gaussian"]
Terms = tuple[tuple[float, tuple[int, ...]], ...]

#: Maximum dimension for which the exact distribution on the cube is listed.
LISTED = 14
#: g(u) = −u₀u₁.
XOR: Terms = ((-1.0, (0, 1)),)


def product(k: int) -> Terms:
    """Return g(u) = u₀⋯u_{k−1}, the parity of k coordinates, with leap k."""
    return ((1.0, tuple(range(k))),)


def staircase(*sizes: int) -> Terms:
    """Return g(u) = u_{S₁} + u_{S₁∪S₂} + …, where step i adds `sizes[i]` new coordinates.

    `staircase(1, 1, 1)` is u₀ + u₀u₁ + u₀u₁u₂. The leap is the largest step. The number of steps is
    odd, so that the sum is never zero and each term can determine the sign.
    """
    require(
        len(sizes) % 2 == 1,
        f"A staircase needs an odd number of steps, got {len(sizes)}.",
    )
    ends = np.cumsum(sizes)
    return tuple((1.0, tuple(range(end))) for end in map(int, ends))


def variables(polynomial: Terms) -> int:
    """Return the number k of coordinates."""
    return 1 + max(j for _, subset in polynomial for j in subset)


def evaluate(polynomial: Terms, u: Float[Array, "n k"]) -> Float[Array, " n"]:
    """Return g(u)."""
    return sum(c * jnp.prod(u[:, np.array(subset)], axis=1) for c, subset in polynomial)  # type: ignore[return-value]


def _principal(polynomial: Terms) -> Float[np.ndarray, "f k"]:
    """Return the relevant directions: eigenvectors of a quadratic form, or the coordinates."""
    k = variables(polynomial)
    if any(len(subset) != 2 for _, subset in polynomial):
        return np.eye(k)
    form = np.zeros((k, k))
    for c, (i, j) in polynomial:
        form[i, j] = form[j, i] = form[i, j] + c / 2
    values, vectors = np.linalg.eigh(form)
    vectors = vectors[:, np.argsort(-values)].T
    return vectors * np.sign(vectors[:, :1] + 1e-12)


class MultiIndexTask(Task):
    """Sign of a polynomial in known coordinates, axis-aligned or rotated."""

    where: Int[Array, " k"]
    rotation: Float[Array, "d d"] | None
    d: int = eqx.field(static=True)
    polynomial: Terms = eqx.field(static=True)
    distribution: InputDistribution = eqx.field(static=True)

    @property
    def dimension(self) -> int:
        return self.d

    @property
    def basis(self) -> Float[Array, "d d"] | None:
        """The rotation R, or None for the axes."""
        return self.rotation

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        z = (
            rademacher(key, (n, self.d))
            if self.distribution == "cube"
            else normal(key, (n, self.d))
        )
        return Batch(z, self._label(z[:, self.where]))

    def _label(self, u: Float[Array, "n k"]) -> Float[Array, " n"]:
        return jnp.where(evaluate(self.polynomial, u) > 0, 1.0, -1.0)

    @property
    def population(self) -> Callable[[], Population] | None:
        """All points of the cube if d ≤ `LISTED`, otherwise None."""
        return self._cube if self.distribution == "cube" and self.d <= LISTED else None

    def _cube(self) -> Population:
        z = jnp.asarray(corners(self.d), jnp.result_type(float))
        return Population(z, self._label(z[:, self.where]), jnp.full(len(z), 1 / len(z)))

    @property
    def coordinates(self) -> Float[Array, "k d"]:
        """Directions of the hidden coordinates, u_j = ⟨coordinates_j, x⟩."""
        axes = jax.nn.one_hot(self.where, self.d)
        return axes if self.rotation is None else axes @ self.rotation

    def target(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        u = x @ self.coordinates.T
        return self._label(jnp.sign(u) if self.distribution == "cube" else u)

    @property
    def features(self) -> Float[Array, "f d"]:
        """Principal axes of a quadratic form, otherwise the hidden coordinates.

        For XOR they are μ₁/√2 (label +1) and μ₂/√2 (label −1).
        """
        return jnp.asarray(_principal(self.polynomial), self.coordinates.dtype) @ self.coordinates

    @property
    def chance(self) -> Float[Array, ""]:
        if self.distribution == "gaussian":
            return jnp.asarray(0.5)
        return error_of_constant(
            jnp.mean(
                self._label(
                    jnp.asarray(corners(variables(self.polynomial)), jnp.result_type(float))
                )
                > 0
            )
        )


@renamed_parameters(law="distribution")
class MultiIndex(Family):
    """Random choice of coordinates and, if `rotated`, a random rotation of the inputs.

    `where` fixes the coordinates, as the first two in the paper. On Gaussian inputs the polynomial
    must be odd under some sign flip of coordinates, so that both labels are equally likely.
    """

    d: int = eqx.field(static=True, kw_only=True)
    polynomial: Terms = eqx.field(static=True, default=XOR, kw_only=True)
    distribution: InputDistribution = eqx.field(
        static=True, default="cube", kw_only=True, metadata={"key": "law"}
    )
    rotated: bool = eqx.field(static=True, default=False, kw_only=True)
    where: tuple[int, ...] | None = eqx.field(static=True, default=None, kw_only=True)

    def __check_init__(self) -> None:
        require(
            bool(self.polynomial) and all(subset for _, subset in self.polynomial),
            "polynomial must have non-constant terms.",
        )
        require(
            all(len(set(subset)) == len(subset) for _, subset in self.polynomial),
            "A term may contain each coordinate only once.",
        )
        k = variables(self.polynomial)
        require(k <= 12, f"polynomial may have at most 12 coordinates, got {k}.")
        require(
            isinstance(self.d, int) and self.d >= k,
            f"d must be an integer ≥ {k}, the number of coordinates of polynomial, got {self.d!r}.",
        )
        require_one_of("distribution", self.distribution, get_args(InputDistribution))
        require(
            self.where is None
            or (
                len(set(self.where)) == len(self.where) == k
                and all(0 <= i < self.d for i in self.where)
            ),
            f"where must contain {k} distinct coordinates below d={self.d}, got {self.where}.",
        )
        points = corners(k)
        values = sum(c * np.prod(points[:, list(subset)], axis=1) for c, subset in self.polynomial)
        require(
            bool(np.all(np.abs(values) > 1e-9)),
            "polynomial must not be zero at any corner of the cube.",
        )
        if self.distribution == "gaussian":
            flips = [
                all(np.prod(flip[list(subset)]) < 0 for _, subset in self.polynomial)
                for flip in points
            ]
            require(
                any(flips),
                "On Gaussian inputs polynomial must be odd under some sign flip of coordinates.",
            )

    @property
    def dimension(self) -> int:
        return self.d

    @property
    def spectrum(self) -> Spectrum:
        """Fourier or Hermite coefficients of the label (Hermite up to degree k + 2)."""
        k = variables(self.polynomial)

        def label(u: np.ndarray) -> np.ndarray:
            result: np.ndarray = np.sign(
                sum(c * np.prod(u[:, list(subset)], axis=1) for c, subset in self.polynomial)
            )
            return result

        if self.distribution == "cube":
            return cube_spectrum(label(corners(k)))
        return gaussian_spectrum(label, k, k + 2, nodes=32 if k <= 4 else 8)

    @property
    def leap(self) -> int:
        """Leap of the label in the hidden coordinates."""
        return leap(self.spectrum)

    @property
    def information_exponent(self) -> int:
        """Smallest degree of a non-constant part of the label."""
        return information_exponent(self.spectrum)

    def task(self, *, key: PRNGKeyArray) -> MultiIndexTask:
        key_where, key_rotation = jax.random.split(key)
        k = variables(self.polynomial)
        where = (
            jax.random.permutation(key_where, self.d)[:k]
            if self.where is None
            else jnp.array(self.where)
        )
        rotation = None
        if self.rotated:
            q, r = orthogonal_triangular(normal(key_rotation, (self.d, self.d)))
            rotation = q * jnp.sign(jnp.diagonal(r))[None, :]
        return MultiIndexTask(where, rotation, self.d, self.polynomial, self.distribution)
