"""Claims on fixed features: the number of features that a parity needs.

Reference: daniely2020, Theorem 1.
"""

from __future__ import annotations

import math

from unlazy.lab.arms import StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Check, Control, Scale, arm
from unlazy.papers.daniely2020.embeddings import (
    KINDS,
    Kind,
    LearnedEmbedding,
    MinimalEmbedding,
    Weights,
)

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


def _growth(kind: Kind) -> tuple[Check, ...]:
    """Return the checks of one kind of features: Forster's bound, and exponential growth.

    Gradients of neurons along the sum (the control) are many, but their number does not grow
    exponentially: there two checks hold, too.
    """
    above, base = arm(kind).over_forster >= 1.0, arm(kind).base >= math.sqrt(2)
    if kind == "tangent":
        above, base = above.refuting(), base.refuting()
    learned = arm(f"{kind}, learned")
    return (
        above,
        arm(kind).rise >= 0.5,
        base,
        arm(kind).degree >= 2.0,
        learned.base >= math.sqrt(2),
        learned.degree >= 2.0,
    )


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
    checks=tuple(check for kind in KINDS for check in _growth(kind)),
    asymptotic="N = 2^Ω(k) leaves the constant in the exponent open",
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
