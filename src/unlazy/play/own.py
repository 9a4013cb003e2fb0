"""Any task as a preset: its own numbers as sliders, a learner to watch, and rivals with fixed
features beside it.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from unlazy.core.errors import BadInput
from unlazy.lab.registry import family_of, learners, tasks
from unlazy.learners.base import Learner
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.mean_field import MeanFieldSGD
from unlazy.learners.parts import Stage
from unlazy.learners.unit_norm import UnitNorm
from unlazy.play.presets import PACE, paced, seeds_of
from unlazy.play.scenario import GrowingGap, Preset, Scenario, Slider, Values
from unlazy.tasks.base import Family
from unlazy.tasks.tables.files import names_column

#: Learners of the shelf that can be watched on any task, the likeliest first.
WATCHED = ("network", "sgd", "one-step-network", "tangent-sgd", "relu-features-sgd")
#: Rivals that are solved beside them.
BASELINES = ("linear", "ntk", "rbf")


def task_preset(name: str) -> Preset:
    """A preset of a task by its name, or of one's own, as file.py:Name."""
    family = family_of(name)
    what = tasks()[name].summary if name in tasks() else _told(name, family)
    numbers = sliders_of(family)
    fields = {slider.name.removeprefix("task."): slider.name for slider in numbers}

    def build(values: Values) -> Scenario:
        changed = {field: values[slider] for field, slider in fields.items()}
        now = dataclasses.replace(
            family,
            **{field: value for field, value in changed.items() if value != getattr(family, field)},
        )
        main = watched_learner(values["learner"], now, values)
        beside = (
            {"random features": watched_learner("relu-features-sgd", now, values)}
            if values["learner"] == "network"
            else {}
        )
        baselines = {each: learners()[each].value for each in BASELINES}
        n = values["n"] if now.most_examples is None else min(values["n"], now.most_examples)
        return Scenario(
            now, {values["learner"]: main, **beside}, baselines, n, min(n, 2000), seeds_of(values)
        )

    grows = next(
        (
            slider
            for slider in numbers
            if slider.name in ("task.d", "task.n") and slider.kind == "whole"
        ),
        None,
    )
    along = (
        tuple(sorted({max(1, int(grows.default) // part) for part in (4, 2, 1)})) if grows else ()
    )
    return Preset(
        name,
        name,
        what[0].upper() + what[1:] + ("" if what.endswith(".") else "."),
        (
            Slider("learner", "learner", "network", choices=WATCHED),
            *numbers,
            _examples(family),
            Slider("width", "width, neurons", 200, 10, 1000, 10),
            Slider("steps", "steps (of SGD: n over the batch)", 1000, 50, 4000, 50),
            PACE,
        ),
        build,
        (),
        "plane",
        (),
        name,
        ("network", *BASELINES),
        {slider: field for field, slider in fields.items()},
        GrowingGap(grows.name, grows.label, along) if grows else None,
    )


def _told(name: str, family: Family) -> str:
    """What is said of a task that nobody registered."""
    if names_column(name):
        rows: Any = family
        told = [f"{len(rows.problem):,} rows.", *rows.problem.decisions]
        return f"The column {rows.target!r} of {Path(rows.path).name}: {' '.join(told)}"
    return (type(family).__doc__ or "a task of your own").strip().splitlines()[0]


def _examples(family: Family) -> Slider:
    most = min(10_000, family.most_examples or 10_000)
    return Slider(
        "n", "n, examples", min(1000, most), min(50, most), most, 50 if most == 10_000 else 1
    )


def sliders_of(family: Family) -> list[Slider]:
    """The numbers of a family; what it refuses is said beside the slider, so their limits may be
    wide.
    """
    found = []
    for field in dataclasses.fields(family):
        value = getattr(family, field.name)
        common: dict[str, Any] = {
            "name": f"task.{field.name}",
            "label": field.name,
            "default": value,
        }
        if isinstance(value, bool):
            found.append(Slider(**common))
        elif isinstance(value, int):
            found.append(Slider(**common, low=1, high=max(4 * value, 16)))
        elif isinstance(value, float):
            high = 1.0 if 0 <= value <= 1 else 4 * value
            found.append(
                Slider(**common, low=min(0.0, value), high=high, step=high / 40, live=True)
            )
    return found


def watched_learner(name: str, family: Family, values: Values) -> Learner:
    """A learner of the shelf at the sizes that were chosen."""
    learner = learners()[name].value
    if not learner.suits(family.outputs):
        raise BadInput(f"{name} cannot learn {family.outputs.kind}.")
    if isinstance(learner, MeanFieldSGD):
        return dataclasses.replace(
            learner, width=values["width"], step=learner.step * values["pace"]
        )
    assert isinstance(learner, UnitNorm)
    inner = learner.learner
    assert isinstance(inner, GradientDescent)
    init: Any = inner.init
    half = max(1, values["width"] // 2)
    sized = (
        dataclasses.replace(init, m=half)
        if hasattr(init, "m")
        else dataclasses.replace(init, of=dataclasses.replace(init.of, m=half))
    )
    stages = tuple(_lasting(stage, values["steps"]) for stage in inner.stages)
    resized = dataclasses.replace(inner, init=sized, stages=stages)
    return UnitNorm.of(paced(resized, values["pace"]))


def _lasting(stage: Stage, steps: int) -> Stage:
    """A stage of many steps with so many; one of a single step as it is."""
    if isinstance(stage, Descent) and stage.steps is not None and stage.steps > 1:
        return dataclasses.replace(stage, steps=steps)
    return stage
