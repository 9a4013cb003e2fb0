"""What a study is made of: arms, each of which gives trials for seeds and joins their records to
one record a seed.

An `Arm` is a learner on a family; an `ExactComputation` has no learner; a `Row` is an arm for each
value on an axis (widths, dimensions, numbers of examples); `Repeats` averages several runs of an
arm; a `Comparison` holds arms against each other. Two choose: `Tuned` is a learner at the best
of its own settings, chosen on examples that it holds out; `Chosen` is the best of a grid of arms by
a measure.
"""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from unlazy.core.deprecation import renamed_parameters
from unlazy.core.errors import require
from unlazy.lab.trials import Record, Runnable, Trial
from unlazy.learners.base import Learner
from unlazy.learners.holdout import HoldOut
from unlazy.probes.base import Probe
from unlazy.tasks.base import Family
from unlazy.tasks.shuffled_labels import ShuffledLabels

#: The r-th repetition under a seed has the seed plus r times this: far from all seeds that anyone
#: asks for.
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
    """Base of arms made of arms: the trials of all, and per seed one record from theirs."""

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
        return [
            self.joined({name: rows[place] for name, rows in found.items()})
            for place in range(len(seeds))
        ]


def together(
    records: Sequence[Record], steps: Sequence[int], measurements: Mapping[str, Any]
) -> Record:
    """A record that sums several up: it is diverged where one of them is, and took the time of
    all.
    """
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


#: What a row adds to its measures: from the places on its axis and the measures along it, further
#: series, or one number for all places.
Summary = Callable[[np.ndarray, Mapping[str, np.ndarray]], Mapping[str, Any]]


