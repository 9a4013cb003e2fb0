"""Frames of the live page: errors of all learners and views of the first one, as JSON."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unlazy.core.metrics import ACCURACY, metric_of
from unlazy.play.scenario import Scenario
from unlazy.play.training import LiveTraining, Snapshot, grid
from unlazy.report.neurons import NEAR
from unlazy.tasks.base import Family
from unlazy.tasks.circuits.circuit import NAMES, Circuit
from unlazy.tasks.circuits.families import CircuitTask
from unlazy.tasks.circuits.recovery import Examiner

#: Measures of `SignalView`.
SIGNALS = ("base", "composite")
#: Approximate number of frames per run.
FRAMES = 200
#: Test examples per frame.
TEST = 2000


class FrameBuffer:
    """Frames of a run, each computed from the snapshot of the frame before it."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.trainings: dict[str, LiveTraining] = {}
        self.snapshots: list[dict[str, Snapshot]] = []
        self._examiners: list[Examiner] = []
        self.steps: list[int] = []

    @property
    def name(self) -> str:
        """Name of the learner that is drawn."""
        return next(iter(self.scenario.watched))

    def open(self) -> dict[str, Any]:
        """Initialize the first learner and return frame 0, before the others are compiled."""
        self._add(self.name)
        self.steps = list(grid(self.trainings[self.name].lengths, FRAMES))
        return self.frame(0)

    def _add(self, name: str) -> None:
        training = LiveTraining(
            self.scenario.family,
            self.scenario.watched[name],
            self.scenario.n,
            self.scenario.seeds,
            test=TEST,
        )
        self.trainings[name] = training
        if not self.snapshots:
            self.snapshots.append({})
        self.snapshots[0][name] = training.begin()

    def complete(self) -> None:
        """Initialize the other learners."""
        for name in self.scenario.watched:
            if name not in self.trainings:
                self._add(name)

    @property
    def count(self) -> int:
        """Total number of frames."""
        return len(self.steps)

    def next(self, index: int) -> dict[str, Any]:
        """Train from the frame before `index` and return the frame at `index`."""
        del self.snapshots[index:]
        before, step = self.snapshots[index - 1], self.steps[index]
        self.snapshots.append(
            {
                name: training.advance(before[name], step)
                for name, training in self.trainings.items()
            }
        )
        return self.frame(index)

    def change(self, scenario: Scenario) -> bool:
        """Apply other values to the run; return False if they need other networks."""
        same = (
            scenario.n == self.scenario.n
            and scenario.seeds == self.scenario.seeds
            and scenario.watched.keys() == self.scenario.watched.keys()
        )
        if not same or any(
            _lengths(scenario, name) != self.trainings[name].lengths for name in self.trainings
        ):
            return False
        if not all(
            training.change(scenario.family, scenario.watched[name])
            for name, training in self.trainings.items()
        ):
            return False
        self.scenario, self._examiners = scenario, []
        return True

    def frame(self, index: int) -> dict[str, Any]:
        """Return one frame as JSON."""
        found = {
            name: self.trainings[name].look(snapshot)
            for name, snapshot in self.snapshots[index].items()
        }
        seen = found[self.name]
        frame: dict[str, Any] = {
            "index": index,
            "step": self.steps[index],
            "count": self.count,
            "errors": {name: errors_of(self.scenario.family, each) for name, each in found.items()},
            "signals": {
                name: {part: _rounded(each[part], 3) for part in SIGNALS}
                for name, each in found.items()
                if "base" in each
            },
        }
        if "places" in seen:
            frame |= {
                name: [_rounded(one, 3) for one in seen[name].reshape(len(seen[name]), -1)]
                for name in ("places", "stars")
            }
            frame |= {
                "lengths": [_rounded(one, 3) for one in seen["lengths"]],
                "votes": [_rounded(one, 0) for one in seen["votes"]],
            }
            frame |= {
                "tiles": [_rounded(row, 2) for row in seen["tiles"][0]],
                "hidden": int(seen["stars"].shape[1]),
            }
            frame["ground_truth"] = self.trainings[self.name].has_ground_truth
        if "gates" in seen:
            frame["tree"] = self._tree(seen)
        frame["summary"] = self.summary(frame)
        return frame

    def _tree(self, seen: dict[str, np.ndarray]) -> dict[str, Any]:
        wanted, learned = (Circuit(seen[name][0].astype(int)) for name in ("wanted", "gates"))
        if not self._examiners:
            task = self.scenario.family.task(key=_key_of(self.scenario.seeds[0]))
            assert isinstance(task, CircuitTask)
            self._examiners = [Examiner(wanted, task.input_distribution)]
        found = self._examiners[0](learned)
        return {
            "gates": [NAMES[gate] for gate in learned.gates],
            "wanted": [NAMES[gate] for gate in wanted.gates],
            "status": [int(each) for level in found.status for each in level],
            "sure": _rounded(np.min(np.abs(seen["outputs"][0]), axis=1), 2),
        }

    def summary(self, frame: dict[str, Any]) -> str:
        """Return the measurements of a frame as text, also read by screen readers."""
        unit = " %" if metric_of(self.scenario.family.outputs) is ACCURACY else ""
        digits = 1 if unit else 2
        errors = [f"{_mean(e, digits)}{unit} ({name})" for name, e in frame["errors"].items()]
        text = f"Step {frame['step']}: test error {', '.join(errors)}."
        if frame.get("ground_truth") and frame["hidden"] in (1, 2):
            places = np.array([value for one in frame["places"] for value in one], float).reshape(
                -1, 2
            )
            near = 100 * np.mean(_nearness(places, frame["hidden"]) >= NEAR)
            text += (
                f" {near:.0f} % of the neurons have |cosine| ≥ {NEAR:g} with a hidden direction."
            )
        if "tree" in frame:
            right = sum(status == 1 for status in frame["tree"]["status"])
            of = sum(status != 0 for status in frame["tree"]["status"])
            text += f" {right} of {of} gates that influence the output are correct, up to sign."
        for name, parts in frame["signals"].items():
            text += (
                f" {name.capitalize()}: coefficient {_mean(parts['base'], 2)} of F, "
                f"{_mean(parts['composite'], 2)} of G(F)."
            )
        return text


def _nearness(places: np.ndarray, hidden: int) -> np.ndarray:
    """Return |cosine| with the nearest hidden direction; the axes are the hidden directions."""
    result: np.ndarray = np.abs(places[:, 0]) if hidden == 1 else np.abs(places).max(axis=1)
    return result


def errors_of(family: Family, found: Any) -> list[float | None]:
    """Return the test error per seed: in percent, or squared."""
    metric = metric_of(family.outputs)
    values = np.asarray(found[f"test_{metric.name}"], float)
    return _rounded(100 - values if metric is ACCURACY else values, 3)


def _lengths(scenario: Scenario, name: str) -> list[int]:
    learner: Any = scenario.watched[name].suited(scenario.family)
    inner = getattr(learner, "learner", learner)
    return [stage.length(scenario.n) for stage in inner.stages]


def _key_of(seed: int) -> Any:
    import jax

    from unlazy.core.threefry import new_key

    return jax.random.split(new_key(seed), 3)[0]


def _rounded(values: Any, digits: int) -> list[float | None]:
    return [
        round(float(value), digits) if math.isfinite(value) else None for value in np.ravel(values)
    ]


def _mean(values: list[float | None], digits: int = 1) -> str:
    finite = [value for value in values if value is not None]
    return f"{sum(finite) / len(finite):.{digits}f}" if finite else "diverged"
