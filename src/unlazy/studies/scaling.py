"""A scaling study: how many examples learners need for a target error, as a number of the task
grows.

A learner on fresh examples is run once at each place, in one pass that is looked at often: what it
needs is where its error first falls to the target and stays there. For any other learner n is
searched: it doubles until every seed reaches the target, then the bracket is halved; at each n the
learner is tuned and tested as in a contest. All of it are trials in the store, so a study that was
stopped goes on where it was.
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
from unlazy.lab.study import Rounds, Say, parallel, silent
from unlazy.lab.trials import Record, Runnable, Trial, now
from unlazy.learners.base import Learner
from unlazy.learners.gradient import GradientDescent
from unlazy.learners.kernel import KernelRidge
from unlazy.probes.performance import Performance
from unlazy.studies.benchmark import Benchmark
from unlazy.tasks.base import Family
from unlazy.theory.cube_kernels import predicted_examples

#: A search begins with so many examples at the first place, and never asks for fewer.
START, LEAST = 64, 8
#: The error to be reached where none is named, and what is taken where that is too hard for some
#: learner.
TARGET = 0.05
EASIER = (0.1, 0.2, 0.3, 0.4)
#: How often the bracket around the target is halved.
HALVINGS = 1
#: A pass over fresh examples is looked at about so often, at steps that grow by equal factors.
LOOKS = 100


def places_of(family: Family, text: str, name: str) -> tuple[str, tuple[float, ...]]:
    """`d=32..256` (every doubling) or `d=16,24,32` as a field of the family and its values."""
    field, sign, values = text.replace(" ", "").partition("=")
    if not sign or not values:
        raise BadInput(
            "--vary takes NAME=FIRST..LAST, which doubles, or a list such as d=16,24,32, but "
            f"got {text!r}."
        )
    if (ends := re.fullmatch(r"(.+?)\.\.(.+)", values)) is not None:
        first, last = (value_of(family, field, end, name) for end in ends.groups())
        numeric(field, (first, last))
        require(
            0 < first <= last,
            f"--vary goes from a smaller to a larger number above zero, but got {text!r}.",
        )
        row = [first]
        while 2 * row[-1] <= last:
            row.append(2 * row[-1])
        return field, tuple(row)
    return field, numeric(
        field, tuple(value_of(family, field, part, name) for part in values.split(","))
    )


def numeric(field: str, values: Sequence[Any]) -> tuple[float, ...]:
    """The values in order, each once, where they are positive numbers."""
    fit = all(
        isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
        for value in values
    )
    require(
        fit and len(values) > 0,
        f"What varies is a number above zero, but {field} is "
        f"{', '.join(map(str, values)) or 'nothing'}.",
    )
    return tuple(sorted(set(values)))


@dataclasses.dataclass(frozen=True)
class Scaling:
    """Learners on a family whose `field` takes several values.

    `max_n`: the largest number of examples per learner; the other fields as in `Benchmark`.

    With no `target` it is `TARGET`, or where some learner cannot reach that at the first place, the
    least of `EASIER` that all reach there.
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
            "A scaling study needs at least one place and one seed.",
        )
        require(self.goal > 0, f"The target error must be above zero, but is {self.target}.")
        require(
            self.metric.unit != "%" or self.goal < 1,
            f"The target error is a share of wrong labels, but is {self.target}.",
        )
        require(
            self.max_n >= START,
            f"At least {START} examples must be allowed, but max_n is {self.max_n}.",
        )
        for place in self.places:
            for learner in self.learners.values():
                learner.suited(self.at(place))

    @property
    def goal(self) -> float:
        """The target, or the one that is tried first."""
        return TARGET if self.target is None else self.target

    @property
    def metric(self) -> Metric:
        """By what learners are judged: that of the data."""
        return self.family.metric

    def at(self, place: float) -> Family:
        """The family at a place."""
        return dataclasses.replace(self.family, **{self.field: place})

    def ceiling(self, place: float) -> int:
        """The most examples there are at a place."""
        return min(self.max_n, self.at(place).most_examples or self.max_n)

    def streams(self, name: str) -> bool:
        """Whether the examples of a learner are counted along one pass."""
        learner = self.learners[name].suited(self.at(self.places[0]))
        return isinstance(learner, GradientDescent) and learner.draws_fresh

    title = property(lambda self: f"{self.task}: {', '.join(self.learners)}")
    arrays = False

    def rounds(self, store: Store, say: Say = silent) -> Rounds[ScalingOutcome]:
        """Run all learners side by side, round by round."""
        study, note = self, ""
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
        """Measure what each learner needs at each place; all trials and records go to `used`."""
        return parallel(
            {
                name: (_streamed if self.streams(name) else _searched)(
                    self, name, used[name], self._teller(name, say)
                )
                for name in self.learners
            }
        )

    def _teller(self, name: str, say: Say) -> Callable[[float, int, np.ndarray], None]:
        def tell(place: float, n: int, errors: np.ndarray) -> None:
            reached = int(np.sum(errors <= self.goal))
            say(
                f"{name} at {self.field} = {place:g}, n = {n:,}: error {float(np.mean(errors)):.4g}"
                f", {reached} of {len(self.seeds)} seeds reach {self.goal:g}"
            )

        return tell

    def benchmark(self, name: str, place: float, n: int) -> Benchmark:
        """Return the contest in which a learner is tuned and tested with n examples."""
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
        n = self.ceiling(place)
        learner = self.learners[name].suited(self.at(place))
        if not isinstance(learner, GradientDescent):
            raise TypeError(f"{name} does not train on fresh examples")
        last = learner.recorded(n)[-1]
        record = tuple(dict.fromkeys(round(last ** (i / (LOOKS - 1))) for i in range(LOOKS)))
        recorded = dataclasses.replace(learner, record=record)
        measure = (Performance(self.test),)
        return [Trial(self.at(place), recorded, n, seed, measure) for seed in self.seeds]

    def errors(self, record: Record) -> list[float]:
        """Return the test error at each recorded step; infinite if it is not finite."""
        values = record.measurements[f"test_{self.metric.name}"]
        return [self.metric.error(value) if math.isfinite(value) else math.inf for value in values]

    def predicted(self, name: str) -> dict[float, float]:
        """What theory says a kernel needs, at the places where it speaks."""
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


