"""Claims on the lemmas of the general setting: initialization, gradients and features after two
steps.

Reference: shi2022, Appendices F.5 to F.8 (Lemmas 36 to 38 and 40 to 48).
"""

from __future__ import annotations

import math

from unlazy.lab.arms import StudyArm
from unlazy.lab.claims import Claim
from unlazy.lab.conditions import Condition
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Scale, arm, arms
from unlazy.papers.shi2022.general_neurons import GeneralFirstStep, GeneralSecondGradient
from unlazy.papers.shi2022.general_readout import GeneralReadout, WeightedGradients
from unlazy.papers.shi2022.gradients import DELTA
from unlazy.papers.shi2022.probability import GeneralInitialization
from unlazy.tasks.dictionary.incoherent import GeneralParity


def lemma36(scale: Scale, wider: float = 1.0) -> dict[str, StudyArm]:
    """Return the frequencies of an initialization that is not typical."""
    d, D = {"smoke": (40, 20), "laptop": (200, 100), "paper": (400, 150)}[scale]
    draws = {"smoke": 2_000, "laptop": 20_000, "paper": 200_000}[scale]
    return {
        "start": GeneralInitialization(
            d, D, coherence=0.05 / D, draws=draws, wider=wider, precision=64
        )
    }


initial = arm("start")
LEMMA36 = Claim(
    id="shi2022/lemma36",
    where="Lemmas 36 and 37 (Appendix F.5)",
    kind="lemma",
    statement=(
        "If Dμ/√d ≤ 1/16, then with probability at least 1 − δ − 2exp(−Θ(D − k)) over w⁽⁰⁾: "
        "σ_w²d/2 ≤ ‖w⁽⁰⁾‖² ≤ 3σ_w²d/2, σ_w²(D − k)/2 ≤ Σ_{ℓ∉A} q_ℓ² ≤ 3σ_w²(D − k)/2 and max_ℓ "
        "|q_ℓ| ≤ σ_w√(2 log(D/δ)); a and b as in Lemma 9. For all 2m neurons simultaneously the "
        "same holds with Dm in the logarithm and with 2m·exp(−Θ(D − k))."
    ),
    study=lemma36,
    checks=tuple(
        (initial[measure] <= 1.0).by_paper()
        for measure in ("largest", "energy", "length", "all_largest", "all_energy")
    ),
    conditions=(Condition("Dμ/√d ≤ 1/16", initial.crowding, lambda s: 1 / 16, "≤"),),
    control=Control("weights are 1.5 times as large", lambda scale: lemma36(scale, 1.5)),
    **notes("shi2022/lemma36"),
)


def lemma38(scale: Scale, *, printed: bool = False, weighted: bool = True) -> dict[str, StudyArm]:
    """Return the gradients of the loss with class weights."""
    d, D, n = {"smoke": (12, 8, 200), "laptop": (40, 20, 2_000), "paper": (200, 80, 10_000)}[scale]
    family = GeneralParity(d=d, D=D, k=3)
    return {
        "gradients": WeightedGradients(
            family, examples=n, printed=printed, weighted=weighted, precision=64
        )
    }


weighted_gradients = arm("gradients")
LEMMA38 = Claim(
    id="shi2022/lemma38",
    where="Lemma 38 (Appendix F.6), loss (295)",
    kind="lemma",
    statement=(
        "The gradients of the loss with class weights are ∂L^α/∂w_i = −a_i E{α_y y I[y·g ≤ 1] E_ξ "
        "I[⟨w_i, x⟩ + b_i + ξ_i ∈ (0, 1)] x}, the same without x for b_i, and ∂L^α/∂a_i = −E{α_y y "
        "I[y·g ≤ 1] E_ξ σ(⟨w_i, x⟩ + b_i + ξ_i)}, with α_v = 1/(2Pr[y = v])."
    ),
    study=lemma38,
    checks=tuple(
        (weighted_gradients[measure] <= 1e-9).by_paper()
        for measure in ("weights", "biases", "second")
    ),
    control=Control(
        "the formulas have no class weights, and no ξ in the gradient of b",
        lambda scale: lemma38(scale, printed=True, weighted=False),
    ),
    corrections=("shi2022/lemma12-bias",),
    **notes("shi2022/lemma38"),
)


