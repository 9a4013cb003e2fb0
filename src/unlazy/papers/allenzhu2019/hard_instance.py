"""The hard instance (7.1) in the form of Concept 1, and Lemma D.1, both by enumeration."""

from __future__ import annotations

import itertools
import math
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.core.random import host_generator
from unlazy.lab.claims import Claim
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, arm
from unlazy.lab.trials import ExactComputation
from unlazy.tasks.spectrum import corners
from unlazy.theory.walsh import degrees, fourier, points

ROUNDING = 1e-9


def base_complexity(d: int, k: int) -> float:
    """Return C_s(F)/C* of F_i(x) = √(d/k)·x_i, one neuron with a weight of norm 1/√2."""
    return 2 * math.sqrt(2 * d / k)


def composite_coefficient(k: int) -> float:
    """Return the factor of each of the 2^k neurons of G, k^k/(√k·k!·2^k)."""
    return float(k) ** k / (math.sqrt(k) * math.factorial(k) * 2.0**k)


def composite_complexity(k: int) -> float:
    """Return C_s(G)/C* of neurons φ(u) = c·(√2·u)^k with weights of norm 1/√2."""
    return float((k + 1) * composite_coefficient(k) * 2 ** (k / 2))


class HardConstruction(ExactComputation):
    """Appendix D.4: (7.1)/√k as F + αG(F) of Concept 1; the axis is k.

    `unsigned` omits the signs of the polarization identity.
    """

    degrees: tuple[int, ...] = eqx.field(static=True, default=(2, 3, 4, 5, 6, 7))
    d: int = eqx.field(static=True, default=12)
    alpha: float = eqx.field(converter=float, default=0.3)
    unsigned: bool = eqx.field(static=True, default=False)

    axis = "degrees"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rows = [self._at(k) for k in self.degrees]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def _at(self, k: int) -> dict[str, float]:
        x = corners(k) / math.sqrt(self.d)  # the relevant coordinates of all inputs
        base = math.sqrt(2 * self.d / k) * (x / math.sqrt(2))
        signs = 1 - 2 * np.array(list(itertools.product((0, 1), repeat=k)))
        v = signs / math.sqrt(2 * k)
        neurons = composite_coefficient(k) * (math.sqrt(2) * base @ v.T) ** k
        composite = neurons @ (np.ones(2**k) if self.unsigned else np.prod(signs, axis=1))
        target = math.sqrt(self.d) * x
        target = (target + self.alpha * np.prod(target, axis=1, keepdims=True)) / math.sqrt(k)
        return {
            "construction_gap": float(
                np.max(np.abs(base + self.alpha * composite[:, None] - target))
            ),
            "base_norm": float(np.max(np.linalg.norm(base, axis=1))),
            "base_over_root": base_complexity(self.d, k) / math.sqrt(self.d),
            "composite_exponent": math.log2(composite_complexity(k)) / k,
        }


hard = arm("hard instance")
COROLLARY = Claim(
    id="allenzhu2019/hard-instance",
    where="Corollary 7.1, Appendix D.4",
    kind="lemma",
    statement=(
        "The target (7.1), divided by √k, is F + αG(F) of Concept 1 with ‖F(x)‖ = 1, p_F = 1, "
        "C_s(F) = O(√d), p_G = 2^k and C_s(G) = 2^{O(k)}: the product of k coordinates is a "
        "combination of 2^k neurons z^k (polarization)."
    ),
    study=lambda scale: {"hard instance": HardConstruction(precision=64)},
    checks=(
        *(hard.construction_gap[k] <= ROUNDING for k in range(2, 8)),
        hard.base_norm.near(1, ROUNDING).refuting(),
        *((hard.base_over_root[k] <= 2.0 + ROUNDING).refuting() for k in (2, 7)),
        *((hard.composite_exponent[k] <= 1.0).refuting() for k in (2, 7)),
    ),
    control=Control(
        "the signs of the polarization identity are omitted",
        lambda scale: {"hard instance": HardConstruction(unsigned=True, precision=64)},
    ),
    seeds={"smoke": 1, "laptop": 1, "paper": 1},
    min_seeds=1,
    label_free_reason="the identity has no labels",
    **notes("allenzhu2019/hard-instance"),
)


class GoodPredictors(ExactComputation):
    """Lemma D.1: Fourier coefficients of functions with risk `radius`²·α² at x_i + α·χ_S.

    The error of each function is random, or a single character: χ_S, x_i, or another of degree k.
    """

    d: int = eqx.field(static=True, default=10)
    degrees: tuple[int, ...] = eqx.field(static=True, default=(2, 3, 5))
    functions: int = eqx.field(static=True, default=50)
    radius: float = eqx.field(converter=float, default=0.25)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = host_generator(key)
        z = points(self.d)
        own, others, gaps = [], [], []
        for k, alpha in itertools.product(self.degrees, (0.05, 0.3, 0.9)):
            chi, other = np.prod(z[:, :k], axis=1), np.prod(z[:, 1 : k + 1], axis=1)
            place = int(np.argmax(fourier(chi)))
            level = np.flatnonzero((degrees(self.d) == k) & (np.arange(len(z)) != place))
            errors = [-chi, chi, other, z[:, 0], *rng.normal(size=(self.functions, len(z)))]
            for error in errors:
                scaled = self.radius * alpha * error / np.sqrt(np.mean(error**2))
                f = z[:, 0] + alpha * chi + scaled
                coefficients = fourier(f)
                own.append(coefficients[place] / alpha)
                others.append(float(np.sum(coefficients[level] ** 2)) / alpha**2)
                gaps.append(abs(np.sum(fourier(scaled) ** 2) - np.mean(scaled**2)))
        return {
            "least_own": float(np.min(own)),
            "most_others": float(np.max(others)),
            "parseval_gap": float(np.max(gaps)),
        }


predictors = arm("predictors")
LEMMA_D1 = Claim(
    id="allenzhu2019/lemma-d1",
    where="Lemma D.1 (Appendix D)",
    kind="lemma",
    statement=(
        "If f has a risk of at most α²/16 at x_i + α·χ_S on the cube, with |S| = k ≥ 2 and i ∈ S, "
        "then its coefficient at S is at least ¾α, and the squares of its coefficients at the "
        "other sets of size k add up to at most α²/16."
    ),
    study=lambda scale: {"predictors": GoodPredictors(precision=64)},
    checks=(
        (predictors.least_own >= 0.75 - ROUNDING).by_paper(),
        (predictors.most_others <= 1 / 16 + ROUNDING).by_paper(),
        (predictors.parseval_gap <= ROUNDING).by_construction(),
    ),
    control=Control(
        "functions with a risk of α²/4",
        lambda scale: {"predictors": GoodPredictors(radius=0.5, precision=64)},
    ),
    seeds={"smoke": 1, "laptop": 1, "paper": 1},
    min_seeds=1,
    label_free_reason="the functions are not learned",
    **notes("allenzhu2019/lemma-d1"),
)