#: A trial, and the record that answered for it.
Pair = tuple[Runnable, Record]
#: Receives a place, a number of examples, and the errors of all seeds there.
Tell = Callable[[float, int, np.ndarray], None]


def _streamed(
    study: Scaling, name: str, used: list[Pair], tell: Tell
) -> Rounds[list[SampleComplexity]]:
    """One pass over fresh examples at every place."""
    trials = {place: study.pass_at(name, place) for place in study.places}
    records = yield [trial for each in trials.values() for trial in each]
    found = []
    for place, each in trials.items():
        used += [(trial, records[trial.id]) for trial in each]
        errors = np.array([study.errors(records[trial.id]) for trial in each]).T
        learner, n = each[0].learner, each[0].n
        sizes = tuple(learner.examples_at(step, n) for step in each[0].steps)
        tell(place, sizes[-1], errors[-1])
        needed = tuple(
            first_stable_crossing(np.array(sizes, float), column, study.goal) for column in errors.T
        )
        found.append(SampleComplexity(place, needed, sizes, _rows(errors)))
    return found


def _searched(
    study: Scaling, name: str, used: list[Pair], tell: Tell
) -> Rounds[list[SampleComplexity]]:
    """A search at each place, which begins where that at the place before it ended."""
    found: list[SampleComplexity] = []
    start = START
    for place in study.places:
        errors: dict[int, np.ndarray] = {}
        search = sizes_to_try(start, study.ceiling(place), study.goal)
        n = next(search)
        while True:
            results, pairs = yield from study.benchmark(name, place, n).results()
            used += [pair for each in pairs.values() for pair in each]
            values = [results[Cell(name, n, seed)].value for seed in study.seeds]
            errors[n] = np.array(
                [study.metric.error(v) if math.isfinite(v) else math.inf for v in values]
            )
            tell(place, n, errors[n])
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
    """The doubling of `START` at or below what was needed, or all if that was too much."""
    if not cell.whole:
        return max_n
    mean = math.exp(float(np.mean(np.log(np.array(cell.examples, float)))))
    return START << max(0, math.floor(math.log2(mean / START)))


def sizes_to_try(start: int, max_n: int, target: float) -> Generator[int, np.ndarray, None]:
    """Numbers of examples to measure, each answered by the errors of all seeds: doubled until all
    reach the target, then between.
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
    while (
        all(reached.values()) and n > LEAST
    ):  # the first size was enough already: the answer lies below
        n = max(LEAST, n // 2)
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
    """The study with the target that the findings at the first place ask for, and why."""
    short = {name: cell for name, (cell,) in first.items() if not cell.whole}
    worst = max((max(cell.errors[-1]) for cell in short.values()), default=0.0)
    target = next((easier for easier in EASIER if worst <= easier), None)
    if not short or target is None:
        return dataclasses.replace(study, target=TARGET), ""
    (name, cell), *_ = sorted(short.items(), key=lambda item: -item[1].last_error)
    why = (
        f"The target is an error of {target:g}: {TARGET:g} is more than {name} reaches at "
        f"{study.field} = {cell.place:g} "
        f"(error {cell.last_error:.3f} at n = {cell.sizes[-1]:,})."
    )
    return dataclasses.replace(study, target=target), why
