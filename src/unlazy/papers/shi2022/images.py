"""Figures 17 to 19: neurons of a two-layer network on images form clusters.

Reference: shi2022, Figure 3 and Appendix E.4.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from unlazy.lab.arms import Arm, StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Check, Scale, arm, shuffled
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.networks.inits import PlainInit
from unlazy.probes.clusters import WeightClusters
from unlazy.probes.performance import Performance
from unlazy.tasks.images.families import ImageClasses


class ImageStudySizes(NamedTuple):
    """Examples, steps and test examples."""

    n: int
    steps: int
    test: int


SIZES: dict[Scale, ImageStudySizes] = {
    "smoke": ImageStudySizes(60, 20, 50),
    "laptop": ImageStudySizes(10_000, 300, 2_000),
    "paper": ImageStudySizes(10_000, 3_000, 2_000),
}
#: Neurons, momentum and batch; the first two are from the paper.
M, MOMENTUM, BATCH = 50, 0.95, 100
#: Initial scale as a multiple of 1/√d, and step size.
INITIAL_SCALE, RATE = 0.1, 0.003
#: Minimum fraction of all neurons in a cluster.
CLUSTER_FRACTION = 0.15
#: Step at which the early emergence of features is checked.
EARLY_STEP = 30
PAIRS = {"MNIST": ("mnist", (0, 1)), "CIFAR-10": ("cifar10", (0, 1)), "SVHN": ("svhn", (0, 1))}


def cluster_arms(scale: Scale, names: tuple[str, ...]) -> dict[str, StudyArm]:
    """Return the network on two classes of each dataset, with small and with usual initial
    weights.
    """
    size = SIZES[scale]
    arms: dict[str, StudyArm] = {}
    for name in names:
        data, chosen = PAIRS[name]
        family = ImageClasses(data, chosen=chosen, flat=True)
        for suffix, initial in (("", INITIAL_SCALE), (", usual start", 1.0)):
            init = PlainInit(
                m=M,
                w_scale=initial / math.sqrt(family.dimension),
                b_scale=0.0,
                a_scale=1 / math.sqrt(M),
            )
            descent = Descent(
                {g: RATE for g in ("w", "b", "a", "c")},
                steps=size.steps,
                batch=BATCH,
                loss="logistic",
                momentum=MOMENTUM,
            )
            learner = GradientDescent(init, (descent,), record=(0, 3, 10, EARLY_STEP, 100))
            arms[name + suffix] = Arm(
                family,
                learner,
                size.n,
                (
                    Performance(size.test),
                    WeightClusters(fraction=CLUSTER_FRACTION, image=family.image_shape),
                ),
            )
    return arms


def image_clusters(scale: Scale) -> dict[str, StudyArm]:
    """Return the arms of MNIST and CIFAR-10."""
    return cluster_arms(scale, ("MNIST", "CIFAR-10"))


def svhn_clusters(scale: Scale) -> dict[str, StudyArm]:
    """Return the arms of SVHN."""
    return cluster_arms(scale, ("SVHN",))


def _checks(name: str, clusters: int) -> tuple[Check, ...]:
    net = arm(name)
    return (
        net.clusters.between(clusters, clusters).for_share(0.5),
        net.gathered - net.gathered[0] >= 0.3,
        net.within >= 0.5,
        net.between <= 0.0,
        net.towards[EARLY_STEP] - net.towards[0] >= 0.2,
    )


def _plots(names: tuple[str, ...]) -> tuple[Plot, ...]:
    arms = [name + suffix for name in names for suffix in ("", ", usual start")]
    return tuple(
        Plot(
            title=title,
            x="gradient step",
            y=axis,
            series=tuple(PlotLine(arm, measure, arm) for arm in arms),
        )
        for title, axis, measure in (
            ("Neurons in clusters", "fraction of neurons", "gathered"),
            ("Alignment with the final clusters", "mean cosine to the final center", "towards"),
        )
    )


FIGURES17_18 = Claim(
    id="shi2022/figures17-19",
    where="Figures 3, 17, 18 (Section 6, Appendix E.4)",
    kind="figure",
    statement=(
        "In a two-layer network with m = 50 neurons, trained by SGD with momentum 0.95 on two "
        "classes of MNIST (0/1) or of CIFAR-10 (airplane/automobile), effective features emerge "
        "after a few steps and then improve to form two clusters."
    ),
    study=image_clusters,
    checks=(*_checks("MNIST", 2), *_checks("CIFAR-10", 2)),
    seeds={"smoke": 1, "laptop": 20, "paper": 20},
    control=shuffled(image_clusters),
    plots=_plots(("MNIST", "CIFAR-10")),
    **notes("shi2022/figures17-19"),
)

FIGURE19 = Claim(
    id="shi2022/figure19",
    where="Figure 19 (Appendix E.4)",
    kind="figure",
    statement="In the same network, trained on SVHN with labels 0/1, the weights gradually form "
    "four clusters.",
    study=svhn_clusters,
    checks=_checks("SVHN", 4),
    seeds={"smoke": 1, "laptop": 5, "paper": 5},
    control=shuffled(svhn_clusters),
    plots=_plots(("SVHN",)),
    **notes("shi2022/figure19"),
)
