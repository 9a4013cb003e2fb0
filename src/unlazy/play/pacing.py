"""Parts of presets: seeds, and the learning rates that a slider multiplies."""

from __future__ import annotations

import dataclasses

from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.parts import Stage
from unlazy.play.scenario import Slider, Values

PACE = Slider(
    "pace",
    "learning-rate multiplier",
    1.0,
    0.1,
    4.0,
    0.05,
    live=True,
    why="multiplies all learning rates, except in steps with full weight decay",
)


def seeds_of(values: Values) -> tuple[int, ...]:
    """Return the seeds of a run."""
    return tuple(range(values["seed"], values["seed"] + values["seeds"]))


def paced(learner: GradientDescent, factor: float) -> GradientDescent:
    """Return the learner with its learning rates multiplied by a factor.

    Steps with full decay keep theirs, which the theorem prescribes.
    """
    return dataclasses.replace(
        learner, stages=tuple(_paced(stage, factor) for stage in learner.stages)
    )


def _paced(stage: Stage, factor: float) -> Stage:
    if not isinstance(stage, Descent) or stage.full_decay:
        return stage
    return dataclasses.replace(
        stage, rates={group: rate * factor for group, rate in stage.rates.items()}
    )
