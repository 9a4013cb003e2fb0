"""Ridge regression on a few thousand points by Cholesky factorizations in single precision.

Leave-one-out on `CHOOSING_POINTS` points selects a ridge from one eigendecomposition. Leave-one-out
on all points, or on `MAX_LOO_POINTS` of them, then searches for a minimum among ridges near it.
With L·Lᵀ = K + λI, one ridge costs L and L⁻¹, n³/3 operations each. The diagonal of G = (K + λI)⁻¹
is the sum of squares of the columns of L⁻¹, and r_i/(λ·G_ii) is the leave-one-out error. An
eigendecomposition in double precision costs as much as thirty ridges.

Coefficients are refined by residuals in double precision. A matrix too close to singular for single
precision is factorized in double precision.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg
from jaxtyping import Float

from unlazy.core.errors import BadInput
from unlazy.kernels.base import Kernel
from unlazy.solvers.exact import Matrix
from unlazy.solvers.ridge import (
    RidgeFit,
    double_gram,
    fit_gram,
    left_out,
    without_penalty_on_constant,
)

#: Points for the first selection of a ridge, and ridges tried afterwards on more points.
CHOOSING_POINTS, TRIED_RIDGES = 2_000, 3
#: Maximum number of points for leave-one-out. The ridges are half a decade apart, and the best one
#: changes slowly with n.
MAX_LOO_POINTS = 5_000
#: Points that select the ridge of a quick fit, as inside an iteration.
QUICK_POINTS = 1_000
#: Relative residual of refined coefficients, and maximum number of corrections.
REFINED, CORRECTIONS = 1e-9, 8


class _Candidate(NamedTuple):
    """The fit with one ridge: coefficients times 1/√w, and leave-one-out error or NaN."""

    solved: Matrix
    error: float


def fit_factored(
    kernel: Kernel,
    x: Matrix,
    Y: Matrix,
    ridges: float | Sequence[float] | None = None,
    *,
    weight: Float[np.ndarray, " n"] | None = None,
    intercept: bool = True,
    quick: bool = False,
    originals: Matrix | None = None,
) -> RidgeFit:
    """Fit as `fit_gram`, for more points.

    With `quick`, `QUICK_POINTS` points select the ridge. `originals` as in `double_gram`.
    """
    n = len(x)
    weight = np.ones(n) if weight is None else weight
    if n > MAX_LOO_POINTS and not quick and not isinstance(ridges, int | float):
        part = np.random.default_rng(1).permutation(n)[:MAX_LOO_POINTS]
        some = None if originals is None else originals[part]
        chosen = fit_factored(
            kernel,
            x[part],
            Y[part],
            ridges,
            weight=weight[part],
            intercept=intercept,
            originals=some,
        )
        fit = fit_factored(
            kernel, x, Y, chosen.ridge, weight=weight, intercept=intercept, originals=originals
        )
        return dataclasses.replace(fit, ridges=chosen.ridges, errors=chosen.errors)
    root = np.sqrt(weight)
    count = 0 if quick or isinstance(ridges, int | float) else TRIED_RIDGES
    if isinstance(ridges, int | float):
        grid, index = np.array([float(ridges)]), 0
    else:
        part = np.random.default_rng(0).permutation(n)[: QUICK_POINTS if quick else CHOOSING_POINTS]
        from_originals = None if originals is None else originals[part]
        few = fit_gram(
            double_gram(kernel, x[part], from_originals),
            Y[part],
            ridges,
            weight=weight[part],
            intercept=intercept,
        )
        order = np.argsort(few.ridges)
        grid, index = few.ridges[order], int(np.argmin(few.errors[order]))
    K = double_gram(kernel, x, originals)
    scaled, targets = (
        (K, Y) if np.all(weight == 1) else (root[:, None] * K * root, root[:, None] * Y)
    )
    tried: dict[int, _Candidate] = {}
    for _ in range(max(count, 1)):
        tried[index] = _fit_ridge(
            scaled, targets, root, float(grid[index]), weight, intercept, count > 0
        )
        best = min(tried, key=lambda i: (tried[i].error, -i))
        # Next to the best so far, larger ridges first, which are better conditioned.
        index = next(
            (i for i in (best + 1, best - 1) if i not in tried and 0 <= i < len(grid)),
            -1,
        )
        if index < 0:
            break
    best = min(tried, key=lambda i: (tried[i].error, -i)) if count else next(iter(tried))
    errors = np.array([tried[i].error if i in tried else np.nan for i in range(len(grid))])
    alpha = root[:, None] * tried[best].solved
    constant = weight @ (Y - K @ alpha) / weight.sum() if intercept else np.zeros(Y.shape[1])
    return RidgeFit(alpha, constant, float(grid[best]), grid, errors)


def _fit_ridge(
    scaled: Matrix,
    targets: Matrix,
    root: Float[np.ndarray, " n"],
    ridge: float,
    weight: Float[np.ndarray, " n"],
    intercept: bool,
    leave_out: bool,
) -> _Candidate:
    right = np.column_stack([targets, root])
    for precision in (np.float32, np.float64):
        factor = _factor(scaled, ridge, precision)
        solved = None if factor is None else _refined(scaled, ridge, factor, right)
        if solved is not None:
            break
    if factor is None or solved is None:
        raise BadInput(
            f"The Gram matrix with a ridge of {ridge:g} is singular, for example by duplicated "
            "points. Use a larger ridge."
        )
    of_ones = solved[:, -1]
    solved = (
        without_penalty_on_constant(solved[:, :-1], of_ones, root) if intercept else solved[:, :-1]
    )
    if not leave_out:
        return _Candidate(solved, np.nan)
    invert = (
        scipy.linalg.lapack.strtri if factor.dtype == np.float32 else scipy.linalg.lapack.dtrtri
    )
    below, _ = invert(factor, lower=1, overwrite_c=1)
    inverse = np.einsum("ij,ij->j", below, below).astype(np.float64)
    if intercept:
        inverse -= np.square(of_ones) / (root @ of_ones)
    leverage = 1 - ridge * inverse
    return _Candidate(solved, float(left_out(ridge * solved[None], leverage[None], weight)[0]))


def _factor(scaled: Matrix, ridge: float, precision: type) -> Matrix | None:
    """Return the lower Cholesky factor in this precision, or None if it does not exist."""
    shifted: np.ndarray = np.array(scaled, precision, order="F")
    shifted.flat[:: len(shifted) + 1] += precision(ridge)
    factorize = (
        scipy.linalg.lapack.spotrf if precision is np.float32 else scipy.linalg.lapack.dpotrf
    )
    factor, info = factorize(shifted, lower=1, clean=1, overwrite_a=1)
    return factor if info == 0 else None


def _refined(scaled: Matrix, ridge: float, factor: Matrix, right: Matrix) -> Matrix | None:
    """Return (K + λI)⁻¹·right, refined in double precision; None if residuals do not shrink."""
    solve = scipy.linalg.lapack.spotrs if factor.dtype == np.float32 else scipy.linalg.lapack.dpotrs
    norms = np.maximum(np.linalg.norm(right, axis=0), np.finfo(np.float64).tiny)
    solved: Matrix = np.zeros_like(right)
    residual, before = right, np.inf
    for _ in range(CORRECTIONS):
        size = np.maximum(np.linalg.norm(residual, axis=0), np.finfo(np.float64).tiny)
        correction, _ = solve(factor, np.asfortranarray(residual / size, factor.dtype), lower=1)
        solved = solved + correction.astype(np.float64) * size
        residual = right - (scaled @ solved + ridge * solved)
        worst = float(np.max(np.linalg.norm(residual, axis=0) / norms))
        if worst <= REFINED:
            return solved
        if not worst < before / 2:
            # In double precision, a residual that no longer shrinks is rounding.
            return solved if factor.dtype == np.float64 and np.isfinite(worst) else None
        before = worst
    return solved if factor.dtype == np.float64 else None
