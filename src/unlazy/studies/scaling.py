"""Scaling studies: number of examples that learners need for a target error, as a task parameter
grows.

A learner on fresh examples is run once per value, in one pass whose error is recorded often. Its
sample complexity is the number of examples at which the error reaches the target and stays there.
For other learners, n is searched: it doubles until every seed reaches the target, then the bracket
is halved. At each n the learner is tuned and tested as in a benchmark. Every fit is a trial in the
store, so an interrupted study resumes.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import numpy as np

from unlazy.core.errors import BadInput, require
from unlazy.core.metrics import Metric
from unlazy.kernels.base import Kernel
from unlazy.lab.exponents import SampleComplexity, ScalingOutcome, ScalingRow
from unlazy.lab.outcomes import Cell
from unlazy.lab.power_laws import first_stable_crossing, last_crossing
from unlazy.lab.provenance import made_by
from unlazy.lab.registry import value_of
from unlazy.lab.store import Run, Store
from unlazy.lab.study import Rounds, Say, each_once, parallel, silent
from unlazy.lab.trials import Record, Runnable, Trial, now
from unlazy.learners.base import Learner
from unlazy.learners.gradient import GradientDescent
from unlazy.learners.kernel import KernelRidge
from unlazy.probes.performance import Performance
from unlazy.studies.benchmark import Benchmark
from unlazy.tasks.base import Family
from unlazy.theory.cube_kernels import predicted_examples

#: First and smallest number of examples of a search.
FIRST_N, MIN_N = 64, 8
#: Default target error, and easier targets if a learner does not reach it.
TARGET = 0.05
EASIER_TARGETS = (0.1, 0.2, 0.3, 0.4)
#: Number of times that the bracket around the target is halved.
HALVINGS = 1
#: Number of recorded steps of a pass over fresh examples, equally spaced in log steps.
RECORDED_STEPS = 100


def places_of(family: Family, text: str, name: str) -> tuple[str, tuple[float, ...]]:
    """Parse `d=32..256` (doublings) or `d=16,24,32` into a field of the family and its values."""
    field, sign, values = text.replace(" ", "").partition("=")
    if not sign or not values:
        raise BadInput(
            "--vary must be NAME=FIRST..LAST (doublings) or a list such as d=16,24,32, got "
            f"{text!r}."
        )
    if (ends := re.fullmatch(r"(.+?)\.\.(.+)", values)) is not None:
        first, last = (value_of(family, field, end, name) for end in ends.groups())
        numeric(field, (first, last))
        require(
            0 < first <= last,
            f"--vary must go from a smaller to a larger positive number, got {text!r}.",
        )
        row = [first]
        while 2 * row[-1] <= last:
            row.append(2 * row[-1])
        return field, tuple(row)
    return field, numeric(
        field, tuple(value_of(family, field, part, name) for part in values.split(","))
    )


def numeric(field: str, values: Sequence[Any]) -> tuple[float, ...]:
    """Return the distinct values in increasing order; they must be positive numbers."""
    fit = all(
        isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
        for value in values
    )
    require(
        fit and len(values) > 0,
        f"The varied parameter must be a positive number, got {field} = "
        f"{', '.join(map(str, values)) or 'nothing'}.",
    )
    return tuple(sorted(set(values)))


@dataclasses.dataclass(frozen=True)
class Scaling:
    """Learners on a family whose `field` takes several values.

    `places`: the values. `max_n`: the largest number of examples per learner. Other fields are as
    in `Benchmark`. The default `target` is `TARGET`. If a learner does not reach it at the first
    value, it is the smallest of `EASIER_TARGETS` that all learners reach there.
    """

    family: Family
    field: str
    places: tuple[float, ...]
    learners: Mapping[str, Learner]
    seeds: tuple[int, ...]
    target: float | None = None
    budget: int = 6
    max_n: int = 20_000
    test: int = 4096
    task: str = ""
    command: str = ""

    def __post_init__(self) -> None:
        require(bool(self.learners), "A scaling study needs at least one learner.")
        require(
            bool(self.places) and bool(self.seeds),
            "A scaling study needs at least one value and one seed.",
        )
        require(self.goal > 0, f"`target` must be positive, got {self.target}.")
        require(
            self.metric.unit != "%" or self.goal < 1,
            f"`target` must be a fraction of wrong labels below 1, got {self.target}.",
        )
        require(
            self.max_n >= FIRST_N,
            f"`max_n` must be at least {FIRST_N}, got {self.max_n}.",
        )
        for place in self.places:
            for learner in self.learners.values():
                learner.suited(self.at(place))

    @property
    def goal(self) -> float:
        """The target, or the default."""
        return TARGET if self.target is None else self.target

    @property
    def metric(self) -> Metric:
        """Metric of the task."""
        return self.family.metric

    def at(self, place: float) -> Family:
        """Return the family at a value of the varied parameter."""
        return dataclasses.replace(self.family, **{self.field: place})

    def max_examples(self, place: float) -> int:
        """Return the largest number of examples at a value."""
        return min(self.max_n, self.at(place).most_examples or self.max_n)

    def streams(self, name: str) -> bool:
        """Return whether a learner is measured along one pass over fresh examples."""
        learner = self.learners[name].suited(self.at(self.places[0]))
        return isinstance(learner, GradientDescent) and learner.draws_fresh

    title = property(lambda self: f"{self.task}: {', '.join(self.learners)}")
    arrays = False

    def rounds(self, store: Store, say: Say = silent) -> Rounds[ScalingOutcome]:
        """Run all learners in parallel, round by round."""
        study, note, say = self, "", each_once(say)  # the first value may be measured twice
        used: dict[str, list[Pair]] = {name: [] for name in self.learners}
        if self.target is None:
            start = dataclasses.replace(self, places=self.places[:1])
            study, note = _settled(self, (yield from start._measured(used, say)))
        cells = yield from study._measured(used, say)
        outcome = study._outcome(cells, note, used)
        kept = {
            name: list(dict.fromkeys(record.id for _, record in pairs))
            for name, pairs in used.items()
        }
        first, count = self.seeds[0], len(self.seeds)
        store.add_run(
            Run(
                *("scaling", outcome.task, outcome.settings, first, count),
                *(kept, now(), outcome.to_json()),
            )
        )
        return outcome

    def _measured(
        self, used: dict[str, list[Pair]], say: Say
    ) -> Rounds[dict[str, list[SampleComplexity]]]:
        """Measure sample complexities; all trials and records are added to `used`."""
        return parallel(
            {
                name: (_streamed if self.streams(name) else _searched)(
                    self, name, used[name], self._reporter(name, say)
                )
                for name in self.learners
            }
        )

    def _reporter(self, name: str, say: Say) -> Callable[[float, int, np.ndarray], None]:
        def report(place: float, n: int, errors: np.ndarray) -> None:
            reached = int(np.sum(errors <= self.goal))
            tried = f"one pass over {n:,} examples" if self.streams(name) else f"n = {n:,} tried"
            say(
                f"{name} at {self.field} = {place:g}: {tried}, error {float(np.mean(errors)):.2g}, "
                f"{reached} of {len(self.seeds)} seeds reach {self.goal:g}"
            )

        return report

    def benchmark(self, name: str, place: float, n: int) -> Benchmark:
        """Return the benchmark of one learner with n examples."""
        return Benchmark(
            self.at(place),
            {name: self.learners[name]},
            (n,),
            self.seeds,
            budget=self.budget,
            test=self.test,
        )

    def pass_at(self, name: str, place: float) -> list[Trial]:
        """Return the trials of a learner on fresh examples: one pass per seed, recorded often."""
        n = self.max_examples(place)
        learner = self.learners[name].suited(self.at(place))
        if not isinstance(learner, GradientDescent):
            raise TypeError(f"{name} does not train on fresh examples")
        last = learner.recorded(n)[-1]
        record = tuple(
            dict.fromkeys(round(last ** (i / (RECORDED_STEPS - 1))) for i in range(RECORDED_STEPS))
        )
        recorded = dataclasses.replace(learner, record=record)
        measure = (Performance(self.test),)
        return [Trial(self.at(place), recorded, n, seed, measure) for seed in self.seeds]

    def errors(self, record: Record) -> list[float]:
        """Return the test error at each recorded step; infinite if it is not finite."""
        values = record.measurements[f"test_{self.metric.name}"]
        return [self.metric.error(value) if math.isfinite(value) else math.inf for value in values]

    def predicted(self, name: str) -> dict[float, float]:
        """Return the sample complexities of a kernel that theory predicts, by value."""
        learner = self.learners[name]
        if (
            not isinstance(learner, KernelRidge)
            or not isinstance(learner.kernel, Kernel)
            or self.metric.unit != "%"
        ):
            return {}
        found = {
            place: predicted_examples(self.at(place), learner.kernel, self.goal)
            for place in self.places
        }
        return {place: n for place, n in found.items() if n is not None}

    def _outcome(
        self, cells: Mapping[str, list[SampleComplexity]], note: str, used: Mapping[str, list[Pair]]
    ) -> ScalingOutcome:
        return ScalingOutcome(
            task=self.task or type(self.family).__name__,
            field=self.field,
            rows=tuple(
                ScalingRow(
                    name,
                    "one pass" if self.streams(name) else "search",
                    tuple(cells[name]),
                    self.predicted(name),
                )
                for name in self.learners
            ),
            target=self.goal,
            metric=self.metric,
            seeds=self.seeds,
            budget=self.budget,
            max_n=self.max_n,
            test=self.test,
            command=self.command,
            note=note,
            provenance=made_by(pair for pairs in used.values() for pair in pairs),
        )


#: A trial and its record.
Pair = tuple[Runnable, Record]
#: Receives a value, a number of examples, and the errors of all seeds.
Report = Callable[[float, int, np.ndarray], None]


def _streamed(
    study: Scaling, name: str, used: list[Pair], report: Report
) -> Rounds[list[SampleComplexity]]:
    """Run one pass over fresh examples at every value."""
    trials = {place: study.pass_at(name, place) for place in study.places}
    records = yield [trial for each in trials.values() for trial in each]
    found = []
    for place, each in trials.items():
        used += [(trial, records[trial.id]) for trial in each]
        errors = np.array([study.errors(records[trial.id]) for trial in each]).T
        learner, n = each[0].learner, each[0].n
        sizes = tuple(learner.examples_at(step, n) for step in each[0].steps)
        report(place, sizes[-1], errors[-1])
        needed = tuple(
            first_stable_crossing(np.array(sizes, float), column, study.goal) for column in errors.T
        )
        found.append(SampleComplexity(place, needed, sizes, _rows(errors)))
    return found


def _searched(
    study: Scaling, name: str, used: list[Pair], report: Report
) -> Rounds[list[SampleComplexity]]:
    """Search n at each value, beginning with the result at the previous value."""
    found: list[SampleComplexity] = []
    start = FIRST_N
    for place in study.places:
        errors: dict[int, np.ndarray] = {}
        search = sizes_to_try(start, study.max_examples(place), study.goal)
        n = next(search)
        while True:
            results, pairs = yield from study.benchmark(name, place, n).results()
            used += [pair for each in pairs.values() for pair in each]
            values = [results[Cell(name, n, seed)].value for seed in study.seeds]
            errors[n] = np.array(
                [study.metric.error(v) if math.isfinite(v) else math.inf for v in values]
            )
            report(place, n, errors[n])
            try:
                n = search.send(errors[n])
            except StopIteration:
                break
        sizes = sorted(errors)
        columns = [
            {size: float(errors[size][j]) for size in sizes} for j in range(len(study.seeds))
        ]
        cell = SampleComplexity(
            place,
            tuple(last_crossing(c, study.goal) for c in columns),
            tuple(sizes),
            _rows([errors[size] for size in sizes]),
        )
        found.append(cell)
        start = _start_after(cell, study.max_n)
    return found


def _rows(errors: Any) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(map(float, row)) for row in errors)


def _start_after(cell: SampleComplexity, max_n: int) -> int:
    """Return the largest doubling of `FIRST_N` at or below the sample complexity.

    If the target was not reached, return `max_n`.
    """
    if not cell.whole:
        return max_n
    mean = math.exp(float(np.mean(np.log(np.array(cell.examples, float)))))
    return FIRST_N << max(0, math.floor(math.log2(mean / FIRST_N)))


def sizes_to_try(start: int, max_n: int, target: float) -> Generator[int, np.ndarray, None]:
    """Yield numbers of examples and receive the errors of all seeds.

    n doubles until all seeds reach the target, then the bracket is halved.
    """
    reached: dict[int, bool] = {}
    n = min(start, max_n)
    while True:
        errors = yield n
        reached[n] = bool(np.all(errors <= target))
        if reached[n] or n == max_n:
            break
        n = min(2 * n, max_n)
    if not reached[n]:
        return
    while all(reached.values()) and n > MIN_N:  # the first n was sufficient: search below
        n = max(MIN_N, n // 2)
        errors = yield n
        reached[n] = bool(np.all(errors <= target))
    for _ in range(HALVINGS):
        below = [size for size, whole in reached.items() if not whole]
        if not below:
            return
        low = max(below)
        high = min(size for size in reached if size > low)
        n = round(math.sqrt(low * high))
        if n in reached:
            return
        errors = yield n
        reached[n] = bool(np.all(errors <= target))


def _settled(study: Scaling, first: Mapping[str, list[SampleComplexity]]) -> tuple[Scaling, str]:
    """Return the study with its target, selected at the first value, and a note on the reason."""
    short = {name: cell for name, (cell,) in first.items() if not cell.whole}
    worst = max((max(cell.errors[-1]) for cell in short.values()), default=0.0)
    target = next((easier for easier in EASIER_TARGETS if worst <= easier), None)
    if not short or target is None:
        return dataclasses.replace(study, target=TARGET), ""
    (name, cell), *_ = sorted(short.items(), key=lambda item: -item[1].last_error)
    why = (
        f"Target error {target:g} instead of {TARGET:g}, which {name} does not reach at "
        f"{study.field} = {cell.place:g} (error {cell.last_error:.3f} at n = {cell.sizes[-1]:,})."
    )
    return dataclasses.replace(study, target=target), why
