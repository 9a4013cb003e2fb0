"""Claims on the data, the update rule, and the lemmas on probabilities.

Reference: shi2022, Section 3, Appendices B.2, B.3 and F.1.
"""

from __future__ import annotations

from unlazy.lab.arms import StudyArm
from unlazy.lab.claims import Claim
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Scale, arm, arms
from unlazy.papers.shi2022.probability import BackgroundSums, TypicalInitialization
from unlazy.papers.shi2022.setting import Assumptions, GeneralAssumptions, UpdateRule
from unlazy.tasks.dictionary.incoherent import GeneralParity


def task(scale: Scale, skew: float = 0.0) -> dict[str, StudyArm]:
    """Return the mixture of Theorem 2 at po = ½, and uniform bits."""
    D, k = {"smoke": (5, 3), "laptop": (10, 5), "paper": (13, 7)}[scale]
    n = {"smoke": 2_000, "laptop": 50_000, "paper": 500_000}[scale]
    return {
        "with structure": Assumptions(D, k, skew=skew, examples=n, precision=64),
        "without": Assumptions(D, k, structured=False, skew=skew, examples=n, precision=64),
    }


structured, unstructured = arms("with structure", "without")
TASK = Claim(
    id="shi2022/task",
    where="Section 3 (A0, A1, A2, A1', normalization), Lemma 14, proof of Theorem 2 (Appendix C)",
    kind="task",
    statement=(
        "At po = 1/2 the mixture po·D⁽⁰⁾ + (1 − po)·D⁽¹⁾ of the lower bound is in the family: "
        "classes are balanced (A0); each relevant pattern has the same correlation γ = Θ(1) with "
        "the label (A1); each background pattern has rate po and is independent of all others "
        "(A2). With "
        "σ̃² the variance of the data: E‖x‖² = 1, E y = 0, E|y| = 1, E|φ_j| = 2σ_φ²σ̃ for j ∉ A, "
        "E[yφ_j] = γ/σ̃ for j ∈ A, E|yφ_j| ≤ 1/σ̃. Without structure all patterns are uniform bits "
        "(A1')."
    ),
    study=task,
    checks=(
        *(
            structured[measure].near(0, 1e-9).by_paper().exactly()
            for measure in ("balance", "gamma_spread", "rate", "dependence", "lemma14")
        ),
        (structured["normalised"] <= 1e-9).by_construction().exactly(),
        (structured.gamma >= 0.1).exactly(),
        (structured.lemma14_bound <= 1.0).by_construction().exactly(),
        (structured.agreement <= 1e-6).exactly(),
        (structured.drawn <= 5.0).at("laptop", "paper"),
        *(
            unstructured[measure].near(0, 1e-9).by_paper().exactly()
            for measure in ("rate", "dependence")
        ),
        (unstructured.agreement <= 1e-6).exactly(),
        (unstructured.drawn <= 5.0).at("laptop", "paper"),
    ),
    control=Control(
        "the classes are unequal, and the background rate is higher if all relevant patterns are "
        "present",
        lambda s: task(s, 0.3),
    ),
    min_seeds=1,
    **notes("shi2022/task"),
)


def task_general(scale: Scale, error: float = 0.0) -> dict[str, StudyArm]:
    """Return the general family; `error` for the negative control."""
    d, D, k = {"smoke": (16, 8, 3), "laptop": (60, 30, 5), "paper": (200, 80, 7)}[scale]
    n = {"smoke": 2_000, "laptop": 20_000, "paper": 100_000}[scale]
    return {
        "general family": GeneralAssumptions(GeneralParity(d=d, D=D, k=k), n, error, precision=64)
    }


general = arm("general family")
TASK_GENERAL = Claim(
    id="shi2022/task-general",
    where="Appendix F.1, Lemma 39",
    kind="task",
    statement=(
        "x̃ = Mφ̃ + ζ with unit columns of M, |⟨M_i, M_j⟩| ≤ μ/√d, and ζ ~ N(0, σ_ζ²I) "
        "independent of φ̃. The patterns in A are correlated with the label: γ = (γ₊₁ + γ₋₁)/2 > 0 "
        "with γ_v = E[yφ̃_i | y = v]. With class weights α_v = 1/(2Pr[y = v]): E[α_y y] = 0, "
        "E|α_y y| = 1, E|φ_j| = 2σ_φj²σ̃ for j ∉ A, E[α_y yφ_j] = γ/σ̃ for j ∈ A and E|α_y yφ_j| ≤ "
        "1/σ̃. "
        "The patterns outside A are independent of those in A; they may have different rates and "
        "depend on each other. The variance of the data is σ̃² = Σ_j Var(φ̃_j) + dσ_ζ²."
    ),
    study=task_general,
    checks=(
        (general.length <= 1e-5).by_paper(),
        (general.gamma <= 1e-5).by_paper(),
        general.corrected <= 0.02,
        general.variance <= 0.1,
        general.drawn <= 5.0,
        (general.lemma39 <= 1e-9).by_paper(),
        (general.lemma39_bound <= 1.0).by_construction(),
    ),
    control=Control(
        "class fractions and γ are off by 0.2, patterns and noise are 20 % too large",
        lambda s: task_general(s, 0.2),
    ),
    corrections=("shi2022/general-variance",),
    seeds={"smoke": 1, "laptop": 8, "paper": 8},
    **notes("shi2022/task-general"),
)


