"""Claims: what a paper asserts, the study that tests it, and the rule that decides. A study is made of arms.

An arm gives trials for seeds and joins their records to one record a seed: an `Arm` is a learner on a family; an `Instrument` computes; a
`Row` is an arm for each place on an axis (widths, dimensions, numbers of examples), joined along it; `Repeats` averages several runs of an
arm; a `Comparison` holds arms against each other.
"""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

import numpy as np

from unlazy.core.errors import require
from unlazy.lab.statistics import LEVEL
from unlazy.lab.trials import Record, Runnable, Trial
from unlazy.learners.base import Learner
from unlazy.probes.base import Probe
from unlazy.tasks.base import Family

Scale = Literal["smoke", "laptop", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "laptop", "paper")
#: Seeds below this were used to choose settings; studies start here, so that no verdict rests on a seed that was tuned on.
FIRST_SEED = 10
#: The r-th repetition under a seed has the seed plus r times this: far from all seeds that anyone asks for.
REPEAT = 1 << 20


class StudyArm(Protocol):
    """What a study is made of."""

    def trials(self, seeds: Sequence[int]) -> list[Runnable]:
        """What is run for these seeds."""

    def join(self, records: Sequence[Record], seeds: Sequence[int]) -> list[Record]:
        """One record a seed, from the records of `trials(seeds)` in their order."""


@dataclasses.dataclass(frozen=True)
class Arm:
    """One learner on one family."""

    family: Family
    learner: Learner
    n: int
    probes: tuple[Probe, ...]

    def trials(self, seeds: Sequence[int]) -> list[Runnable]:
        return [Trial(self.family, self.learner, self.n, seed, self.probes) for seed in seeds]

    def join(self, records: Sequence[Record], seeds: Sequence[int]) -> list[Record]:
        return list(records)


class _Joint:
    """Base of arms made of arms: their trials one after the other, and for each seed one record from theirs."""

    @property
    @abstractmethod
    def parts(self) -> Mapping[Any, StudyArm]:
        """The arms by name."""

    @abstractmethod
    def joined(self, records: Mapping[Any, Record]) -> Record:
        """One record from those of all parts under one seed."""

    def trials(self, seeds: Sequence[int]) -> list[Runnable]:
        return [trial for part in self.parts.values() for trial in part.trials(seeds)]

    def join(self, records: Sequence[Record], seeds: Sequence[int]) -> list[Record]:
        found: dict[Any, list[Record]] = {}
        start = 0
        for name, part in self.parts.items():
            count = len(part.trials(seeds))
            found[name] = part.join(records[start : start + count], seeds)
            start += count
        require(start == len(records), f"{len(records)} records were given for {start} trials.")
        return [self.joined({name: rows[place] for name, rows in found.items()}) for place in range(len(seeds))]


def together(records: Sequence[Record], steps: Sequence[int], measurements: Mapping[str, Any]) -> Record:
    """A record that sums several up: it is diverged where one of them is, and took the time of all."""
    first = records[0]
    return dataclasses.replace(
        first,
        status="diverged" if any(record.status == "diverged" for record in records) else "ok",
        steps=tuple(int(step) for step in steps),
        measurements={name: tuple(map(float, series)) for name, series in measurements.items()},
        arrays={},
        seconds=sum(record.seconds for record in records),
        created=min(record.created for record in records),
    )


#: What a row adds to its measures: from the places on its axis and the measures along it, further series, or one number for all places.
Summary = Callable[[np.ndarray, Mapping[str, np.ndarray]], Mapping[str, Any]]


@dataclasses.dataclass(frozen=True)
class Row(_Joint):
    """An arm for each place on an axis. The joined record has the places as its steps, and of each arm what it measured at its last step.

    `picks` names further measures by measure and step: {"first": ("ratio", 1)}. `summaries` add what only the whole row tells, such as an
    exponent; `after` computes measures of one place's record before it is joined.
    """

    arms: Mapping[int, StudyArm]
    picks: Mapping[str, tuple[str, int]] = dataclasses.field(default_factory=dict)
    summaries: tuple[Summary, ...] = ()
    after: Callable[[int, Record], Mapping[str, float]] | None = None

    @property
    def parts(self) -> Mapping[int, StudyArm]:
        return self.arms

    def joined(self, records: Mapping[int, Record]) -> Record:
        places = np.array(list(records), float)
        columns = [self._column(place, record) for place, record in records.items()]
        table = {name: np.array([column[name] for column in columns], float) for name in columns[0] if all(name in c for c in columns)}
        for summary in self.summaries:
            for name, value in summary(places, table).items():
                table[name] = np.broadcast_to(np.asarray(value, float), places.shape)
        return together(list(records.values()), list(records), table)

    def _column(self, place: int, record: Record) -> dict[str, float]:
        last = {name: series[-1] for name, series in record.measurements.items()}
        picked = {name: record.value(measure, step) for name, (measure, step) in self.picks.items()}
        return last | picked | dict(self.after(place, record) if self.after else {})


