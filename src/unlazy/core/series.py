"""Smooth functions given by their Taylor series at zero, φ(z) = Σ c_i·z^i.

They define the smooth concept classes. Reference: allenzhu2019, Section 4.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Array, Float

from unlazy.core.errors import require, unknown


@dataclasses.dataclass(frozen=True)
class TaylorSeries:
    """Elementwise function, and log|c_i| of its first coefficients (−∞ if c_i = 0).

    `degree` is set for polynomials only.
    """

    name: str
    function: Callable[[Array], Array]
    log_sizes: Callable[[int], Float[np.ndarray, " n"]]
    degree: int | None = None

    def __call__(self, z: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.function(z)


def _powers(c: float, count: int) -> Float[np.ndarray, " n"]:
    i = np.arange(count)
    result: np.ndarray = i * math.log(c) - scipy.special.gammaln(i + 1)
    return result


def _exponential_like(
    name: str,
    c: float,
    function: Callable[[Array], Array],
    kept: Callable[..., np.ndarray],
) -> TaylorSeries:
    require(c > 0, f"c must be positive, got {c}.")
    return TaylorSeries(
        name,
        lambda z: function(c * z),
        lambda n: np.where(kept(np.arange(n)), _powers(c, n), -np.inf),
    )


def exponential(c: float = 1.0) -> TaylorSeries:
    """Return e^{cz} − 1."""
    return _exponential_like(f"exp({c:g}z) − 1", c, jnp.expm1, lambda i: i > 0)


def sine(c: float = 1.0) -> TaylorSeries:
    """Return sin(cz)."""
    return _exponential_like(f"sin({c:g}z)", c, jnp.sin, lambda i: i % 2 == 1)


def cosine(c: float = 1.0) -> TaylorSeries:
    """Return cos(cz)."""
    return _exponential_like(f"cos({c:g}z)", c, jnp.cos, lambda i: i % 2 == 0)


def polynomial_series(*coefficients: float) -> TaylorSeries:
    """Return c₀ + c₁z + c₂z² + …"""
    require(bool(coefficients), "A polynomial needs at least one coefficient.")
    c = np.array(coefficients, float)

    def sizes(n: int) -> np.ndarray:
        with np.errstate(divide="ignore"):
            result: np.ndarray = np.log(np.abs(np.pad(c, (0, max(0, n - len(c))))[:n]))
            return result

    function = functools.partial(jnp.polyval, c[::-1])
    return TaylorSeries("polynomial", function, sizes, len(c) - 1)


@functools.cache
def _recursive(kind: str, count: int) -> tuple[float, ...]:
    """Return coefficients of tanh from t' = 1 − t², or of the sigmoid from s' = s − s²."""
    c = np.zeros(max(count, 1))
    c[0] = 0.0 if kind == "tanh" else 0.5
    for i in range(len(c) - 1):
        squares = float(c[: i + 1] @ c[i::-1])
        first = float(i == 0) if kind == "tanh" else float(c[i])
        c[i + 1] = (first - squares) / (i + 1)
    # Coefficients that vanish by symmetry are computed as rounding errors.
    c[2::2] = 0.0
    return tuple(c[:count])


def _sizes_of(kind: str, count: int) -> np.ndarray:
    with np.errstate(divide="ignore"):
        result: np.ndarray = np.log(np.abs(np.array(_recursive(kind, count))))
        return result


TANH = TaylorSeries("tanh", jnp.tanh, functools.partial(_sizes_of, "tanh"))
SIGMOID = TaylorSeries("sigmoid", jax.nn.sigmoid, functools.partial(_sizes_of, "sigmoid"))

#: The functions of Example 4.1, by name.
SERIES: dict[str, TaylorSeries] = {
    "exp": exponential(),
    "sin": sine(),
    "cos": cosine(),
    "square": polynomial_series(0.0, 0.0, 1.0),
    "quartic": polynomial_series(0.0, 0.0, 0.0, 0.0, 1.0),
    "linear": polynomial_series(0.0, 1.0),
    "tanh": TANH,
    "sigmoid": SIGMOID,
}


def series_of(name: str) -> TaylorSeries:
    """Return a series by its name."""
    if name not in SERIES:
        raise unknown("smooth function", name, SERIES)
    return SERIES[name]
