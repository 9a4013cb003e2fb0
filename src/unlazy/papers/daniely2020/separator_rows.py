"""Claims on the features ψ_r after the first step, and on separators made of them.

Reference: daniely2020, Lemmas 8 to 10.
"""

from __future__ import annotations

import math

from unlazy.lab.arms import StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.conditions import Condition
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Scale, arm
from unlazy.papers.daniely2020.neuron_features import FeatureFraction, SeparatorNorms
from unlazy.papers.daniely2020.rows import ONE_RUN, K
from unlazy.papers.daniely2020.separators import ReadoutFeatures


def _counts(scale: Scale) -> tuple[int, ...]:
    return (3, 5) if scale == "smoke" else tuple(range(3, 32, 2))


def lemma8(scale: Scale, *, ceiling: bool = False) -> dict[str, StudyArm]:
    """Return features over k, for several ε."""
    study = ReadoutFeatures(
        _counts(scale), ceiling=ceiling, fractions=(0.01, 0.1, 1.0), precision=64
    )
    return {"ψ without ceiling": study}


def identity(scale: Scale, *, swapped: bool = False) -> dict[str, StudyArm]:
    """Return separators for ψ_r, not truncated and truncated at 6, over k."""
    counts = _counts(scale)
    return {
        "ψ without ceiling": ReadoutFeatures(counts, swapped=swapped, precision=64),
        "ψ with ceiling": ReadoutFeatures(counts, ceiling=True, swapped=swapped, precision=64),
    }


unbounded = arm("ψ without ceiling")
LEMMA8 = Claim(
    id="daniely2020/lemma8",
    where="Lemma 8",
    kind="lemma",
    statement=(
        "For b = 1/(8k), α in [1/4, 1], r in {−k, −k + 2, …, k}, ε ≤ k·|r| and u uniform in [−n/k, "
        "n/k]: with probability at least ε/(8k²), |(|r|/b)·σ(α·u·z/n + b) − σ(−sign(r)·z + |r|)| "
        "≤ ε for all z in [−k, k]."
    ),
    study=lemma8,
    checks=(
        (unbounded.wanted >= 1.0 - 1e-9).by_paper().refuting(),
        (unbounded.error <= 1.0 + 1e-9).by_paper(),
    ),
    corrections=("daniely2020/lemma8-ceiling",),
    seeds=ONE_RUN,
    min_seeds=1,
    control=Control(
        "the target function is truncated at 6, as printed",
        lambda scale: lemma8(scale, ceiling=True),
    ),
    **notes("daniely2020/lemma8"),
)

bounded = arm("ψ with ceiling")
LEMMA10_IDENTITY = Claim(
    id="daniely2020/lemma10-identity",
    where="Proof of Lemma 10, the identity Σ_r c_r ψ_r = f",
    kind="lemma",
    statement=(
        "With v_r = 1 for |r| = k, 2.5 for |r| = 1 and 2 otherwise, Σ_r (−1)^((k−r)/2)·v_r·ψ_r(x) "
        "= f_A(x) for all x, where ψ_r(x) = σ(−sign(r)·√n·Σ_{j∈A} x_j + |r|): a separator with "
        "margin 1."
    ),
    study=identity,
    checks=(
        (unbounded.margin >= 1.0 - 1e-9).by_paper(),
        bounded.margin >= 1.0 - 1e-8,
    ),
    corrections=("daniely2020/lemma10-coefficients",),
    seeds=ONE_RUN,
    min_seeds=1,
    control=Control(
        "the coefficients for the two kinds of ψ_r are exchanged",
        lambda scale: identity(scale, swapped=True),
    ),
    plots=(
        Plot(
            title="Margin of the explicit separator",
            x="bits k",
            y="minimum margin",
            series=(
                PlotLine("ψ without ceiling", "margin", "corrected coefficients"),
                PlotLine("ψ with ceiling", "margin", "ψ truncated at 6, own coefficients"),
                PlotLine("ψ without ceiling", "printed_margin", "printed coefficients"),
            ),
        ),
    ),
    **notes("daniely2020/lemma10-identity"),
)

#: Numbers n of bits; the last meets k ≤ ε^(1/4)·n^(1/8) for k = 7, ε = 1/(10k).
FEATURE_BITS: dict[Scale, tuple[int, ...]] = {
    "smoke": (155_001,),
    "laptop": (155_001, 28_300_000_001),
    "paper": (10_001, 155_001, 10_000_001, 28_300_000_001),
}


def lemma9(scale: Scale, tight: float = 0.0) -> dict[str, StudyArm]:
    """Return all neurons whose weights in A sum to zero."""
    factors = (1.0, 10.0, 70.0, 700.0)
    return {"neurons": FeatureFraction(FEATURE_BITS[scale], K, tight, factors, precision=64)}


