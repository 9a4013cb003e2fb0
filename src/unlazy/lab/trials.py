"""Trials, experiments and records: what is run, and what is kept of it."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from abc import abstractmethod
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import equinox as eqx
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.errors import require
from unlazy.learners.base import Learner
from unlazy.probes import Probe
from unlazy.tasks.base import Family

Status = Literal["ok", "diverged"]


def now() -> str:
    """The current time as text that sorts by time."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def describe(value: Any) -> Any:
    """Plain JSON data that say all there is to say of a family, learner or probe; equal exactly where the values are equal."""
    if isinstance(value, eqx.Module):
        fields = {field.name: describe(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"type": f"{type(value).__module__}.{type(value).__qualname__}", **fields}
    if isinstance(value, Mapping):
        return {str(name): describe(entry) for name, entry in sorted(value.items())}
    if isinstance(value, (tuple, list)):
        return [describe(entry) for entry in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a trial is described by plain numbers, strings, tuples and modules of these, not by {type(value).__name__}")


class Experiment(eqx.Module):
    """Whatever is measured by a seed and is not a learner on a task: an exact count, a bound beside what it bounds, a fitted exponent.

    It runs on the host, once a seed, and may call compiled functions. `steps` is the axis along which it measures (sizes, times, …).
    """

    precision: Literal[32, 64] = eqx.field(static=True, default=32, kw_only=True)

    @property
    def steps(self) -> tuple[int, ...]:
        """The values of the axis, increasing; by default there is one measurement and no axis."""
        return (0,)

    @abstractmethod
    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Numbers and arrays by name. With an axis, the first axis of each is that of `steps`."""

    @property
    @abstractmethod
    def work(self) -> float:
        """Rough number of multiply-adds, for planning."""


class _Runnable:
    """What can be run by a seed and is stored under a hash of its content."""

    seed: int

    def __post_init__(self) -> None:
        """Refuse a seed that cannot be used."""
        require(
            isinstance(self.seed, int) and 0 <= self.seed < 2**32,
            f"A seed is a whole number in [0, 2³²), but is {self.seed!r}.",
        )

    def describe(self) -> dict[str, Any]:
        """The content as plain JSON data."""
        return {field.name: describe(getattr(self, field.name)) for field in dataclasses.fields(self)}  # type: ignore[arg-type]

    @functools.cached_property
    def key(self) -> str:
        """The content as a hash: the name under which the record is stored."""
        text = json.dumps(self.describe(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclasses.dataclass(frozen=True)
class Trial(_Runnable):
    """One run: a task drawn from `family` and a `learner` given `n` examples, both by `seed`, and the `probes` that look at it."""

    family: Family
    learner: Learner
    n: int
    seed: int
    probes: tuple[Probe, ...]

    def __post_init__(self) -> None:
        """Refuse numbers that cannot be run."""
        super().__post_init__()
        require(isinstance(self.n, int) and self.n > 0, f"n must be a positive whole number of examples, but is {self.n!r}.")

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps that its record will hold."""
        return self.learner.recorded(self.n)

    @property
    def precision(self) -> int:
        """The width of floating point numbers."""
        return self.learner.precision

    @property
    def on_host(self) -> bool:
        """Whether it runs alone, and not in a compiled program with others."""
        return self.learner.on_host

    @property
    def work(self) -> float:
        """Multiply-adds: the training, and the models at the recorded steps looked at with about 20,000 examples each."""
        r = self.family.coordinates
        looks = len(self.steps) * 2e4
        return (self.learner.work(self.n, r) + looks * self.learner.prediction_work(r)) * (self.precision / 32)


@dataclasses.dataclass(frozen=True)
class Measurement(_Runnable):
    """One run of an experiment."""

    experiment: Experiment
    seed: int

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps that its record will hold."""
        return self.experiment.steps

    @property
    def precision(self) -> int:
        """The width of floating point numbers."""
        return self.experiment.precision

    @property
    def on_host(self) -> bool:
        """It runs alone."""
        return True

    @property
    def work(self) -> float:
        """Multiply-adds."""
        return self.experiment.work


#: What an engine runs.
Runnable = Trial | Measurement


@dataclasses.dataclass(frozen=True)
class Record:
    """The outcome of one trial, at all its recorded steps.

    `measurements[name][i]` and `arrays[name][i]` belong to `steps[i]`. `status` is "diverged" where training left the finite numbers.
    `seconds` is the trial's share of the time its compiled program ran, `created` the moment it ended.
    """

    key: str
    trial: dict[str, Any]
    status: Status
    steps: tuple[int, ...]
    measurements: dict[str, tuple[float, ...]]
    arrays: dict[str, np.ndarray]
    seconds: float
    provenance: dict[str, Any]
    created: str

    @property
    def seed(self) -> int:
        """The trial's seed."""
        return int(self.trial["seed"])

    def value(self, measure: str, step: int | None = None) -> float:
        """A measurement at a recorded step, by default the last."""
        place = -1 if step is None else self.steps.index(step)
        return self.measurements[measure][place]
