"""Circuits and laws: Sections 3 and 5, and the lemmas that can be computed exactly."""

from __future__ import annotations

from unlazy.lab.claims import Claim
from unlazy.lab.rules import Check, Quantity, Scale
from unlazy.papers.malach2019.instruments import (
    Enumeration,
    GenerativeMargin,
    LocalCorrelation,
    ParityConstruction,
    ParityMargin,
    PushForward,
)

#: Rounding of exact sums of doubles.
EXACT = 1e-12
ONE_RUN: dict[Scale, int] = {"smoke": 1, "laptop": 1, "paper": 1}


SIZES: dict[Scale, tuple[int, ...]] = {"smoke": (4, 8), "laptop": (4, 8, 16), "paper": (4, 8, 16)}

TASK_CIRCUIT = Claim(
    id="malach2019/task-circuit",
    where="Section 3",
    kind="task",
    statement="Full binary trees of arbitrary two-bit gates: evaluation, correlations and influences equal enumeration of all inputs.",
    study=lambda scale: {"circuits": Enumeration(SIZES[scale], circuits=2 if scale == "smoke" else 10)},
    checks=(
        Check(Quantity("circuits", "evaluation_errors"), upper=0.0),
        Check(Quantity("circuits", "print_errors"), upper=0.0),
        Check(Quantity("circuits", "correlation_gap"), upper=EXACT),
        Check(Quantity("circuits", "influence_gap"), upper=EXACT),
    ),
    deviations=("The influence is that on the output of the whole circuit above a level; the text names one level's map alone.",),
    seeds=ONE_RUN,
    least_seeds=1,
)

PARITY_SIZES: dict[Scale, tuple[int, ...]] = {"smoke": (4, 16), "laptop": (4, 16, 64, 256), "paper": (4, 16, 64, 256, 1024)}

TASK_PRODUCT = Claim(
    id="malach2019/task-product",
    where="Sections 4 and 5.1, Lemma 5",
    kind="task",
    statement="A parity of log n bits is a tree circuit; under biased bits its influencing gates are correlated with the label.",
    # From n = 8 on, log n bits always leave some pair of inputs without a relevant one, and with it a constant gate.
    study=lambda scale: {"parity": ParityConstruction((8, *PARITY_SIZES[scale][1:]))},
    checks=(
        Check(Quantity("parity", "label_errors"), upper=0.0),
        Check(Quantity("parity", "gap"), lower=1 - 1e-9, upper=1 + 1e-9),
        # The construction as printed has constant gates with influence, for which |c| = E y.
        Check(Quantity("parity", "printed_gap"), upper=EXACT),
        Check(Quantity("parity", "frequency_z"), upper=5.0),
    ),
    deviations=(
        "Gates with one relevant side pass it on instead of multiplying it with a constant: the printed construction computes the "
        "same function but breaks the local correlation assumption.",
    ),
    seeds=ONE_RUN,
    least_seeds=1,
)

PUSH_SIZES: dict[Scale, tuple[int, ...]] = {"smoke": (4, 8), "laptop": (4, 8, 16), "paper": (4, 8, 16)}

TASK_GENERATIVE = Claim(
    id="malach2019/task-generative",
    where="Section 5.2, Lemma 9",
    kind="task",
    statement="Each level of a circuit maps the generative law of its inputs exactly to that of its outputs: Γ_i(D⁽ⁱ⁾) = D⁽ⁱ⁻¹⁾.",
    study=lambda scale: {"generative": PushForward(PUSH_SIZES[scale], sample=20_000 if scale == "smoke" else 1_000_000)},
    checks=(
        Check(Quantity("generative", "distance"), upper=EXACT),
        # 65,536 cells: χ² per degree of freedom is within 1 ± 0.03 with overwhelming probability.
        Check(Quantity("generative", "chi_square"), lower=0.95, upper=1.05),
    ),
    deviations=("For the value −1 a pattern is drawn from the complement; the text prints the same set twice.",),
    seeds=ONE_RUN,
    least_seeds=1,
)

LCA_SIZES: dict[Scale, tuple[int, ...]] = {"smoke": (4,), "laptop": (4, 8), "paper": (4, 8)}

LCA = Claim(
    id="malach2019/lca",
    where="Assumption 1, Properties 1–3, Lemma 3",
    kind="lemma",
    statement="Circuits with local correlation under product laws satisfy Properties 1 to 3, with ε ≥ Δ²/4.",
    study=lambda scale: {
        "lemma 3": LocalCorrelation(LCA_SIZES[scale], circuits=20 if scale == "smoke" else 400 if scale == "laptop" else 2_000)
    },
    checks=(
        Check(Quantity("lemma 3", "with_lca"), lower=5.0),
        Check(Quantity("lemma 3", "broken"), upper=0.0),
        Check(Quantity("lemma 3", "epsilon_ratio"), lower=1.0),
        Check(Quantity("lemma 3", "checker_gap"), upper=EXACT),
    ),
    deviations=("Gates without influence are set to TRUE first, as the paper assumes without loss of generality.",),
)

LEMMA6 = Claim(
    id="malach2019/lemma6",
    where="Lemma 6, Corollary 7",
    kind="lemma",
    statement="Parity of k = log n bits with p_j more than ξ away from 0, ½ and 1: |c_ij| − |E y| ≥ (2ξ)^k, and P(z_ij = 1) ∈ (ξ, 1 − ξ).",
    study=lambda scale: {"parity": ParityMargin(PARITY_SIZES[scale], laws=5 if scale == "smoke" else 50)},
    checks=(Check(Quantity("parity", "gap_ratio"), lower=1.0), Check(Quantity("parity", "inside"), lower=0.0)),
    deviations=("Circuits with projection gates; with the construction as printed the lemma's induction meets constant gates.",),
    seeds=ONE_RUN,
    least_seeds=1,
)

LEMMA8 = Claim(
    id="malach2019/lemma8",
    where="Lemma 8, Corollary 10",
    kind="lemma",
    statement="Under the generative law of an AND/OR/NAND/NOR circuit, |c_ij| = (2/3)^i at every node of level i, and E y = 0.",
    study=lambda scale: {"generative": GenerativeMargin(PARITY_SIZES[scale])},
    checks=(
        Check(Quantity("generative", "gap"), upper=EXACT),
        # As printed, the recursion of the proof leaves the probabilities.
        Check(Quantity("generative", "printed_least"), upper=-0.01),
    ),
    deviations=(
        "P(x = 1) after AND is 2p/3 + 1/3; the proof prints 2p/3 − 1/3 and a superfluous term for OR. The result is not affected.",
        "The proof ends with (2/3)^d for every level; at level i it is (2/3)^i, so that d is the worst.",
    ),
    seeds=ONE_RUN,
    least_seeds=1,
)
