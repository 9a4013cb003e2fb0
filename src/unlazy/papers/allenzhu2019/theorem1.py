"""Theorem 1 on the hard instance (Corollary 7.1): risk of Algorithm 1 versus α."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from unlazy.kernels.feature_maps import RawFeatures
from unlazy.lab.arms import Arm, Row, StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.conditions import Condition
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Scale, arms, shuffled
from unlazy.learners.features import FeatureRidge
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.sources import FreshGradients
from unlazy.networks.inits import ResNetInit
from unlazy.networks.residual import HIDDEN
from unlazy.papers.allenzhu2019.hard_instance import base_complexity, composite_complexity
from unlazy.probes.performance import Performance
from unlazy.tasks.hierarchy import HardInstance

#: σ_w and σ_v, within the ranges of Table 1 (polylog(m) = 1), and η_w, η_v, chosen on tuning seeds.
SIGMA_W, SIGMA_V, RATE_W, RATE_V = 0.3, 4.0, 1.0, 0.1


class TheoremSize(NamedTuple):
    """Sizes of the study.

    100·α within the theorem's range for k = 2 (`inside`), and beyond it for k = 4 (`beyond`).
    """

    d: int
    m: int
    inside: tuple[int, ...]
    beyond: tuple[int, ...]
    examples: int
    test: int


THEOREM_SIZES: dict[Scale, TheoremSize] = {
    "smoke": TheoremSize(8, 16, (5, 8, 12), (10, 30), 50, 100),
    "laptop": TheoremSize(20, 100, (5, 8, 12), (10, 20, 30, 50), 80_000, 5_000),
    "paper": TheoremSize(20, 400, (3, 5, 8, 12), (10, 20, 30, 50), 400_000, 20_000),
}
INSIDE, BEYOND = 2, 4


def algorithm1(m: int, examples: int) -> GradientDescent:
    """Return Algorithm 1: one fresh example per step, W and V with biases trained, A fixed."""
    v = SIGMA_V * m**-0.5
    init = ResNetInit(m=m, w_scale=SIGMA_W, b_scale=SIGMA_W, v_scale=v, e_scale=v, a_scale=m**-0.5)
    rates = {group: RATE_W if group in ("w", "b") else RATE_V for group in HIDDEN}
    return GradientDescent(
        init, (Descent(rates, steps=examples, batch=1, loss="squared"),), source=FreshGradients()
    )


def _in_units(k: int) -> object:
    """Return a summary with the risk ÷ k·α², the risk ÷ (kα)⁴, and both scales."""

    def summary(axis: np.ndarray, table: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        alpha, risk = axis / 100, table["test_squared_error"]
        return {
            "over_base": risk / (k * alpha**2),
            "over_fourth": risk / (k * alpha) ** 4,
            "base_alone": k * alpha**2,
            "fourth": (k * alpha) ** 4,
        }

    return summary


def theorem1(scale: Scale) -> dict[str, StudyArm]:
    """Return the arms; the axis is 100·α."""
    size = THEOREM_SIZES[scale]
    probes = (Performance(size.test),)

    def row(k: int, alphas: tuple[int, ...], linear: bool = False) -> Row:
        d = size.d if k == INSIDE else size.d + 10
        learner = (
            FeatureRidge(RawFeatures(), (1e-6,)) if linear else algorithm1(size.m, size.examples)
        )
        n = min(size.examples, 4_000) if linear else size.examples
        arms = {
            alpha: Arm(HardInstance(d=d, k=k, alpha=alpha / 100), learner, n, probes)
            for alpha in alphas
        }
        return Row(arms, summaries=(_in_units(k),))  # type: ignore[arg-type]

    return {
        "ResNet": row(INSIDE, size.inside),
        "linear model": row(INSIDE, size.inside, linear=True),
        "ResNet, k = 4": row(BEYOND, size.beyond),
    }


#: Bound on ‖F(x)‖ on the hard instance in the form of Concept 1.
BASE_NORM = 1.0
CONSTANT = "C"


def _log_alpha(scale: Scale) -> float:
    """Return log(1/α) at the smallest α that is checked."""
    return math.log(100 / THEOREM_SIZES[scale].inside[0])


def base_cost(scale: Scale) -> float:
    """Return k·p_F·C_s(F) with C* = 1, to which τ_w is proportional."""
    return INSIDE * base_complexity(THEOREM_SIZES[scale].d, INSIDE)


def composite_cost() -> float:
    """Return k·p_G·C_s(G) with C* = 1."""
    return INSIDE * 2.0**INSIDE * composite_complexity(INSIDE)


def tau_v(scale: Scale) -> float:
    """Return α·k·p_G·C_s(G), to which τ_v is proportional, at the largest α that is checked."""
    return THEOREM_SIZES[scale].inside[-1] / 100 * composite_cost()


def risk(scale: Scale) -> float:
    """Return the risk δ to be reached: the smallest bound that is checked, (kα)⁴."""
    return (INSIDE * THEOREM_SIZES[scale].inside[0] / 100) ** 4


def width(scale: Scale) -> float:
    """Return C_α(F)·C_α(G)·p_F/α with C* = 1, the simplest polynomial for M."""
    size = THEOREM_SIZES[scale]
    base = base_complexity(size.d, INSIDE) / 2 * (1 + _log_alpha(scale) ** 0.5)
    composite = composite_complexity(INSIDE) / (INSIDE + 1)
    composite *= 1 + (_log_alpha(scale) / INSIDE) ** (INSIDE / 2)
    return float(base * composite * 100 / size.inside[0])


#: All conditions of Theorem 1 and Table 1. Complexities have C* = 1, the smallest value.
CONDITIONS = (
    Condition(
        "α ≤ 1/(k·p_G·C_s(G)), at the largest α checked",
        lambda scale: THEOREM_SIZES[scale].inside[-1] / 100,
        lambda scale: 1 / composite_cost(),
        "≤",
        CONSTANT,
    ),
    Condition(
        "δ ≥ α⁴·(k·p_G·C_s(G))⁴·(1 + B_F)², for δ = (kα)⁴",
        risk,
        lambda scale: (
            (THEOREM_SIZES[scale].inside[0] / 100 * composite_cost()) ** 4 * (1 + BASE_NORM) ** 2
        ),
        constant=CONSTANT,
    ),
    Condition(
        "m ≥ M = poly(C_α(F), C_α(G), p_F, 1/α), taken as C_α(F)·C_α(G)·p_F/α",
        lambda scale: THEOREM_SIZES[scale].m,
        width,
        constant=CONSTANT,
    ),
    Condition(
        "σ_w ≥ m^{−1/2+0.01} (Table 1)",
        lambda scale: SIGMA_W,
        lambda scale: THEOREM_SIZES[scale].m ** -0.49,
    ),
    Condition(
        "σ_w ≤ m^{−0.01} (Table 1)",
        lambda scale: SIGMA_W,
        lambda scale: THEOREM_SIZES[scale].m ** -0.01,
        "≤",
    ),
    Condition(
        "σ_v ≥ polylog(m), taken as log m (Table 1)",
        lambda scale: SIGMA_V,
        lambda scale: math.log(THEOREM_SIZES[scale].m),
        constant=CONSTANT,
    ),
    Condition(
        "σ_v ≤ m^{3/8−0.01} (Table 1)",
        lambda scale: SIGMA_V,
        lambda scale: THEOREM_SIZES[scale].m ** 0.365,
        "≤",
    ),
    Condition(
        "τ_w = k·p_F·C_s(F) ≥ m^{1/8+0.001}·σ_w (Table 1)",
        base_cost,
        lambda scale: THEOREM_SIZES[scale].m ** 0.126 * SIGMA_W,
        constant=CONSTANT,
    ),
    Condition(
        "τ_w = k·p_F·C_s(F) ≤ m^{1/8−0.001}·σ_w^{1/4} (Table 1)",
        base_cost,
        lambda scale: THEOREM_SIZES[scale].m ** 0.124 * SIGMA_W**0.25,
        "≤",
        CONSTANT,
    ),
    Condition(
        "τ_v = α·k·p_G·C_s(G) ≤ 1/polylog(m), taken as 1/log m, at the largest α checked (Table 1)",
        tau_v,
        lambda scale: 1 / math.log(THEOREM_SIZES[scale].m),
        "≤",
        CONSTANT,
    ),
    Condition(
        "τ_v ≥ σ_v·(k/m)^{3/8}, at the largest α checked (Table 1)",
        tau_v,
        lambda scale: SIGMA_V * (INSIDE / THEOREM_SIZES[scale].m) ** 0.375,
        constant=CONSTANT,
    ),
    Condition(
        "τ_v ≤ σ_v/polylog(m), taken as σ_v/log m, at the largest α checked (Table 1)",
        tau_v,
        lambda scale: SIGMA_V / math.log(THEOREM_SIZES[scale].m),
        "≤",
        CONSTANT,
    ),
    Condition(
        "learning rate η_w ≤ min{1, δ}, for δ = (kα)⁴ at the smallest α checked",
        lambda scale: RATE_W,
        lambda scale: min(1.0, risk(scale)),
        "≤",
        CONSTANT,
    ),
    Condition(
        "η_v/η_w ≤ (α·p_G·C_s(G)/(p_F·C_s(F)))², at the largest α checked",
        lambda scale: RATE_V / RATE_W,
        lambda scale: (tau_v(scale) / base_cost(scale)) ** 2,
        "≤",
        CONSTANT,
    ),
    Condition(
        "T ≥ (k·p_F·C_s(F))²/min{1, δ²} examples, for δ = (kα)⁴ at the smallest α checked",
        lambda scale: THEOREM_SIZES[scale].examples,
        lambda scale: base_cost(scale) ** 2 / min(1.0, risk(scale) ** 2),
        constant=CONSTANT,
    ),
)

linear_model, resnet = arms("linear model", "ResNet")
THEOREM1 = Claim(
    id="allenzhu2019/theorem1",
    where="Theorem 1 (Section 6), Corollary 7.1",
    kind="figure",
    statement=(
        "Algorithm 1, SGD on W and V with one fresh example per step, learns H = F + α·G(F) up to "
        "a population risk of Θ̃(α⁴·(k·p_G·C_s(G))⁴); learning F alone leaves a risk of order α². "
        "For the hard instance (7.1) the risk is Õ(α⁴·2^{O(k)}) with Θ̃(k²·d/α⁸) examples."
    ),
    study=theorem1,
    checks=(
        *(resnet.over_fourth[alpha] <= 1.0 for alpha in THEOREM_SIZES["laptop"].inside),
        *(resnet.over_base[alpha] <= 0.1 for alpha in THEOREM_SIZES["laptop"].inside),
        linear_model.over_base.between(0.9, 1.2),
    ),
    conditions=CONDITIONS,
    control=shuffled(theorem1),
    plots=(
        Plot(
            "Risk versus α",
            "100·α",
            "E‖H − out‖²",
            (
                PlotLine("ResNet", "test_squared_error", "ResNet, k = 2"),
                PlotLine("ResNet, k = 4", "test_squared_error", "ResNet, k = 4"),
                PlotLine("linear model", "test_squared_error", "linear model, k = 2"),
                PlotLine("ResNet", "base_alone", "k·α²: F alone", theory=True),
                PlotLine("ResNet", "fourth", "(k·α)⁴", theory=True),
            ),
            log_x=True,
            log_y=True,
            caption="Algorithm 1 after one pass. A linear model learns F and has risk k·α².",
        ),
    ),
    **notes("allenzhu2019/theorem1"),
)
