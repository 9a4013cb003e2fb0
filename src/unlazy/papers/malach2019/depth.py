"""Claims on depth separation (Section 6)."""

from __future__ import annotations

from unlazy.lab.arms import StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.conditions import Condition
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Scale, arm, arms
from unlazy.papers.malach2019.circuits import ONE_RUN
from unlazy.papers.malach2019.shallow import NetworkRank, SignRank, deep_recovery, errors_by_width
from unlazy.papers.malach2019.threshold import ThresholdDegree

HALF: dict[Scale, int] = {"smoke": 5, "laptop": 8, "paper": 10}

networks = arm("networks")
LEMMA23 = Claim(
    id="malach2019/lemma23",
    where="Lemma 23, and the rounding in the proof of Theorem 12",
    kind="lemma",
    statement=(
        "A two-layer network of k neurons on n′ + n′ inputs whose first layer has integer weights "
        "and biases in [−B, B] has sign-rank at most 4Bkn′. For real weights in [−B, B], rounding "
        "the first layer up to multiples of 1/N, N = ⌈2Bk(2n′ + 1)/γ⌉, changes the output by at "
        "most γ/2."
    ),
    study=lambda scale: {
        "networks": NetworkRank(HALF[scale], networks=8 if scale == "paper" else 6)
    },
    checks=(
        (networks.rank_ratio <= 1.0).by_paper(),
        (networks.rounding_ratio <= 1.0).by_paper(),
    ),
    conditions=(
        Condition(
            "4Bkn′ for B = k = 1 is below the full rank 2^{n′}",
            lambda s: 4 * HALF[s],
            lambda s: 2 ** HALF[s],
            "≤",
        ),
    ),
    seeds=ONE_RUN,
    min_seeds=1,
    control=Control(
        "weights are not integers, and N is a quarter of the stated value",
        lambda scale: {"networks": NetworkRank(HALF[scale], networks=6, coarse=True)},
    ),
    **notes("malach2019/lemma23"),
)

DEGREES: dict[Scale, tuple[int, ...]] = {
    "smoke": (1, 2),
    "laptop": (1, 2, 3),
    "paper": (1, 2, 3),
}

sign_rank, degree = arms("sign-rank", "threshold degree")
THEOREM12 = Claim(
    id="malach2019/theorem12",
    where="Theorems 11 and 12, Corollary 13(2)",
    kind="bound",
    statement=(
        "The matrix of f_m(x, y) = ⋀_{i≤m} ⋁_{j≤m²} (x_ij ∧ y_ij) has sign-rank 2^Ω(m). So a "
        "two-layer ReLU network with all weights in [−B, B] and g(x, y)·f_m(x, y) ≥ γ for all x, "
        "y has k ≥ 2^Ω(m) neurons. Hence there is a distribution that Algorithm 1 learns and that "
        "such networks separate with a constant margin only if their size is 2^Ω(n)."
    ),
    study=lambda scale: {
        "sign-rank": SignRank(),
        "threshold degree": ThresholdDegree(DEGREES[scale]),
    },
    checks=(sign_rank.growth >= 1.0, degree.degree_gap <= 0.0),
    asymptotic=(
        "the constants in 2^Ω(m) and 2^Ω(n) are open, so that no finite m contradicts them; with "
        "the sign-rank bounds that can be computed, the proof requires less than one neuron"
    ),
    seeds=ONE_RUN,
    min_seeds=1,
    control=Control(
        "the AND of all inputs, whose sign-rank is 2 and whose threshold degree is 1",
        lambda scale: {
            "sign-rank": SignRank(conjunction=True),
            "threshold degree": ThresholdDegree(DEGREES[scale], conjunction=True),
        },
    ),
    corrections=("malach2019/corollary13-rate",),
    **notes("malach2019/theorem12"),
)

WIDTHS: dict[Scale, tuple[int, ...]] = {
    "smoke": (2, 4),
    "laptop": (2, 4, 8, 16, 32, 64),
    "paper": (2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128),
}


TREES: dict[Scale, tuple[int, ...]] = {"smoke": (1, 2), "laptop": (1, 2, 4), "paper": (1, 2, 4, 8)}
SAMPLED: dict[Scale, tuple[int, ...]] = {"smoke": (1,), "laptop": (1, 2), "paper": (1, 2, 4)}


def trees(scale: Scale, gates: tuple[str, str] = ("AND", "OR")) -> dict[str, StudyArm]:
    """Return Algorithm 1 on f_m, on the exact distribution and on samples."""
    return {
        "tree, population": deep_recovery(TREES[scale], sample=False, gates=gates),
        "tree, samples": deep_recovery(SAMPLED[scale], sample=True, gates=gates),
    }


def depth_separation(scale: Scale) -> dict[str, StudyArm]:
    """Return the trees, and two-layer networks of every width."""
    m, r = (1, 2) if scale == "smoke" else (2, 4)
    repeats, training = (
        (1, 100) if scale == "smoke" else (1, 3_000) if scale == "laptop" else (5, 10_000)
    )
    return trees(scale) | {
        "two layers": errors_by_width(m, r, WIDTHS[scale], repeats=repeats, steps=training)
    }


DEPTH_SEPARATION = Claim(
    id="malach2019/depth-separation",
    where="Corollary 13(1), for f_m",
    kind="bound",
    statement=(
        "A tree of AND and OR gates computes f_m. Under its generative distribution, Algorithm 1, "
        "with its regularizer as printed, returns with high probability a function that separates "
        "it with margin 1, with polynomial run-time and sample size."
    ),
    study=depth_separation,
    checks=tuple(
        check
        for arm in arms("tree, population", "tree, samples")
        for check in (
            (arm.separated >= 1.0).by_paper(),
            (arm.worst_recovered >= 100.0).by_paper(),
        )
    ),
    plots=(
        Plot(
            "Error of two-layer networks on f_2",
            "width",
            "error (%)",
            (PlotLine("two layers", "error", "Adam, mean over initializations"),),
            log_x=True,
            caption="Error on all inputs, labels weighted equally. A width at which some "
            "initialization reaches zero error bounds the minimum width from above.",
        ),
    ),
    control=Control(
        "XNOR and XOR instead of AND and OR: no gate is correlated with the label",
        lambda s: trees(s, ("XNOR", "XOR")),
    ),
    # Four equal values outside of a bound need seven seeds (Holm).
    seeds={"smoke": 1, "laptop": 7, "paper": 7},
    **notes("malach2019/depth-separation"),
)
