"""Ridge regression on a few thousand points: Cholesky factorisations in single precision, made
exact by refinement in double precision.

A ridge is first chosen by leave-one-out on `CHOOSING_POINTS` points, from one eigendecomposition;
then leave-one-out on all points, or on `LOOKED_AT` of more, looks at that ridge and its neighbours
and goes downhill. With L·Lᵀ = K + λI a look costs L and L⁻¹, n³/3 operations each: the diagonal of
G = (K + λI)⁻¹ is the sum of squares of the columns of L⁻¹, and r_i/(λ·G_ii) is the error at a point
that was left out. An eigendecomposition in double precision costs as much as thirty looks.

Coefficients are corrected by the residuals of K in double precision until these are small. A matrix
too near to singular for single precision is factorised in double precision.
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

#: Points on which a ridge is chosen before more points are looked at, and ridges that are looked at
#: with those.
CHOOSING_POINTS, LOOKS = 2_000, 3
#: With more points than these the looks see so many of them: ridges stand half a decade apart, and
#: the best one moves slowly with n.
LOOKED_AT = 5_000
#: Points on which it is chosen where a quick fit will do, as inside of an iteration; it is not
#: looked at again.
QUICK_POINTS = 1_000
#: Relative residual to which coefficients are refined, and the most corrections.
REFINED, CORRECTIONS = 1e-9, 8


class _RidgeLook(NamedTuple):
    """The fit with one ridge: coefficients times 1/√w, and the mean squared leave-one-out error
    (NaN where it was not asked for).
    """

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
    """As `fit_gram`, for more points. `quick`: with the ridge that is chosen on `QUICK_POINTS`
    points.

    `originals` as for `double_gram`.
    """
    n = len(x)
    weight = np.ones(n) if weight is None else weight
    if n > LOOKED_AT and not quick and not isinstance(ridges, int | float):
        part = np.random.default_rng(1).permutation(n)[:LOOKED_AT]
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
    looks = 0 if quick or isinstance(ridges, int | float) else LOOKS
    if isinstance(ridges, int | float):
        grid, place = np.array([float(ridges)]), 0
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
        grid, place = few.ridges[order], int(np.argmin(few.errors[order]))
    K = double_gram(kernel, x, originals)
    scaled, targets = (
        (K, Y) if np.all(weight == 1) else (root[:, None] * K * root, root[:, None] * Y)
    )
    seen: dict[int, _RidgeLook] = {}
    for _ in range(max(looks, 1)):
        seen[place] = _look(scaled, targets, root, float(grid[place]), weight, intercept, looks > 0)
        best = min(seen, key=lambda index: (seen[index].error, -index))
        # Beyond the best of those seen: towards greater ridges first, where a matrix is better
        # conditioned.
        place = next(
            (
                index
                for index in (best + 1, best - 1)
                if index not in seen and 0 <= index < len(grid)
            ),
            -1,
        )
        if place < 0:
            break
    best = min(seen, key=lambda index: (seen[index].error, -index)) if looks else next(iter(seen))
    errors = np.array(
        [seen[index].error if index in seen else np.nan for index in range(len(grid))]
    )
    alpha = root[:, None] * seen[best].solved
    constant = weight @ (Y - K @ alpha) / weight.sum() if intercept else np.zeros(Y.shape[1])
    return RidgeFit(alpha, constant, float(grid[best]), grid, errors)


def _look(
    scaled: Matrix,
    targets: Matrix,
    root: Float[np.ndarray, " n"],
    ridge: float,
    weight: Float[np.ndarray, " n"],
    intercept: bool,
    leave_out: bool,
) -> _RidgeLook:
    right = np.column_stack([targets, root])
    for precision in (np.float32, np.float64):
        factor = _factor(scaled, ridge, precision)
        solved = None if factor is None else _refined(scaled, ridge, factor, right)
        if solved is not None:
            break
    if factor is None or solved is None:
        raise BadInput(
            f"The Gram matrix with a ridge of {ridge:g} is singular, as with duplicated points. "
            "Use a greater ridge."
        )
    of_ones = solved[:, -1]
    solved = (
        without_penalty_on_constant(solved[:, :-1], of_ones, root) if intercept else solved[:, :-1]
    )
    if not leave_out:
        return _RidgeLook(solved, np.nan)
    invert = (
        scipy.linalg.lapack.strtri if factor.dtype == np.float32 else scipy.linalg.lapack.dtrtri
    )
    below, _ = invert(factor, lower=1, overwrite_c=1)
    inverse = np.einsum("ij,ij->j", below, below).astype(np.float64)
    if intercept:
        inverse -= np.square(of_ones) / (root @ of_ones)
    leverage = 1 - ridge * inverse
    return _RidgeLook(solved, float(left_out(ridge * solved[None], leverage[None], weight)[0]))


def _factor(scaled: Matrix, ridge: float, precision: type) -> Matrix | None:
    """The lower Cholesky factor in this precision, or None where there is none."""
    shifted: np.ndarray = np.array(
        scaled, precision, order="F"
    )  # symmetric: the order costs nothing but the copy
    shifted.flat[:: len(shifted) + 1] += precision(ridge)
    factorise = (
        scipy.linalg.lapack.spotrf if precision is np.float32 else scipy.linalg.lapack.dpotrf
    )
    factor, info = factorise(shifted, lower=1, clean=1, overwrite_a=1)
    return factor if info == 0 else None


def _refined(scaled: Matrix, ridge: float, factor: Matrix, right: Matrix) -> Matrix | None:
    """(K + λI)⁻¹·right, corrected by residuals in double precision; None if these do not shrink."""
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
            # In double precision a residual that no longer shrinks is rounding.
            return solved if factor.dtype == np.float64 and np.isfinite(worst) else None
        before = worst
    return solved if factor.dtype == np.float64 else None
