"""Claims on the lemmas of the first step, as exact computations.

unlazy reproduce 'daniely2020/*' --scale laptop

Reference: daniely2020, Sections 2 and 4.
"""

from __future__ import annotations

from unlazy.lab.arms import StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.conditions import Condition
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Scale, arm
from unlazy.papers.daniely2020.first_step import (
    CancellingNeurons,
    FirstStepGradients,
    FunctionsOnParity,
)
from unlazy.papers.daniely2020.setting import Mixture

ONE_RUN: dict[Scale, int] = {"smoke": 1, "laptop": 1, "paper": 1}
#: Numbers n of bits. Above some thousands the bound of Lemma 3 is below double precision rounding.
SIZES: dict[Scale, tuple[int, ...]] = {
    "smoke": (51,),
    "laptop": (101, 401),
    "paper": (101, 401, 1001, 2001),
}
#: Numbers n of bits that meet the condition of Lemma 7 on k.
LEMMA7_SIZES: dict[Scale, tuple[int, ...]] = {
    "smoke": (401,),
    "laptop": (155_001,),
    "paper": (155_001, 400_001),
}
K = 7


def smaller_k(scale: Scale) -> dict[str, StudyArm]:
    """Return the same computation for smaller k, for the plots."""
    return {f"k = {k}": FirstStepGradients(SIZES[scale], k, precision=64) for k in (3, 5)}


def over_bits(title: str, y: str, arm: str, measure: str) -> Plot:
    """Return a plot of a quantity over the number of bits, for each k."""
    arms = {"k = 3": "k = 3", "k = 5": "k = 5", arm: f"k = {K}"}
    return Plot(
        title,
        "bits n",
        y,
        tuple(PlotLine(name, measure, label) for name, label in arms.items()),
        log_x=True,
        log_y=True,
    )


def task(scale: Scale, structured: float = 0.5) -> dict[str, StudyArm]:
    """Return the distribution at a size whose inputs can be enumerated."""
    d, k = {"smoke": (6, 3), "laptop": (10, 3), "paper": (13, 7)}[scale]
    return {"mixture": Mixture(d, k, structured, precision=64)}


mixture = arm("mixture")
TASK = Claim(
    id="daniely2020/task",
    where="Section 2",
    kind="task",
    source="definition",
    statement=(
        "With probability 1/2 the input is uniform in {±1/√n}^n. Otherwise the bits outside A are "
        "uniform, and those in A are all 1/√n or all −1/√n with probability 1/2 each. The label is "
        "the sign of the product of the bits in A, |A| = k odd."
    ),
    study=task,
    checks=(
        (mixture["law"] <= 1e-6).by_paper(),
        (mixture.label <= 0.0).by_paper().refuting(),
        mixture.drawn <= 5.0,
        (mixture.balance <= 1e-9).by_construction().exactly(),
        (mixture.outside <= 1e-9).by_construction().exactly(),
        mixture.inside.near(0.5, 1e-9).by_construction().exactly(),
    ),
    control=Control("the all-equal part is absent", lambda scale: task(scale, 0.0)),
    **notes("daniely2020/task"),
)


def lemma3_4(scale: Scale) -> dict[str, StudyArm]:
    """Return the uniform part, over the number of bits."""
    return {"uniform part": FirstStepGradients(SIZES[scale], K, precision=64)} | smaller_k(scale)


uniform = arm("uniform part")
LEMMA3_4 = Claim(
    id="daniely2020/lemma3-4",
    where="Lemmas 3 and 4",
    kind="lemma",
    statement=(
        "On the uniform distribution, for every c > 0, with probability at least 1 − 1/c over the "
        "weights of a neuron, |E x_j f(x) σ'| for a given j outside A and |E f(x) σ'| are at most "
        "c·C(n−1, k)^(−1/2). With probability at least 1 − 1/C both are at most C·(n − 1)·C(n−1, "
        "k)^(−1/2) for all j outside A."
    ),
    study=lemma3_4,
    checks=(
        (uniform.chance3 <= 1.0).by_paper(),
        (uniform.chance4 <= 1.0).by_paper(),
        (uniform.mean3 <= 1.0).by_paper(),
    ),
    seeds=ONE_RUN,
    min_seeds=1,
    control=Control(
        "the inputs are those of the all-equal part, whose gradients off A are not small",
        lambda scale: {
            "uniform part": FirstStepGradients(SIZES[scale], K, part="structured", precision=64)
        },
    ),
    plots=(
        over_bits(
            "Gradients off A on the uniform part",
            "mean over neurons ÷ bound",
            "uniform part",
            "mean3",
        ),
    ),
    **notes("daniely2020/lemma3-4"),
)


def lemma5(scale: Scale) -> dict[str, StudyArm]:
    """Return all neurons whose weights in A sum to zero."""
    return {"weights that cancel": CancellingNeurons(SIZES[scale], K, precision=64)}


