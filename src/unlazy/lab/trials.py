"""Trials and records: what is run, and what is kept of it."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import equinox as eqx
import numpy as np

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


@dataclasses.dataclass(frozen=True)
class Trial:
    """One run: a task drawn from `family` and a `learner` given `n` examples, both by `seed`, and the `probes` that look at it."""

    family: Family
    learner: Learner
    n: int
    seed: int
    probes: tuple[Probe, ...]

    def __post_init__(self) -> None:
        """Refuse numbers that cannot be run."""
        require(isinstance(self.n, int) and self.n > 0, f"n must be a positive whole number of examples, but is {self.n!r}.")
        require(
            isinstance(self.seed, int) and 0 <= self.seed < 2**32,
            f"A seed is a whole number in [0, 2³²), but is {self.seed!r}.",
        )

    def describe(self) -> dict[str, Any]:
        """The trial as plain JSON data."""
        return {name: describe(getattr(self, name)) for name in ("family", "learner", "n", "seed", "probes")}

    @functools.cached_property
    def key(self) -> str:
        """The content of the trial as a hash: the name under which its record is stored."""
        text = json.dumps(self.describe(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


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
