"""Gaussian moments of activations: E[σ(u)·σ(v)] and E[σ'(u)·σ'(v)] for u, v jointly Gaussian.

Means are 0. ReLU and erf have closed forms. Piecewise linear activations need one non-elementary
integral, computed by a quadrature adapted to its steep part. Per pair of kinks, the absolute error
is below 1e-10 for values and 1e-6 for derivatives (1e-8 and 1e-5 in single precision). The error in
derivatives reaches that size only if u and v are almost equal with unequal variances; below a
correlation of 0.98 it is at rounding level. In a further layer, an error ε in values changes the
angle between near-duplicates by about √ε. All other activations use their Hermite series, whose
error is computed by `series_error`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from unlazy.core.angles import arcsin, cosine
from unlazy.core.errors import require

Pair = tuple[Float[Array, "*s"], Float[Array, "*s"]]
Single = tuple[Float[Array, "..."], Float[Array, "..."]]


class Moments(ABC):
    """Moments of the values and derivatives of an activation under Gaussian inputs."""

    @abstractmethod
    def pair(self, c: Float[Array, "*s"], qx: Float[Array, "*#s"], qz: Float[Array, "*#s"]) -> Pair:
        """Return E[σ(u)·σ(v)] and E[σ'(u)·σ'(v)] for variances qx, qz and covariance c."""

    @abstractmethod
    def single(self, q: Float[Array, "..."]) -> Single:
        """Return E[σ(u)²] and E[σ'(u)²] for u of variance q."""

    @abstractmethod
    def mean(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """Return E[σ(u)] for u of variance q."""


class ReluMoments(Moments):
    """Moments of σ(t) = max(t, 0): the arc-cosine kernels of orders 1 and 0, halved.

    At variance 0 the derivative is defined as ½.
    """

    def pair(self, c: Float[Array, "*s"], qx: Float[Array, "*#s"], qz: Float[Array, "*#s"]) -> Pair:
        """With correlation ρ: E σ'σ' = ¼ + arcsin(ρ)/2π, E σσ = √(qx·qz·(1 − ρ²))/2π + c·E σ'σ'."""
        t = cosine(c, qx, qz)
        slope = 0.25 + arcsin(t) * (0.5 / math.pi)
        return jnp.sqrt(qx) * jnp.sqrt(qz) * jnp.sqrt((1 - t) * (1 + t)) * (
            0.5 / math.pi
        ) + c * slope, slope

    def single(self, q: Float[Array, "..."]) -> Single:
        """q/2 and ½."""
        return q / 2, jnp.where(q > 0, jnp.full_like(q, 0.5), 0.25)

    def mean(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """√(q/2π)."""
        return jnp.sqrt(q * (0.5 / math.pi))


class ErfMoments(Moments):
    """Moments of σ(t) = erf(t): the arcsine kernel."""

    def pair(self, c: Float[Array, "*s"], qx: Float[Array, "*#s"], qz: Float[Array, "*#s"]) -> Pair:
        """(2/π)·arcsin(2c/√((1 + 2qx)(1 + 2qz))) and (4/π)/√((1 + 2qx)(1 + 2qz) − 4c²)."""
        value = arcsin(cosine(2 * c, 1 + 2 * qx, 1 + 2 * qz)) * (2 / math.pi)
        # Multiplied out, so that large variances do not cancel.
        denominator = 1 + 2 * (qx + qz) + 4 * jnp.maximum(qx * qz - c * c, 0)
        return value, (4 / math.pi) * jax.lax.rsqrt(denominator)

    def single(self, q: Float[Array, "..."]) -> Single:
        return arcsin(2 * q / (1 + 2 * q)) * (2 / math.pi), (4 / math.pi) * jax.lax.rsqrt(1 + 4 * q)

    def mean(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """Return 0, since erf is odd."""
        return jnp.zeros_like(q)


@dataclasses.dataclass(frozen=True)
class PiecewiseLinear(Moments):
    """Activation that is linear between kinks t_1 < … < t_k.

    It has k + 1 slopes from left to right, and σ(t_1) = `value`.

    With jumps s_i of the slope, σ'' = Σ_i s_i·δ(t − t_i). By Price's theorem E σ'σ' and E σσ are
    the first and second integral over the covariance of Σ_ij s_i·s_j·p(t_i, t_j), where p is the
    density of (u, v). At covariance 0 they are products of means.
    """

    kinks: tuple[float, ...]
    slopes: tuple[float, ...]
    value: float = 0.0

    def __post_init__(self) -> None:
        numbers = (*self.kinks, *self.slopes, self.value)
        require(
            len(self.kinks) > 0 and len(self.slopes) == len(self.kinks) + 1,
            "A piecewise linear function with k kinks needs k ≥ 1 and k + 1 slopes.",
        )
        require(
            all(math.isfinite(number) for number in numbers),
            "Kinks, slopes and value must be finite.",
        )
        require(
            list(self.kinks) == sorted(set(self.kinks)),
            f"kinks must be strictly increasing, got {self.kinks}.",
        )

    @property
    def _jumps(self) -> list[tuple[float, float]]:
        """Kinks, each with the jump of the slope."""
        return [
            (t, right - left)
            for t, left, right in zip(self.kinks, self.slopes, self.slopes[1:], strict=False)
        ]

    @property
    def _line(self) -> tuple[float, float]:
        """The a and b of σ(z) = a + b·z + Σ_i s_i·max(z − t_i, 0)."""
        return self.value - self.slopes[0] * self.kinks[0], self.slopes[0]

    def __call__(self, z: Float[Array, "..."]) -> Float[Array, "..."]:
        """Return σ(z)."""
        a, b = self._line
        return a + b * z + sum(s * jnp.maximum(z - t, 0) for t, s in self._jumps)

    def _means(self, q: Float[Array, "..."]) -> Single:
        a, b = self._line
        root = jnp.sqrt(q)
        value, slope = jnp.full_like(q, a), jnp.full_like(q, b)
        for t, s in self._jumps:
            beyond, density = _tail(t, q)
            value = value + s * (root * density - t * beyond)
            slope = slope + s * beyond
        return value, slope

    def pair(self, c: Float[Array, "*s"], qx: Float[Array, "*#s"], qz: Float[Array, "*#s"]) -> Pair:
        """Return products of means plus integrals over the covariance."""
        (value_x, slope_x), (value_z, slope_z) = self._means(qx), self._means(qz)
        t = cosine(c, qx, qz)
        angle = arcsin(t)
        slope = slope_x * slope_z
        value = value_x * value_z + c * slope
        pairs: dict[tuple[float, float], float] = {}
        for kink_x, jump_x in self._jumps:
            for kink_z, jump_z in self._jumps:
                # The density is the same at (−t, −t').
                at = (kink_x, kink_z) if (kink_x, kink_z) > (0, 0) else (0 - kink_x, 0 - kink_z)
                pairs[at] = pairs.get(at, 0) + jump_x * jump_z
        first = second = jnp.zeros_like(t)
        center = pairs.pop((0, 0), None)
        if center is not None:
            first = center * angle
            second = center * (angle * t + jnp.sqrt((1 - t) * (1 + t)) - 1)
        others = [
            (weight, _in_roots(kink_x, qx), _in_roots(kink_z, qz))
            for (kink_x, kink_z), weight in pairs.items()
        ]
        if others:
            more = _density_integrals(t, angle, others)
            first, second = first + more[0], second + more[1]
        return value + jnp.sqrt(qx) * jnp.sqrt(qz) * second * (0.5 / math.pi), slope + first * (
            0.5 / math.pi
        )

    def single(self, q: Float[Array, "..."]) -> Single:
        a, b = self._line
        root = jnp.sqrt(q)
        tails = [_tail(t, q) for t in self.kinks]
        value = a * a + b * b * q
        slope = jnp.full_like(q, b * b)
        for i, (t, s) in enumerate(self._jumps):
            beyond, density = tails[i]
            slope = slope + (self.slopes[i + 1] ** 2 - self.slopes[i] ** 2) * beyond
            value = value + 2 * s * (a * (root * density - t * beyond) + b * q * beyond)
            for earlier, jump in self._jumps[: i + 1]:
                # E[max(u − t', 0)·max(u − t, 0)] for t' ≤ t.
                both = (q + earlier * t) * beyond - earlier * root * density
                value = value + (1 if earlier == t else 2) * s * jump * both
        return value, slope

    def mean(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        return self._means(q)[0]


def _in_roots(t: float, q: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return t/√q, clipped to values beyond which all results are 0 or 1, to avoid overflow."""
    return jnp.clip(t / jnp.maximum(jnp.sqrt(q), abs(t) * 1e-4 + 1e-30), -1e4, 1e4)


def _tail(t: float, q: Float[Array, "..."]) -> Single:
    """Return P(u > t) and the standard normal density at t/√q."""
    u = _in_roots(t, q)
    return jax.scipy.stats.norm.cdf(-u), jax.scipy.stats.norm.pdf(u)


#: Number of quadrature nodes in single and in double precision.
_NODES = {np.dtype(np.float32): 24, np.dtype(np.float64): 40}


def _density_integrals(
    t: Float[Array, "n m"], angle: Float[Array, "n m"], terms: list[tuple[float, Array, Array]]
) -> Pair:
    """Return Σ_i s_i·∫₀^ψ e_i(a) da and Σ_i s_i·∫₀^ψ (sin ψ − sin a)·e_i(a) da.

    Here ψ = arcsin(t) and e_i(a) = exp(−(A² + B² − 2AB·sin a)/(2·cos² a)); `terms` are (s_i, A, B).
    With y = tan(w/2) for w = π/2 − |a| all factors but the exponential are rational. The integrand
    is steep only near w = 0 if A and B are close. Hence the Gauss–Legendre rule is applied in the
    cube root of the distance from the end.
    """
    nodes, weights = np.polynomial.legendre.leggauss(_NODES[np.dtype(t.dtype)])
    nodes, weights = (nodes + 1) / 2, weights / 2
    sign = jnp.where(t < 0, -1, 1).astype(t.dtype)
    size = jnp.abs(t)
    lower = jnp.sqrt((1 - size) / (1 + size))
    length = 1 - lower

    def step(totals: Pair, node: tuple[Array, Array]) -> tuple[Pair, None]:
        position, weight = node
        y = lower + length * position
        square = y * y
        far, joint = (
            jnp.square((1 + square) / y) / 8,
            (1 + square) / 2,
        )  # 1/(2·cos² a) and 1/(1 + sin|a|)
        total = functools.reduce(
            jnp.add,
            (
                s * jnp.exp(-jnp.square(A - sign * B) * far - sign * (A * B) * joint)
                for s, A, B in terms
            ),
        )
        total = total * (length * weight) / joint
        # sin|ψ| − sin|a|, without cancellation.
        rest = (square - lower * lower) * (1 + size) / (2 * joint)
        return (totals[0] + sign * total, totals[1] + rest * total), None

    zeros = (jnp.zeros_like(t), jnp.zeros_like(t))
    positions = (jnp.asarray(nodes**3, t.dtype), jnp.asarray(3 * nodes**2 * weights, t.dtype))
    return jax.lax.scan(step, zeros, positions)[0]


#: Terms of a Hermite series, and the grid on which its coefficients are integrated (the trapezoidal
#: rule, to 12 standard deviations).
TERMS = 128
_GRID = np.linspace(-12, 12, 1201)


@functools.cache
def _hermite_weights() -> np.ndarray:
    """Return w_jk with Σ_j f(g_j)·w_jk = E[f(g)·He_k(g)]/√k! for g ~ N(0, 1)."""
    density = np.exp(-(_GRID**2) / 2) / math.sqrt(2 * math.pi) * (_GRID[1] - _GRID[0])
    rows = [np.ones_like(_GRID), _GRID]
    for k in range(2, TERMS):
        rows.append((_GRID * rows[-1] - math.sqrt(k - 1) * rows[-2]) / math.sqrt(k))
    result: np.ndarray = (np.array(rows) * density).T
    return result


@dataclasses.dataclass(frozen=True)
class Series(Moments):
    """Moments of any activation by its Hermite series: E[σ(u)·σ(v)] = Σ_k a_k(qx)·a_k(qz)·ρ^k.

    Here a_k(q) = E[σ(√q·g)·He_k(g)]/√k! with g ~ N(0, 1). The derivative σ' is computed by
    automatic differentiation and has its own series. Truncated series are still positive
    semi-definite.
    """

    function: Callable[[Array], Array]

    def _on_grid(self, q: Float[Array, "..."]) -> Single:
        grid = jnp.asarray(_GRID, q.dtype).reshape((1,) * q.ndim + (-1,))
        z = jnp.sqrt(q)[..., None] * grid
        return jax.jvp(self.function, (z,), (jnp.ones_like(z),))

    def pair(self, c: Float[Array, "*s"], qx: Float[Array, "*#s"], qz: Float[Array, "*#s"]) -> Pair:
        """Return both series, summed by Horner's rule."""
        t = cosine(c, qx, qz)
        weights = jnp.asarray(_hermite_weights(), t.dtype)
        of_x = [(on_grid @ weights).T[::-1] for on_grid in self._on_grid(qx[:, 0])]
        of_z = [(on_grid @ weights).T[::-1] for on_grid in self._on_grid(qz[0])]

        def step(sums: Pair, coefficients: Any) -> tuple[Pair, None]:
            (value_x, slope_x), (value_z, slope_z) = coefficients
            value = sums[0] * t + value_x[:, None] * value_z[None, :]
            return (value, sums[1] * t + slope_x[:, None] * slope_z[None, :]), None

        return jax.lax.scan(step, (jnp.zeros_like(t), jnp.zeros_like(t)), (of_x, of_z), unroll=8)[0]

    def single(self, q: Float[Array, "..."]) -> Single:
        weights = jnp.asarray(_hermite_weights()[:, 0], q.dtype)
        value, slope = (jnp.square(on_grid) @ weights for on_grid in self._on_grid(q))
        return value, slope

    def mean(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        return self._on_grid(q)[0] @ jnp.asarray(_hermite_weights()[:, 0], q.dtype)


def series_error(moments: Moments, variance: float) -> tuple[float, float]:
    """Return bounds on the truncation errors of E σσ and E σ'σ' at this variance of u and v.

    By Parseval the remainder at correlation 1 is E[σ(u)²] − Σ_{k < 128} a_k². By Cauchy–Schwarz no
    other correlation has a larger remainder; for unequal variances it is at most the geometric mean
    of both bounds. The result is 0 for closed forms.
    """
    if not isinstance(moments, Series):
        return 0.0, 0.0
    with jax.enable_x64(True):
        q = jnp.asarray([variance])
        rest = [
            float(jnp.maximum(whole - part, 0)[0])
            for whole, part in zip(moments.single(q), _partial_sums(moments, q), strict=True)
        ]
    return rest[0], rest[1]


def _partial_sums(moments: Series, q: Float[Array, " 1"]) -> list[Float[Array, " 1"]]:
    return [part[0] for part in moments.pair(q[:, None], q[:, None], q[None, :])]
