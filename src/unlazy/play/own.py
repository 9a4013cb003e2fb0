"""Presets of arbitrary tasks: task parameters as sliders, one watched learner, baselines."""

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
from unlazy.play.pacing import PACE, paced, seeds_of
from unlazy.play.scenario import GrowingGap, Preset, Scenario, Slider, Values
from unlazy.tasks.base import Family
from unlazy.tasks.tables.files import names_column

#: Learners of the catalog that can be watched on any task; the first is the default.
WATCHED = ("network", "sgd", "one-step-network", "tangent-sgd", "relu-features-sgd")
#: Those of them with fixed features.
FIXED = ("tangent-sgd", "relu-features-sgd")
#: Baselines with fixed features.
BASELINES = ("linear", "ntk", "rbf")


def task_preset(name: str) -> Preset:
    """Return the preset of a task: a registered name, `file.py:Name` or `table.csv:column`."""
    family = family_of(name)
    summary = tasks()[name].summary if name in tasks() else _description(name, family)
    parameters = sliders_of(family)
    fields = {slider.name.removeprefix("task."): slider.name for slider in parameters}

    def build(values: Values) -> Scenario:
        changed = {field: values[slider] for field, slider in fields.items()}
        now = dataclasses.replace(
            family,
            **{field: value for field, value in changed.items() if value != getattr(family, field)},
        )
        main = watched_learner(values["learner"], now, values)
        random_features = (
            {"random features": watched_learner("relu-features-sgd", now, values)}
            if values["learner"] == "network"
            else {}
        )
        baselines = {each: learners()[each].value for each in BASELINES}
        n = values["n"] if now.most_examples is None else min(values["n"], now.most_examples)
        return Scenario(
            now,
            {values["learner"]: main, **random_features},
            baselines,
            n,
            min(n, 2000),
            seeds_of(values),
            fixed=("random features", *FIXED),
        )

    size = next(
        (
            slider
            for slider in parameters
            if slider.name in ("task.d", "task.n") and slider.kind == "integer"
        ),
        None,
    )
    sizes = tuple(sorted({max(1, int(size.default) // part) for part in (4, 2, 1)})) if size else ()
    return Preset(
        name,
        name,
        summary[0].upper() + summary[1:] + ("" if summary.endswith(".") else "."),
        (
            Slider("learner", "learner", "network", choices=WATCHED),
            *parameters,
            _examples(family),
            Slider("width", "width (neurons)", 200, 10, 1000, 10),
            Slider(
                "steps",
                "gradient steps (no effect on sgd, which makes n / batch size steps)",
                1000,
                50,
                4000,
                50,
            ),
            PACE,
        ),
        build,
        (),
        "plane",
        (),
        name,
        ("network", *BASELINES),
        {slider: field for field, slider in fields.items()},
        GrowingGap(size.name, size.label, sizes) if size else None,
    )


def _description(name: str, family: Family) -> str:
    if names_column(name):
        rows: Any = family
        notes = [f"{len(rows.problem):,} rows.", *rows.problem.decisions]
        return f"Column {rows.target!r} of {Path(rows.path).name}: {' '.join(notes)}"
    return (type(family).__doc__ or name).strip().splitlines()[0]


def _examples(family: Family) -> Slider:
    high = min(10_000, family.most_examples or 10_000)
    step = 50 if high == 10_000 else 1
    return Slider("n", "n, training examples", min(1000, high), min(50, high), high, step)


def sliders_of(family: Family) -> list[Slider]:
    """Return sliders for the parameters of a family, with wide ranges.

    The family checks the values; its error message is shown at the slider.
    """
    found = []
    for field in dataclasses.fields(family):
        value = getattr(family, field.name)
        common: dict[str, Any] = {
            "name": f"task.{field.name}",
            "label": "n, of the task" if field.name == "n" else field.name,
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
    """Return a learner of the catalog with the chosen width, steps and learning rates."""
    learner = learners()[name].value
    if not learner.suits(family.outputs):
        raise BadInput(f"{name} does not support outputs of kind {family.outputs.kind}.")
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
    stages = tuple(_with_steps(stage, values["steps"]) for stage in inner.stages)
    resized = dataclasses.replace(inner, init=sized, stages=stages)
    return UnitNorm.of(paced(resized, values["pace"]))


def _with_steps(stage: Stage, steps: int) -> Stage:
    if isinstance(stage, Descent) and stage.steps is not None and stage.steps > 1:
        return dataclasses.replace(stage, steps=steps)
    return stage
