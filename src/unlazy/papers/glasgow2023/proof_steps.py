"""Claims of glasgow2023 on steps of the proofs that a computer can check exactly."""

from __future__ import annotations

from unlazy.lab.claims import Claim
from unlazy.lab.conditions import Condition
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, arms
from unlazy.papers.glasgow2023.proof_computations import (
    HelperRecursion,
    LossDerivatives,
    SmallBalls,
    StrongNeurons,
)
from unlazy.papers.glasgow2023.sizes import ONE_SEED

sums, derivatives, recursion, neurons = arms("sums", "derivatives", "recursion", "neurons")
#: C of Lemma B.6; the paper requires it to be large enough.
BALL = 2.0
SMALL_BALL = Claim(
    id="glasgow2023/small-ball",
    where="Lemma B.6, Claims B.7, B.9",
    kind="lemma",
    statement=(
        "For C large enough and u of ℓ coordinates with ‖u‖_∞ ≤ 1, P(|⟨ξ, u⟩| ≤ C) ≥ 1/(C√ℓ). "
        "For w = v + Δ as in Lemma B.3, with the coordinates S' of the smallest |v_i| last: for "
        "t ≥ d − |S'|, P(|Σ_{i>t} ξ_i·w_i| ≤ ‖v‖/(2√d)) ≥ 1/√d; and if the sum of the first τ "
        "terms is at most |w_τ| and that of the others at most ‖v‖/(2√d), then |⟨ξ, w⟩| ≤ ‖v‖/√d."
    ),
    study=lambda s: {"sums": SmallBalls(constant=BALL, precision=64)},
    checks=(
        (sums.equal >= 1.0).by_paper().exactly(),
        (sums.random >= 1.0).by_paper(),
        (sums.suffix >= 1.0).by_paper().refuting(),
        (sums.escaped <= 0.0).by_paper().refuting(),
    ),
    conditions=(
        Condition("C of Lemma B.6, at least C₀", lambda s: BALL, lambda s: 1.0, constant="C₀"),
        Condition("v is well-spread for c = 4", sums.well_spread, lambda s: 1.0),
    ),
    control=Control(
        "u and w ten times as long",
        lambda s: {"sums": SmallBalls(constant=BALL, stretch=10.0, precision=64)},
    ),
    **notes("glasgow2023/small-ball"),
)

LOSS_DERIVATIVES = Claim(
    id="glasgow2023/loss-derivatives",
    where="Lemma C.5",
    kind="lemma",
    statement=(
        "E(ℓ'_ρ(x) − ℓ'_0(x))² ≤ 4(E_ρ‖a·w‖)²; and for every x of the cube and every coordinate "
        "i, the square of the change of ℓ'_ρ(x) if x_i is negated is at most 16(E_ρ|a·w_i|)²."
    ),
    study=lambda s: {"derivatives": LossDerivatives(precision=64)},
    checks=(
        (derivatives.mean_square <= 1.0).by_paper(),
        (derivatives.flipped_square <= 1.0).by_paper(),
    ),
    control=Control(
        "loss derivatives 20 times as large",
        lambda s: {"derivatives": LossDerivatives(gain=20.0, precision=64)},
    ),
    corrections=("glasgow2023/lemma-c5",),
    **notes("glasgow2023/loss-derivatives"),
)

HELPER = Claim(
    id="glasgow2023/helper-recursion",
    where="Lemma C.6",
    kind="lemma",
    statement=(
        "If ‖u‖² ≤ Q² + θB², −⟨u, G⟩ ≤ x(Q² + θB²) with x ≥ √θ, ‖Ĝ − G‖ ≤ θB, ‖G‖ ≤ O(B) and η ≤ "
        "θ² = o(1), then ‖u − ηĜ‖² ≤ (Q² + θB²)(1 + 5ηx)."
    ),
    study=lambda s: {"recursion": HelperRecursion(precision=64)},
    checks=((recursion.growth <= 1.0).by_paper().exactly(),),
    conditions=(
        Condition(
            "K of ‖G‖ ≤ K·B, largest for which the conclusion holds at θ ≤ 0.2",
            recursion.largest_constant,
            lambda s: 1.0,
            constant="K",
        ),
    ),
    control=Control(
        "−⟨u, G⟩ three times as large",
        lambda s: {"recursion": HelperRecursion(boost=3.0, precision=64)},
    ),
    seeds=ONE_SEED,
    min_seeds=1,
    **notes("glasgow2023/helper-recursion"),
)

STRONG = Claim(
    id="glasgow2023/strong-neurons",
    where="Claim C.18",
    kind="lemma",
    statement=(
        "For a weakly controlled and strong neuron, P(|⟨w, ξ⟩| ≤ √2‖w_sig‖) ≥ "
        "‖w_sig‖/(5‖w_perp + w_sig‖)."
    ),
    study=lambda s: {"neurons": StrongNeurons(precision=64)},
    checks=(
        (neurons.dominant >= 1.0).by_paper(),
        (neurons.spread_out >= 1.0).by_paper(),
    ),
    seeds={"smoke": 1, "laptop": 6, "paper": 6},
    control=Control(
        "w_perp with a single large coordinate, longer than √2·w_sig",
        lambda s: {"neurons": StrongNeurons(sparse=True, precision=64)},
    ),
    **notes("glasgow2023/strong-neurons"),
)