#: Family, m and sampled neurons: all hidden vectors can be enumerated, and D ≥ 2k², m ≥ k⁴.
ENUMERATED: dict[Scale, tuple[GeneralParity, int, int]] = {
    "smoke": (GeneralParity(d=12, D=8, k=3, coherence=0.002), 8, 2),
    "laptop": (GeneralParity(d=24, D=18, k=3, coherence=0.002), 81, 8),
    "paper": (GeneralParity(d=40, D=20, k=3, coherence=0.002), 243, 16),
}


def _log_squared(scale: Scale) -> float:
    """Return log²(Dmd/δ)."""
    family, m, _ = ENUMERATED[scale]
    return math.log(family.D * m * family.d / DELTA) ** 2


def _few_patterns() -> Condition:
    """Return the condition on k."""
    return Condition(
        f"k ≥ C·log²(Dmd/δ), δ = {DELTA:g}",
        lambda s: ENUMERATED[s][0].k,
        _log_squared,
        constant="C",
    )


def first_step(scale: Scale, *, control: bool = False) -> dict[str, StudyArm]:
    """Return the first gradient and the network after the first step."""
    family, m, neurons = ENUMERATED[scale]
    return {
        "first step": GeneralFirstStep(
            family,
            m,
            neurons,
            weighted=not control,
            mistaken=int(control),
            kept=0.01 if control else 0.0,
            precision=64,
        )
    }


first = arm("first step")
LEMMA40 = Claim(
    id="shi2022/lemma40",
    where="Lemmas 40 to 43 (Appendix F.7)",
    kind="lemma",
    statement=(
        "Let w_i⁽⁰⁾ ∈ G_w(δ), b_i⁽⁰⁾ ∈ G_b(δ), ε_e = (D/σ̃ + √dσ_ζ)σ_w√(2 log(D/δ))/(σ̃σ_ξ) and ε_ν "
        "= ε_e. The first gradient is ∂L^α/∂w_i = −a_i(Σ_j M_jT_j + ν) with |T_j − βγ/σ̃| ≤ "
        "O(ε_e/σ̃), β ∈ [Ω(1), 1], for j ∈ A, |T_j| ≤ O(σ_φj²ε_eσ̃) for j ∉ A and |ν_j| ≤ "
        "O(σ_ζ√log(k)ε_ν/σ̃) + (σ_ζd/σ̃)e^(−Θ(k)); ∂L^α/∂b_i = −a_iT_b with |T_b| ≤ O(ε_e); "
        "∂L^α/∂a_i = −T_a with |T_a| ≤ O(max_ℓ q_{i,ℓ}). With λ_w = 1/(2η⁽¹⁾) the network after "
        "the first step is w_i⁽¹⁾ = Σ_ℓ q_ℓM_ℓ + υ with the same bounds, times η⁽¹⁾|a_i|."
    ),
    study=first_step,
    checks=(
        *(
            (first[measure] <= 1.0).by_paper()
            for measure in (
                "relevant_ratio",
                "background_ratio",
                "bias_ratio",
                "second_ratio",
                "after_relevant",
                "after_background",
                "after_noise",
            )
        ),
        first.noise_ratio <= 1e-5,
    ),
    conditions=(
        _few_patterns(),
        Condition(
            "po ≥ C·k²/D",
            first.density,
            lambda s: ENUMERATED[s][0].k ** 2 / ENUMERATED[s][0].D,
            constant="C",
        ),
        Condition("Dμ/√d ≤ 1/16 (Lemma 36)", first.crowding, lambda s: 1 / 16, "≤"),
    ),
    control=Control(
        "the loss has no class weights, one relevant and one background pattern are exchanged, and "
        "the decay keeps a hundredth of the initial weights",
        lambda scale: first_step(scale, control=True),
    ),
    **notes("shi2022/lemma40"),
)


def second_step(scale: Scale, *, control: bool = False) -> dict[str, StudyArm]:
    """Return the second gradient, and the margin after the first step."""
    family, m, neurons = ENUMERATED[scale]
    return {
        "second gradient": GeneralSecondGradient(
            family, m, neurons, weighted=not control, mistaken=int(control), precision=64
        ),
        "margin": GeneralSecondGradient(
            family, m, neurons, precision=64, rate=1e8 if control else 1.0
        ),
    }