neurons = arm("neurons")
LEMMA9 = Claim(
    id="daniely2020/lemma9",
    where="Lemma 9",
    kind="lemma",
    statement=(
        "For every r in {−k, −k + 2, …, k} and ε ≤ k·|r|, with probability at least ε/(112·k^2.5) "
        "over its initialization, a neuron satisfies |(|r|/b)·σ(⟨w, x⟩ + b) − ψ_r(x)| ≤ 2ε for all "
        "x after the first step, where ψ_r(x) = σ(−sign(r)·√n·Σ_{j∈A} x_j + |r|)."
    ),
    study=lemma9,
    checks=((neurons.wanted >= 1.0).by_paper(),),
    conditions=(
        Condition("k ≥ 7", lambda s: K, lambda s: 7),
        Condition(
            "k ≤ c·ε^(1/4)·n^(1/8), ε = 1/(10k)",
            lambda s: K,
            lambda s: (1 / (10 * K)) ** 0.25 * FEATURE_BITS[s][-1] ** 0.125,
            "≤",
            constant="c",
        ),
        Condition("n ≥ 9 log 7", lambda s: FEATURE_BITS[s][-1], lambda s: 17.6),
    ),
    corrections=("daniely2020/lemma8-ceiling",),
    seeds=ONE_RUN,
    min_seeds=1,
    control=Control("within 2ε/√n instead of 2ε", lambda scale: lemma9(scale, 0.5)),
    **notes("daniely2020/lemma9"),
)

#: δ of Lemma 10.
DELTA = 0.1
#: For each k the number n of bits, at least k¹⁰, and numbers q of pairs, at laptop and paper scale
#: at least k⁷·log((k + 1)/δ).
NORM_SIZES: dict[Scale, dict[int, tuple[int, tuple[int, ...]]]] = {
    "smoke": {7: (300_000_001, (200_000, 400_000)), 9: (3_500_000_001, (400_000,))},
    "laptop": {
        7: (300_000_001, (3_620_000, 7_240_000, 14_480_000)),
        9: (3_500_000_001, (22_100_000,)),
    },
    "paper": {
        7: (300_000_001, (3_620_000, 7_240_000, 14_480_000, 57_920_000)),
        9: (3_500_000_001, (22_100_000, 44_200_000)),
    },
}


def lemma10(scale: Scale, structured: float = 0.5) -> dict[str, StudyArm]:
    """Return separators for k = 7 and 9, over the number q of pairs."""
    return {
        f"k = {k}": SeparatorNorms(sizes, n, k, structured, precision=64)
        for k, (n, sizes) in NORM_SIZES[scale].items()
    }


seven, nine = arm("k = 7"), arm("k = 9")
LEMMA10 = Claim(
    id="daniely2020/lemma10",
    where="Lemma 10",
    kind="lemma",
    statement=(
        "With probability at least 1 − δ over the initialization there is a u* such that g*(x) = "
        "Σ_i u*_i·σ(⟨w_i, x⟩ + b_i) after the first step satisfies f_A(x)·g*(x) ≥ 1 for all x, "
        "‖u*‖₂ ≤ B·k⁵/√q, ‖u*‖₀ = B'·q/k^2.5, and σ(⟨w_i, x⟩ + b_i) ≤ 1 if u*_i ≠ 0; B and B' do "
        "not depend on k, n and q."
    ),
    study=lemma10,
    checks=(
        *((each.failure <= DELTA).by_paper().exactly() for each in (seven, nine)),
        *((each.margin >= 1.0).by_paper() for each in (seven, nine)),
        *((each.height <= 1.0).by_paper() for each in (seven, nine)),
        seven.norm_slope.between(-0.6, -0.4),
        (nine.norm - seven.norm <= 0.0).exactly(),
    ),
    conditions=(
        Condition(
            "k ≤ c·n^(1/10)", lambda s: K, lambda s: NORM_SIZES[s][K][0] ** 0.1, "≤", constant="c"
        ),
        Condition(
            "q ≥ C·k⁷·log((k + 1)/δ), δ = 0.1",
            lambda s: NORM_SIZES[s][K][1][0],
            lambda s: K**7 * math.log((K + 1) / DELTA),
            constant="C",
        ),
        Condition("n ≥ 9 log 7", lambda s: NORM_SIZES[s][K][0], lambda s: 17.6),
    ),
    control=Control("the all-equal part is absent", lambda scale: lemma10(scale, 0.0)),
    plots=(
        Plot(
            title="Norm of the separator of Lemma 10",
            x="pairs of neurons q",
            y="‖u*‖₂ ÷ (k⁵/√q)",
            series=(
                PlotLine("k = 7", "norm", "as in the proof"),
                PlotLine("k = 7", "norm_all", "all neurons near a ψ_r"),
            ),
            log_x=True,
            log_y=True,
        ),
    ),
    **notes("daniely2020/lemma10"),
)

SEPARATORS = (LEMMA8, LEMMA9, LEMMA10, LEMMA10_IDENTITY)