def learner(scale: Scale, kept: float = 0.0, printed: bool = False) -> dict[str, StudyArm]:
    """Return the update rule on the exact population."""
    D, m, T = {"smoke": (5, 3, 4), "laptop": (8, 6, 6), "paper": (11, 20, 20)}[scale]
    return {"update rule": UpdateRule(D, 3, m, T, kept, printed, precision=64)}


update = arm("update rule")
LEARNER = Claim(
    id="shi2022/learner",
    where="Section 3.1 (network, loss, update rule), Lemma 12",
    kind="learner",
    statement=(
        "2m neurons are initialized in antisymmetric pairs, so g⁽⁰⁾ = 0. θ⁽ᵗ⁾ = θ⁽ᵗ⁻¹⁾ − "
        "η⁽ᵗ⁾∇(L(g⁽ᵗ⁻¹⁾; σ_ξ⁽ᵗ⁾) + R(g⁽ᵗ⁻¹⁾; λ_a⁽ᵗ⁾, λ_w⁽ᵗ⁾)) with hinge loss, noise ξ_i inside "
        "each neuron and R = Σλ_a|a_i|² + λ_w‖w_i‖². The gradients are ∂L/∂w_i = −a_i E{y I[y·g ≤ "
        "1] E_ξ I[⟨w_i, x⟩ + b_i + ξ_i ∈ (0, 1)] x}, the same without x for b_i, and ∂L/∂a_i = "
        "−E{y I[y·g ≤ 1] E_ξ σ(⟨w_i, x⟩ + b_i + ξ_i)}."
    ),
    study=learner,
    checks=(
        (update.weights <= 1e-9).by_paper(),
        (update.biases <= 1e-9).by_paper(),
        (update.second <= 1e-9).by_paper(),
        (update.zero <= 1e-12).by_construction(),
    ),
    control=Control(
        "the reference keeps a tenth of the weights in the steps with full decay, λ = 1/(2η), and "
        "omits ξ in the gradient of b",
        lambda scale: learner(scale, 0.1, True),
    ),
    corrections=("shi2022/lemma12-bias",),
    seeds={"smoke": 1, "laptop": 8, "paper": 8},
    **notes("shi2022/learner"),
)


def lemma9(scale: Scale, wider: float = 1.0) -> dict[str, StudyArm]:
    """Return the probabilities of an initialization that is not typical."""
    sizes = {"smoke": (50, 100), "laptop": (50, 100, 500), "paper": (50, 100, 500, 2000, 10_000)}[
        scale
    ]
    return {"start": TypicalInitialization(sizes, wider=wider, precision=64)}


initial = arm("start")
LEMMA9 = Claim(
    id="shi2022/lemma9",
    where="Lemmas 9 and 10 (Appendix B.2)",
    kind="lemma",
    statement=(
        "With probability at least 1 − δ − 2exp(−Θ(D − k)) over w⁽⁰⁾: σ_w²(D − k)/2 ≤ Σ_{ℓ∉A} "
        "q_ℓ² ≤ 3σ_w²(D − k)/2 and max_ℓ |q_ℓ| ≤ σ_w√(2 log(D/δ)). With probability at least 1 − δ "
        "each: |b⁽⁰⁾| ≤ σ_b√(2 log(1/δ)) and |a⁽⁰⁾| ≤ σ_a√(2 log(1/δ)). For all 2m neurons "
        "simultaneously the same holds with D and 1 in the logarithms replaced by Dm and m, and "
        "with 2m·exp(−Θ(D − k))."
    ),
    study=lemma9,
    checks=(
        *tuple(
            (initial[measure] <= 1.0).by_paper().exactly()
            for measure in ("largest", "energy", "bias", "all_largest", "all_bias")
        ),
        (initial.drawn <= 5.0).by_construction(),
    ),
    control=Control("weights and biases are 1.5 times as large", lambda scale: lemma9(scale, 1.5)),
    min_seeds=1,
    **notes("shi2022/lemma9"),
)


def lemma13(scale: Scale, together: bool = False) -> dict[str, StudyArm]:
    """Return sums over n background patterns, by enumeration."""
    sizes = {"smoke": (6, 8), "laptop": (8, 11, 14), "paper": (8, 11, 14, 16, 18)}[scale]
    return {"sums": BackgroundSums(sizes, together=together, precision=64)}


sums = arm("sums")
LEMMA13 = Claim(
    id="shi2022/lemma13",
    where="Lemmas 11 and 13 (Appendices B.2 and B.3)",
    kind="lemma",
    statement=(
        "For B ⊇ A and any b, |Pr{⟨φ, q⟩ ≥ b} − Pr{⟨φ_{−B}, q_{−B}⟩ ≥ b}| over φ_{−B} is at most "
        "O(|⟨φ_B, q_B⟩|/(σ_φ‖q_{−B}‖₂) + ‖q_{−B}‖₃³/(σ̃σ_φ‖q_{−B}‖₂³)). For typical w, Pr[Σ_{ℓ∉A} "
        "φ_ℓq_ℓ ≥ Θ(√((D − k)σ_φ²σ_w²))] = Θ(1) − O(log^(3/2)(Dm/δ))/√((D − k)σ_φ²σ̃²)."
    ),
    study=lemma13,
    checks=(
        sums.shift <= 0.5,
        sums.tail <= 0.2,
        sums["least"] >= 0.1,
    ),
    control=Control(
        "all background patterns are present, or none", lambda scale: lemma13(scale, True)
    ),
    seeds={"smoke": 1, "laptop": 8, "paper": 8},
    **notes("shi2022/lemma13"),
)

ROWS = (TASK, TASK_GENERAL, LEARNER, LEMMA9, LEMMA13)
