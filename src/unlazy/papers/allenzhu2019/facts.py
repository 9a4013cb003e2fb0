"""Claims on the task, complexities and the learner, computed without training."""

from __future__ import annotations

from unlazy.lab.arms import StudyArm
from unlazy.lab.claims import Claim
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Published, Scale, arm, arms
from unlazy.papers.allenzhu2019.computations import (
    Complexities,
    GeneralClass,
    GradientFormula,
    HierarchyFacts,
    SphereClass,
)

ROUNDING = 1e-5


def _task(scale: Scale) -> dict[str, StudyArm]:
    return {"targets": HierarchyFacts(examples=512 if scale == "smoke" else 4096)}


targets = arm("targets")
TASK = Claim(
    id="allenzhu2019/task",
    where="Eq. (2.2), Concept 1 (Section 5), Eq. (7.1), Section 8.1",
    kind="task",
    statement=(
        "Targets H = F + α·G(F). In the experiments x ∈ {±1}³⁰, F has the 15 products of pairs "
        "and G_i(y) = (−1)^i·y₁y₂y₃y₄, with α = 0.3: a model of F alone has the error k·α² = "
        "1.35. In the hard instance, F has k coordinates of a cube of side 2/√d, and the "
        "composite signal is their product; the other coordinates may have any distribution. In "
        "the concept class, F and G are networks of smooth neurons with weights of norm 1/√2, on "
        "inputs of norm 1."
    ),
    study=_task,
    checks=(
        targets.left_by_base.near(1.35, ROUNDING).by_paper().exactly(),
        targets.weight_of_degree_8.near(1, ROUNDING).exactly(),
        targets.hard_left_over_alpha2.near(3, ROUNDING).exactly(),
        targets.hard_input_norm.near(1, ROUNDING).by_construction().exactly(),
        targets.smooth_input_norm.near(1, ROUNDING).by_construction().exactly(),
        targets.smooth_weight_norm.near(0.5**0.5, ROUNDING).by_construction().exactly(),
        (targets.smooth_mismatch <= ROUNDING).exactly(),
    ),
    published=(Published(targets.left_by_base, "1.35"),),
    control=Control(
        "α = 0.31 and a product of three pairs",
        lambda scale: {"targets": HierarchyFacts(0.31, 3, 512)},
    ),
    seeds={"smoke": 1, "laptop": 1, "paper": 1},
    min_seeds=1,
    **notes("allenzhu2019/task"),
)


def _complexity(scale: Scale) -> dict[str, StudyArm]:
    return {"Example 4.1": Complexities(), "Lemma A.2": SphereClass(precision=64)}


example, sphere = arms("Example 4.1", "Lemma A.2")
COMPLEXITY = Claim(
    id="allenzhu2019/complexity",
    where="Section 4, Example 4.1, Lemma A.2",
    kind="lemma",
    statement=(
        "C_ε(φ) and C_s(φ) from the Taylor series of φ. For e^{cz} − 1, sin cz, cos cz and "
        "polynomials C_ε = o(1/ε) and C_s = O(1). For sigmoid and tanh the series may be "
        "truncated at a degree Θ(log 1/ε) with error ε; then C_ε ≤ poly(1/ε) and C_s = O(1). On "
        "the unit sphere a function of Concept 1 equals one of Concept 2 with 2p neurons (Lemma "
        "A.2)."
    ),
    study=_complexity,
    checks=(
        (example.entire_exponent <= 1.0).by_paper(),
        example.entire_slope <= 20.0,
        example.cut_exponent_growth.between(0.9, 1.1),
        (example.cut_tail_exponent <= -1.0).by_paper(),
        (example.cut_slope <= 20.0).by_construction(),
        sphere.lemma_a2_gap <= 1e-9,
    ),
    control=Control(
        "a geometric series, truncated after its first term, and steeper neurons in one form",
        lambda scale: {
            "Example 4.1": Complexities(flat=True),
            "Lemma A.2": SphereClass(steep=5.0, precision=64),
        },
    ),
    seeds={"smoke": 1, "laptop": 1, "paper": 1},
    min_seeds=1,
    **notes("allenzhu2019/complexity"),
)


def _bounds(scale: Scale, *, steep: float = 1.0) -> dict[str, StudyArm]:
    pairs = {"smoke": 500, "laptop": 20_000, "paper": 200_000}[scale]
    return {"general class": GeneralClass(pairs=pairs, steep=steep, precision=64)}


general = arm("general class")
FACT_A3 = Claim(
    id="allenzhu2019/fact-a3",
    where="Fact A.3",
    kind="lemma",
    statement=(
        "A function of general complexity (p, C_s, C_ε) has, for all x and y, ‖F(x)‖ ≤ "
        "√k·p·C_s·‖x‖ and ‖F(x) − F(y)‖ ≤ √k·p·C_s·‖x − y‖."
    ),
    study=_bounds,
    checks=(
        (general.slope_over_bound <= 1.0).by_paper(),
        general.norm_over_lifted_bound <= 1.0,
    ),
    control=Control(
        "neurons twenty times steeper than in the bounds",
        lambda scale: _bounds(scale, steep=20.0),
    ),
    corrections=("allenzhu2019/fact-a3-norm",),
    **notes("allenzhu2019/fact-a3"),
)


def _learner(scale: Scale) -> dict[str, StudyArm]:
    return {"Fact C.4": GradientFormula(m=20 if scale == "smoke" else 200, precision=64)}


fact = arm("Fact C.4")
LEARNER = Claim(
    id="allenzhu2019/learner",
    where="Eq. (2.1), Section 6, Algorithm 1, Fact C.4",
    kind="learner",
    statement=(
        "The three-layer ResNet out(x) = A·(σ(Wx + b₁) + σ(Uσ(Wx + b₁) + b₂)) with U = VA is out₁ "
        "+ A·σ(V(out₁, 1)) with out₁ = A·σ(W(x, 1)). The derivative of ½‖y − out‖² along (−W', "
        "−V') is ⟨y − out, f(W') + g(V')⟩ with f(W') = A·D_V·V(A·D_W·W'(x, 1), 0) + A·D_W·W'(x, "
        "1) and g(V') = A·D_V·V'(out₁, 1). Algorithm 1 uses this gradient."
    ),
    study=_learner,
    checks=(fact.gradient_gap <= 1e-9, fact.network_gap <= 1e-9),
    control=Control(
        "the skip connection is omitted",
        lambda scale: {"Fact C.4": GradientFormula(without_skip=True, precision=64)},
    ),
    **notes("allenzhu2019/learner"),
)