@dataclasses.dataclass(frozen=True)
class Repeats(_Joint):
    """The mean over `count` runs of an arm under one seed, for what is noisy: each run has a seed of its own."""

    arm: StudyArm
    count: int

    @property
    def parts(self) -> Mapping[int, StudyArm]:
        return {index: _Shifted(self.arm, index * REPEAT) for index in range(self.count)}

    def joined(self, records: Mapping[int, Record]) -> Record:
        runs = list(records.values())
        names = [name for name in runs[0].measurements if all(name in run.measurements for run in runs)]
        return together(runs, runs[0].steps, {name: np.mean([run.measurements[name] for run in runs], axis=0) for name in names})


@dataclasses.dataclass(frozen=True)
class _Shifted:
    """An arm under other seeds."""

    arm: StudyArm
    shift: int

    def trials(self, seeds: Sequence[int]) -> list[Runnable]:
        return self.arm.trials([seed + self.shift for seed in seeds])

    def join(self, records: Sequence[Record], seeds: Sequence[int]) -> list[Record]:
        found = self.arm.join(records, [seed + self.shift for seed in seeds])
        return [dataclasses.replace(r, trial=r.trial | {"seed": seed}) for r, seed in zip(found, seeds, strict=True)]


@dataclasses.dataclass(frozen=True)
class Comparison(_Joint):
    """Arms held against each other: `measure` makes numbers of their records under one seed."""

    arms: Mapping[str, StudyArm]
    measure: Callable[[Mapping[str, Record]], Mapping[str, float]]

    @property
    def parts(self) -> Mapping[str, StudyArm]:
        return self.arms

    def joined(self, records: Mapping[str, Record]) -> Record:
        return together(list(records.values()), (0,), {name: (value,) for name, value in self.measure(records).items()})


@dataclasses.dataclass(frozen=True)
class Quantity:
    """A measurement of an arm, at a step (None: the last)."""

    arm: str
    measure: str
    step: int | None = None

    def __str__(self) -> str:
        return f"{self.arm} {self.measure}" + ("" if self.step is None else f" at step {self.step}")


@dataclasses.dataclass(frozen=True)
class Check:
    """lower ≤ mean of the quantity over seeds ≤ upper. `scales`: where the bounds are meant to hold."""

    quantity: Quantity
    lower: float = -math.inf
    upper: float = math.inf
    scales: tuple[Scale, ...] = ("laptop", "paper")

    def __str__(self) -> str:
        if math.isinf(self.upper):
            return f"{self.quantity} ≥ {self.lower:g}"
        if math.isinf(self.lower):
            return f"{self.quantity} ≤ {self.upper:g}"
        return f"{self.quantity} in [{self.lower:g}, {self.upper:g}]"


@dataclasses.dataclass(frozen=True)
class Published:
    """A number printed in the paper. It counts as reproduced where the measured mean is within `tolerance` of it."""

    quantity: Quantity
    value: float
    tolerance: float


@dataclasses.dataclass(frozen=True)
class PlotLine:
    """One line of a plot: a measure of an arm against its steps, or against another measure `x` of the same arm.

    `theory` draws it as a thin dashed line without marks, as is fit for a bound or a prediction.
    """

    arm: str
    measure: str
    name: str
    x: str | None = None
    theory: bool = False


@dataclasses.dataclass(frozen=True)
class Plot:
    """A chart that a claim wants on the page and among its figures."""

    title: str
    x: str
    y: str
    series: tuple[PlotLine, ...]
    log_x: bool = False
    log_y: bool = False
    caption: str = ""


@dataclasses.dataclass(frozen=True)
class Claim:
    """A checkable statement of a paper.

    `study` gives the arms at a scale. `seeds` is the number of seeds a scale takes by default, `least_seeds` the number below which nothing
    is decided; an exact computation may ask for one, whose interval then has no width. `deviations` says what had to differ from the paper.
    """

    id: str
    where: str
    kind: Literal["task", "learner", "lemma", "table", "figure", "bound"]
    statement: str
    study: Callable[[Scale], Mapping[str, StudyArm]]
    checks: tuple[Check, ...]
    published: tuple[Published, ...] = ()
    deviations: tuple[str, ...] = ()
    seeds: Mapping[Scale, int] = dataclasses.field(default_factory=lambda: {"smoke": 1, "laptop": 3, "paper": 5})
    least_seeds: int = 3
    plots: tuple[Plot, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether the claim is a computation without chance, for which one run is enough."""
        return self.least_seeds == 1

    @property
    def rule(self) -> str:
        """The rule as a sentence."""
        interval = f"the {LEVEL:.0%} interval of the mean over at least {self.least_seeds} seeds lies"
        return f"holds if {'what was computed exactly lies' if self.exact else interval} within the bounds of every check: " + "; ".join(
            f"{check} ({' and '.join(check.scales)})" if check.scales != ("laptop", "paper") else str(check) for check in self.checks
        )
