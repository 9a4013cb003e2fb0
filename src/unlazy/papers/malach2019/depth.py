"""Depth separation: Section 6."""

from __future__ import annotations

from unlazy.lab.arms import StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.rules import Check, Quantity, Scale
from unlazy.papers.malach2019.shallow import SignRank, deep_recovery, least_widths

#: Widths that are tried for each ⋀_m ⋁_r. All begin at 2, below the bound of the check, so that it can fail.
WIDTHS: dict[Scale, dict[tuple[int, int], tuple[int, ...]]] = {
    "smoke": {(1, 1): (2, 4), (1, 2): (2,)},
    "laptop": {(1, 1): (2, 4), (1, 2): (2, 4, 8), (2, 2): (2, 4, 8), (2, 4): (2, 4, 8, 16, 32, 64)},
    "paper": {(m, r): (2, 4, 8, 16, 32, 64, 128) for m, r in ((1, 1), (1, 2), (2, 2), (2, 3), (2, 4))},
}


def depth_separation(scale: Scale) -> dict[str, StudyArm]:
    """Sign-rank on both sides, the width a shallow network takes, and the deep learner."""
    small = scale == "smoke"
    starts, training = (2, 300) if small else (3, 3_000) if scale == "laptop" else (10, 20_000)
    return {
        "sign-rank": SignRank(6 if small else 8, terms=2 if small else 4),
        "two layers": least_widths(WIDTHS[scale], starts=starts, steps=training),
        "tree": deep_recovery((1, 2) if small else (1, 2, 4), 16_384),
    }


DEPTH_SEPARATION = Claim(
    id="malach2019/depth-separation",
    where="Theorems 11 and 12, Lemma 23, Corollary 13",
    kind="bound",
    statement=(
        "f_m = ⋀ ⋁ (x ∧ y) is a tree circuit that layerwise descent learns exactly, while two-layer networks need widths that grow: their "
        "sign-rank is at most 4Bkn′. At sizes that can be listed the lower bound on the width is below one, so that only growth is seen."
    ),
    study=depth_separation,
    checks=(
        Check(Quantity("tree", "error"), upper=0.0),
        Check(Quantity("tree", "recovered"), lower=100.0),
        Check(Quantity("tree", "error_sample"), upper=0.0),
        Check(Quantity("sign-rank", "rank_ratio"), upper=1.0),
        Check(Quantity("sign-rank", "inner_product"), lower=1 - 1e-9, upper=1 + 1e-9),
        Check(Quantity("sign-rank", "razborov_sherstov"), lower=1.0),
        Check(Quantity("two layers", "width"), lower=4.0),
    ),
    deviations=(
        "The constant in 2^Ω(m) is not known: Forster's bound and the weighted bound of Razborov and Sherstov are evaluated instead.",
        "Between f_1 (2 inputs) and f_2 (16 inputs) lie ⋀_m ⋁_r with smaller m, r; f_3 has 2^54 inputs and cannot be listed.",
        "Widths are those at which training by Adam found an exact network, so they bound the least width from above.",
    ),
    plots=(
        Plot(
            "Width of an exact two-layer network",
            "inputs",
            "neurons",
            (
                PlotLine("two layers", "width", "two layers"),
                PlotLine("two layers", "tree", "tree of gates", theory=True),
            ),
            log_x=True,
            caption="Functions ⋀_m ⋁_r (x ∧ y) from f_1 = (1, 1) to f_2 = (2, 4), right on all inputs.",
        ),
    ),
)
