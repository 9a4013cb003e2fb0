"""Claims on circuits and input distributions (Sections 3 to 5), computed exactly."""

from __future__ import annotations

from unlazy.lab.claims import Claim
from unlazy.lab.conditions import Condition
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Scale, arm
from unlazy.papers.malach2019.computations import (
    Enumeration,
    LocalCorrelation,
    ParityConstruction,
    PushForward,
)
from unlazy.papers.malach2019.margins import CountedFunctions, GenerativeMargin, ParityMargin
from unlazy.tasks.circuits.circuit import NAMES

#: Tolerance for rounding in sums of float64 values.
EXACT = 1e-12
ONE_RUN: dict[Scale, int] = {"smoke": 1, "laptop": 1, "paper": 1}


SIZES: dict[Scale, tuple[int, ...]] = {"smoke": (4, 8), "laptop": (4, 8, 16), "paper": (4, 8, 16)}
DRAWN: dict[Scale, int] = {"smoke": 2, "laptop": 10, "paper": 100}

circuits = arm("circuits")
TASK_CIRCUIT = Claim(
    id="malach2019/task-circuit",
    where="Section 3 (h_C), Section 4 (c_ij, I_ij)",
    kind="task",
    statement=(
        "A circuit is a full binary tree of arbitrary two-bit gates, h_C(x) = Γ_{1…d}(x); c_ij = "
        "E[x_j y] under D⁽ⁱ⁾, and I_ij is the probability that flipping node (i, j) flips the "
        "output if the nodes of level i are uniform bits."
    ),
    study=lambda scale: {"circuits": Enumeration(SIZES[scale], circuits=DRAWN[scale])},
    checks=(
        circuits.evaluation_errors <= 0.0,
        circuits.print_errors <= 0.0,
        circuits.correlation_gap <= EXACT,
        circuits.influence_gap <= EXACT,
    ),
    seeds=ONE_RUN,
    min_seeds=1,
    control=Control(
        "the enumeration is that of another circuit",
        lambda scale: {"circuits": Enumeration(SIZES[scale], circuits=DRAWN[scale], other=True)},
    ),
    corrections=("malach2019/influence",),
    source="definition",
    **notes("malach2019/task-circuit"),
)

COUNTED: dict[Scale, tuple[int, ...]] = {"smoke": (2, 4), "laptop": (2, 4, 8), "paper": (2, 4, 8)}

functions = arm("functions")
CIRCUIT_COUNT = Claim(
    id="malach2019/circuit-count",
    where="Section 3 (size of H)",
    kind="task",
    statement="The number of functions computed by trees of arbitrary two-bit gates over n inputs "
    "grows like 6^n.",
    study=lambda scale: {"functions": CountedFunctions(COUNTED[scale])},
    checks=(
        functions.growth.between(0.99, 1.01).at("laptop", "paper"),
        functions.formula_gap <= 0.0,
    ),
    seeds=ONE_RUN,
    min_seeds=1,
    control=Control(
        "only AND, OR, NAND and NOR are allowed",
        lambda scale: {
            "functions": CountedFunctions(COUNTED[scale], gates=("AND", "OR", "NAND", "NOR"))
        },
    ),
    **notes("malach2019/circuit-count"),
)

PARITY_SIZES: dict[Scale, tuple[int, ...]] = {
    "smoke": (4, 16),
    "laptop": (4, 16, 64, 256),
    "paper": (4, 16, 64, 256, 1024, 4096),
}

parity = arm("parity")
TASK_PRODUCT = Claim(
    id="malach2019/task-product",
    where="Section 5.1, Lemma 5",
    kind="task",
    statement=(
        "The printed circuit computes the parity: h_C(x) = Π_{i∈I} x_i. Each gate of its first "
        "layer outputs the product of its inputs in I, and all other gates multiply."
    ),
    study=lambda scale: {"parity": ParityConstruction((8, *PARITY_SIZES[scale][1:]))},
    checks=(
        (parity.label_errors <= 0.0).by_paper(),
        # Among some thousand independent means, none should deviate by five standard errors.
        parity.frequency_z <= 5.0,
    ),
    seeds=ONE_RUN,
    min_seeds=1,
    control=Control(
        "the upper gates are OR, and bits are +1 with probability 0.7 instead of 0.75",
        lambda scale: {
            "parity": ParityConstruction((8, *PARITY_SIZES[scale][1:]), gate="OR", p=0.7)
        },
    ),
    **notes("malach2019/task-product"),
)

PUSH_SIZES: dict[Scale, tuple[int, ...]] = {
    "smoke": (4, 8),
    "laptop": (4, 8, 16),
    "paper": (4, 8, 16),
}
PUSHED: dict[Scale, int] = {"smoke": 20_000, "laptop": 1_000_000, "paper": 10_000_000}

