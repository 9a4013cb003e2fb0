"""Forward feature learning: readouts of F and G(F) from each layer along training.

Compared with layer-wise training and networks without skip connection.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from unlazy.lab.arms import Arm, StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Scale, arms, shuffled
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.papers.allenzhu2019.probes import LayerReadout
from unlazy.papers.allenzhu2019.setting import Cell, momentum_sgd
from unlazy.probes.performance import Performance
from unlazy.tasks.hierarchy import PairHierarchy


class ForwardSize(NamedTuple):
    """Sizes of the study; `recorded`: epochs at which layers are read out."""

    m: int
    n: int
    epochs: int
    recorded: tuple[int, ...]
    readout: int
    test: int


FORWARD_SIZES: dict[Scale, ForwardSize] = {
    "smoke": ForwardSize(100, 500, 21, (20,), 200, 200),
    "laptop": ForwardSize(200, 500, 400, (2, 5, 10, 20, 50, 100, 200), 2_000, 5_000),
    "paper": ForwardSize(200, 500, 800, (2, 5, 10, 20, 50, 100, 200, 400), 3_000, 10_000),
}
CELL: Cell = (0.1, 5e-3)
STEPS_PER_EPOCH = 10
#: Step of the early checks.
EARLY = 20 * STEPS_PER_EPOCH


def layer_wise(joint: GradientDescent) -> GradientDescent:
    """Return layer-wise training in two stages: first W, b₁ and A, then V and b₂.

    Each stage has the settings and the length of the joint training.
    """
    (descent,) = joint.stages
    assert isinstance(descent, Descent) and descent.steps is not None

    def part(groups: tuple[str, ...]) -> Descent:
        rates, decay = (
            {group: values[group] for group in groups} for values in (descent.rates, descent.decay)
        )
        return dataclasses.replace(descent, rates=rates, decay=decay)

    return GradientDescent(joint.init, (part(("w", "b", "a")), part(("v", "e"))))


def forward(scale: Scale) -> dict[str, StudyArm]:
    """Return networks trained jointly or layer by layer, with readouts along training."""
    size = FORWARD_SIZES[scale]
    probes = (Performance(size.test), LayerReadout(size.readout))

    def arm(learner: GradientDescent) -> Arm:
        return Arm(PairHierarchy(), learner, size.n, probes)

    joint = momentum_sgd("3resnet", "all", size.m, size.n, CELL, size.epochs, record=size.recorded)
    return {
        "ResNet": arm(joint),
        "ResNet, layer by layer": arm(layer_wise(joint)),
        "three-layer network": arm(
            momentum_sgd("3layer", "all", size.m, size.n, CELL, size.epochs, record=size.recorded)
        ),
        "two-layer network": arm(
            momentum_sgd("2layer", "all", size.m, size.n, CELL, size.epochs, record=size.recorded)
        ),
    }


resnet, layerwise, three_layer, two_layer = arms(
    "ResNet", "ResNet, layer by layer", "three-layer network", "two-layer network"
)
FORWARD = Claim(
    id="allenzhu2019/forward-learning",
    where="Section 2.1, Forward Feature Learning",
    kind="figure",
    statement=(
        "During training of a residual network, its lower layer learns the simpler signal F and "
        "forwards it to the higher layer, which uses it to learn G(F), although F and G(F) are "
        "not given separately. This differs from layer-wise training: training first the layer "
        "near the input and then, with that layer fixed, the layer near the output does not give "
        "the same result."
    ),
    study=forward,
    checks=(
        resnet.base_out1[EARLY] >= 0.8,
        resnet.base_out1[EARLY] - resnet.composite_second[EARLY] >= 0.4,
        resnet.base_out1 >= 0.95,
        resnet.composite_second >= 0.8,
        resnet.composite_second - resnet.composite_out1 >= 0.8,
        resnet.composite_second - layerwise.composite_second >= 0.3,
        resnet.composite_second - three_layer.composite_second >= 0.3,
        resnet.composite_second - two_layer.composite_first >= 0.3,
    ),
    control=shuffled(forward),
    plots=(
        Plot(
            "Signals in each layer",
            "gradient step",
            "R² of a linear readout",
            (
                PlotLine("ResNet", "base_out1", "F from out₁"),
                PlotLine("ResNet", "composite_second", "G(F) from the second hidden layer"),
                PlotLine("ResNet", "composite_out1", "G(F) from out₁"),
                PlotLine("three-layer network", "base_second", "F, three-layer network"),
                PlotLine("three-layer network", "composite_second", "G(F), three-layer network"),
                PlotLine("two-layer network", "composite_first", "G(F), two-layer network"),
            ),
            log_x=True,
            caption="out₁ contains the base signal after some epochs. The composite signal "
            "follows, in the second hidden layer only.",
        ),
    ),
    **notes("allenzhu2019/forward-learning"),
)
