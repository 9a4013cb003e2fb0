"""Arms of studies: each returns trials for seeds, and joins their records to one record per seed.

`Arm`: a learner on a family. `ExactComputation`: no learner. `Row`: one arm per value on an axis
(widths, dimensions, numbers of examples). `Repeats`: mean over several runs of an arm.
`Comparison`: numbers computed from the records of several arms. `Tuned`: a learner at the best of
its settings, selected on validation examples. `Chosen`: the best of a grid of arms by a measure.
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

#: The r-th repetition has the seed plus r times this number, which exceeds all other seeds.
REPEAT_SHIFT = 1 << 20


class StudyArm(Protocol):
    """A part of a study: trials for seeds, and one record per seed."""

    def trials(self, seeds: Sequence[int]) -> list[Runnable]:
        """Return the trials of these seeds."""

    def join(self, records: Sequence[Record], seeds: Sequence[int]) -> list[Record]:
        """Return one record per seed from the records of `trials(seeds)`, in the same order."""


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
    """Base of arms that consist of other arms."""

    @property
    @abstractmethod
    def parts(self) -> Mapping[Any, StudyArm]:
        """The arms by name."""

    @abstractmethod
    def joined(self, records: Mapping[Any, Record]) -> Record:
        """Return one record from those of all parts for one seed."""

    def trials(self, seeds: Sequence[int]) -> list[Runnable]:
        return [trial for part in self.parts.values() for trial in part.trials(seeds)]

    def join(self, records: Sequence[Record], seeds: Sequence[int]) -> list[Record]:
        found: dict[Any, list[Record]] = {}
        start = 0
        for name, part in self.parts.items():
            count = len(part.trials(seeds))
            found[name] = part.join(records[start : start + count], seeds)
            start += count
        require(start == len(records), f"Expected {start} records, got {len(records)}.")
        return [
            self.joined({name: rows[i] for name, rows in found.items()}) for i in range(len(seeds))
        ]


def together(
    records: Sequence[Record], steps: Sequence[int], measurements: Mapping[str, Any]
) -> Record:
    """Return a record that summarizes several: diverged if one is, with the sum of their times."""
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


#: Maps the values on the axis of a row and its measures to further measures: series, or one number
#: for all values.
Summary = Callable[[np.ndarray, Mapping[str, np.ndarray]], Mapping[str, Any]]


@dataclasses.dataclass(frozen=True)
class Row(_Joint):
    """One arm per value on an axis.

    The joined record has the values as its steps, and the measures of each arm at its last step.
    `picks` adds measures at other steps: {"first": ("ratio", 1)}. `summaries` adds measures of the
    whole row, such as an exponent. `after` adds measures computed from the record of one value.
    """

    arms: Mapping[int, StudyArm]
    picks: Mapping[str, tuple[str, int]] = dataclasses.field(default_factory=dict)
    summaries: tuple[Summary, ...] = ()
    after: Callable[[int, Record], Mapping[str, float]] | None = None

    @property
    def parts(self) -> Mapping[int, StudyArm]:
        return self.arms

    def joined(self, records: Mapping[int, Record]) -> Record:
        values = np.array(list(records), float)
        columns = [self._column(value, record) for value, record in records.items()]
        table = {
            name: np.array([column[name] for column in columns], float)
            for name in columns[0]
            if all(name in c for c in columns)
        }
        for summary in self.summaries:
            for name, value in summary(values, table).items():
                table[name] = np.broadcast_to(np.asarray(value, float), values.shape)
        return together(list(records.values()), list(records), table)

    def _column(self, value: int, record: Record) -> dict[str, float]:
        last = {name: series[-1] for name, series in record.measurements.items()}
        picked = {name: record.value(measure, step) for name, (measure, step) in self.picks.items()}
        return last | picked | dict(self.after(value, record) if self.after else {})


@dataclasses.dataclass(frozen=True)
class Repeats(_Joint):
    """Mean over `count` runs of an arm per seed; each run has its own derived seed."""

    arm: StudyArm
    count: int

    @property
    def parts(self) -> Mapping[int, StudyArm]:
        return {index: _Shifted(self.arm, index * REPEAT_SHIFT) for index in range(self.count)}

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
    """Several arms; `measure` computes numbers from their records for one seed."""

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
    """A learner on a family at the best of at most `budget` settings, selected for each seed.

    Each setting is fitted to a part of the n examples, scored on the rest (`validation_fraction`),
    and also fitted to all of them. The record is that of the selected setting at its last step,
    with `validation`, its validation metric.
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
                    value, loss = (
                        rehearsal.value(f"validation_{name}", step)
                        for name in (metric.name, "loss")
                    )
                    rank = (_or_infinite(-value if metric.higher else value), _or_infinite(loss))
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
    """The arm of a grid with the minimum of measure `by`, selected for each seed.

    By default, `by` is the validation error. The record is that of the selected arm at its last
    step; with `along`, at the step with the minimum. For each measure in `minima`, "best_NAME" is
    its minimum over the grid. A run with NaN or inf is selected only if all have them. The record
    is "diverged" if the selected run is. The measure "chosen" is the index in the grid.
    """

    arms: Mapping[Any, StudyArm]
    by: str = "validation_squared_error"
    minima: tuple[str, ...] = ("test_squared_error",)
    along: bool = False

    @property
    def parts(self) -> Mapping[Any, StudyArm]:
        return self.arms

    def joined(self, records: Mapping[Any, Record]) -> Record:
        runs = list(records.values())
        candidates = [
            (run, step)
            for run in runs
            for step in (range(len(run.steps)) if self.along else [len(run.steps) - 1])
        ]
        scores = [_or_infinite(run.measurements[self.by][at]) for run, at in candidates]
        chosen = scores.index(min(scores))
        best, step = candidates[chosen]
        smallest: dict[str, tuple[float, ...]] = {
            f"best_{name}": (
                min(_or_infinite(run.measurements[name][at]) for run, at in candidates),
            )
            for name in self.minima
            if all(name in run.measurements for run in runs)
        }
        own: dict[str, tuple[float, ...]] = {
            name: (series[step],) for name, series in best.measurements.items()
        }
        return dataclasses.replace(
            best,
            steps=(best.steps[step],),
            measurements=own | smallest | {"chosen": (float(chosen),)},
            arrays={},
            seconds=sum(run.seconds for run in runs),
            created=min(run.created for run in runs),
        )


def _or_infinite(value: float) -> float:
    return value if math.isfinite(value) else math.inf


def shuffled_labels(arm: StudyArm) -> StudyArm | None:
    """Return the same arm with shuffled labels; None if it does not learn from labels."""
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