def _noise_allowed(scale: Scale) -> float:
    """Return min(1/σ̃, σ̃/√d)."""
    family = ENUMERATED[scale][0]
    return min(1 / family.sigma, family.sigma / math.sqrt(family.d))


def _rate(scale: Scale) -> float:
    """Return η⁽¹⁾ = γ²p_minσ̃/(km³)."""
    family, m, _ = ENUMERATED[scale]
    p_min = min(family.negative, 1 - family.negative)
    return family.gamma**2 * p_min * family.sigma / (family.k * m**3)


def _rate_allowed(scale: Scale) -> float:
    """Return γ/(kmσ_aσ̃), with σ_a = σ̃²/(γk²)."""
    family, m, _ = ENUMERATED[scale]
    return family.gamma**2 * family.k / (m * family.sigma**3)


second, margin = arms("second gradient", "margin")
LEMMA44 = Claim(
    id="shi2022/lemma44",
    where="Lemmas 44 to 47 (Appendix F.8)",
    kind="lemma",
    statement=(
        "After a first step with η⁽¹⁾ = O(γ/(kmσ_aσ̃)), σ_a ≤ σ̃²/(γk²), y·g⁽¹⁾(x; σ_ξ) < 1 except "
        "for a fraction (d + D)exp(−Ω(k)) of examples, and ⟨w_i⁽¹⁾, ζ/σ̃⟩, ⟨q_i⁽¹⁾, φ⟩ and its part "
        "off A are O(η⁽¹⁾σ̃/γ). With ε_e2 = O(η⁽¹⁾|a_i|k(γ + ε_e)/(σ̃²σ_ξ)) + exp(−Θ(k)) and σ_ξ = "
        "k^(−3/2), the second gradient has |T_j − βγ/σ̃| ≤ O(ε_e2/σ̃ + η⁽¹⁾/σ_ξ + "
        "η⁽¹⁾|a_i|ε_e/(σ̃σ_ξ)), β ∈ [Ω(1), 1], for j ∈ A, |T_j| ≤ exp(−Ω(k))/σ̃ + O(σ_φ²ε_e2σ̃) for "
        "j ∉ A, |ν_j| ≤ O(η⁽¹⁾σ_ζ/(γσ_ξ)) + exp(−Ω(k)), |T_b| ≤ exp(−Ω(k)) + O(ε_e2), and |T_a| = "
        "O(η⁽¹⁾σ̃/(γp_min)) + exp(−Ω(k))·poly(dD/p_min)."
    ),
    study=second_step,
    checks=(
        (margin.margin <= 1.0).by_paper(),
        *(
            (second[measure] <= 1.0).by_paper().refuting()
            for measure in ("reach_ratio", "rest_ratio", "noise_reach")
        ),
        *(
            (second[measure] <= 1.0).by_paper()
            for measure in (
                "relevant_ratio",
                "background_ratio",
                "bias_ratio",
                "second_ratio",
            )
        ),
        second.reach_sharp.near(1.0, 0.05),
        second.noise_ratio <= 1e-5,
    ),
    conditions=(
        _few_patterns(),
        Condition("Dμ/√d ≤ 1/16", second.crowding, lambda s: 1 / 16, "≤"),
        Condition(
            "σ_ζ ≤ C·min(1/σ̃, σ̃/√d)",
            lambda s: ENUMERATED[s][0].noise,
            _noise_allowed,
            "≤",
            "C",
        ),
        Condition("η⁽¹⁾ ≤ C·γ/(kmσ_aσ̃)", _rate, _rate_allowed, "≤", "C"),
    ),
    control=Control(
        "the loss has no class weights, and one relevant and one background pattern are exchanged; "
        "for the margin, the first step is 10⁸ times too large",
        lambda scale: second_step(scale, control=True),
    ),
    **notes("shi2022/lemma44"),
)


