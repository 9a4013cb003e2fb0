"""Sizes of the studies of glasgow2023 at each scale, and what they have in common."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from unlazy.lab.arms import Arm
from unlazy.lab.rules import Scale
from unlazy.learners.mean_field import mean_field_sgd
from unlazy.probes.base import Probe
from unlazy.tasks.multi_index import MultiIndex


@dataclasses.dataclass(frozen=True)
class Training:
    """Training on XOR in d dimensions: p neurons, radius θ, step size η, minibatches of `ratio`·d examples."""

    d: int
    width: int = 256
    radius: float = 0.3
    step: float = 0.4
    ratio: float = 4.0

    def arm(self, record: tuple[int, ...], *probes: Probe, rotated: bool = False, freeze_second: bool = False) -> Arm:
        """A run that stops at the last of the recorded steps."""
        batch = max(1, round(self.ratio * self.d))
        learner = mean_field_sgd(
            width=self.width,
            batch=batch,
            radius=self.radius,
            step=self.step,
            steps=record[-1],
            record=record,
            freeze_second=freeze_second,
        )
        return Arm(MultiIndex(d=self.d, rotated=rotated), learner, record[-1] * batch, probes)


class XorSize(NamedTuple):
    """Sizes of a scale: the training runs, the dimensions of the sample sizes, and those of the other instruments."""

    d: int
    width: int
    online: tuple[int, ...]
    kernel: tuple[int, ...]
    others: tuple[int, ...]
    crossing: tuple[int, ...]
    far: tuple[int, ...]
    times: tuple[int, ...]
    gradients: tuple[int, ...]
    below: tuple[int, ...]
    test: int
    points: int


SIZES: dict[Scale, XorSize] = {
    "smoke": XorSize(16, 32, (16, 24), (8, 12), (8, 12), (8, 12), (1000, 10_000), (16,), (8, 12), (64,), 256, 512),
    "laptop": XorSize(
        d=128,
        width=512,
        online=(32, 64, 128, 256, 512, 1024),
        kernel=(16, 24, 32, 48, 64, 96),
        others=(32, 64, 96),
        crossing=(32, 48, 64),
        far=(100, 300, 1000, 3000, 10_000),
        times=(32, 64, 128, 256),
        gradients=(8, 12, 32, 256),
        below=(1200, 2048),
        test=4096,
        points=16_384,
    ),
    "paper": XorSize(
        d=256,
        width=1024,
        online=(32, 64, 128, 256, 512, 1024, 2048),
        kernel=(16, 24, 32, 48, 64, 96, 128),
        others=(32, 64, 96),
        crossing=(32, 48, 64, 96),
        far=(100, 300, 1000, 3000, 10_000),
        times=(32, 64, 128, 256, 512),
        gradients=(8, 12, 32, 256, 1024),
        below=(1200, 2048, 4096),
        test=4096,
        points=32_768,
    ),
}

RADIUS = "The radius θ = 0.3, the step η = 0.4 (0.5 for sample sizes), p ≤ 1024: θ = 1/log^C d with a large C is not feasible."
BATCH = "Minibatches of 4d examples (d for sample sizes, 8d for margins) instead of d·polylog d."
THETA = "Initial radius θ as in Section 2.2 and Lemma C.1; Theorem 3.1 prints θ/√p, which does not fit the mean-field scaling."
ONE_SEED: dict[Scale, int] = {"smoke": 1, "laptop": 1, "paper": 1}
FIVE: dict[Scale, int] = {"smoke": 1, "laptop": 5, "paper": 5}
STEPS = tuple(range(0, 101, 4))
#: The end of phase 1, Θ(log(d)/η) steps: where E‖a·w‖ is still below 1.
PHASE1_END = 24


def training(scale: Scale, *, ratio: float = 4.0) -> Training:
    """The run that is watched."""
    size = SIZES[scale]
    return Training(d=size.d, width=size.width, ratio=ratio)
