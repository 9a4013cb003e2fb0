"""Trials, instruments and records: what is run, and what is kept of it."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

import equinox as eqx
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.core.errors import require, require_whole
from unlazy.core.naming import Ingredients, describe, field_keys
from unlazy.lab.provenance import Fingerprint, fingerprint_of
from unlazy.learners.base import Learner
from unlazy.probes.base import Probe
from unlazy.tasks.base import Family

Status = Literal["ok", "diverged"]
#: Under this name an exact computation may return further plain data, which its record keeps.
DETAILS = "details"


def now() -> str:
    """The current time as text that sorts by time."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


class ExactComputation(eqx.Module):
    """An exact computation without a learner on a task: a count, a bound beside what it bounds, a
    spectrum.

    It runs on the host, once a seed, and may call compiled functions; in a study it stands beside
    the arms. `axis` names the field along which it measures (sizes, times, …), if there is one.
    """

    precision: Literal[32, 64] = eqx.field(static=True, default=32, kw_only=True)
    axis: ClassVar[str] = ""

    @property
    def steps(self) -> tuple[int, ...]:
        """The values of the axis, increasing; without one there is one measurement."""
        found: tuple[int, ...] = getattr(self, self.axis) if self.axis else (0,)
        return found

    @abstractmethod
    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Numbers and arrays by name. With an axis, the first axis of each is that of `steps`."""

    def trials(self, seeds: Sequence[int]) -> list[Runnable]:
        """One measurement a seed."""
        return [Measurement(self, seed) for seed in seeds]

    def join(self, records: Sequence[Record], seeds: Sequence[int]) -> list[Record]:
        """One record a seed, as they are."""
        return list(records)


class _Runnable:
    """What can be run by a seed and is stored under a hash of its content."""

    seed: int

    def __post_init__(self) -> None:
        require(
            isinstance(self.seed, int) and 0 <= self.seed < 2**32,
            f"A seed is a whole number in [0, 2³²), but is {self.seed!r}.",
        )

    def describe(self) -> dict[str, Any]:
        """Return the content as plain JSON data."""
        return self._described(brief=False)

    def _described(self, *, brief: bool, parts: Ingredients | None = None) -> dict[str, Any]:
        found = {}
        kind: Any = type(self)
        keys = field_keys(kind) if brief else {}
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            name = keys.get(field.name, field.name)
            found[name], ingredients = _part(getattr(self, field.name), brief)
            if parts is not None:
                parts.add(ingredients)
        return found

    @functools.cached_property
    def key(self) -> str:
        """Hash of the content, without fields equal to their defaults."""
        return key_of(self._described(brief=True))

    @functools.cached_property
    def fingerprint(self) -> Fingerprint:
        """Code, library versions and data on which the numbers depend."""
        parts = Ingredients()
        self._described(brief=True, parts=parts)
        return fingerprint_of(parts)

    @functools.cached_property
    def id(self) -> str:
        """The name of its record: a record answers only if key and fingerprint both match."""
        return f"{self.key}.{self.fingerprint.id}"


#: Descriptions of parts that trials share, such as one family under many seeds, by their identity
#: in memory; the part itself is kept, so that its identity is not given to another.
_PARTS: dict[tuple[int, bool], tuple[Any, Any, Ingredients]] = {}
#: So many are kept.
MAX_PARTS = 1000


def _part(value: Any, brief: bool) -> tuple[Any, Ingredients]:
    """Describe a part of a trial, once for all trials that share it; files may change, so parts
    that refer to data are described each time.
    """
    known = _PARTS.get((id(value), brief))
    if known is not None and known[0] is value:
        return known[1], known[2]
    ingredients = Ingredients()
    described = describe(value, brief=brief, parts=ingredients)
    if not ingredients.data:
        while len(_PARTS) >= MAX_PARTS:
            _PARTS.pop(next(iter(_PARTS)))
        _PARTS[id(value), brief] = (value, described, ingredients)
    return described, ingredients


def key_of(brief: object) -> str:
    """Return the key of a trial with this brief description."""
    text = json.dumps(brief, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclasses.dataclass(frozen=True)
class Trial(_Runnable):
    """One run: a task drawn from `family` and a `learner` given `n` examples, both by `seed`, and
    the `probes` that look at it.

    The learner is kept as it suits the family.
    """

    family: Family
    learner: Learner
    n: int
    seed: int
    probes: tuple[Probe, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        require_whole("n", self.n, "examples")
        most = self.family.most_examples
        require(
            most is None or self.n <= most,
            f"There are {most} examples to learn from, but n={self.n} were asked for.",
        )
        outputs = self.family.outputs
        name = type(self.learner).__name__
        require(
            self.learner.suits(outputs),
            f"{name} cannot learn "
            f"{outputs.kind}{'' if outputs.count is None else f' of {outputs.count}'}.",
        )
        # One whose settings follow the dimension becomes another here, which is asked no more.
        object.__setattr__(self, "learner", self.learner.suited(self.family))

    @property
    def steps(self) -> tuple[int, ...]:
        return self.learner.recorded(self.n)

    @property
    def precision(self) -> int:
        return self.learner.precision

    @property
    def on_host(self) -> bool:
        """Whether it runs alone, and not in a compiled program with others."""
        return self.learner.on_host

    @functools.cached_property
    def work(self) -> float:
        """Multiply-adds: the training, and the models at the recorded steps looked at with about
        20,000 examples each.
        """
        r = self.family.coordinates
        looks = len(self.steps) * 2e4
        return (self.learner.work(self.n, r) + looks * self.learner.prediction_work(r)) * (
            self.precision / 32
        )


@dataclasses.dataclass(frozen=True)
class Measurement(_Runnable):
    """One run of an exact computation."""

    computation: ExactComputation = dataclasses.field(metadata={"key": "instrument"})
    seed: int

    @property
    def steps(self) -> tuple[int, ...]:
        return self.computation.steps

    @property
    def precision(self) -> int:
        return self.computation.precision

    @property
    def on_host(self) -> bool:
        return True

    @property
    def work(self) -> float:
        """One: what it takes is learned from the store."""
        return 1.0


def computation_of(description: Mapping[str, Any]) -> Any:
    """Return the exact computation that a record describes, also one of an earlier version."""
    return description.get("computation", description.get("instrument"))


#: What an engine runs.
Runnable = Trial | Measurement


@dataclasses.dataclass(frozen=True)
class Record:
    """The measurements of one trial at all its recorded steps.

    `measurements[name][i]` and `arrays[name][i]` belong to `steps[i]`. `status` is "diverged" if
    training produced NaN or inf. `fingerprint` is that of the code and data that made it.
    `details`: further plain data of an exact computation. `seconds` is the trial's part of the
    time its compiled program ran, `created` the moment it ended.
    """

    key: str
    fingerprint: str
    trial: dict[str, Any]
    status: Status
    steps: tuple[int, ...]
    measurements: dict[str, tuple[float, ...]]
    arrays: dict[str, np.ndarray]
    seconds: float
    provenance: dict[str, Any]
    created: str
    details: dict[str, Any] | None = None

    @property
    def id(self) -> str:
        """The name under which it is stored."""
        return f"{self.key}.{self.fingerprint}"

    @property
    def seed(self) -> int:
        """The trial's seed."""
        return int(self.trial["seed"])

    def value(self, measure: str, step: int | None = None) -> float:
        """Return a measurement at a recorded step, by default the last."""
        place = -1 if step is None else self.steps.index(step)
        return self.measurements[measure][place]


@dataclasses.dataclass(frozen=True)
class Failure:
    """A trial that could not be run, and why: it killed its processes, or raised an error."""

    id: str
    trial: dict[str, Any]
    reason: str
    provenance: dict[str, Any]
    created: str
