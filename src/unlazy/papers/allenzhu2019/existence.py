"""Appendix E: monomials and smooth functions as expectations of a Gaussian indicator, and as
two-layer networks whose activation patterns are those of random weights.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import equinox as eqx
import numpy as np
import scipy.special
import scipy.stats
from jaxtyping import Float, PRNGKeyArray
from numpy.polynomial import hermite_e, legendre

from unlazy.lab.arms import StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Scale, arm
from unlazy.lab.trials import ExactComputation
from unlazy.theory.smooth_complexity import CONSTANT

#: Highest degree of the series, and the end of the quadrature.
DEGREE, END = 21, 13.0
ROUNDING = 1e-9
Points = Float[np.ndarray, " _"]


def double_factorial(n: int) -> float:
    """Return n!! with (−1)!! = 0!! = 1."""
    return float(math.prod(range(n, 0, -2)))


def indicator_constant(i: int) -> float:
    """Return p'_i = E[h_i(α)·1[α ≥ 0]] for odd i, (−1)^{(i−1)/2}·(i − 2)!!/√(2π).

    ∫₀^∞ h_i(t)e^{−t²/2} dt = h_{i−1}(0), since (h_{i−1}e^{−t²/2})' = −h_i·e^{−t²/2}.
    """
    return (-1.0) ** ((i - 1) // 2) * double_factorial(i - 2) / math.sqrt(2 * math.pi)


@functools.cache
def _nodes() -> tuple[Points, Points, Points, Points]:
    """Return nodes and weights for α on [0, END] and for β on the real line."""
    t, weight = legendre.leggauss(200)
    alpha = END * (t + 1) / 2
    beta, weight_beta = hermite_e.hermegauss(60)
    return (
        alpha,
        weight * END / 2 * np.exp(-(alpha**2) / 2) / math.sqrt(2 * math.pi),
        beta,
        weight_beta / math.sqrt(2 * math.pi),
    )


def half_expectations(coefficients: Points, x: Points) -> Points:
    """Return E[h(αx + β√(1 − x²))·1[α ≥ 0]] for h = Σ c_i·h_i at each x."""
    alpha, weight, beta, weight_beta = _nodes()
    values = hermite_e.hermeval(
        alpha[:, None, None] * x + beta[None, :, None] * np.sqrt(1 - x**2), coefficients
    )
    found: Points = np.einsum("a,b,abx->x", weight, weight_beta, values)
    return found


class Monomials(ExactComputation):
    """Claim E.3; the axis is the degree i, odd, or even with `even`."""

    degrees: tuple[int, ...] = eqx.field(static=True, default=(1, 3, 5, 7, 9, 11, 13, 15))
    even: bool = eqx.field(static=True, default=False)

    axis = "degrees"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        x = np.linspace(-1, 1, 21)
        gaps, corrected, printed = [], [], []
        for i in self.degrees:
            degree = i + 1 if self.even else i
            found = half_expectations(np.eye(degree + 1)[degree], x)
            constant = indicator_constant(i)
            gaps.append(float(np.max(np.abs(found / constant - x**degree))))
            own = abs(found[-1])
            corrected.append(own / (double_factorial(i - 2) / 4))
            printed.append(own / (double_factorial(i - 1) / 4))
        return {
            "monomial_gap": np.array(gaps),
            "over_corrected": np.array(corrected),
            "over_printed": np.array(printed),
        }


def _monomials(scale: Scale, *, even: bool = False) -> dict[str, StudyArm]:
    return {"monomials": Monomials(even=even, precision=64)}


monomials = arm("monomials")
CLAIM_E3 = Claim(
    id="allenzhu2019/claim-e3",
    where="Claim E.3 (Appendix E)",
    kind="lemma",
    statement=(
        "For every odd i there is a p'_i with |p'_i| ≥ (i − 1)!!/4 and x₁^i = "
        "E[h_i(α₁)·1[⟨x, w₀⟩ ≥ 0]]/p'_i, where w₀ ~ N(0, I), α₁ is its first coordinate, x is a "
        "unit vector, and h_i is the Hermite polynomial of degree i."
    ),
    study=_monomials,
    checks=(
        *(monomials.monomial_gap[i] <= ROUNDING for i in (1, 3, 7, 15)),
        *(monomials.over_corrected[i] >= 1.0 for i in (1, 3, 7, 15)),
    ),
    control=Control("even degrees", lambda scale: _monomials(scale, even=True)),
    seeds={"smoke": 1, "laptop": 1, "paper": 1},
    min_seeds=1,
    corrections=("allenzhu2019/claim-e3-bound",),
    plots=(
        Plot(
            "|p'_i| versus its lower bounds",
            "i",
            "|p'_i| ÷ bound",
            (
                PlotLine("monomials", "over_corrected", "(i − 2)!!/4"),
                PlotLine("monomials", "over_printed", "(i − 1)!!/4, as printed"),
            ),
            caption="A ratio below 1 means that the bound does not hold.",
        ),
    ),
    label_free_reason="the identity has no labels",
    **notes("allenzhu2019/claim-e3"),
)


class Smooth(eqx.Module):
    """A function on [−1, 1] with constant and odd terms only, by its Taylor coefficients."""

    coefficients: tuple[float, ...] = eqx.field(static=True)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.polynomial.polynomial.polyval(x, np.array(self.coefficients))
        return found

    @property
    def odd(self) -> list[int]:
        """Degrees of its odd terms."""
        return [i for i, c in enumerate(self.coefficients) if i % 2 and c]

    @property
    def complexity(self) -> float:
        """C_s/C*."""
        return float(sum((i + 1) * abs(c) for i, c in enumerate(self.coefficients)))

    def indicator(self) -> Points:
        """Return the Hermite coefficients of the function h of Lemma E.2, 2c₀ and c_i/p'_i."""
        h = np.zeros(len(self.coefficients))
        h[0] = 2 * self.coefficients[0]
        for i in self.odd:
            h[i] = self.coefficients[i] / indicator_constant(i)
        return h


