"""Recursive feature machines: a kernel regression whose metric is learned from the gradients of its own predictions.

From M = I, fit f with the kernel of the distance ‖x − z‖_M = √((x − z)ᵀM(x − z)); then take for M the average gradient outer product
(1/n)·Σ_i ∇f(x_i)·∇f(x_i)ᵀ, summed over outputs and scaled to the trace d of the identity; repeat. Iteration 0 is the plain kernel.

Reference: Radhakrishnan, Beaglehole, Pandit and Belkin, Mechanism for feature learning in neural networks and backpropagation-free machine
learning models, 2024. Deviation: the trace of M is fixed at d, so that the kernel keeps its bandwidth.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from unlazy.core.errors import require
from unlazy.kernels.base import squared_norm
from unlazy.kernels.stationary import Stationary
from unlazy.solvers.exact import Matrix, Solution, Targets, eigh, finite_array, targets_of
from unlazy.solvers.ridge import RidgeFit, double_gram, fit_gram

#: Squared distances below this share of the squared norms are rounding: there a gradient is taken to be 0.
NEAR = 1e-14
#: Rows of a block of the kernel's slopes.
BLOCK = 512


@dataclasses.dataclass(frozen=True)
class RecursiveFit:
    """One iteration: the metric M with which it was fitted, its root M^{1/2}, and the ridge regression on x·M^{1/2}."""

    kernel: Stationary
    x: Matrix
    metric: Float[np.ndarray, "d d"]
    root: Float[np.ndarray, "d d"]
    fit: RidgeFit
    shape: tuple[int, ...]

    def predict(self, z: Matrix) -> np.ndarray:
        """f(z_i), shaped as the targets were."""
        z = finite_array("z", z, 2)
        found = Solution(self.kernel, self.x @ self.root, self.fit.coefficients, "float64").predict(z @ self.root) + self.fit.intercept
        return found.reshape(len(z), *self.shape)


def recursive_feature_machine(
    kernel: Stationary,
    x: Matrix,
    Y: Targets,
    ridge: float | Sequence[float] | None = None,
    iterations: int = 5,
    *,
    weight: Float[np.ndarray, " n"] | None = None,
    intercept: bool = True,
) -> list[RecursiveFit]:
    """The fits of iterations 0, …, `iterations`, in double precision. Each calls `unlazy.solvers.ridge.fit_gram`: see there for `ridge`."""
    require(isinstance(kernel, Stationary), "A recursive feature machine needs a kernel of a distance: Laplace or RBF.")
    require(isinstance(iterations, int) and iterations >= 0, f"iterations must be a whole number ≥ 0, but is {iterations!r}.")
    x = finite_array("x", x, 2)
    targets = targets_of(Y, len(x))
    columns = targets.reshape(len(x), -1)
    metric = np.eye(x.shape[1])
    fits: list[RecursiveFit] = []
    for _ in range(iterations + 1):
        root = metric_root(metric)
        points = x @ root
        fit = fit_gram(double_gram(kernel, points, x), columns, ridge, weight=weight, intercept=intercept)
        fits.append(RecursiveFit(kernel, x, metric, root, fit, targets.shape[1:]))
        if len(fits) <= iterations:
            metric = normalised(root @ gradient_outer_product(kernel, points, fit.coefficients, weight=weight) @ root, metric)
    return fits


def gradient_outer_product(
    kernel: Stationary, x: Matrix, coefficients: Matrix, *, weight: Float[np.ndarray, " n"] | None = None
) -> Float[np.ndarray, "d d"]:
    """Mean over the points, with their weights, and sum over outputs of ∇f(x_i)·∇f(x_i)ᵀ for f(z) = Σ_j k(z, x_j)·α_j.

    With k = κ(r²), ∇f(x_i) = 2·Σ_j κ'(r_ij²)·α_j·(x_i − x_j). A point's own term has no gradient in `Laplace` and is left out.
    """
    n, d = x.shape
    weight = np.ones(n) if weight is None else weight
    coefficients = coefficients.reshape(n, -1)
    # One shape of blocks for all numbers of points: rows of zeros have coefficients and weights of zero.
    size = min(BLOCK, max(64, 1 << (n - 1).bit_length()))
    pad = -n % size
    points, alpha, mass = (np.pad(a, ((0, pad),) + ((0, 0),) * (a.ndim - 1)) for a in (x, coefficients, weight))
    total = np.zeros((d, d))
    with jax.enable_x64(True):
        for start in range(0, n + pad, size):
            rows = slice(start, start + size)
            total += np.asarray(_outer_product(kernel, points[rows], mass[rows], points, alpha))
    return total / weight.sum()


@eqx.filter_jit
def _outer_product(kernel: Stationary, z: Any, mass: Any, x: Any, alpha: Any) -> Any:
    squares = squared_norm(z)[:, None] + squared_norm(x)
    squared = squares - 2 * (z @ x.T)
    far = squared > NEAR * squares
    squared = jnp.where(far, squared, 1.0)
    slopes = jax.jvp(kernel.of_distance, (squared,), (jnp.ones_like(squared),))[1]
    slopes = 2 * jnp.where(far, slopes, 0.0)

    def of_output(total: Any, a: Any) -> tuple[Any, None]:
        gradients = (slopes @ a)[:, None] * z - slopes @ (a[:, None] * x)
        return total + gradients.T @ (mass[:, None] * gradients), None

    return jax.lax.scan(of_output, jnp.zeros((x.shape[1], x.shape[1]), x.dtype), alpha.T)[0]


def metric_root(metric: Float[np.ndarray, "d d"]) -> Float[np.ndarray, "d d"]:
    """The symmetric root of a metric."""
    values, vectors = eigh(metric)
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


def normalised(metric: Float[np.ndarray, "d d"], before: Float[np.ndarray, "d d"]) -> Float[np.ndarray, "d d"]:
    """Scaled to the trace d; a function without gradients leaves the metric that it had."""
    trace = float(np.trace(metric))
    return (metric + metric.T) * (len(metric) / (2 * trace)) if np.isfinite(trace) and trace > 0 else before
