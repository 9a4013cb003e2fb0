"""Complexity of a smooth function from its Taylor series φ(z) = Σ c_i·z^i:

    C_ε(φ) = Σ_i ((C*)^i + (√log(1/ε)/√i·C*)^i)·|c_i|,     C_s(φ) = C*·Σ_i (i + 1)·|c_i|,

with a large constant C*, such as 10⁴. C_ε overflows floating-point numbers for most functions, so
its logarithm is computed. The term i = 0 has weight 2.

Closed forms, with A = C*·c: Σ_i (C*)^i|c_i| = e^A − 1 (of e^{cz} − 1), sinh A (of sin cz), cosh A
(of cos cz); C_s/C* = (1 + c)e^c − 1, sinh c + c·cosh c, cosh c + c·sinh c, and for tanh and the
sigmoid tan 1 + 1/cos² 1 and ½ + ½·tan ½ + ¼/cos² ½, since their coefficients have the same
absolute values as those of the tangent.

Reference: allenzhu2019, Section 4.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.special

from unlazy.core.errors import require
from unlazy.core.series import TaylorSeries

#: The paper's example of a sufficiently large constant.
CONSTANT = 1e4


def slope_complexity(series: TaylorSeries, constant: float = CONSTANT, terms: int = 400) -> float:
    """Return C_s(φ)."""
    sizes = np.exp(series.log_sizes(terms))
    return float(constant * np.sum((np.arange(terms) + 1) * sizes))


def log_sample_complexity(
    series: TaylorSeries,
    log_inverse: float,
    constant: float = CONSTANT,
    *,
    degree: int | None = None,
) -> float:
    """Return log C_ε(φ) for log(1/ε) = `log_inverse`.

    The series is truncated after `degree`, for series that would not converge.
    """
    require(log_inverse > 0, f"log(1/ε) must be positive, got {log_inverse}.")
    cut = series.degree if degree is None else degree
    top = constant * max(1.0, math.sqrt(log_inverse)) * math.e * 2 + 100
    terms = int(min(top, 4_000_000)) if cut is None else cut + 1
    i = np.arange(terms)
    sizes = series.log_sizes(terms)
    plain = i * math.log(constant) + sizes
    with np.errstate(divide="ignore"):
        root = (
            np.where(
                i > 0,
                i
                * (
                    0.5 * math.log(log_inverse)
                    - 0.5 * np.log(np.maximum(i, 1))
                    + math.log(constant)
                ),
                0.0,
            )
            + sizes
        )
    return float(scipy.special.logsumexp(np.concatenate([plain, root])))


def tail(series: TaylorSeries, degree: int, terms: int = 2000) -> float:
    """Return Σ_{i > degree} |c_i|, a bound on the truncation error on [−1, 1]."""
    return float(np.sum(np.exp(series.log_sizes(terms)[degree + 1 :])))
