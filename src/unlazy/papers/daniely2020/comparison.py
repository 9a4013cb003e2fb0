"""Separation at finite samples: networks versus tuned baselines with fixed features.

Reference: daniely2020, Theorems 1 and 2 together (Section 3).
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from unlazy.kernels.feature_maps import RandomFeatures
from unlazy.lab.arms import Arm, Row, StudyArm, Tuned
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Scale, arms, shuffled
from unlazy.learners.base import Learner
from unlazy.learners.catalog import LEARNERS
from unlazy.learners.features import FeatureRidge
from unlazy.learners.gradient import GradientDescent
from unlazy.learners.one_step import first_step_network, one_step_readout
from unlazy.learners.readout import RidgeReadout
from unlazy.papers.daniely2020.learner import ParitySchedule
from unlazy.probes.equal_bits import PartErrors, PartWeights, ScoreByOnes
from unlazy.tasks.equal_bits import EqualBits


class ComparisonSizes(NamedTuple):
    """Bits d of an input, and examples n."""

    d: int
    n: int


SIZES: dict[Scale, ComparisonSizes] = {
    "smoke": ComparisonSizes(12, 100),
    "laptop": ComparisonSizes(24, 1600),
    "paper": ComparisonSizes(30, 3000),
}
#: Bits k of the parities.
COUNTS = (3, 5, 7)
TEST = 4000
#: Pairs of neurons: enough for kinks between all numbers of ones.
PAIRS = 384
#: η·q of descent from ternary weights.
PACE = 1e4
#: Hyperparameter configurations per baseline.
BUDGET = 6
#: Baselines with fixed features.
FIXED = ("linear", "random ReLUs", "tangent kernel", "polynomial kernel", "Gaussian kernel")
#: Methods that learn features without a network, shown but not tested; the second for one k at
#: paper scale only.
SHOWN = ("histogram along E[yx]", "recursive feature machine")

#: The networks with the paper's ternary initial weights.
TERNARY = ("network, ternary weights", "one step, ternary weights")
#: Arm in which neurons and scores are measured during training.
ALONG = "network along training, k=5"

BASELINES: dict[str, Learner] = {
    "linear": LEARNERS["linear"].value,
    "random ReLUs": FeatureRidge(RandomFeatures("relu", 1000)),
    "tangent kernel": LEARNERS["ntk"].value,
    "polynomial kernel": LEARNERS["polynomial"].value,
    "Gaussian kernel": LEARNERS["rbf"].value,
    "histogram along E[yx]": LEARNERS["mean-histogram"].value,
    "recursive feature machine": LEARNERS["rfm"].value,
}


def _ternary(d: int, k: int, steps: int) -> GradientDescent:
    """Return the paper's initialization and first step, `steps` steps of SGD on the second layer,
    and a ridge readout.
    """
    schedule = ParitySchedule.practical(n=d, k=k, q=PAIRS, T=steps, pace=PACE, layers="second")
    if not steps:
        return schedule.one_step(ridge=1e-4)
    learner = schedule.network(batch=100)
    return dataclasses.replace(learner, stages=(*learner.stages, RidgeReadout(1e-5)))


def benchmark(scale: Scale) -> dict[str, StudyArm]:
    """Return the network after one step and fully trained, and all tuned baselines, over k."""
    sizes = SIZES[scale]
    probes = (PartErrors(TEST),)
    families = {k: EqualBits(d=sizes.d, k=k) for k in COUNTS}

    def network(learner: Learner) -> Row:
        return Row({k: Arm(family, learner, sizes.n, probes) for k, family in families.items()})

    def baseline(name: str, counts: tuple[int, ...] = COUNTS) -> Row:
        learner = BASELINES[name]
        return Row({k: Tuned(families[k], learner, sizes.n, probes, BUDGET) for k in counts})

    def ternary(steps: int) -> Row:
        """Return the network with the paper's initialization and first step."""
        return Row(
            {
                k: Arm(family, _ternary(sizes.d, k, steps), sizes.n, probes)
                for k, family in families.items()
            }
        )

    arms: dict[str, StudyArm] = {
        "one step": network(one_step_readout()),
        "network": network(first_step_network(PAIRS)),
        "one step, ternary weights": ternary(0),
        "network, ternary weights": ternary(1000),
    }
    arms |= {name: baseline(name) for name in (*FIXED, SHOWN[0])}
    along = first_step_network(PAIRS, record=(0, 1, 101))
    arms[ALONG] = Arm(families[5], along, sizes.n, (PartErrors(TEST), PartWeights(), ScoreByOnes()))
    return arms | ({SHOWN[1]: baseline(SHOWN[1], (5,))} if scale == "paper" else {})


net, one_step, during = arms("network", "one step", ALONG)
ternary, one_ternary = arms(*TERNARY)
COMPARISON = Claim(
    id="daniely2020/contest",
    where="Theorems 1 and 2 together, at finite samples",
    kind="figure",
    statement=(
        "Gradient descent on a network learns the distributions of Section 2; linear methods on "
        "fixed embeddings of moderate size do not."
    ),
    study=benchmark,
    checks=(
        *((net.whole_error[k] <= 0.0).for_share(0.5) for k in COUNTS),
        *(each.whole_error[k] <= 0.02 for each in (one_step, one_ternary, ternary) for k in COUNTS),
        *(
            fixed.uniform_error[k] - net.uniform_error[k] >= 0.15
            for k in COUNTS
            for fixed in arms(*FIXED)
        ),
        during.separation[1] - during.separation[0] >= 2.0,
        during.ones_right >= 1.0,
    ),
    seeds={"smoke": 1, "laptop": 5, "paper": 10},
    control=shuffled(benchmark),
    plots=tuple(
        Plot(
            title=f"Errors on the {part} part",
            x="bits k of the parity",
            y="fraction of wrong labels",
            series=tuple(
                PlotLine(name, f"{measure}_error", name)
                for name in ("network", "one step", *TERNARY, *FIXED, *SHOWN)
            ),
            caption="Baselines are tuned per seed; the settings of the network were chosen on "
            "other seeds.",
        )
        for part, measure in (("uniform", "uniform"), ("all-equal", "structured"))
    ),
    **notes("daniely2020/contest"),
)
