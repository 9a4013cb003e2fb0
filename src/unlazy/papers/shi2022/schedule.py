"""Claims on Theorem 26 with its own schedule, One Step with the best classifier, and memorization.

Reference: shi2022, Theorem 26, Table 1.
"""

from __future__ import annotations

import dataclasses
import math

from unlazy.lab.arms import Arm
from unlazy.lab.claims import Claim
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Condition, Control, Scale, arms, shuffled
from unlazy.papers.shi2022.table1 import (
    PARITY,
    Size,
    curve_steps,
    parity_task,
    practical,
    table1,
    verbatim,
)
from unlazy.probes.neurons import Alignment, Kinks
from unlazy.probes.performance import Performance


def theorem26(scale: Scale) -> dict[str, Arm]:
    """Return the data of Table 1 with the constants of Theorem 26, the best readout on its
    features, and the practical schedule.
    """
    size, task = PARITY[scale], parity_task(PARITY[scale])
    probes = (Performance(size.test), Alignment(), Kinks())
    return {
        "Network (Theorem 26)": Arm(
            task, verbatim(size).network(curve_steps(size.T)), size.n, probes
        ),
        "Two Step (Theorem 26, converged)": Arm(
            task, verbatim(size).frozen(2, (2,), readout="converged"), size.n, probes
        ),
        "Network (practical)": table1(scale)["Network"],
    }


def _log_squared(size: Size, delta: float = 0.05) -> float:
    """Return log²(D/(δγ))."""
    return math.log(size.D / (delta * float(parity_task(size).moments.gamma))) ** 2


net26, two_step26 = arms("Network (Theorem 26)", "Two Step (Theorem 26, converged)")
THEOREM26 = Claim(
    id="shi2022/theorem26-verbatim",
    where="Theorem 26 on the data of Table 1",
    kind="learner",
    statement=(
        "With the constants of Theorem 26 and T = m^(4/3), for any ε in (0, 1) there is a step at "
        "which the hinge loss, and therefore the error, is at most ε, if po = Ω(k²/D), k = "
        "Ω(log²(D/(δγ))) and max{Ω(k¹²/ε^(3/2)), D} ≤ m ≤ poly(D)."
    ),
    study=theorem26,
    checks=(
        net26.test_loss <= 0.5,
        net26.cosine[2] >= 0.99,
        two_step26.test_accuracy >= 99.0,
    ),
    conditions=(
        Condition(
            "m ≥ k¹²/ε^(3/2), constant 1, ε = 1/2",
            lambda s: PARITY[s].m,
            lambda s: PARITY[s].k ** 12 / 0.5**1.5,
        ),
        Condition("m ≥ D", lambda s: PARITY[s].m, lambda s: PARITY[s].D),
        Condition(
            "k ≥ log²(D/(δγ)), constant 1, δ = 0.05",
            lambda s: PARITY[s].k,
            lambda s: _log_squared(PARITY[s]),
        ),
        Condition("po ≥ k²/D, constant 1", lambda s: 0.5, lambda s: PARITY[s].k ** 2 / PARITY[s].D),
        Condition("T ≥ m^(4/3)", lambda s: PARITY[s].T, lambda s: PARITY[s].m ** (4 / 3)),
    ),
    control=shuffled(theorem26),
    **notes("shi2022/theorem26-verbatim"),
)


def one_step(scale: Scale) -> dict[str, Arm]:
    """Return features after one step: with the best readout, after a larger first step, and after
    the step computed literally.
    """
    best, schedule = table1(scale)["One Step"], practical(PARITY[scale])
    larger = dataclasses.replace(schedule, first=1.0).frozen(1, readout="converged")
    return {
        "converged readout": best,
        "converged readout, larger first step": dataclasses.replace(best, learner=larger),
        "step taken literally in single precision": dataclasses.replace(
            best, learner=schedule.literal_step()
        ),
    }


def after_two_steps(scale: Scale) -> dict[str, Arm]:
    """Return the negative control: features after two steps."""
    two = table1(scale)["Two Step"]
    return {
        "converged readout": two,
        "converged readout, larger first step": two,
        "step taken literally in single precision": two,
    }


converged, larger_step, literal = arms(
    "converged readout",
    "converged readout, larger first step",
    "step taken literally in single precision",
)
ONE_STEP = Claim(
    id="shi2022/one-step",
    where="Table 1, column One Step: causes of its low accuracy",
    kind="table",
    statement=(
        "The best classifier on the features after one gradient step has about 52 % test accuracy: "
        "the features that emerge in the first step must be improved in the second."
    ),
    study=one_step,
    checks=(
        converged.test_accuracy <= 60.0,
        larger_step.test_accuracy <= 60.0,
        literal.cosine.between(0.75, 0.95),
    ),
    control=Control("the features are those after two steps", after_two_steps),
    discrepancies=("shi2022/one-step-accuracy", "shi2022/one-step-cosine"),
    **notes("shi2022/one-step"),
)


def memorizing(scale: Scale) -> dict[str, Arm]:
    """Return labels without input structure, with the published number of examples and with 250."""
    size, everything = PARITY[scale], table1(scale)["Network w/o structure"]
    longer = dataclasses.replace(practical(size), w_rate=3.0).network(curve_steps(size.T))
    return {
        "all examples": everything,
        "250 examples": dataclasses.replace(
            everything, learner=longer, n=50 if scale == "smoke" else 250
        ),
    }


def with_structure(scale: Scale) -> dict[str, Arm]:
    """Return the negative control: input structure, so that labels need not be memorized."""
    structured = parity_task(PARITY[scale])
    return {
        name: dataclasses.replace(arm, family=structured) for name, arm in memorizing(scale).items()
    }


all_examples, few_examples = arms("all examples", "250 examples")
MEMORIZING = Claim(
    id="shi2022/memorising",
    where="Table 1, column Network w/o structure: training accuracy",
    kind="table",
    statement=(
        "Without input structure, the network of Table 1 reaches 100 % training accuracy within T "
        "steps, and 52 % test accuracy."
    ),
    study=memorizing,
    checks=(
        all_examples.train_accuracy >= 97.0,
        few_examples.train_accuracy >= 97.0,
        few_examples.test_accuracy.between(46.0, 54.0),
    ),
    control=Control("the inputs have structure", with_structure),
    **notes("shi2022/memorising"),
)

SCHEDULES = (THEOREM26, ONE_STEP, MEMORIZING)
