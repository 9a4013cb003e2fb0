"""Trials, exact computations, and their records."""

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
#: Name under which an exact computation may return further JSON data for its record.
DETAILS = "details"


def now() -> str:
    """Return the current time as a string that sorts by time."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


class ExactComputation(eqx.Module):
    """A computation without a learner, such as a count, a bound or a spectrum.

    It runs on the host, once per seed, and may call compiled functions. It is an arm of studies.
    `axis`: name of the field along which it measures (sizes, times, …), if there is one.
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
        """Return numbers and arrays by name. The first axis of each is that of `steps`, if any."""

    def trials(self, seeds: Sequence[int]) -> list[Runnable]:
        """Return one measurement per seed."""
        return [Measurement(self, seed) for seed in seeds]

    def join(self, records: Sequence[Record], seeds: Sequence[int]) -> list[Record]:
        """Return the records, one per seed."""
        return list(records)


class _Runnable:
    """Base of trials and measurements, which are stored under a hash of their content."""

    seed: int

    def __post_init__(self) -> None:
        require(
            isinstance(self.seed, int) and 0 <= self.seed < 2**32,
            f"`seed` must be an integer in [0, 2³²), got {self.seed!r}.",
        )

    def describe(self) -> dict[str, Any]:
        """Return the content as JSON data."""
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
        """The id of its record: key and fingerprint."""
        return f"{self.key}.{self.fingerprint.id}"


#: Descriptions of parts that trials share, such as a family, by their `id` in memory; the part is
#: kept alive so that its `id` is not reused.
_PARTS: dict[tuple[int, bool], tuple[Any, Any, Ingredients]] = {}
#: Size of this cache.
MAX_PARTS = 1000


def _part(value: Any, brief: bool) -> tuple[Any, Ingredients]:
    """Describe a part of a trial, with a cache; parts that refer to data files are not cached."""
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
    """One run: a task drawn from `family`, a `learner` trained on `n` examples, and `probes`.

    `seed` determines all random draws. The learner is adapted to the family.
    """

    family: Family
    learner: Learner
    n: int
    seed: int
    probes: tuple[Probe, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        require_whole("n", self.n, "examples")
        available = self.family.most_examples
        require(
            available is None or self.n <= available,
            f"`n` must be at most {available}, the number of available examples, got {self.n}.",
        )
        outputs = self.family.outputs
        name = type(self.learner).__name__
        require(
            self.learner.suits(outputs),
            f"{name} cannot learn "
            f"{outputs.kind}{'' if outputs.count is None else f' of {outputs.count}'}.",
        )
        # Settings that depend on the dimension are fixed here.
        object.__setattr__(self, "learner", self.learner.suited(self.family))

    @property
    def steps(self) -> tuple[int, ...]:
        return self.learner.recorded(self.n)

    @property
    def precision(self) -> int:
        return self.learner.precision

    @property
    def on_host(self) -> bool:
        """Whether it runs on the host, not in a compiled program with other trials."""
        return self.learner.on_host

    @functools.cached_property
    def work(self) -> float:
        """Multiply-adds of training and of probes, with about 20,000 examples per recorded step."""
        r = self.family.coordinates
        predictions = len(self.steps) * 2e4
        return (self.learner.work(self.n, r) + predictions * self.learner.prediction_work(r)) * (
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
        """One: the cost is estimated from past runs of the same computation."""
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
    `details`: further JSON data of an exact computation. `seconds`: the trial's part of the run
    time of its compiled program. `created`: when it ended.
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
        """The id under which it is stored."""
        return f"{self.key}.{self.fingerprint}"

    @property
    def seed(self) -> int:
        """The trial's seed."""
        return int(self.trial["seed"])

    def value(self, measure: str, step: int | None = None) -> float:
        """Return a measurement at a recorded step, by default the last."""
        i = -1 if step is None else self.steps.index(step)
        return self.measurements[measure][i]


@dataclasses.dataclass(frozen=True)
class Failure:
    """A trial that could not be run, with the reason: a killed process or an error."""

    id: str
    trial: dict[str, Any]
    reason: str
    provenance: dict[str, Any]
    created: str
