"""What does not come out as printed: the theorem's schedule to the letter, one step with the best classifier, memorised labels.

Reference: shi2022, Theorem 26, Table 1.
"""

from __future__ import annotations

import dataclasses

from unlazy.lab.arms import Arm
from unlazy.lab.claims import Claim
from unlazy.lab.rules import Check, Quantity, Scale
from unlazy.papers.shi2022.table1 import PARITY, curve_steps, parity_task, practical, table1, verbatim
from unlazy.probes.neurons import Alignment, Kinks
from unlazy.probes.performance import Performance


def theorem26(scale: Scale) -> dict[str, Arm]:
    """The data of Table 1 with the constants of Theorem 26, and the best readout on its features; beside them the practical schedule."""
    size, task = PARITY[scale], parity_task(PARITY[scale])
    probes = (Performance(size.test), Alignment(), Kinks())
    return {
        "Network (Theorem 26)": Arm(task, verbatim(size).network(curve_steps(size.T)), size.n, probes),
        "Two Step (Theorem 26, converged)": Arm(task, verbatim(size).frozen(2, (2,), readout="converged"), size.n, probes),
        "Network (practical)": table1(scale)["Network"],
    }


THEOREM26 = Claim(
    id="shi2022/theorem26-verbatim",
    where="Theorem 26 on the data of Table 1",
    kind="learner",
    statement=(
        "With the constants of Theorem 26 to the letter, two steps find the hidden direction and the network classifies "
        "perfectly. The first half comes out, the second does not: the network stays at the best linear classifier. Its "
        "features are not to blame, for a converged readout on them is perfect. T steps of size k²/(T·m^{1/3}) move a second- "
        "layer weight by at most k²/m^{1/3} times the size of a feature, which is about σ_b = 1/k², and a classifier of so "
        "few neurons needs weights of the order of Lemma 5's 32k; the theorem asks for m ≥ k¹²/ε^{3/2}, some 10⁸ neurons."
    ),
    study=theorem26,
    checks=(
        Check(Quantity("Network (Theorem 26)", "cosine", 2), lower=0.99),
        Check(Quantity("Two Step (Theorem 26, converged)", "test_accuracy"), lower=99.0),
        Check(Quantity("Network (Theorem 26)", "test_accuracy"), lower=99.9),
    ),
    deviations=("The population gradient is the sample's. The decay for t > 2 is only bounded in the theorem: none is used.",),
)


def one_step(scale: Scale) -> dict[str, Arm]:
    """Features after one step, with the readouts that 'the best classifier' may mean, and with a larger first step."""
    arms = table1(scale)
    larger = dataclasses.replace(practical(PARITY[scale]), first=1.0).frozen(1, readout="converged")
    return {
        "SGD readout": arms["One Step"],
        "converged readout": arms["One Step (converged)"],
        "converged readout, larger first step": dataclasses.replace(arms["One Step (converged)"], learner=larger),
    }


ONE_STEP = Claim(
    id="shi2022/one-step",
    where="Table 1, column One Step",
    kind="table",
    statement=(
        "The best classifier on the features after one step stays near chance. It does not: 52.2 is that of a readout trained by "
        "SGD, which cannot use features that differ from their means by 1e-8. A converged readout reaches the best linear "
        "classifier, and with a first step of size 1 instead of 1e-8, so that neurons bend within the data, it is perfect: one step "
        "finds the direction, and the published failure is one of scale."
    ),
    study=one_step,
    checks=(
        Check(Quantity("SGD readout", "test_accuracy"), upper=60.0),
        Check(Quantity("converged readout", "test_accuracy"), upper=60.0),
        Check(Quantity("converged readout, larger first step", "test_accuracy"), upper=60.0),
    ),
    deviations=(
        "Converged readouts are ridge regressions in double precision.",
        "The larger step is no published setting: it shows the cause.",
    ),
)


def memorising(scale: Scale) -> dict[str, Arm]:
    """Labels without input structure, with the published number of examples and with few."""
    size, everything = PARITY[scale], table1(scale)["Network w/o structure"]
    longer = dataclasses.replace(practical(size), w_rate=3.0).network(curve_steps(size.T))
    return {
        "all examples": everything,
        "250 examples": dataclasses.replace(everything, learner=longer, n=50 if scale == "smoke" else 250),
    }


MEMORISING = Claim(
    id="shi2022/memorising",
    where="Table 1, column Network w/o structure",
    kind="table",
    statement=(
        "Without input structure the network fits all training labels in T steps, at chance on fresh data. With all examples it does "
        "not: 600 steps are twelve passes over 50,000 labels that must be memorised one by one. With 250 examples, seen in every step, "
        "and a larger step size it fits them all. So the published 100 % needs a longer run or another step size, or is that of a small "
        "part of the sample."
    ),
    study=memorising,
    checks=(
        Check(Quantity("all examples", "train_accuracy"), lower=97.0),
        Check(Quantity("250 examples", "train_accuracy"), lower=97.0),
        Check(Quantity("250 examples", "test_accuracy"), lower=46.0, upper=54.0),
    ),
    deviations=(
        "The schedule of Table 1. With 250 examples: step size 3 of the first layer instead of 0.3, which is no published setting.",
    ),
)

SCHEDULES = (THEOREM26, ONE_STEP, MEMORISING)
