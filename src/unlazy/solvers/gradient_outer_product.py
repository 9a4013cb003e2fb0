"""Recursive feature machines: kernel regression with a metric learned from its own gradients.

Starting from M = I, fit f with the kernel of the distance ‖x − z‖_M = √((x − z)ᵀM(x − z)). Then set
M to the average gradient outer product (1/n)·Σ_i ∇f(x_i)·∇f(x_i)ᵀ, summed over outputs and scaled
to trace d, and repeat. Iteration 0 is the kernel without a learned metric.

Reference: Radhakrishnan, Beaglehole, Pandit and Belkin, Mechanism for feature learning in neural
networks and backpropagation-free machine learning models, 2024. Deviation: the trace of M is fixed
at d, so that the kernel keeps its bandwidth.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from unlazy.core.errors import require
from unlazy.kernels.base import Kernel, squared_norm
from unlazy.kernels.stationary import Stationary
from unlazy.solvers.exact import Matrix, Solution, Targets, eigh

#: Squared distances below this many rounding errors count as 0, with gradient 0.
NEAR = 50.0
#: Rows per block of derivatives of the kernel, and columns per block of products with them.
BLOCK, COLUMNS = 512, 2048
#: Columns are padded with zeros to a multiple of this, so that similar tables share a program.
ROUND = 16
#: Beyond this many points, gradients are computed in single precision.
SINGLE = 1_000


class Fitted(Protocol):
    """The result of a solver, with coefficients of the points."""

    @property
    def coefficients(self) -> np.ndarray:
        """The coefficients α, with an axis of outputs if there are several."""


F = TypeVar("F", bound=Fitted)


@dataclasses.dataclass(frozen=True)
class MetricFit(Generic[F]):
    """One iteration: the metric M, its square root, and the fit to the points x·M^{1/2}."""

    metric: Float[np.ndarray, "d d"]
    root: Float[np.ndarray, "d d"]
    fit: F


def recursive_fits(
    kernel: Stationary,
    x: Matrix,
    solve: Callable[[Matrix], F],
    iterations: int = 5,
    *,
    weight: Float[np.ndarray, " n"] | None = None,
    centered: bool = False,
    diagonal: bool = False,
) -> Iterator[MetricFit[F]]:
    """Yield the fits of iterations 0, …, `iterations`, where `solve` fits the kernel to points.

    With `centered`, the metric is the covariance of the gradients. With `diagonal`, only the
    diagonal of the metric is kept.
    """
    require(
        isinstance(kernel, Stationary),
        "A recursive feature machine requires a stationary kernel, Laplace or RBF.",
    )
    require(
        isinstance(iterations, int | np.integer) and iterations >= 0,
        f"iterations must be an integer ≥ 0, got {iterations!r}.",
    )
    metric = np.eye(x.shape[1])
    for iteration in range(iterations + 1):
        root = metric_root(metric)
        points = (x @ root).astype(x.dtype)
        fit = solve(points)
        yield MetricFit(metric, root, fit)
        if iteration < iterations:
            outer = gradient_outer_product(
                kernel,
                points.astype(np.float64),
                fit.coefficients,
                weight=weight,
                centered=centered,
            )
            learned = root @ outer @ root
            metric = normalized(np.diag(np.diag(learned)) if diagonal else learned, metric)


def metric_scores(
    kernel: Kernel, x: Matrix, root: Float[np.ndarray, "d d"], coefficients: np.ndarray, z: Matrix
) -> Float[np.ndarray, "t ..."]:
    """Return f(z) = Σ_i k(z·M^{1/2}, x_i·M^{1/2})·α_i, in the precision of x."""
    return Solution(kernel, (x @ root).astype(x.dtype), coefficients, x.dtype.name).predict(
        z @ root
    )


def gradient_outer_product(
    kernel: Stationary,
    x: Float[np.ndarray, "n d"],
    coefficients: Targets,
    *,
    weight: Float[np.ndarray, " n"] | None = None,
    centered: bool = False,
) -> Float[np.ndarray, "d d"]:
    """Return the weighted mean over points of ∇f(x_i)·∇f(x_i)ᵀ, summed over outputs.

    f(z) = Σ_j k(z, x_j)·α_j. With k = κ(r²), ∇f(x_i) = 2·Σ_j κ'(r_ij²)·α_j·(x_i − x_j). The term
    j = i, which has no gradient for `Laplace`, is omitted. With `centered` the outer product of the
    mean gradient is subtracted.
    """
    n, d = x.shape
    weight = np.ones(n) if weight is None else weight
    coefficients = coefficients.reshape(n, -1)
    outputs, width = coefficients.shape[1], -(-d // ROUND) * ROUND
    # Blocks of equal shape for all numbers of points; padding rows have coefficient and weight 0.
    size = min(BLOCK, max(64, 1 << (n - 1).bit_length()))
    pad = -n % size
    together = min(1 << (outputs - 1).bit_length(), max(1, COLUMNS // width))
    precision = np.float32 if n > SINGLE else np.float64
    # Centering reduces rounding errors of distances.
    moved = np.pad(x - weight @ x / weight.sum(), ((0, 0), (0, width - d)))
    points, alpha, mass = (
        np.pad(a, ((0, pad),) + ((0, 0),) * (a.ndim - 1)).astype(precision)
        for a in (moved, coefficients, weight)
    )
    alpha = (
        np.pad(alpha, ((0, 0), (0, -outputs % together)))
        .reshape(len(alpha), -1, together)
        .swapaxes(0, 1)
    )  # parts n together
    total, mean = np.zeros((width, width)), np.zeros((alpha.shape[0] * together, width))
    with jax.enable_x64(precision is np.float64):
        for start in range(0, n + pad, size):
            rows = slice(start, start + size)
            outer, sums = _outer_product(kernel, points[rows], mass[rows], points, alpha)
            total += np.asarray(outer, np.float64)
            mean += np.asarray(sums, np.float64).reshape(-1, width)
    mean /= weight.sum()
    result: np.ndarray = (total / weight.sum() - (mean.T @ mean if centered else 0.0))[:d, :d]
    return result


@eqx.filter_jit
def _outer_product(kernel: Stationary, z: Any, mass: Any, x: Any, alpha: Any) -> Any:
    d = x.shape[1]
    squares = squared_norm(z)[:, None] + squared_norm(x)[None, :]
    squared = squares - 2 * (z @ x.T)
    far = squared > NEAR * jnp.finfo(x.dtype).eps * squares
    squared = jnp.where(far, squared, 1.0)
    derivatives = jax.jvp(kernel.of_distance, (squared,), (jnp.ones_like(squared),))[1]
    derivatives = 2 * jnp.where(far, derivatives, 0.0)

    def of_outputs(total: Any, a: Any) -> tuple[Any, Any]:
        with_points = (a[:, :, None] * x[:, None, :]).reshape(len(x), -1)  # n (together d)
        gradients = (derivatives @ a)[:, :, None] * z[:, None, :] - (
            derivatives @ with_points
        ).reshape(len(z), -1, d)
        heavy = mass[:, None, None] * gradients
        return total + jnp.einsum("nod,noe->de", gradients, heavy), jnp.sum(heavy, axis=0)

    return jax.lax.scan(of_outputs, jnp.zeros((d, d), x.dtype), alpha)


def metric_root(metric: Float[np.ndarray, "d d"]) -> Float[np.ndarray, "d d"]:
    """Return the symmetric square root of a metric."""
    values, vectors = eigh(metric)
    result: np.ndarray = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    return result


def normalized(
    metric: Float[np.ndarray, "d d"], before: Float[np.ndarray, "d d"]
) -> Float[np.ndarray, "d d"]:
    """Return the metric scaled to trace d, or `before` if it is zero or not finite."""
    trace = float(np.trace(metric))
    return (
        (metric + metric.T) * (len(metric) / (2 * trace))
        if np.isfinite(trace) and trace > 0
        else before
    )