@dataclasses.dataclass(frozen=True)
class Row(_Joint):
    """An arm for each place on an axis. The joined record has the places as its steps, and of each
    arm what it measured at its last step.

    `picks` names further measures by measure and step: {"first": ("ratio", 1)}. `summaries` add
    what only the whole row tells, such as an exponent; `after` computes measures of one place's
    record before it is joined.
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
        table = {
            name: np.array([column[name] for column in columns], float)
            for name in columns[0]
            if all(name in c for c in columns)
        }
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
    """The mean over `count` runs of an arm under one seed, for what is noisy: each run has a seed
    of its own.
    """

    arm: StudyArm
    count: int

    @property
    def parts(self) -> Mapping[int, StudyArm]:
        return {index: _Shifted(self.arm, index * REPEAT) for index in range(self.count)}

    def joined(self, records: Mapping[int, Record]) -> Record:
        runs = list(records.values())
        names = [
            name for name in runs[0].measurements if all(name in run.measurements for run in runs)
        ]
        return together(
            runs,
            runs[0].steps,
            {name: np.mean([run.measurements[name] for run in runs], axis=0) for name in names},
        )


@dataclasses.dataclass(frozen=True)
class _Shifted:
    arm: StudyArm
    shift: int

    def trials(self, seeds: Sequence[int]) -> list[Runnable]:
        return self.arm.trials([seed + self.shift for seed in seeds])

    def join(self, records: Sequence[Record], seeds: Sequence[int]) -> list[Record]:
        found = self.arm.join(records, [seed + self.shift for seed in seeds])
        return [
            dataclasses.replace(r, trial=r.trial | {"seed": seed})
            for r, seed in zip(found, seeds, strict=True)
        ]


@dataclasses.dataclass(frozen=True)
class Comparison(_Joint):
    """Arms held against each other: `measure` makes numbers of their records under one seed."""

    arms: Mapping[str, StudyArm]
    measure: Callable[[Mapping[str, Record]], Mapping[str, float]]

    @property
    def parts(self) -> Mapping[str, StudyArm]:
        return self.arms

    def joined(self, records: Mapping[str, Record]) -> Record:
        return together(
            list(records.values()),
            (0,),
            {name: (value,) for name, value in self.measure(records).items()},
        )


@renamed_parameters(share="validation_fraction")
@dataclasses.dataclass(frozen=True)
class Tuned:
    """A learner on a family at the best of at most `budget` settings, chosen seed by seed on a
    `validation_fraction` of its n examples, as in a contest.

    Every setting is tried on the rest of the examples and also fitted to all of them; the record is
    that of the one chosen, at its last step, with `validation`, its metric on what was held out.
    """

    family: Family
    learner: Learner
    n: int
    probes: tuple[Probe, ...]
    budget: int = 6
    validation_fraction: float = 0.2

    @property
    def _candidates(self) -> tuple[Learner, ...]:
        return self.learner.suited(self.family).tuning(self.budget)

    def trials(self, seeds: Sequence[int]) -> list[Runnable]:
        return [
            trial
            for seed in seeds
            for learner in self._candidates
            for trial in self._both(learner, seed)
        ]

    def _both(self, learner: Learner, seed: int) -> tuple[Trial, Trial]:
        rehearsal = Trial(
            self.family, HoldOut.of(learner, self.validation_fraction), self.n, seed, ()
        )
        return rehearsal, Trial(self.family, learner, self.n, seed, self.probes)

    def join(self, records: Sequence[Record], seeds: Sequence[int]) -> list[Record]:
        candidates, metric = self._candidates, self.family.metric
        rows = iter(records)
        found = []
        for _ in seeds:
            pairs = [(learner, next(rows), next(rows)) for learner in candidates]
            best: tuple[tuple[float, float], Record] | None = None
            for learner, rehearsal, final in pairs:
                tried, kept = (
                    HoldOut.of(learner, self.validation_fraction).options(self.n),
                    learner.options(self.n),
                )
                for step, last in zip(tried, kept, strict=True):
                    value, lost = (
                        rehearsal.value(f"validation_{name}", step)
                        for name in (metric.name, "loss")
                    )
                    rank = (_or_infinite(-value if metric.higher else value), _or_infinite(lost))
                    if best is None or rank < best[0]:
                        chosen = {
                            name: (final.value(name, last),) for name in final.measurements
                        } | {"validation": (value,)}
                        best = (rank, together([final], (0,), chosen))
            assert best is not None
            found.append(
                dataclasses.replace(
                    best[1], seconds=sum(record.seconds for pair in pairs for record in pair[1:])
                )
            )
        return found


@dataclasses.dataclass(frozen=True)
class Chosen(_Joint):
    """Of a grid of arms, under each seed the one with the least `by`, by default the error on
    examples held out for that.

    The record is that of the arm chosen, at its last step, or where `along` at the step with the
    least `by`. To its measures come those named in `beside`, as the least over the grid: what
    choosing on them would have shown. A run that is not finite is never chosen, unless all are; the
    record is "diverged" only where the chosen run is. `chosen` counts the place in the grid.
    """

    arms: Mapping[Any, StudyArm]
    by: str = "validation_squared_error"
    beside: tuple[str, ...] = ("test_squared_error",)
    along: bool = False

    @property
    def parts(self) -> Mapping[Any, StudyArm]:
        return self.arms

    def joined(self, records: Mapping[Any, Record]) -> Record:
        runs = list(records.values())
        places = [
            (run, step)
            for run in runs
            for step in (range(len(run.steps)) if self.along else [len(run.steps) - 1])
        ]
        scores = [_or_infinite(run.measurements[self.by][at]) for run, at in places]
        chosen = scores.index(min(scores))
        best, step = places[chosen]
        least: dict[str, tuple[float, ...]] = {
            f"best_{name}": (min(_or_infinite(run.measurements[name][at]) for run, at in places),)
            for name in self.beside
            if all(name in run.measurements for run in runs)
        }
        own: dict[str, tuple[float, ...]] = {
            name: (series[step],) for name, series in best.measurements.items()
        }
        return dataclasses.replace(
            best,
            steps=(best.steps[step],),
            measurements=own | least | {"chosen": (float(chosen),)},
            arrays={},
            seconds=sum(run.seconds for run in runs),
            created=min(run.created for run in runs),
        )


def _or_infinite(value: float) -> float:
    return value if math.isfinite(value) else math.inf


def shuffled_labels(arm: StudyArm) -> StudyArm | None:
    """The same arm where labels are drawn without regard to the inputs; None where nothing in it
    learns from labels of a family.
    """
    if isinstance(arm, (Arm, Tuned)):
        return dataclasses.replace(arm, family=ShuffledLabels(arm.family))
    if isinstance(arm, (Row, Comparison, Chosen)):
        found: dict[Any, StudyArm | None] = {
            name: shuffled_labels(part) for name, part in arm.parts.items()
        }
        parts: Any = {name: found[name] or part for name, part in arm.parts.items()}
        return dataclasses.replace(arm, arms=parts) if any(found.values()) else None
    if isinstance(arm, Repeats):
        inner = shuffled_labels(arm.arm)
        return None if inner is None else dataclasses.replace(arm, arm=inner)
    return None