cancelling = arm("weights that cancel")
LEMMA5 = Claim(
    id="daniely2020/lemma5",
    where="Lemma 5",
    kind="lemma",
    statement="On the all-equal part a neuron with Σ_{i∈A} w_i = 0 has E[x_j f(x) σ'] = 0 for all "
    "j outside A, and E[f(x) σ'] = 0.",
    study=lemma5,
    checks=tuple((cancelling[name] <= 1e-14).by_paper() for name in ("off", "bias")),
    seeds=ONE_RUN,
    min_seeds=1,
    control=Control(
        "the weights in A sum to one",
        lambda scale: {"weights that cancel": CancellingNeurons(SIZES[scale], K, 1, precision=64)},
    ),
    **notes("daniely2020/lemma5"),
)


def lemma6(scale: Scale, rate: float = 0.0) -> dict[str, StudyArm]:
    """Return all functions of the bits in A, and z_j·f alone for the plot, over n."""
    return {
        "all functions": FunctionsOnParity(SIZES[scale], K, rate, precision=64),
        "mixture": FirstStepGradients(SIZES[scale], K, precision=64),
    } | smaller_k(scale)


LEMMA6 = Claim(
    id="daniely2020/lemma6",
    where="Lemma 6",
    kind="lemma",
    statement=(
        "For every h with values ±1 that depends only on the bits in A, |E[h(x) σ'(⟨w, x⟩ + b)] − "
        "E[h(x)]·φ(w, b)| ≤ C·k/√|J|, where J is the set of nonzero weights outside A and φ is the "
        "probability that Σ_J w_j x_j + b lies between k/√n and 6 − k/√n."
    ),
    study=lemma6,
    checks=((arm("all functions").ratio_all <= 1.0).by_paper(),),
    seeds=ONE_RUN,
    min_seeds=1,
    control=Control("a bound that is smaller by n^(−1/2)", lambda scale: lemma6(scale, 0.5)),
    plots=(
        over_bits(
            "Deviation of gradients on A from φ/2",
            "maximum deviation ÷ bound",
            "mixture",
            "ratio6",
        ),
    ),
    **notes("daniely2020/lemma6"),
)


def lemma7(scale: Scale) -> dict[str, StudyArm]:
    """Return numbers of bits that meet the condition on k."""
    return {
        "good neurons": FirstStepGradients(LEMMA7_SIZES[scale], K, only_good=True, precision=64)
    } | smaller_k(scale)


good = arm("good neurons")
LEMMA7 = Claim(
    id="daniely2020/lemma7",
    where="Lemma 7",
    kind="lemma",
    statement=(
        "With probability at least 1/(14√k) over the weights of a neuron, after the first step its "
        "weights on A are α·u/√n up to a constant, with α in [1/4, 1]; its weights outside A are "
        "at most of order 1/n, and its bias has changed by at most order 1/√n."
    ),
    study=lemma7,
    checks=(
        (good.good >= 1.0).by_paper(),
        (good.least_alpha >= 0.25).by_paper(),
        (good.greatest_alpha <= 1.0).by_paper().refuting(),
        (good.off7 <= 1.0).by_paper().refuting(),
        (good.bias7 <= 1.0).by_paper().refuting(),
    ),
    conditions=(
        Condition("k ≥ 7", lambda s: K, lambda s: 7),
        Condition(
            "k ≤ n^(1/4)/(2√2)", lambda s: K, lambda s: LEMMA7_SIZES[s][0] ** 0.25 / 8**0.5, "≤"
        ),
        Condition("n ≥ 9 log 7", lambda s: LEMMA7_SIZES[s][0], lambda s: 17.6),
    ),
    corrections=("daniely2020/lemma7-weights", "daniely2020/start"),
    seeds=ONE_RUN,
    min_seeds=1,
    control=Control(
        "bounds that are smaller by n^(−1/2)",
        lambda scale: {
            "good neurons": FirstStepGradients(
                LEMMA7_SIZES[scale], K, 0.5, only_good=True, precision=64
            )
        },
    ),
    plots=(
        over_bits("Probability of a good neuron", "probability times 14√k", "good neurons", "good"),
    ),
    **notes("daniely2020/lemma7"),
)


def lemma12(scale: Scale) -> dict[str, StudyArm]:
    """Return the second layer after the first step, over the number of bits."""
    return {"mixture": FirstStepGradients(SIZES[scale], K, precision=64)} | smaller_k(scale)


LEMMA12 = Claim(
    id="daniely2020/lemma12",
    where="Lemma 12",
    kind="lemma",
    statement="With η₁ = 1 and λ₁ = 1/2, every second-layer weight satisfies |u_i| ≤ k/√n after "
    "the first step.",
    study=lemma12,
    checks=((mixture.ratio12 <= 1.0).by_paper(),),
    corrections=("daniely2020/start",),
    seeds=ONE_RUN,
    min_seeds=1,
    control=Control(
        "a bound of k/n",
        lambda scale: {"mixture": FirstStepGradients(SIZES[scale], K, 0.5, precision=64)},
    ),
    plots=(
        over_bits(
            "Second layer after the first step", "maximum of |u_i| ÷ (k/√n)", "mixture", "ratio12"
        ),
    ),
    **notes("daniely2020/lemma12"),
)


ROWS = (TASK, LEMMA3_4, LEMMA5, LEMMA6, LEMMA7, LEMMA12)
