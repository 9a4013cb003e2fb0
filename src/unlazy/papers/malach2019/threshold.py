"""Threshold degree of an AND of ORs, the mechanism behind Theorem 11.

Reference: malach2019, Theorem 11; Minsky and Papert (1969); Razborov and Sherstov (2010).
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import equinox as eqx
import numpy as np
import scipy.optimize
from jaxtyping import PRNGKeyArray

from unlazy.lab.trials import ExactComputation


def counts(m: int, width: int) -> np.ndarray:
    """Return all (t_1 ≤ … ≤ t_m), t_i the number of ones among the `width` inputs of OR i.

    Averaging a polynomial over permutations of inputs within and between the ORs keeps its signs
    and its degree, and gives a symmetric polynomial of t of at most that degree.
    """
    return np.array(list(itertools.combinations_with_replacement(range(width + 1), m)))


def monomials(t: np.ndarray, degree: int) -> np.ndarray:
    """Return the symmetric monomials of total degree at most `degree`, as integers."""
    m = t.shape[1]
    powers = [
        each
        for each in itertools.combinations_with_replacement(range(degree + 1), m)
        if sum(each) <= degree
    ]
    columns = [
        sum(np.prod(t.astype(object) ** np.array(order), axis=1) for order in orders)
        for orders in (sorted(set(itertools.permutations(each))) for each in powers)
    ]
    return np.stack(columns, axis=1)


def certificate(signs: np.ndarray, values: np.ndarray) -> dict[int, Fraction] | None:
    """Return weights of points that prove that no polynomial has these signs; None if one does.

    The weights are positive, and Σ weight·sign·value = 0 for every monomial. So Σ weight·sign·p = 0
    for every polynomial p, which excludes sign·p > 0 at all points. A linear program finds the
    points; the weights are computed in rational arithmetic.
    """
    scaled = signs[:, None] * (values / np.abs(values).max(axis=0)).astype(float)
    found = scipy.optimize.linprog(
        np.zeros(len(signs)),
        A_eq=np.vstack([scaled.T, np.ones(len(signs))]),
        b_eq=np.append(np.zeros(values.shape[1]), 1.0),
        method="highs-ds",
    )
    if found.status != 0:
        return None
    support = np.flatnonzero(found.x > 1e-12)
    weights = null_vector((signs[support, None] * values[support]).T)
    return dict(zip(support.tolist(), weights, strict=True)) if min(weights) > 0 else None


def null_vector(matrix: np.ndarray) -> list[Fraction]:
    """Return the vector with last entry 1 that an integer matrix maps to zero, exactly."""
    rows = [[Fraction(int(value)) for value in row] for row in matrix]
    columns = matrix.shape[1]
    for column in range(columns - 1):
        pivot = next(i for i in range(column, len(rows)) if rows[i][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        scale = rows[column][column]
        rows[column] = [value / scale for value in rows[column]]
        for i, row in enumerate(rows):
            if i != column and row[column]:
                factor = row[column]
                rows[i] = [a - factor * b for a, b in zip(row, rows[column], strict=True)]
    assert not any(row[-1] for row in rows[columns - 1 :]), "the matrix has no null vector"
    return [-row[-1] for row in rows[: columns - 1]] + [Fraction(1)]


def threshold_degree(signs: np.ndarray, t: np.ndarray) -> int:
    """Return the smallest degree of a polynomial of t with these signs."""
    for degree in range(t.shape[1] + 1):
        if certificate(signs, monomials(t, degree)) is None:
            return degree
    return int(t.shape[1]) + 1


class ThresholdDegree(ExactComputation):
    """Threshold degree of the AND of m ORs of m² and of 4m² bits; the axis is m.

    `degree`: maximum over both widths. `degree_gap`: maximum of |degree − m| over both widths and
    all m' ≤ m. The sign of Π t_i − ½, of degree m, is that of the function; lower degrees are
    excluded by exact certificates. `conjunction` replaces the ORs by ANDs, for which degree 1
    suffices.
    """

    sizes: tuple[int, ...] = eqx.field(static=True)
    conjunction: bool = eqx.field(static=True, default=False, kw_only=True)
    precision: int = eqx.field(static=True, default=64, kw_only=True)  # type: ignore[assignment]

    axis = "sizes"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        degrees = np.array([[self._degree(m, w) for w in (m * m, 4 * m * m)] for m in self.sizes])
        gaps = np.abs(degrees - np.array(self.sizes)[:, None]).max(axis=1)
        return {
            "degree": degrees.max(axis=1).astype(float),
            "degree_gap": np.maximum.accumulate(gaps).astype(float),
        }

    def _degree(self, m: int, width: int) -> int:
        t = counts(m, width)
        true = np.all(t == width, axis=1) if self.conjunction else np.all(t >= 1, axis=1)
        signs = np.where(true, 1, -1)
        if not self.conjunction:
            assert np.array_equal(np.sign(2 * np.prod(t, axis=1) - 1), signs)
        return threshold_degree(signs, t)
