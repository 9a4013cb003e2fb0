"""Claim of glasgow2023 on the lower bound for rotation-invariant learners."""

from __future__ import annotations

import math

from unlazy.lab.arms import StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.conditions import Condition
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Scale, arms
from unlazy.papers.glasgow2023.below import below_the_bound
from unlazy.papers.glasgow2023.gradients import rotation_invariant_bound
from unlazy.papers.glasgow2023.invariance import PairSearch, ProofChain, RotationFloor
from unlazy.papers.glasgow2023.sizes import SIZES

#: Dimension d of the enumerated cube, and numbers of examples; the first is ⌊d/log² d⌋.
ENUMERATED: dict[Scale, tuple[int, tuple[int, ...]]] = {
    "smoke": (16, (2, 4)),
    "laptop": (18, (2, 3, 4, 6, 8, 12)),
    "paper": (22, (2, 4, 8, 12, 16)),
}
CHAIN = (1200, 2048, 10_000, 100_000)


def lowerbound(scale: Scale) -> dict[str, StudyArm]:
    """Return learners with too few examples, the bound for all learners, and the proof's chain."""
    size, length = SIZES[scale], 20 if scale == "smoke" else 100
    return {
        "NTK": below_the_bound("ntk", size.below, test=size.test, length=length),
        "quadratic kernel": below_the_bound("quadratic", size.below, test=size.test, length=length),
        "SGD": below_the_bound("sgd", size.below, test=size.test, length=length),
        "every learner": RotationFloor(*ENUMERATED[scale]),
        "proof": ProofChain(CHAIN),
    }


def _control(scale: Scale) -> dict[str, StudyArm]:
    """Return the control: learners that use coordinates, and more examples than allowed."""
    search, (d, samples) = PairSearch(SIZES[scale].below), ENUMERATED[scale]
    floor = RotationFloor(d, samples[:1], copies=d)
    return {
        "NTK": search,
        "quadratic kernel": search,
        "SGD": search,
        "every learner": floor,
        "proof": ProofChain(CHAIN, power=1),
    }


every, ntk, quadratic, sgd, proof = arms("every learner", "NTK", "quadratic kernel", "SGD", "proof")
LOWERBOUND = Claim(
    id="glasgow2023/lowerbound",
    label_free_reason="it is a lower bound on errors, and shuffled labels only increase errors",
    where="Proposition F.1",
    kind="bound",
    statement=(
        "Consider a learner whose predictions do not change if all inputs are rotated (and "
        "remain on the cube). With n < d/log²(d) examples, labeled by −x_i·x_j for a random pair "
        "of coordinates, its error probability is at least 0.03."
    ),
    study=lowerbound,
    checks=(
        *((arm.error >= 0.03).by_paper() for arm in (ntk, quadratic, sgd)),
        (every.floor[ENUMERATED["laptop"][1][0]] >= 0.03).by_paper(),
        *((proof.bound[d] >= 0.03).by_paper().exactly() for d in (1200, 100_000)),
        *((proof.reach[d] >= 1.0).exactly() for d in (1200, 100_000)),
        proof.first[CHAIN[0]].between(1009, 1009).exactly(),
    ),
    conditions=(
        Condition(
            "n < d/log² d (the learners)",
            lambda s: max(
                rotation_invariant_bound(d).samples / (d / math.log(d) ** 2) for d in SIZES[s].below
            ),
            lambda s: 1.0,
            "≤",
        ),
        Condition(
            "n < d/log² d (every learner)",
            lambda s: ENUMERATED[s][1][0],
            lambda s: ENUMERATED[s][0] / math.log(ENUMERATED[s][0]) ** 2,
            "≤",
        ),
    ),
    control=Control(
        "learners that search for the pair of coordinates that explains all examples; d times as "
        "many examples; n = d/log d in the proof",
        _control,
    ),
    plots=(
        Plot(
            "Minimum error of rotation-invariant learners",
            "examples n",
            "error",
            (PlotLine("every learner", "floor", "enumerated over the cube"),),
            caption="All points with the same inner products with the examples get the same label.",
        ),
    ),
    **notes("glasgow2023/lowerbound"),
)