#: Family, m and examples of the linear program.
FEATURES: dict[Scale, tuple[GeneralParity, int, int]] = {
    "smoke": (GeneralParity(d=8, D=6, k=3, coherence=0.002), 20, 200),
    "laptop": (GeneralParity(d=20, D=14, k=3, coherence=0.002), 81, 4_000),
    "paper": (GeneralParity(d=40, D=16, k=3, coherence=0.002), 243, 20_000),
}


def features(scale: Scale, steps_taken: int = 2, b_scale: float = 1.0) -> dict[str, StudyArm]:
    """Return the second layer of minimum ‖ã‖_∞ on the features after two steps."""
    family, m, examples = FEATURES[scale]
    return {
        "two steps": GeneralReadout(
            family,
            m,
            0,
            examples=examples,
            steps_taken=steps_taken,
            b_scale=b_scale,
            precision=64,
        )
    }


def _log_squared_48(scale: Scale) -> float:
    """Return log²(Dmd/(δγp_min)) with δ = 1/k³."""
    family, m, _ = FEATURES[scale]
    p_min = min(family.negative, 1 - family.negative)
    return math.log(family.D * m * family.d * family.k**3 / (family.gamma * p_min)) ** 2


two_steps = arm("two steps")
LEMMA48 = Claim(
    id="shi2022/lemma48",
    where="Lemma 48 (Appendix F.8)",
    kind="lemma",
    statement=(
        "After two steps with η⁽¹⁾ = γ²p_minσ̃/(km³), η⁽²⁾ = 1, λ_w⁽¹⁾ = 1/(2η⁽¹⁾), λ_a⁽²⁾ = λ_w⁽²⁾ "
        "= 1/(2η⁽²⁾) and σ_ξ = k^(−3/2), with probability at least 1 − δ, δ = O(1/k³), there is a "
        "second layer ã on the neurons w_i⁽²⁾, b_i⁽²⁾ with hinge loss at most exp(−Ω(k)), ‖ã‖₀ = "
        "O(m/k), ‖ã‖_∞ = O(k⁵/m), ‖ã‖₂² = O(k⁹/m). Moreover ‖a⁽²⁾‖_∞ = O(1/(km²)), ‖w_i⁽²⁾‖₂ = "
        "O(σ̃/k), |b_i⁽²⁾| = O(1/k²) for all i."
    ),
    study=features,
    checks=(
        (two_steps.loss <= math.exp(-3)).by_paper().for_share(0.5),
        (two_steps["greatest"] <= 512.0).for_share(0.5),
        (two_steps.second <= 1.0).by_paper(),
        (two_steps.weights <= math.sqrt(2 * math.log(81 * 3**3) / 3)).refuting(),
        two_steps.bias <= math.sqrt(2 * math.log(81 * 3**3)),
    ),
    conditions=(
        Condition(
            "k ≥ C·log²(Dmd/(δγp_min)), δ = 1/k³",
            lambda s: FEATURES[s][0].k,
            _log_squared_48,
            constant="C",
        ),
        Condition("Dμ/√d ≤ 1/16", two_steps.crowding, lambda s: 1 / 16, "≤"),
        Condition(
            "σ_ζ ≤ C·min(1/σ̃, σ̃/√d)",
            lambda s: FEATURES[s][0].noise,
            lambda s: min(
                1 / FEATURES[s][0].sigma, FEATURES[s][0].sigma / math.sqrt(FEATURES[s][0].d)
            ),
            "≤",
            "C",
        ),
        Condition(
            "m ≥ C·k⁴", lambda s: FEATURES[s][1], lambda s: FEATURES[s][0].k ** 4, constant="C"
        ),
        Condition(
            "m ≥ max(D, d)",
            lambda s: FEATURES[s][1],
            lambda s: max(FEATURES[s][0].D, FEATURES[s][0].d),
        ),
    ),
    control=Control(
        "no step is taken, and biases are three times as large",
        lambda scale: features(scale, 0, 3.0),
    ),
    corrections=("shi2022/lemma23-bias",),
    seeds={"smoke": 1, "laptop": 8, "paper": 8},
    **notes("shi2022/lemma48"),
)

GENERAL_LEMMAS = (LEMMA36, LEMMA38, LEMMA40, LEMMA44, LEMMA48)
