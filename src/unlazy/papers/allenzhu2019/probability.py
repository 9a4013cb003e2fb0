"""Lemma B.3 and Proposition B.4: concentration and sign changes of Gaussian vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from unlazy.core.random import host_generator
from unlazy.lab.arms import StudyArm
from unlazy.lab.claims import Claim
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Scale, arm
from unlazy.lab.trials import ExactComputation

#: Distributions of h·1[n ≥ 0] with |h| ≤ 1, as values and probabilities.
FACTORS: dict[str, tuple[tuple[float, float], ...]] = {
    "h = 1": ((1.0, 1.0),),
    "h = ±1": ((1.0, 0.5), (-1.0, 0.5)),
    "h = 1, n ≥ 0 half of the time": ((1.0, 0.5), (0.0, 0.5)),
    "h = ±1, n ≥ 0 half of the time": ((1.0, 0.25), (-1.0, 0.25), (0.0, 0.5)),
}


def two_sided_tail(
    characteristic: Callable[[Float[np.ndarray, " s"]], Float[np.ndarray, " s"]], t: float
) -> float:
    """Return P(|X| ≥ t) of a centered variable with this characteristic function.

    P(|X| < t) = (2/π)·∫₀^∞ sin(st)/s·Re φ(s) ds, by the midpoint rule. Its error is the probability
    of values beyond 2π/step − t; φ must vanish at s = 6.
    """
    step = 2 * math.pi / (12 * t + 400)
    s = step * (np.arange(int(6 / step)) + 0.5)
    integrand = np.sin(s * t) / s * np.real(characteristic(s))
    return float(1 - 2 / math.pi * step * np.sum(integrand))


class IndicatorTails(ExactComputation):
    """Tails of the sums of Lemma B.3 ÷ 4·e^{−B²/8}, for L = 1; the axis is B.

    Maxima over `sizes` m and over distributions of h·1[n ≥ 0]; `factor` multiplies h.
    """

    levels: tuple[int, ...] = eqx.field(static=True, default=(4, 5, 6, 7))
    sizes: tuple[int, ...] = eqx.field(static=True, default=(64, 256, 1024))
    factor: float = eqx.field(converter=float, default=1.0)

    axis = "levels"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        first, second = (
            np.array([max(self._ratios(level, squares)) for level in self.levels])
            for squares in (False, True)
        )
        return {"products_over_bound": first, "squares_over_bound": second}

    def _ratios(self, level: int, squares: bool) -> list[float]:
        ratios = []
        for m in self.sizes:
            for pairs in FACTORS.values():
                mean = sum(p * self.factor * xi for xi, p in pairs)

                def characteristic(
                    s: np.ndarray, pairs: Any = pairs, mean: float = mean, m: int = m
                ) -> np.ndarray:
                    one = sum(p * self._one(self.factor * xi * s, squares) for xi, p in pairs)
                    shift = np.exp(-1j * s * m * mean) if squares else 1.0
                    found: np.ndarray = one**m * shift
                    return found

                tail = two_sided_tail(characteristic, level * (math.sqrt(m) + level))
                ratios.append(tail / (4 * math.exp(-(level**2) / 8)))
        return ratios

    @staticmethod
    def _one(s: np.ndarray, squares: bool) -> np.ndarray:
        """Return the characteristic function of a², or of the product of two Gaussians."""
        found: np.ndarray = (1 - 2j * s) ** -0.5 if squares else (1 + s**2) ** -0.5
        return found


tails = arm("tails")
LEMMA_B3 = Claim(
    id="allenzhu2019/lemma-b3",
    where="Lemma B.3 (Appendix B)",
    kind="lemma",
    statement=(
        "For i.i.d. (n_i, α_i), independent of independent Gaussians a₁ᵢ and a₂ᵢ, |h| ≤ L and "
        "B ≥ 1: the sum of a₁ᵢa₂ᵢ·1[n_i ≥ 0]·h(α_i) over m terms is at least BL(√m + B) in "
        "absolute value with probability at most 4e^{−B²/8}. The same holds for the sum of "
        "a₁ᵢ²·1[n_i ≥ 0]·h(α_i) minus its mean."
    ),
    study=lambda scale: {"tails": IndicatorTails(precision=64)},
    checks=(
        *((tails.products_over_bound[level] <= 1.0).by_paper().refuting() for level in (4, 5)),
        *((tails.products_over_bound[level] <= 1.0).by_paper() for level in (6, 7)),
        (tails.squares_over_bound[4] <= 1.0).by_paper().refuting(),
        *((tails.squares_over_bound[level] <= 1.0).by_paper() for level in (5, 6, 7)),
    ),
    control=Control(
        "|h| is four times its bound L",
        lambda scale: {"tails": IndicatorTails(factor=4.0, precision=64)},
    ),
    seeds={"smoke": 1, "laptop": 1, "paper": 1},
    min_seeds=1,
    label_free_reason="the lemma has no labels",
    **notes("allenzhu2019/lemma-b3"),
)


class SignChanges(ExactComputation):
    """Proposition B.4: worst perturbation of norm δ of g ∈ R^m; the axis is 1/δ.

    `changes_over`: number of sign changes ÷ mδ^{2/3}. `norm_over`: ‖D'g‖/‖g'‖, maximum of the worst
    and a random perturbation. `cubed`: the entries of g are cubes of Gaussians.
    """

    m: int = eqx.field(static=True, default=1 << 18)
    inverses: tuple[int, ...] = eqx.field(static=True, default=(1, 4, 16, 64))
    cubed: bool = eqx.field(static=True, default=False)

    axis = "inverses"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = host_generator(key)
        g = rng.normal(size=self.m)
        g = (g**3 / math.sqrt(15) if self.cubed else g) / math.sqrt(self.m)
        costs = np.cumsum(np.sort(g**2))
        changes, norms = [], []
        for inverse in self.inverses:
            delta = 1 / inverse
            count = int(np.searchsorted(costs, delta**2))
            moved = rng.normal(size=self.m)
            moved *= delta / np.linalg.norm(moved)
            changed = (g + moved >= 0) != (g >= 0)
            changes.append(count / (self.m * delta ** (2 / 3)))
            worst = math.sqrt(costs[count - 1]) if count else 0.0
            norms.append(max(worst, float(np.linalg.norm(g[changed]))) / delta)
        return {"changes_over": np.array(changes), "norm_over": np.array(norms)}


def sign_changes(scale: Scale, *, cubed: bool = False) -> dict[str, StudyArm]:
    """Return the sign changes of a random vector."""
    m = {"smoke": 1 << 14, "laptop": 1 << 18, "paper": 1 << 22}[scale]
    return {"sign changes": SignChanges(m, cubed=cubed, precision=64)}


worst = arm("sign changes")
PROPOSITION_B4 = Claim(
    id="allenzhu2019/proposition-b4",
    where="Proposition B.4 (Appendix B)",
    kind="lemma",
    statement=(
        "For δ ≤ 1 and g ~ N(0, I/m), with probability at least 1 − e^{−Ω(mδ^{2/3})}, every g' "
        "with ‖g'‖ ≤ δ changes at most O(mδ^{2/3}) signs of g, and the entries of g whose signs "
        "it changes have a norm of at most ‖g'‖."
    ),
    study=sign_changes,
    checks=(
        *(worst.changes_over[inverse] <= 2.0 for inverse in (4, 16, 64)),
        (worst.norm_over[64] <= 1.0).by_paper().refuting(),
    ),
    control=Control(
        "entries of g are cubes of Gaussians, more of which are near zero",
        lambda scale: sign_changes(scale, cubed=True),
    ),
    label_free_reason="the proposition has no labels",
    **notes("allenzhu2019/proposition-b4"),
)
