"""Figures 17 to 19: neurons of a two-layer network on real images gather.

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


PICTURES: dict[Scale, ImageStudySizes] = {
    "smoke": ImageStudySizes(60, 20, 50),
    "laptop": ImageStudySizes(10_000, 300, 2_000),
    "paper": ImageStudySizes(10_000, 3_000, 2_000),
}
#: Neurons, momentum and batch: the first two are the paper's.
M, MOMENTUM, BATCH = 50, 0.95, 100
#: Initial weights as a multiple of 1/√d, and the step size.
SMALL, RATE = 0.1, 0.003
#: The share of all neurons from which on a set of neighbours is a cluster.
SHARE = 0.15
#: Few steps, after which features are to be seen.
FEW = 30
PAIRS = {"MNIST": ("mnist", (0, 1)), "CIFAR-10": ("cifar10", (0, 1)), "SVHN": ("svhn", (0, 1))}


def gathering(scale: Scale, names: tuple[str, ...]) -> dict[str, StudyArm]:
    """The network on two classes of each set, from small weights; and beside it from weights of the
    usual size.
    """
    size = PICTURES[scale]
    found: dict[str, StudyArm] = {}
    for name in names:
        data, chosen = PAIRS[name]
        family = ImageClasses(data, chosen=chosen, flat=True)
        for suffix, start in (("", SMALL), (", usual start", 1.0)):
            init = PlainInit(
                m=M,
                w_scale=start / math.sqrt(family.dimension),
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
            learner = GradientDescent(init, (descent,), record=(0, 3, 10, FEW, 100))
            found[name + suffix] = Arm(
                family,
                learner,
                size.n,
                (Performance(size.test), WeightClusters(fraction=SHARE, image=family.image_shape)),
            )
    return found


def images_gather(scale: Scale) -> dict[str, StudyArm]:
    """MNIST and CIFAR-10."""
    return gathering(scale, ("MNIST", "CIFAR-10"))


def svhn_clusters(scale: Scale) -> dict[str, StudyArm]:
    """SVHN."""
    return gathering(scale, ("SVHN",))


def _checks(name: str, clusters: int) -> tuple[Check, ...]:
    net = arm(name)
    return (
        net.clusters.between(clusters, clusters).for_share(0.5),
        net.gathered - net.gathered[0] >= 0.3,
        net.within >= 0.5,
        net.between <= 0.0,
        net.towards[FEW] - net.towards[0] >= 0.2,
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
            ("Neurons in clusters", "share of neurons", "gathered"),
            ("On the way to the final clusters", "mean cosine to the final centre", "towards"),
        )
    )


FIGURES17_18 = Claim(
    id="shi2022/figures17-19",
    where="Figures 3, 17, 18 (Section 6, Appendix E.4)",
    kind="figure",
    statement=(
        "In a two-layer network of m = 50 neurons, trained by SGD with momentum 0.95 on two "
        "classes of MNIST (0/1) and of CIFAR-10 (airplane/automobile), effective features emerge "
        "after a few steps and then improve to form two clusters."
    ),
    study=images_gather,
    checks=(*_checks("MNIST", 2), *_checks("CIFAR-10", 2)),
    seeds={"smoke": 1, "laptop": 20, "paper": 20},
    control=shuffled(images_gather),
    plots=_plots(("MNIST", "CIFAR-10")),
    **notes("shi2022/figures17-19"),
)

FIGURE19 = Claim(
    id="shi2022/figure19",
    where="Figure 19 (Appendix E.4)",
    kind="figure",
    statement="In the same network trained on SVHN with labels 0/1 the weights gradually form "
    "four clusters.",
    study=svhn_clusters,
    checks=_checks("SVHN", 4),
    seeds={"smoke": 1, "laptop": 5, "paper": 5},
    control=shuffled(svhn_clusters),
    plots=_plots(("SVHN",)),
    **notes("shi2022/figure19"),
)