generative = arm("generative")
TASK_GENERATIVE = Claim(
    id="malach2019/task-generative",
    where="Section 5.2, Lemma 9",
    kind="task",
    statement="For every i ∈ [d], level i of the circuit maps the generative distribution of its "
    "inputs to that of its outputs: Γ_i(D⁽ⁱ⁾) = D⁽ⁱ⁻¹⁾.",
    study=lambda scale: {"generative": PushForward(PUSH_SIZES[scale], sample=PUSHED[scale])},
    checks=(
        generative.distance <= EXACT,
        # 65,536 cells: χ² per degree of freedom is within 1 ± 0.03 with overwhelming probability.
        generative.chi_square.between(0.95, 1.05).at("laptop", "paper"),
    ),
    seeds=ONE_RUN,
    min_seeds=1,
    control=Control(
        "both gate values draw from the +1 patterns",
        lambda scale: {
            "generative": PushForward(PUSH_SIZES[scale], sample=PUSHED[scale], printed=True)
        },
    ),
    **notes("malach2019/task-generative"),
)

LCA_SIZES: dict[Scale, tuple[int, ...]] = {"smoke": (4,), "laptop": (4, 8), "paper": (4, 8, 16)}
LCA_DRAWN: dict[Scale, int] = {"smoke": 20, "laptop": 300, "paper": 2_000}

drawn = arm("lemma 3")
LCA = Claim(
    id="malach2019/lca",
    where="Lemma 3 (Definition 1, Assumption 1, Properties 1–3)",
    kind="lemma",
    statement="Any Δ-non-degenerate product distribution that satisfies LCA satisfies Properties "
    "1 to 3, with ε = Δ²/4.",
    study=lambda scale: {"lemma 3": LocalCorrelation(LCA_SIZES[scale], circuits=LCA_DRAWN[scale])},
    checks=(
        (drawn.broken <= 0.0).by_paper(),
        (drawn.rare <= 0.0).by_paper(),
        drawn.checker_gap <= EXACT,
    ),
    conditions=(
        Condition(
            "random circuits and distributions that satisfy LCA with some Δ > 0",
            drawn.with_lca,
            lambda scale: 5.0,
        ),
    ),
    control=Control(
        "inputs are dependent (a mixture of two product distributions), and Δ does not bound "
        "their probabilities",
        lambda scale: {
            "lemma 3": LocalCorrelation(LCA_SIZES[scale], circuits=LCA_DRAWN[scale], dependent=True)
        },
    ),
    **notes("malach2019/lca"),
)

XI = 0.1

LEMMA6 = Claim(
    id="malach2019/lemma6",
    where="Lemma 6; ε of Corollary 7",
    kind="lemma",
    statement=(
        "Fix ξ ∈ (0, ¼). For every product distribution with p_j ∈ (ξ, ½ − ξ) ∪ (½ + ξ, 1 − ξ) "
        "for all j and the parity of k bits: if I_ij ≠ 0 then |c_ij| − |E y| ≥ (2ξ)^k and P(z_j = "
        "1) ∈ (ξ, 1 − ξ). Property 3 holds with ε = ξ²."
    ),
    study=lambda scale: {
        "parity": ParityMargin(
            PARITY_SIZES[scale], xi=XI, distributions=6 if scale == "smoke" else 50
        )
    },
    checks=(
        (parity.gap_ratio >= 1.0).by_paper(),
        (parity.inside >= 0.0).by_paper(),
        (parity.pattern_ratio >= 1.0).by_paper(),
    ),
    conditions=(Condition("ξ < ¼", lambda scale: XI, lambda scale: 0.25, "≤"),),
    seeds=ONE_RUN,
    min_seeds=1,
    control=Control(
        "p_j is drawn between 0.01 and 0.99",
        lambda scale: {
            "parity": ParityMargin(
                PARITY_SIZES[scale],
                xi=XI,
                distributions=6 if scale == "smoke" else 50,
                anywhere=True,
            )
        },
    ),
    corrections=("malach2019/parity-circuit",),
    **notes("malach2019/lemma6"),
)

#: All gates that are not constant, for the control.
NOT_CONSTANT = tuple(name for name in NAMES if name not in ("TRUE", "FALSE"))

LEMMA8 = Claim(
    id="malach2019/lemma8",
    where="Lemma 8 and its proof; ε of Section 5.2",
    kind="lemma",
    statement=(
        "Under the generative distribution of an AND/OR/NAND/NOR circuit, |c_ij| − E y > (2/3)^d "
        "= n^{log(2/3)} for every level i ∈ [d] and node j, since |c_ij| = (2/3)^i and E y = 0. "
        "All gates have influence, and Property 3 holds with ε = (1/4)^d = 1/n²."
    ),
    study=lambda scale: {"generative": GenerativeMargin(PARITY_SIZES[scale])},
    checks=(
        (generative.gap <= EXACT).by_paper(),
        (generative.least_ratio >= 1 - EXACT).by_paper(),
        (generative.strict_ratio >= 1 + EXACT).by_paper(),
        (generative.influence >= 1e-300).by_paper(),
        (generative.pattern_ratio >= 1.0).by_paper(),
        generative.closed_form.near(1, 1e-9),
    ),
    seeds=ONE_RUN,
    min_seeds=1,
    control=Control(
        "all gates that are not constant, and 95 % positive labels",
        lambda scale: {
            "generative": GenerativeMargin(PARITY_SIZES[scale], gates=NOT_CONSTANT, positive=0.95)
        },
    ),
    corrections=("malach2019/lemma8-equality",),
    **notes("malach2019/lemma8"),
)
