"""Claims on Theorem 26 with its own schedule, classifiers after one step, and memorization.

Reference: shi2022, Theorem 26, Table 1.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal

from unlazy.lab.arms import Arm
from unlazy.lab.claims import Claim
from unlazy.lab.conditions import Condition
from unlazy.lab.paper_files import notes
from unlazy.lab.readings import AS_WRITTEN, Reading
from unlazy.lab.rules import Control, Scale, arm, arms, shuffled
from unlazy.papers.shi2022.table1 import (
    PARITY,
    Size,
    curve_steps,
    parity_task,
    practical,
    schedules,
    table1,
    verbatim,
    without_structure,
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
            "m ≥ C·k¹²/ε^(3/2), ε = 1/2",
            lambda s: PARITY[s].m,
            lambda s: PARITY[s].k ** 12 / 0.5**1.5,
            constant="C",
        ),
        Condition("m ≥ D", lambda s: PARITY[s].m, lambda s: PARITY[s].D),
        Condition(
            "k ≥ C·log²(D/(δγ)), δ = 0.05",
            lambda s: PARITY[s].k,
            lambda s: _log_squared(PARITY[s]),
            constant="C",
        ),
        Condition(
            "po ≥ C·k²/D", lambda s: 0.5, lambda s: PARITY[s].k ** 2 / PARITY[s].D, constant="C"
        ),
        Condition("T ≥ m^(4/3)", lambda s: PARITY[s].T, lambda s: PARITY[s].m ** (4 / 3)),
    ),
    control=shuffled(theorem26),
    **notes("shi2022/theorem26-verbatim"),
)


def one_step(
    scale: Scale, *, after: Literal[1, 2] = 1, larger: bool = False, **settings: Any
) -> dict[str, Arm]:
    """Return a classifier on the features after one step (negative control: two steps).

    larger: η₁ = 1. settings: see `schedules`.
    """
    size = PARITY[scale]
    each = schedules(practical(size), verbatim(size), **settings)
    network = dataclasses.replace(each.network, first=1.0) if larger else each.network
    probes = (Performance(size.test), Alignment())
    learner = network.frozen(after, readout=each.readout)
    return {"One Step": Arm(parity_task(size), learner, size.n, probes)}


_CONVERGED = "the text says 'the best classifiers'"
_BY_SGD = "the text also says 'train a classifier', without an optimizer"
ONE_STEP_READINGS = (
    Reading(AS_WRITTEN, f"constants of Theorem 26; {_CONVERGED}", {"network": "theorem"}),
    Reading("practical", f"settings under which the network learns; {_CONVERGED}"),
    Reading(
        "larger first step",
        f"η₁ = 1, so that rounding cannot matter; {_CONVERGED}",
        {"larger": True},
        ("η₁ of Theorem 26",),
    ),
    Reading("SGD readout", _BY_SGD, {"network": "theorem", "readout": "trained"}),
    Reading("practical, SGD readout", _BY_SGD, {"readout": "trained"}),
    Reading(
        "SGD readout, weights left over",
        f"{_BY_SGD}; step 1 keeps a fraction η₁·m/2800 of the initial weights (value chosen by "
        "the printed cosines)",
        {"network": "theorem", "readout": "trained", "left_over": 1 / 2800},
        ("step 1 replaces the weights completely",),
    ),
)
one_step_arm = arm("One Step")
ONE_STEP = Claim(
    id="shi2022/one-step",
    where="Table 1, column One Step",
    kind="table",
    statement=(
        "After one gradient step, weights have cosines up to 0.848 with the sum of the relevant "
        "patterns, and a classifier trained on the features has about 52 % test accuracy: the "
        "features that emerge in the first step must be improved in the second."
    ),
    study=one_step,
    checks=(
        one_step_arm.test_accuracy <= 60.0,
        one_step_arm.cosine.between(0.75, 0.95).at("paper"),  # it depends on m
    ),
    control=Control(
        "the features are those after two steps",
        lambda scale, **settings: one_step(scale, after=2, **settings),
    ),
    readings=ONE_STEP_READINGS,
    reading="SGD readout, weights left over",
    discrepancies=("shi2022/one-step-accuracy", "shi2022/one-step-cosine"),
    **notes("shi2022/one-step"),
)


def memorizing(scale: Scale, *, fixed: bool = False, **settings: Any) -> dict[str, Arm]:
    """Return the network without input structure, for the published numbers of examples and
    neurons. settings: see `schedules`; `rate`: w_rate of SGD. fixed (negative control): random
    features with input structure.
    """
    rate = settings.pop("rate", None)
    sizes = {"n=10k": {"n": 10_000, "m": 50}, "n=25k": {"n": 25_000, "m": 300}}
    if scale == "paper":
        sizes["n=50k"] = {"n": 50_000, "m": 300}
    arms = {}
    for name, values in sizes.items():
        size = PARITY[scale] if scale == "smoke" else PARITY[scale]._replace(**values)
        task = parity_task(size)
        each = schedules(practical(size), verbatim(size), **settings)
        network = dataclasses.replace(each.network, w_rate=rate) if rate else each.network
        steps = curve_steps(size.T)
        learner = each.rf.random_features(steps) if fixed else network.network(steps)
        family = task if fixed else without_structure(task)
        arms[name] = Arm(family, learner, size.n, (Performance(size.test), Alignment()))
    return arms


_OPEN = "the text gives no optimizer and step size for t > 2 at these sizes"
_ADAM_DEPARTS = ("gradient descent for t > 2",)
MEMORIZING_READINGS = (
    Reading(AS_WRITTEN, "constants of Theorem 26", {"network": "theorem"}),
    Reading("practical", f"settings under which the network learns; {_OPEN}"),
    Reading("larger step", f"ten times the practical step size; {_OPEN}", {"rate": 3.0}),
    *(
        Reading(f"Adam {rate:g}", _OPEN, {"adam": rate}, _ADAM_DEPARTS)
        for rate in (0.01, 0.02, 0.05)
    ),
)
ten, twenty_five, fifty = arms("n=10k", "n=25k", "n=50k")
MEMORIZING = Claim(
    id="shi2022/memorising",
    where="Tables 1 and 5, column Network w/o structure: training accuracy",
    kind="table",
    statement=(
        "Without input structure, the network reaches 100 % training accuracy within T = 600 "
        "steps, and about 52 % test accuracy, for n = 10,000 (50 pairs of neurons), 25,000 and "
        "50,000 (300 pairs)."
    ),
    study=memorizing,
    checks=(
        *(size.train_accuracy >= 97.0 for size in (ten, twenty_five)),
        (fifty.train_accuracy >= 97.0).at("paper"),
        *(size.test_accuracy.between(46.0, 54.0) for size in (ten, twenty_five)),
    ),
    control=Control(
        "the inputs have structure, and the first layer is not trained",
        lambda scale, **settings: memorizing(scale, fixed=True, **settings),
    ),
    readings=MEMORIZING_READINGS,
    reading="Adam 0.02",
    **notes("shi2022/memorising"),
)

SCHEDULES = (THEOREM26, ONE_STEP, MEMORIZING)
