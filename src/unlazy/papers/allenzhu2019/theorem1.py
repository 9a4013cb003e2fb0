"""Theorem 1 on the hard instance (Corollary 7.1): risk of Algorithm 1 versus α."""

from __future__ import annotations

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
    conditions=(
        Condition(
            "α ≤ 1/(k·p_G), with p_G = 2^k, at the largest α checked (C_s(G) and the constant set "
            "to 1)",
            lambda scale: THEOREM_SIZES[scale].inside[-1] / 100,
            lambda scale: 1 / (INSIDE * 2**INSIDE),
            "≤",
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
            "σ_v ≤ m^{3/8−0.01} (Table 1)",
            lambda scale: SIGMA_V,
            lambda scale: THEOREM_SIZES[scale].m ** 0.365,
            "≤",
        ),
        Condition(
            "at most k²·d/α⁸ examples, at the largest α checked (constant set to 1)",
            lambda scale: THEOREM_SIZES[scale].examples,
            lambda scale: (
                INSIDE**2 * THEOREM_SIZES[scale].d / (THEOREM_SIZES[scale].inside[-1] / 100) ** 8
            ),
            "≤",
        ),
    ),
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
