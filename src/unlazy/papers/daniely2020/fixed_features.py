"""Claims on fixed features: the number of features that a parity needs.

Reference: daniely2020, Theorem 1.
"""

from __future__ import annotations

import math

from unlazy.lab.arms import StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Scale, arm, arms
from unlazy.papers.daniely2020.embeddings import KINDS, LearnedEmbedding, MinimalEmbedding, Weights

#: Numbers k of bits for features that express the parity; without the last for those that learn it.
BITS: dict[Scale, tuple[int, ...]] = {
    "smoke": (3, 4, 5, 6),
    "laptop": (4, 5, 6, 7, 8, 9),
    "paper": (4, 5, 6, 7, 8, 9, 10),
}


def theorem1(scale: Scale, weights: Weights = "blind") -> dict[str, StudyArm]:
    """Return random neurons, cosines, neuron gradients and powers."""
    bits = BITS[scale]
    express: dict[str, StudyArm] = {
        kind: MinimalEmbedding(kind, bits, weights, precision=64) for kind in KINDS
    }
    return express | {
        f"{kind}, learned": LearnedEmbedding(kind, bits[:-1], weights, precision=64)
        for kind in KINDS
    }


THEOREM1 = Claim(
    id="daniely2020/theorem1",
    where="Theorem 1, for random embeddings",
    kind="bound",
    statement=(
        "Let an embedding into N dimensions, possibly random, be such that every parity of k bits "
        "is, with probability at least 1/N, the sign of a linear function of it on all inputs. "
        "Then N = 2^Ω(k)."
    ),
    study=theorem1,
    checks=tuple(
        check
        for kind in KINDS
        for check in (
            (arm(kind).over_forster >= 1.0).by_paper(),
            arm(kind).rise >= 0.5,
            *(
                check
                for arm in arms(kind, f"{kind}, learned")
                for check in (
                    arm.base >= math.sqrt(2),
                    arm.degree >= 2.0,
                )
            ),
        )
    ),
    seeds={"smoke": 1, "laptop": 10, "paper": 10},
    control=Control(
        "weights are drawn along the sum of the bits, as after one gradient step",
        lambda scale: theorem1(scale, "along the sum"),
    ),
    plots=(
        Plot(
            title="Features that separate a parity",
            x="bits k",
            y="minimum number of features",
            series=(
                *(PlotLine(kind, "least", kind) for kind in KINDS),
                PlotLine("relu", "forster", "Forster's bound", theory=True),
            ),
            log_y=True,
        ),
        Plot(
            title="Features by which ridge regression learns a parity",
            x="bits k",
            y="minimum number of features",
            series=(
                *(PlotLine(f"{kind}, learned", "least", kind) for kind in KINDS),
                PlotLine("relu, learned", "forster", "Forster's bound", theory=True),
            ),
            log_y=True,
            caption="8·2^k uniform examples; error at most 5 % on the cube; tuned ridge.",
        ),
    ),
    **notes("daniely2020/theorem1"),
)
