"""Recursive feature machines: a kernel regression whose metric is learned from the gradients of its
own predictions.

From M = I, fit f with the kernel of the distance ‖x − z‖_M = √((x − z)ᵀM(x − z)); then take for M
the average gradient outer product (1/n)·Σ_i ∇f(x_i)·∇f(x_i)ᵀ, summed over outputs and scaled to the
trace d of the identity; repeat. Iteration 0 is the plain kernel.

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

#: Squared distances below this many roundings of the squared norms are none: there a gradient is
#: taken to be 0.
NEAR = 50.0
#: Rows of a block of the kernel's slopes, and columns of a block of products with them.
BLOCK, COLUMNS = 512, 2048
#: Columns of zeros, which change nothing, fill up to a multiple of this: tables of about the same
#: width share a program.
ROUND = 16
#: Above this number of points gradients are computed in single precision, far below the noise of
#: their mean.
SINGLE = 1_000


class Fitted(Protocol):
    """What a solver gives: coefficients of the points, one column an output or no axis for one, and
    whatever else its caller wants.
    """

    @property
    def coefficients(self) -> np.ndarray:
        """α."""


F = TypeVar("F", bound=Fitted)


@dataclasses.dataclass(frozen=True)
class MetricFit(Generic[F]):
    """One iteration: the metric M with which it was fitted, its root M^{1/2}, and what the solver
    found on the points x·M^{1/2}.
    """

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
    centred: bool = False,
    diagonal: bool = False,
) -> Iterator[MetricFit[F]]:
    """The fits of iterations 0, …, `iterations`, one by one: `solve` fits the kernel to points,
    which have the precision of x.

    `centred`: the metric is the covariance of the gradients, without their mean. `diagonal`: of the
    metric only the diagonal is kept, one weight for each column.
    """
    require(
        isinstance(kernel, Stationary),
        "A recursive feature machine needs a kernel of a distance: Laplace or RBF.",
    )
    require(
        isinstance(iterations, int | np.integer) and iterations >= 0,
        f"iterations must be a whole number ≥ 0, but is {iterations!r}.",
    )
    metric = np.eye(x.shape[1])
    for iteration in range(iterations + 1):
        root = metric_root(metric)
        points = (x @ root).astype(x.dtype)
        fit = solve(points)
        yield MetricFit(metric, root, fit)
        if iteration < iterations:
            slopes = gradient_outer_product(
                kernel, points.astype(np.float64), fit.coefficients, weight=weight, centred=centred
            )
            learned = root @ slopes @ root
            metric = normalised(np.diag(np.diag(learned)) if diagonal else learned, metric)


def metric_scores(
    kernel: Kernel, x: Matrix, root: Float[np.ndarray, "d d"], coefficients: np.ndarray, z: Matrix
) -> Float[np.ndarray, "t ..."]:
    """f(z) = Σ_i k(z·M^{1/2}, x_i·M^{1/2})·α_i, in the precision of x."""
    return Solution(kernel, (x @ root).astype(x.dtype), coefficients, x.dtype.name).predict(
        z @ root
    )


def gradient_outer_product(
    kernel: Stationary,
    x: Float[np.ndarray, "n d"],
    coefficients: Targets,
    *,
    weight: Float[np.ndarray, " n"] | None = None,
    centred: bool = False,
) -> Float[np.ndarray, "d d"]:
    """Mean over the points, with their weights, and sum over outputs of ∇f(x_i)·∇f(x_i)ᵀ for f(z) =
    Σ_j k(z, x_j)·α_j.

    With k = κ(r²), ∇f(x_i) = 2·Σ_j κ'(r_ij²)·α_j·(x_i − x_j). A point's own term has no gradient in
    `Laplace` and is left out. With `centred` the outer product of the mean gradient is subtracted.
    """
    n, d = x.shape
    weight = np.ones(n) if weight is None else weight
    coefficients = coefficients.reshape(n, -1)
    outputs, width = coefficients.shape[1], -(-d // ROUND) * ROUND
    # One shape of blocks for all numbers of points: rows of zeros have coefficients and weights of
    # zero.
    size = min(BLOCK, max(64, 1 << (n - 1).bit_length()))
    pad = -n % size
    together = min(1 << (outputs - 1).bit_length(), max(1, COLUMNS // width))
    precision = np.float32 if n > SINGLE else np.float64
    moved = np.pad(
        x - weight @ x / weight.sum(), ((0, 0), (0, width - d))
    )  # distances do not mind the shift, and rounding is less
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
    result: np.ndarray = (total / weight.sum() - (mean.T @ mean if centred else 0.0))[:d, :d]
    return result


@eqx.filter_jit
def _outer_product(kernel: Stationary, z: Any, mass: Any, x: Any, alpha: Any) -> Any:
    d = x.shape[1]
    squares = squared_norm(z)[:, None] + squared_norm(x)[None, :]
    squared = squares - 2 * (z @ x.T)
    far = squared > NEAR * jnp.finfo(x.dtype).eps * squares
    squared = jnp.where(far, squared, 1.0)
    slopes = jax.jvp(kernel.of_distance, (squared,), (jnp.ones_like(squared),))[1]
    slopes = 2 * jnp.where(far, slopes, 0.0)

    def of_outputs(total: Any, a: Any) -> tuple[Any, Any]:
        with_points = (a[:, :, None] * x[:, None, :]).reshape(len(x), -1)  # n (together d)
        gradients = (slopes @ a)[:, :, None] * z[:, None, :] - (slopes @ with_points).reshape(
            len(z), -1, d
        )
        heavy = mass[:, None, None] * gradients
        return total + jnp.einsum("nod,noe->de", gradients, heavy), jnp.sum(heavy, axis=0)

    return jax.lax.scan(of_outputs, jnp.zeros((d, d), x.dtype), alpha)


def metric_root(metric: Float[np.ndarray, "d d"]) -> Float[np.ndarray, "d d"]:
    """The symmetric root of a metric."""
    values, vectors = eigh(metric)
    result: np.ndarray = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    return result


def normalised(
    metric: Float[np.ndarray, "d d"], before: Float[np.ndarray, "d d"]
) -> Float[np.ndarray, "d d"]:
    """Scaled to the trace d; a function without gradients leaves the metric that it had."""
    trace = float(np.trace(metric))
    return (
        (metric + metric.T) * (len(metric) / (2 * trace))
        if np.isfinite(trace) and trace > 0
        else before
    )
