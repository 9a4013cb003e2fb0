"""Weighted ridge regression with an unpenalized intercept, on a Gram matrix or on features.

It minimizes Σ_i w_i·(y_i − f(x_i) − c)² + λ·‖f‖² over f and c. Leave-one-out selects the ridge. It
removes one unit of weight from an example, or all of it if it has less. With residual r_i and
leverage h_i, the error is then r_i/(1 − h_i·min(w_i, 1)/w_i).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax
import numpy as np
import scipy.linalg
from jaxtyping import Float

from unlazy.core.errors import BadInput, require
from unlazy.kernels.base import Kernel
from unlazy.kernels.gram import gram
from unlazy.solvers.exact import Matrix, Targets, eigh, finite_array, min_eigenvalue, targets_of

#: Default candidates, in units of the mean squared norm of a centered feature vector.
RIDGES = np.logspace(-7, 1, 17)


def double_gram(kernel: Kernel, x: Matrix, originals: Matrix | None = None) -> Matrix:
    """Return the Gram matrix in double precision, because many are indefinite in single precision.

    Entries of duplicated points are set to the exact diagonal, without rounding errors. `originals`
    are the points before a linear map, used to find duplicates.
    """
    with jax.enable_x64(True):
        K = np.array(gram(kernel, np.asarray(x, np.float64)))
    _, same, counts = np.unique(
        x if originals is None else originals, axis=0, return_inverse=True, return_counts=True
    )
    for group in np.flatnonzero(counts > 1):
        members = np.flatnonzero(same.ravel() == group)
        K[np.ix_(members, members)] = K[members[0], members[0]]
    return K


@dataclasses.dataclass(frozen=True)
class RidgeFit:
    """Coefficients of points or features (one column per output), intercepts, and ridge.

    `errors` are the mean squared leave-one-out errors of the candidate `ridges`, summed over
    outputs, or NaN for a given ridge.
    """

    coefficients: Matrix
    intercept: Float[np.ndarray, " o"]
    ridge: float
    ridges: Float[np.ndarray, " r"]
    errors: Float[np.ndarray, " r"]

    @property
    def error(self) -> float:
        """The leave-one-out error of the selected ridge."""
        return float(self.errors[np.argmin(np.abs(self.ridges - self.ridge))])


def fit_gram(
    K: Matrix,
    Y: Targets,
    ridges: float | Sequence[float] | None = None,
    *,
    weight: Float[np.ndarray, " n"] | None = None,
    intercept: bool = True,
) -> RidgeFit:
    """Fit f(z) = Σ_i k(z, x_i)·α_i to a Gram matrix.

    `ridges` is one ridge, or candidates for leave-one-out, by default `RIDGES`.
    """
    Y, weight = _targets(Y, len(K)), _weights(weight, len(K))
    root = np.sqrt(weight)
    scaled, targets = root[:, None] * K * root, root[:, None] * Y
    if isinstance(ridges, int | float):
        alpha = root[:, None] * _cholesky_fit(scaled, targets, root, float(ridges), intercept)
        return RidgeFit(
            alpha,
            _intercept(Y - K @ alpha, weight, intercept),
            float(ridges),
            np.array([ridges]),
            np.array([np.nan]),
        )
    unit = root / np.linalg.norm(root)
    if intercept:
        scaled -= np.outer(unit, unit @ scaled)
        scaled -= np.outer(scaled @ unit, unit)
    size = float(np.trace(scaled))
    grid = _grid(ridges, size / weight.sum(), float(np.max(weight * np.diag(K))), len(K))
    values, vectors = eigh(
        scaled + (2 * max(size, 0) + 1) * np.outer(unit, unit) if intercept else scaled
    )
    values = np.maximum(
        values, min_eigenvalue(float(values[0]), float(values[-1]), len(K), float(grid.min()))
    )
    if intercept:
        # The constant is the last eigenvector, without penalty: an infinite eigenvalue.
        values = np.append(values[:-1], np.inf)
    shrunk = 1 / (values[:, None] + grid)  # n r
    solved = np.einsum("nk,kr,ko->rno", vectors, shrunk, vectors.T @ targets, optimize=True)
    inverse = (np.square(vectors) @ shrunk).T  # r n
    leverage = 1 - grid[:, None] * inverse
    errors = left_out(grid[:, None, None] * solved, leverage, weight)
    best = int(np.argmin(errors))
    alpha = root[:, None] * solved[best]
    return RidgeFit(
        alpha, _intercept(Y - K @ alpha, weight, intercept), float(grid[best]), grid, errors
    )


def fit_features(
    features: Matrix,
    Y: Targets,
    ridges: float | Sequence[float] | None = None,
    *,
    weight: Float[np.ndarray, " n"] | None = None,
    intercept: bool = True,
) -> RidgeFit:
    """Fit f(z) = ⟨φ(z), β⟩ to features, one row per point, by the smaller of ΦᵀΦ and ΦΦᵀ."""
    n, p = features.shape
    if n < p:
        fit = fit_gram(features @ features.T, Y, ridges, weight=weight, intercept=intercept)
        return dataclasses.replace(fit, coefficients=features.T @ fit.coefficients)
    Y, weight = _targets(Y, n), _weights(weight, n)
    root = np.sqrt(weight)[:, None]
    mean = weight @ features / weight.sum() if intercept else np.zeros(p)
    centered, targets = (
        root * (features - mean),
        root * (Y - (weight @ Y / weight.sum() if intercept else 0)),
    )
    values, vectors = eigh(centered.T @ centered)
    values = np.maximum(values, 0)
    if isinstance(ridges, int | float):
        grid = np.array([float(ridges)])
        require(0 < grid[0] < np.inf, f"ridge must be finite and > 0, got {ridges}.")
    else:
        grid = _grid(
            ridges,
            float(values.sum() / weight.sum()),
            float(np.max(weight * np.sum(np.square(features), axis=1))),
            n,
        )
    rotated = centered @ vectors  # n p
    projections = rotated.T @ targets  # p o
    solved = projections[None] / (values + grid[:, None])[:, :, None]  # r p o
    residuals = targets - rotated @ solved
    leverage = (np.square(rotated) @ (1 / (values[:, None] + grid))).T + (
        weight / weight.sum() if intercept else 0
    )
    errors = left_out(residuals, leverage, weight) if len(grid) > 1 else np.array([np.nan])
    best = int(np.argmin(errors)) if len(grid) > 1 else 0
    beta = vectors @ solved[best]
    return RidgeFit(
        beta, _intercept(Y - features @ beta, weight, intercept), float(grid[best]), grid, errors
    )


def without_penalty_on_constant(
    solved: Matrix, of_ones: Float[np.ndarray, " n"], root: Float[np.ndarray, " n"]
) -> Matrix:
    """Return α₁ − α₂·⟨u, α₁⟩/⟨u, α₂⟩, the coefficients without penalty on the constant u.

    α₁ = (K + λ)⁻¹·Y and α₂ = (K + λ)⁻¹·u.
    """
    return solved - np.outer(of_ones, (root @ solved) / (root @ of_ones))


def _cholesky_fit(
    scaled: Matrix, targets: Matrix, root: Float[np.ndarray, " n"], ridge: float, intercept: bool
) -> Matrix:
    require(0 <= ridge < np.inf, f"ridge must be finite and ≥ 0, got {ridge}.")
    shifted = scaled.copy()
    shifted.flat[:: len(shifted) + 1] += ridge
    try:
        factor = scipy.linalg.cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        raise BadInput(
            f"The Gram matrix with a ridge of {ridge:g} is singular, for example by duplicated "
            "points. Use a larger ridge."
        ) from None
    solved = scipy.linalg.cho_solve(factor, np.column_stack([targets, root]), check_finite=False)
    return (
        without_penalty_on_constant(solved[:, :-1], solved[:, -1], root)
        if intercept
        else solved[:, :-1]
    )


def left_out(
    residuals: Float[np.ndarray, "r n o"],
    leverage: Float[np.ndarray, "r n"],
    weight: Float[np.ndarray, " n"],
) -> np.ndarray:
    """Return the mean squared leave-one-out error; `residuals` are multiplied by √w."""
    fraction = np.minimum(weight, 1) / weight
    divisor = np.maximum(1 - fraction * leverage, np.finfo(np.float64).eps)
    squares = np.square(residuals / divisor[:, :, None])
    result: np.ndarray = np.sum(squares, axis=(1, 2)) / weight.sum()
    return result


def _intercept(
    residuals: Matrix, weight: Float[np.ndarray, " n"], intercept: bool
) -> Float[np.ndarray, " o"]:
    return weight @ residuals / weight.sum() if intercept else np.zeros(residuals.shape[1])


def _targets(Y: Targets, n: int) -> Matrix:
    return targets_of(Y, n).reshape(n, -1)


def _weights(weight: Float[np.ndarray, " n"] | None, n: int) -> Float[np.ndarray, " n"]:
    if weight is None:
        return np.ones(n)
    weight = finite_array("weight", weight, 1)
    require(
        len(weight) == n and bool(np.all(weight > 0)),
        f"weight must be {n} positive numbers; drop examples of weight 0.",
    )
    return weight


def _grid(
    ridges: Sequence[float] | None, unit: float, largest: float, n: int
) -> Float[np.ndarray, " r"]:
    """Return the given ridges, or `RIDGES` in multiples of `unit`, above rounding errors.

    `largest` is the largest squared norm of the n points. If `unit` is below rounding errors, all
    ridges give the same fit.
    """
    if ridges is None:
        rounding = 100 * n * np.finfo(np.float64).eps * largest
        return (
            np.maximum(RIDGES * unit, rounding)
            if RIDGES[-1] * unit > rounding
            else RIDGES * (largest or 1.0)
        )
    grid = finite_array("ridges", np.atleast_1d(np.asarray(ridges)), 1)
    require(
        grid.size > 0 and bool(np.all(grid > 0)),
        f"ridges must be > 0, got {list(grid)}.",
    )
    return grid
