"""The claim of glasgow2023 on what no rotation-invariant learner can do."""

from __future__ import annotations

import math

from unlazy.lab.arms import StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Condition, Control, Scale, arms
from unlazy.papers.glasgow2023.below import below_the_bound
from unlazy.papers.glasgow2023.gradients import rotation_invariant_bound
from unlazy.papers.glasgow2023.invariance import PairSearch, ProofChain, RotationFloor
from unlazy.papers.glasgow2023.sizes import SIZES

#: d of the cube that is counted, and numbers of examples: the first is ⌊d/log² d⌋.
COUNTED: dict[Scale, tuple[int, tuple[int, ...]]] = {
    "smoke": (16, (2, 4)),
    "laptop": (18, (2, 3, 4, 6, 8, 12)),
    "paper": (22, (2, 4, 8, 12, 16)),
}
CHAIN = (1200, 2048, 10_000, 100_000)


def lowerbound(scale: Scale) -> dict[str, StudyArm]:
    """Learners with too few examples, all of them counted in few dimensions, and the proof's
    chain.
    """
    size, length = SIZES[scale], 20 if scale == "smoke" else 100
    return {
        "NTK": below_the_bound("ntk", size.below, test=size.test, length=length),
        "quadratic kernel": below_the_bound("quadratic", size.below, test=size.test, length=length),
        "SGD": below_the_bound("sgd", size.below, test=size.test, length=length),
        "every learner": RotationFloor(*COUNTED[scale]),
        "proof": ProofChain(CHAIN),
    }


def _seeing(scale: Scale) -> dict[str, StudyArm]:
    """Learners that see coordinates, eight times the examples, and more than the proof allows."""
    search, (d, samples) = PairSearch(SIZES[scale].below), COUNTED[scale]
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
    label_free_reason="it bounds errors from below, and from such labels nothing is learned at all",
    where="Proposition F.1",
    kind="bound",
    statement=(
        "A learner whose predictions do not change when all inputs are rotated (as long as they "
        "stay on the cube), and which has n < d/log²(d) examples with labels −x_i·x_j of a pair "
        "of coordinates drawn at random, errs with probability at least 0.03."
    ),
    study=lowerbound,
    checks=(
        *((arm.error >= 0.03).by_paper() for arm in (ntk, quadratic, sgd)),
        (every.floor[COUNTED["laptop"][1][0]] >= 0.03).by_paper(),
        *((proof.bound[d] >= 0.03).by_paper().exactly() for d in (1200, 100_000)),
        *((proof.reach[d] >= 1.0).exactly() for d in (1200, 100_000)),
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
            lambda s: COUNTED[s][1][0],
            lambda s: COUNTED[s][0] / math.log(COUNTED[s][0]) ** 2,
            "≤",
        ),
    ),
    control=Control(
        "learners that look for the pair of coordinates which explains all examples; d times the "
        "examples; n = d/log d in the proof",
        _seeing,
    ),
    plots=(
        Plot(
            "The least error of rotation-invariant learners",
            "examples n",
            "error",
            (PlotLine("every learner", "floor", "counted over the cube"),),
            caption="Each class of points that look alike from the examples must get one label.",
        ),
    ),
    **notes("glasgow2023/lowerbound"),
)
