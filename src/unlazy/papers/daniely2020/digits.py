"""Parity of the sum of k stacked images of digits, versus tuned baselines: a study of our own.

The parity of each digit must be recognized from pixels before the parities can be multiplied.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from unlazy.kernels.feature_maps import RandomFeatures
from unlazy.lab.arms import Arm, Row, StudyArm, Tuned
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Scale, arm, arms, shuffled_arms
from unlazy.learners.base import Learner
from unlazy.learners.catalog import LEARNERS
from unlazy.learners.features import FeatureRidge
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.networks.base import Init
from unlazy.networks.inits import AntisymmetricInit, TangentInit
from unlazy.probes.performance import Performance
from unlazy.tasks.images.families import StackedDigits


class DigitSizes(NamedTuple):
    """Numbers k of digits, pairs of neurons, steps, examples (fewer, and n), and test examples."""

    counts: tuple[int, ...]
    pairs: int
    steps: int
    fewer: int
    n: int
    test: int


DIGITS: dict[Scale, DigitSizes] = {
    "smoke": DigitSizes((1, 2), 4, 10, 60, 100, 100),
    "laptop": DigitSizes((1, 2, 3), 128, 800, 1_000, 3_000, 3_000),
    "paper": DigitSizes((1, 2, 3, 4), 256, 10_000, 5_000, 20_000, 10_000),
}
BATCH, RATE = 100, 1e-3
#: Hyperparameter configurations per baseline.
BUDGET = 6
NETWORK, LINEARIZED = "network", "tangent model"
#: Tuned baselines with fixed features: without image structure, like the network, and one with it.
FIXED = ("random ReLUs", "tangent kernel", "Gaussian kernel")
FILTERS = "Gaussian kernel on random filters"
BASELINES: dict[str, Learner] = {
    "random ReLUs": FeatureRidge(RandomFeatures("relu", 1000)),
    "tangent kernel": LEARNERS["ntk"].value,
    "Gaussian kernel": LEARNERS["rbf"].value,
    FILTERS: LEARNERS["convolutional-rbf"].value,
}


def _trained(init: Init, steps: int) -> GradientDescent:
    descent = Descent(
        {group: RATE for group in ("w", "b", "a", "c")},
        steps=steps,
        batch=BATCH,
        loss="logistic",
        optimizer="adam",
    )
    return GradientDescent(init, (descent,))


def digits(scale: Scale) -> dict[str, StudyArm]:
    """Return all learners over k, and network and tangent kernel over n at k = 2."""
    size = DIGITS[scale]
    probes = (Performance(size.test),)
    families = {k: StackedDigits("mnist", k=k) for k in size.counts}

    def init(k: int) -> AntisymmetricInit:
        d = families[k].dimension
        return AntisymmetricInit(
            m=size.pairs,
            w_scale=1 / math.sqrt(d),
            b_scale=0.1,
            a_scale=1 / math.sqrt(2 * size.pairs),
            activation="relu",
        )

    def network(k: int, n: int) -> Arm:
        return Arm(families[k], _trained(init(k), size.steps), n, probes)

    def baseline(name: str, k: int, n: int) -> Tuned:
        return Tuned(families[k], BASELINES[name], n, probes, BUDGET)

    arms: dict[str, StudyArm] = {NETWORK: Row({k: network(k, size.n) for k in size.counts})}
    arms[LINEARIZED] = Row(
        {
            k: Arm(families[k], _trained(TangentInit(init(k)), size.steps), size.n, probes)
            for k in size.counts
        }
    )
    arms |= {name: Row({k: baseline(name, k, size.n) for k in size.counts}) for name in FIXED}
    arms[FILTERS] = Row({k: baseline(FILTERS, k, size.n) for k in size.counts[:2]})
    sizes = (size.fewer, size.n)
    arms[f"{NETWORK} over n"] = Row({n: network(2, n) for n in sizes})
    arms["tangent kernel over n"] = Row({n: baseline("tangent kernel", 2, n) for n in sizes})
    return arms


net = arm(NETWORK)
CLAIM_DIGITS = Claim(
    id="daniely2020/digits",
    where="none; Theorems 1 and 2 on images, versus tuned baselines",
    kind="figure",
    source="ours",
    statement=(
        "On the parity of the sum of stacked digits, a trained network outperforms its "
        "linearization, random features and tuned kernels, including one on random filters, which "
        "uses image structure that the network does not."
    ),
    study=digits,
    checks=(
        net.test_accuracy[1] >= 90.0,
        *(
            net.test_accuracy[2] - other.test_accuracy[2] >= 3.0
            for other in arms(LINEARIZED, *FIXED, FILTERS)
        ),
        *(
            (net.test_accuracy[3] - other.test_accuracy[3] >= 3.0).at("paper")
            for other in arms(LINEARIZED, *FIXED)
        ),
    ),
    seeds={"smoke": 1, "laptop": 3, "paper": 5},
    control=shuffled_arms(digits, (NETWORK, LINEARIZED, *FIXED)),
    plots=(
        Plot(
            title="Parity of the sum of k digits",
            x="digits k",
            y="test accuracy (%)",
            series=tuple(
                PlotLine(
                    name, "test_accuracy", "linearized network" if name == LINEARIZED else name
                )
                for name in (NETWORK, LINEARIZED, *FIXED, FILTERS)
            ),
            caption="Kernels and random features are tuned per seed; the settings of the network "
            "were fixed beforehand.",
        ),
        Plot(
            title="Two digits, more examples",
            x="examples n",
            y="test accuracy (%)",
            series=(
                PlotLine(f"{NETWORK} over n", "test_accuracy", NETWORK),
                PlotLine("tangent kernel over n", "test_accuracy", "tangent kernel"),
            ),
            log_x=True,
        ),
    ),
    **notes("daniely2020/digits"),
)