def _odd_series(sign: int) -> Smooth:
    """Return sin z or sinh z up to `DEGREE`."""
    return Smooth(tuple(i % 2 * sign ** (i // 2) / math.factorial(i) for i in range(DEGREE + 1)))


SINE, SINH, CUBIC = _odd_series(-1), _odd_series(1), Smooth((1.0, 1.0, 0.0, -0.5))
#: A function with an even term, which no h represents.
EVEN = Smooth((1.0, 1.0, 1.0, -0.5))


def log_hermite(i: int, x: float) -> float:
    """Return log h_i(x) beyond all roots, by the recurrence of the ratios h_n/h_{n−1}."""
    total, ratio = 0.0, x
    for n in range(i):
        ratio = x if n == 0 else x - n / ratio
        total += math.log(ratio)
    return total


def _log_complexity(f: Smooth, epsilon: float) -> float:
    """Return log C_ε."""
    terms = []
    for i, c in enumerate(f.coefficients):
        if c:
            root = math.sqrt(math.log(1 / epsilon) / max(i, 1)) * CONSTANT
            terms += [i * math.log(CONSTANT), i * math.log(root)]
            terms[-2:] = [each + math.log(abs(c)) for each in terms[-2:]]
    return float(scipy.special.logsumexp(terms))


class IndicatorFunctions(ExactComputation):
    """Lemma E.2 and Claim E.4, as maxima over functions; logarithms are to base 10.

    Each quantity is defined in quantities.csv. `functions`: smooth functions.
    """

    functions: tuple[Smooth, ...] = (SINE, SINH, CUBIC)
    epsilon: float = eqx.field(converter=float, default=1e-6)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rows = [self._of(f) for f in self.functions]
        return {name: max(row[name] for row in rows) for name in rows[0]}

    def _of(self, f: Smooth) -> dict[str, float]:
        x = np.linspace(-1, 1, 41)
        h = f.indicator()
        fit = half_expectations(h, x)
        square = float(np.sum(h**2 * [math.factorial(i) for i in range(len(h))]))
        bound, tails, tops, insides, slopes = _log_complexity(f, self.epsilon), [], [], [], []
        extremes = [math.log(max(abs(h[0]), 1e-300))]
        for i in f.odd:
            size = math.log(abs(h[i]))
            end = 100 * math.sqrt(i) + 10 * math.sqrt(math.log(1 / self.epsilon))
            # E|h_i(z)|·1[|z| ≥ B] = 2·h_{i−1}(B)·density(B), by the same primitive.
            tails.append(
                size + math.log(2) + log_hermite(i - 1, end) + scipy.stats.norm.logpdf(end)
            )
            at_end = size + log_hermite(i, end)
            extremes.append(at_end)
            tops.append(at_end + math.log(2) + scipy.stats.norm.logsf(end))
            insides.append(size + 0.5 * math.lgamma(i + 1))  # E|h_i| ≤ √i!
            slopes.append(size + math.log(i) + 0.5 * math.lgamma(i))

        def sum_over(terms: list[float], reference: float) -> float:
            """Return log₁₀ of the sum over the degrees ÷ e^reference."""
            return float(scipy.special.logsumexp(terms) - reference) / math.log(10)

        eighth, half = math.log(self.epsilon / 8), bound - math.log(2)
        rising = [term + math.log(i) for term, i in zip(extremes[1:], f.odd, strict=True)]
        return {
            "fit_over_epsilon": float(np.max(np.abs(fit - f(x)))) / self.epsilon,
            "square_over_bound": square / (CONSTANT * f.complexity) ** 2,
            "log_size": sum_over(extremes, bound),
            "log_slope": sum_over(rising, bound),
            "log_tail_a": sum_over(tails, eighth),
            "log_tail_b": sum_over(tops, eighth),
            "log_inside_c": sum_over(insides, half),
            "log_inside_d": sum_over(slopes, half),
        }


def _indicators(scale: Scale, functions: tuple[Smooth, ...] = ()) -> dict[str, StudyArm]:
    return {
        "functions": IndicatorFunctions(functions or (SINE, SINH, CUBIC), precision=64),
    }


functions = arm("functions")
LEMMA_E2 = Claim(
    id="allenzhu2019/lemma-e2",
    where="Lemma E.2, Claim E.4 (Appendix E)",
    kind="lemma",
    statement=(
        "For φ with constant and odd terms only and ε < 1/C_s there is an h: ℝ → [−C_ε, C_ε], "
        "also C_ε-Lipschitz, with |E[h(α₁)·1[α₁x₁ + β₁√(1 − x₁²) ≥ 0]] − φ(x₁)| ≤ ε for all "
        "x₁ ∈ [−1, 1] and E[h²] ≤ C_s². The Hermite series of h may be truncated at B_i = "
        "100√i + 10√log(1/ε) per degree: (a, b) the parts beyond B_i add up to at most ε/8, "
        "(c, d) E|h_i| and E|h_i'| within B_i to at most C_ε/2 (Claim E.4)."
    ),
    study=_indicators,
    checks=(
        (functions.fit_over_epsilon <= 1.0).by_paper(),
        (functions.square_over_bound <= 1.0).by_paper().refuting(),
        *(
            (functions[f"log_{name}"] <= 0.0).by_paper().refuting()
            for name in ("size", "slope", "tail_a", "tail_b", "inside_c", "inside_d")
        ),
    ),
    control=Control("a function with even terms", lambda scale: _indicators(scale, (EVEN,))),
    seeds={"smoke": 1, "laptop": 1, "paper": 1},
    min_seeds=1,
    label_free_reason="the functions are not learned",
    **notes("allenzhu2019/lemma-e2"),
)
