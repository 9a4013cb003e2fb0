"""Beyond the text: a parity whose bits are pictures. k digits are stacked, and the label is the
parity of their sum.

A digit's parity is to be found in pixels before the parities of several can be multiplied: what a
network can learn, fixed features cannot.
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
    """Numbers k of digits, pairs of neurons, steps, examples (fewer and most), and test
    examples.
    """

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
#: Settings that each rival may try.
BUDGET = 6
NETWORK, TANGENT = "network", "tangent model"
#: Rivals whose features are fixed, tuned: those that know as little of pictures as the network, and
#: one that knows more.
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
    """All learners over k, and network and tangent kernel over n at k = 2."""
    size = DIGITS[scale]
    looks = (Performance(size.test),)
    families = {k: StackedDigits("mnist", k=k) for k in size.counts}

    def start(k: int) -> AntisymmetricInit:
        d = families[k].dimension
        return AntisymmetricInit(
            m=size.pairs,
            w_scale=1 / math.sqrt(d),
            b_scale=0.1,
            a_scale=1 / math.sqrt(2 * size.pairs),
            activation="relu",
        )

    def network(k: int, n: int) -> Arm:
        return Arm(families[k], _trained(start(k), size.steps), n, looks)

    def baseline(name: str, k: int, n: int) -> Tuned:
        return Tuned(families[k], BASELINES[name], n, looks, BUDGET)

    found: dict[str, StudyArm] = {NETWORK: Row({k: network(k, size.n) for k in size.counts})}
    found[TANGENT] = Row(
        {
            k: Arm(families[k], _trained(TangentInit(start(k)), size.steps), size.n, looks)
            for k in size.counts
        }
    )
    found |= {name: Row({k: baseline(name, k, size.n) for k in size.counts}) for name in FIXED}
    found[FILTERS] = Row({k: baseline(FILTERS, k, size.n) for k in size.counts[:2]})
    sizes = (size.fewer, size.n)
    found[f"{NETWORK} over n"] = Row({n: network(2, n) for n in sizes})
    found["tangent kernel over n"] = Row({n: baseline("tangent kernel", 2, n) for n in sizes})
    return found


net = arm(NETWORK)
CLAIM_DIGITS = Claim(
    id="daniely2020/digits",
    where="beyond the text: Theorems 1 and 2 on pictures",
    kind="figure",
    statement=(
        "On the parity of the sum of stacked digits a trained network beats its tangent model, "
        "random features and tuned kernels, also one on random filters, which knows of pictures "
        "what the network does not."
    ),
    study=digits,
    checks=(
        net.test_accuracy[1] >= 90.0,
        *(
            net.test_accuracy[2] - other.test_accuracy[2] >= 3.0
            for other in arms(TANGENT, *FIXED, FILTERS)
        ),
        *(
            (net.test_accuracy[3] - other.test_accuracy[3] >= 3.0).at("paper")
            for other in arms(TANGENT, *FIXED)
        ),
    ),
    seeds={"smoke": 1, "laptop": 3, "paper": 5},
    control=shuffled_arms(digits, (NETWORK, TANGENT, *FIXED)),
    plots=(
        Plot(
            title="Parity of the sum of k digits",
            x="digits k",
            y="test accuracy (%)",
            series=tuple(
                PlotLine(name, "test_accuracy", name)
                for name in (NETWORK, TANGENT, *FIXED, FILTERS)
            ),
            caption="Rivals are tuned seed by seed; the settings of the network were chosen "
            "beforehand, on other seeds.",
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
