"""Claims on the lemmas behind Theorem 1: explicit network, first and second gradient.

Reference: shi2022, Section 5.1, Appendix B.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from unlazy.lab.arms import StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.conditions import Condition
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Scale, arm, arms
from unlazy.papers.shi2022.computations import ExplicitLabels
from unlazy.papers.shi2022.gradients import (
    DELTA,
    GAMMA,
    FirstGradient,
    FirstStep,
    SecondGradient,
)

ONE_RUN: dict[Scale, int] = {"smoke": 1, "laptop": 1, "paper": 1}


def lemma5(scale: Scale, stretch: float = 1.0) -> dict[str, StudyArm]:
    """Return the explicit network for random A, P and rates, over k."""
    counts = {"smoke": (1, 3), "laptop": (1, 4, 9, 15), "paper": (1, 2, 3, 5, 8, 13, 20, 30)}[scale]
    draws = {"smoke": 4, "laptop": 10, "paper": 40}[scale]
    return {
        "explicit network": ExplicitLabels(
            counts, draws, D=40 if scale == "paper" else 20, stretch=stretch, precision=64
        )
    }


explicit = arm("explicit network")
LEMMA5 = Claim(
    id="shi2022/lemma5",
    where="Lemmas 5, 7, 8 (Section 5.1, Appendix B.1)",
    kind="lemma",
    statement=(
        "For every distribution of the family there is a network g* of n = 3(k + 1) truncated "
        "ReLU neurons with g*(x) = y for all inputs, |a_i*| ≤ 32k, 1/(32k) ≤ |b_i*| ≤ 1/2, w_i* = "
        "σ̃ Σ_{j∈A} M_j/(4k), and |⟨w_i*, x⟩ + b_i*| ≤ 1 for all inputs."
    ),
    study=lemma5,
    checks=(
        (explicit.wrong <= 0.0).by_paper(),
        (explicit.distance <= 1e-9).by_paper(),
        (explicit.second_layer <= 1.0).by_paper(),
        (explicit.largest_bias <= 1.0).by_paper(),
        (explicit.inverse_least_bias <= 1.0 + 1e-9).by_paper(),
        (explicit.reach <= 1.0).by_paper(),
    ),
    control=Control(
        "the scale of the triangular bumps is ten times too large or too small",
        lambda scale: lemma5(scale, 10.0),
    ),
    seeds=ONE_RUN,
    min_seeds=1,
    **notes("shi2022/lemma5"),
)


class Sizes(NamedTuple):
    """k relevant patterns, numbers D of all patterns, m pairs of neurons, and number of sampled
    neurons.
    """

    k: int
    D: tuple[int, ...]
    m: int
    sampled: int


#: Sizes that meet the conditions of Lemma 15 with C = 1: D ≥ 2k², and k ≥ log²(Dm/δ) at
#: the largest D.
MEETING_CONDITIONS: dict[Scale, Sizes] = {
    "smoke": Sizes(5, (60, 120), 2, 2),
    "laptop": Sizes(361, (2 * 361**2, 4 * 361**2, 8 * 361**2), 8, 4),
    "paper": Sizes(441, (2 * 441**2, 8 * 441**2, 32 * 441**2), 8, 8),
}
#: Sizes with few relevant and many background patterns, for which the bounds are small.
SMALL_BOUNDS: dict[Scale, Sizes] = {
    "smoke": Sizes(5, (200, 400), 2, 2),
    "laptop": Sizes(5, (10**4, 10**5, 10**6, 10**7), 8, 1),
    "paper": Sizes(5, (10**4, 10**5, 10**6, 10**7, 3 * 10**7), 8, 4),
}


def _first(
    sizes: Sizes, *, mistaken: int = 0, mean: float = 0.0, offset: float = 0.0
) -> dict[str, StudyArm]:
    return {
        "first gradient": FirstGradient(
            sizes.k, sizes.m, sizes.sampled, mistaken, mean, offset, sizes=sizes.D
        )
    }


def _conditions(sizes: dict[Scale, Sizes]) -> tuple[Condition, ...]:
    """Return the conditions of Lemmas 6 and 15, each at the D for which it is most restrictive."""

    def log_squared(scale: Scale) -> float:
        return math.log(max(sizes[scale].D) * sizes[scale].m / DELTA) ** 2

    initial = arm("first gradient")
    return (
        Condition(
            "po ≥ C·k²/D",
            lambda scale: 0.5,
            lambda scale: sizes[scale].k ** 2 / min(sizes[scale].D),
            constant="C",
        ),
        Condition(
            f"k ≥ C·log²(Dm/δ), δ = {DELTA:g}",
            lambda scale: sizes[scale].k,
            log_squared,
            constant="C",
        ),
        Condition(
            "σ_ξ < 1/k", lambda scale: sizes[scale].k ** -1.5, lambda scale: 1 / sizes[scale].k, "≤"
        ),
        Condition("w ∈ G_w(δ): max |q_ℓ| ÷ its bound", initial.largest, lambda scale: 1.0, "≤"),
        Condition(
            "w ∈ G_w(δ): maximum of Σ_{ℓ∉A} q_ℓ² ÷ its mean",
            initial.energy,
            lambda scale: 1.5,
            "≤",
        ),
        Condition(
            "w ∈ G_w(δ): minimum of Σ_{ℓ∉A} q_ℓ² ÷ its mean",
            initial.least_energy,
            lambda scale: 0.5,
        ),
        Condition("b ∈ G_b(δ): |b| ÷ its bound", initial.bias, lambda scale: 1.0, "≤"),
    )


_MISTAKEN = "one relevant and one background pattern are exchanged"


first = arm("first gradient")
LEMMA6 = Claim(
    id="shi2022/lemma6",
    where="Lemma 6 (Section 5.1), within the conditions of Lemma 15",
    kind="lemma",
    statement=(
        "With high probability, ∂L/∂w_i in the first step is −a_i Σ_j M_j T_j, and for a small "
        "ε_e: |T_j − βγ/σ̃| ≤ O(ε_e/σ̃) with β ∈ [Ω(1), 1] for j ∈ A, and |T_j| ≤ O(σ_φ²ε_eσ̃) for j "
        "∉ A."
    ),
    study=lambda scale: _first(MEETING_CONDITIONS[scale]),
    checks=(
        first.error <= 0.01,
        first.share <= 0.01,
        first.beta.between(0.25, 1.0),
        first.relevant_exponent.between(-0.55, -0.45),
        first.background_exponent <= -0.9,
    ),
    conditions=_conditions(MEETING_CONDITIONS),
    control=Control(
        _MISTAKEN + ", and biases are lowered by 3σ_w",
        lambda scale: _first(MEETING_CONDITIONS[scale], mistaken=1, offset=3.0),
    ),
    plots=(
        Plot(
            title="Components of the first gradient",
            x="number of patterns D",
            y="|T_j|",
            series=(
                PlotLine("first gradient", "relevant", "j ∈ A: minimum"),
                PlotLine("first gradient", "background", "j ∉ A: maximum"),
            ),
            log_x=True,
            log_y=True,
        ),
    ),
    **notes("shi2022/lemma6"),
)


LEMMA15 = Claim(
    id="shi2022/lemma15",
    where="Lemmas 15, 16, 17 (Appendix B.4)",
    kind="lemma",
    statement=(
        "Let ε_e = (k log^(1/2)(Dm/δ) + log^(3/2)(Dm/δ))/√(σ_φ²σ̃²(D − k)). In the first step "
        "∂L/∂w_i = −a_i Σ_j M_j T_j with |T_j − βγ/σ̃| ≤ O(ε_e/σ̃), β ∈ [Ω(1), 1], for j ∈ A and "
        "|T_j| ≤ O(σ_φ²ε_eσ̃) for j ∉ A; ∂L/∂b_i = −a_i T_b with |T_b| ≤ O(ε_e); ∂L/∂a_i = −T_a "
        "with |T_a| ≤ O(max_ℓ q_{i,ℓ})."
    ),
    study=lambda scale: _first(SMALL_BOUNDS[scale]),
    checks=(
        (first.relevant_ratio <= 1.0).by_paper(),
        (first.background_ratio <= 1.0).by_paper(),
        (first.bias_ratio <= 1.0).by_paper(),
        first.second_ratio <= 0.05,
    ),
    conditions=_conditions(SMALL_BOUNDS),
    control=Control(
        _MISTAKEN + ", and 1 is added to all labels",
        lambda scale: _first(SMALL_BOUNDS[scale], mistaken=1, mean=1.0),
    ),
    plots=(
        Plot(
            title="First gradient divided by its bounds",
            x="number of patterns D",
            y="ratio, constants one",
            series=(
                PlotLine("first gradient", "relevant_ratio", "j ∈ A"),
                PlotLine("first gradient", "background_ratio", "j ∉ A"),
                PlotLine("first gradient", "bias_ratio", "bias"),
            ),
            log_x=True,
            log_y=True,
        ),
    ),
    **notes("shi2022/lemma15"),
)


def step1(scale: Scale, mean: float = 0.0, kept: float = 0.0) -> dict[str, StudyArm]:
    """Return the network after the first step, at the largest size that meets the conditions."""
    k, sizes, m, sampled = MEETING_CONDITIONS[scale]
    return {"first step": FirstStep(k, m, sampled, mean=mean, D=max(sizes), kept=kept)}


after = arm("first step")
LEMMA18 = Claim(
    id="shi2022/lemma18",
    where="Lemma 18 (Appendix B.4)",
    kind="lemma",
    statement=(
        "Let λ_w⁽¹⁾ = 1/(2η⁽¹⁾), λ_a⁽¹⁾ = λ_b⁽¹⁾ = 0, σ_ξ = k^(−3/2), w_i⁽⁰⁾ ∈ G_w(δ) and b_i⁽⁰⁾ ∈ "
        "G_b(δ) for all i. If po = Ω(k²/D) and k = Ω(log²(Dm/δ)), then w_i⁽¹⁾ = Σ_ℓ q_ℓ⁽¹⁾M_ℓ with "
        "|q_ℓ⁽¹⁾ − η⁽¹⁾a_iβγ/σ̃| ≤ O(|η⁽¹⁾a_i|ε_e/σ̃), β ∈ [Ω(1), 1], for ℓ ∈ A and |q_ℓ⁽¹⁾| ≤ "
        "O(σ_φ²|η⁽¹⁾a_i|ε_eσ̃) for ℓ ∉ A; b_i⁽¹⁾ = b_i⁽⁰⁾ + η⁽¹⁾a_iT_b with |T_b| = O(ε_e); a_i⁽¹⁾ "
        "= a_i⁽⁰⁾ + η⁽¹⁾T_a with |T_a| = O(σ_w√log(Dm/δ))."
    ),
    study=step1,
    checks=(
        (after.relevant_ratio <= 1.0).by_paper(),
        (after.background_ratio <= 1.0).by_paper(),
        after.bias_ratio <= 0.05,
        after.second_ratio <= 0.05,
        after.error <= 0.01,
        after.share <= 0.01,
        after.beta.between(0.25, 1.0).refuting(),
    ),
    conditions=_conditions(MEETING_CONDITIONS)[:3],
    control=Control(
        "the decay keeps a hundredth of the initial weights, and 1 is added to all labels",
        lambda scale: step1(scale, 1.0, 0.01),
    ),
    **notes("shi2022/lemma18"),
)


#: Sizes that meet the conditions of Lemma 20 with C = 1: D ≥ 2k², and m so large that η⁽¹⁾
#: is small enough.
SECOND: dict[Scale, Sizes] = {
    "smoke": Sizes(5, (60,), 8, 2),
    "laptop": Sizes(501, (2 * 501**2,), 512, 4),
    "paper": Sizes(625, (16 * 625**2,), 512, 8),
}


def step2(
    scale: Scale, mistaken: int = 0, mean: float = 0.0, rate: float = 1.0, offset: float = 0.0
) -> dict[str, StudyArm]:
    """Return the second gradient, and the margin after the first step."""
    k, (D,), m, sampled = SECOND[scale]
    return {
        "second gradient": SecondGradient(k, m, sampled, mistaken, mean, D=D),
        "margin": SecondGradient(k, m, sampled, offset=offset, D=D, rate=rate),
    }


def _first_rate(scale: Scale) -> float:
    """Return η⁽¹⁾ = γ²σ̃/(km³)."""
    k, (D,), m, _ = SECOND[scale]
    return GAMMA**2 * math.sqrt(D) / 2 / (k * m**3)


def _rate_allowed(scale: Scale) -> float:
    """Return γ/(kmσ_a), with σ_a = σ̃²/(γk²)."""
    k, (D,), m, _ = SECOND[scale]
    return GAMMA**2 * k / (m * D / 4)


margin, second = arms("margin", "second gradient")
STEP2 = Claim(
    id="shi2022/step2",
    where="Lemmas 19 to 22 (Appendix B.5); improvement in the second step (Section 5.1)",
    kind="lemma",
    statement=(
        "After a first step with η⁽¹⁾ = O(γ/(kmσ_a)), σ_a ≤ σ̃²/(γk²), y·g⁽¹⁾(x; σ_ξ) < 1 except "
        "for a fraction exp(−Θ(k)) of examples; ⟨w_i⁽¹⁾, x⟩ and its part off A are O(η⁽¹⁾σ̃/γ), and "
        "b_i⁽¹⁾ − b_{m+i}⁽¹⁾ = O(η⁽¹⁾|a_i|ε_e). With ε_e2 = O(η⁽¹⁾|a_i|k(γ + ε_e)/(σ̃²σ_ξ)) + "
        "exp(−Θ(k)) and σ_ξ = k^(−3/2), the second gradient has |T_j − βγ/σ̃| ≤ O(ε_e2/σ̃ + "
        "η⁽¹⁾/σ_ξ + η⁽¹⁾|a_i|ε_e/(σ̃σ_ξ)), β ∈ [Ω(1), 1], for j ∈ A, |T_j| ≤ exp(−Θ(k))/σ̃ + "
        "O(σ_φ²ε_e2σ̃) for j ∉ A, |T_b| ≤ exp(−Ω(k)) + O(ε_e2), and |T_a| = O(η⁽¹⁾σ̃/γ) + "
        "exp(−Ω(k))·poly(Dm). So the ratio of T_j, j ∉ A, to T_j, j ∈ A, improves in the second "
        "step."
    ),
    study=step2,
    checks=(
        (margin.margin <= 1.0).by_paper(),
        (second.reach_ratio <= 1.0).by_paper().refuting(),
        (second.rest_ratio <= 1.0).by_paper().refuting(),
        second.reach_sharp <= 1.1,
        second.rest_share <= 0.01,
        second.pair_ratio <= 0.05,
        (second.relevant_ratio <= 1.0).by_paper(),
        (second.background_ratio <= 1.0).by_paper(),
        (second.bias_ratio <= 1.0).by_paper(),
        (second.second_ratio <= 1.0).by_paper(),
        margin.beta.between(0.1, 1.0),
        second.gain >= 1.0,
    ),
    conditions=(
        Condition(
            f"k ≥ C·log²(Dm/δ), δ = {DELTA:g}",
            lambda s: SECOND[s].k,
            lambda s: math.log(SECOND[s].D[0] * SECOND[s].m / DELTA) ** 2,
            constant="C",
        ),
        Condition(
            "po ≥ C·k²/D",
            lambda s: 0.5,
            lambda s: SECOND[s].k ** 2 / SECOND[s].D[0],
            constant="C",
        ),
        Condition("η⁽¹⁾ ≤ C·γ/(kmσ_a)", _first_rate, _rate_allowed, "≤", "C"),
    ),
    control=Control(
        _MISTAKEN
        + ", and 1 is added to all labels; for the margin, the first step is 10¹² times too large "
        "and biases are lowered by 3σ_w",
        lambda scale: step2(scale, 1, 1.0, 1e3 if scale == "smoke" else 1e12, 3.0),
    ),
    **notes("shi2022/step2"),
)

LEMMAS = (LEMMA5, LEMMA6, LEMMA15, LEMMA18, STEP2)
