"""Sizes of the studies of glasgow2023 per scale, and shared training settings."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import NamedTuple

from unlazy.lab.arms import Arm
from unlazy.lab.conditions import Condition
from unlazy.lab.rules import Scale
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.sources import FreshGradients
from unlazy.networks.inits import SphereInit
from unlazy.papers.glasgow2023.second_layer import FixedSecondInit
from unlazy.probes.base import Probe
from unlazy.tasks.base import Family
from unlazy.tasks.multi_index import MultiIndex


@dataclasses.dataclass(frozen=True)
class Training:
    """Training on XOR in d dimensions.

    p = `width` neurons, θ = `radius`, learning rate η = `step`, m = `batch` examples per step. By
    default θ = η = 1/log d and m = d/θ², as Lemma C.1 requires for C = 1. `second` multiplies the
    learning rate of the second layer (0: frozen). `norm`: initial |a|, if it is not θ.
    """

    d: int
    width: int = 256
    radius: float = 0.0
    step: float = 0.0
    batch: int = 0
    second: float = 1.0
    norm: float | None = None

    def __post_init__(self) -> None:
        radius = self.radius or 1 / math.log(self.d)
        object.__setattr__(self, "radius", radius)
        object.__setattr__(self, "step", self.step or radius)
        object.__setattr__(self, "batch", self.batch or math.ceil(self.d / radius**2))

    def length(self, time: float) -> int:
        """Return the number of steps t for a given time ηt."""
        return round(time / self.step)

    def arm(self, record: tuple[int, ...], *probes: Probe, family: Family | None = None) -> Arm:
        """Return a run that ends at the last recorded step."""
        rates = {"w": 2 * self.step * self.width}
        if self.second:
            rates["a"] = 2 * self.step * self.second / self.width
        stage = Descent(rates, steps=record[-1], batch=self.batch, loss="logistic")
        init = SphereInit(p=self.width, radius=self.radius)
        initial = init if self.norm is None else FixedSecondInit(init, self.norm)
        learner = GradientDescent(initial, (stage,), record=record, source=FreshGradients())
        return Arm(family or MultiIndex(d=self.d), learner, record[-1] * self.batch, probes)


class XorSize(NamedTuple):
    """Sizes of a scale: training runs, dimensions of sample sizes and of exact computations."""

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
    "smoke": XorSize(
        16, 32, (16, 24), (8, 12), (8, 12), (8, 12), (1000, 10_000), (16,), (8, 12), (64,), 256, 512
    ),
    "laptop": XorSize(
        d=128,
        width=256,
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
        width=384,
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

ONE_SEED: dict[Scale, int] = {"smoke": 1, "laptop": 1, "paper": 1}


def training(scale: Scale) -> Training:
    """Return the training run of a scale."""
    size = SIZES[scale]
    return Training(d=size.d, width=size.width)


def every(step: int, last: int) -> tuple[int, ...]:
    """Return every `step`-th step from 0, and the last."""
    return tuple(sorted({*range(0, last + 1, step), last}))


def lemma_c1(run: Callable[[Scale], Training], c: float, C: float) -> tuple[Condition, ...]:
    """Return the conditions of Lemma C.1 on a run with θ = 1/log^C(d)."""
    return (
        Condition(
            f"exponent of θ = 1/log^C(d), large in terms of c = {c:g}: C ≥ K·c",
            lambda s: -math.log(run(s).radius) / math.log(math.log(run(s).d)),
            lambda s: c,
            constant="K",
        ),
        Condition("m ≥ d/θ²", lambda s: run(s).batch, lambda s: run(s).d / run(s).radius ** 2),
        Condition("η ≤ θ", lambda s: run(s).step, lambda s: run(s).radius, "≤"),
        Condition("p ≥ 1/θ", lambda s: run(s).width, lambda s: 1 / run(s).radius),
        Condition(f"p ≤ d^{C:g}", lambda s: run(s).width, lambda s: float(run(s).d) ** C, "≤"),
    )
