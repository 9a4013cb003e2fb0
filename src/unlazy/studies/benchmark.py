"""The fair contest: the same examples and the same tuning budget for every learner, and differences
that are paired by seed.

For each learner, sample size and seed, at most `budget` settings are tried on a part of the n
examples and scored on the rest of them; the best is fitted to all n and meets the test. Nobody sees
the test examples before. Everything is a trial in the store: a contest that was stopped goes on
where it was, and what was chosen, and in how many seconds, can be looked up.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from unlazy.core.deprecation import renamed_parameters
from unlazy.core.errors import require
from unlazy.core.metrics import Metric
from unlazy.lab.outcomes import BenchmarkResult, Cell, Result
from unlazy.lab.provenance import made_by
from unlazy.lab.store import Run, Store
from unlazy.lab.study import Rounds, Say, silent
from unlazy.lab.trials import Record, Runnable, Trial, now
from unlazy.learners.base import Learner
from unlazy.learners.holdout import HoldOut
from unlazy.probes.performance import Performance
from unlazy.tasks.base import Family


@renamed_parameters(share="validation_fraction")
@dataclasses.dataclass(frozen=True)
class Benchmark:
    """Learners on one family at several sample sizes, with equal data and tuning budget.

    `budget`: hyperparameter settings tried per learner; `validation_fraction`: fraction of the
    examples held out to select among them; `task`: name of the family; `command`: the command
    that runs the same comparison.
    """

    family: Family
    learners: Mapping[str, Learner]
    sizes: tuple[int, ...]
    seeds: tuple[int, ...]
    budget: int = 24
    validation_fraction: float = 0.2
    test: int = 10_000
    task: str = ""
    command: str = ""

    def __post_init__(self) -> None:
        require(bool(self.learners), "A contest needs at least one learner.")
        require(
            bool(self.sizes) and min(self.sizes) >= 2,
            f"Sample sizes must be whole numbers of at least 2, but are {list(self.sizes)}.",
        )
        require(
            len(set(self.sizes)) == len(self.sizes),
            f"Each sample size may be given once, but they are {list(self.sizes)}.",
        )
        require(bool(self.seeds), "A contest needs at least one seed.")
        require(
            self.budget >= 1,
            f"The budget is a number of settings to try, at least 1, but is {self.budget}.",
        )

    @property
    def places(self) -> list[Cell]:
        """All of them."""
        return [
            Cell(name, n, seed) for name in self.learners for n in self.sizes for seed in self.seeds
        ]

    def rehearsals(self, place: Cell) -> list[Trial]:
        """The trials that tune a learner: each holds a part of its examples out."""
        candidates = self.learners[place.learner].suited(self.family).tuning(self.budget)
        tried = [HoldOut.of(candidate, self.validation_fraction) for candidate in candidates]
        count = sum(len(trial.options(place.n)) for trial in tried)
        require(
            count <= self.budget,
            f"{place.learner} tries {count} settings, but only {self.budget} are allowed.",
        )
        return [Trial(self.family, trial, place.n, place.seed, ()) for trial in tried]

    def final(self, place: Cell, chosen: Learner) -> Trial:
        """Return the trial of the learner that was chosen, on all examples."""
        return Trial(self.family, chosen, place.n, place.seed, (Performance(self.test),))

    @property
    def metric(self) -> Metric:
        """By what learners are compared: that of the data."""
        return self.family.metric

    @property
    def title(self) -> str:
        """The task and the learners."""
        return f"{self.task or type(self.family).__name__}: {', '.join(self.learners)}"

    arrays = False

    def rounds(self, store: Store, say: Say = silent) -> Rounds[BenchmarkResult]:
        """Tune all learners in one round, test the chosen ones in a second."""
        results, used = yield from self.results()
        outcome = self._outcome(results, used)
        arms: dict[str, dict[str, None]] = {name: {} for name in self.learners}
        for place, records in used.items():
            arms[place.learner] |= {record.id: None for _, record in records}
        first, count = self.seeds[0], len(self.seeds)
        kept = {name: list(ids) for name, ids in arms.items()}
        store.add_run(
            Run(
                *("contest", outcome.task, outcome.settings, first, count),
                *(kept, now(), outcome.to_json()),
            )
        )
        return outcome

    def results(self) -> Rounds[tuple[dict[Cell, Result], Used]]:
        """Yield the trials of both rounds, and return what was found at each place."""
        rehearsals = {place: self.rehearsals(place) for place in self.places}
        tuned = yield [trial for trials in rehearsals.values() for trial in trials]
        choices = {place: choose(trials, tuned) for place, trials in rehearsals.items()}
        finals = {place: self.final(place, choice.learner) for place, choice in choices.items()}
        tested = yield list(finals.values())
        results, used = dict[Cell, Result](), dict[Cell, list[tuple[Runnable, Record]]]()
        for place, choice in choices.items():
            record = tested[finals[place].id]
            used[place] = [
                *((trial, tuned[trial.id]) for trial in rehearsals[place]),
                (finals[place], record),
            ]
            results[place] = Result(
                place,
                value=record.value(f"test_{self.metric.name}"),
                validation=choice.validation,
                chosen=choice.learner.settings,
                tried=choice.tried,
                diverged=choice.diverged + (record.status == "diverged"),
                tuning_seconds=choice.seconds,
                seconds=record.seconds,
                trial=record.id,
                learner=choice.learner,
            )
        return results, used

    def _outcome(self, results: dict[Cell, Result], used: Used) -> BenchmarkResult:
        return BenchmarkResult(
            task=self.task or type(self.family).__name__,
            learners=tuple(self.learners),
            sizes=self.sizes,
            seeds=self.seeds,
            metric=self.metric,
            results=results,
            budget=self.budget,
            validation_fraction=self.validation_fraction,
            test=self.test,
            command=self.command,
            provenance=made_by(pair for pairs in used.values() for pair in pairs),
        )


#: At each place, the trials that were asked for and the records that answered.
Used = Mapping[Cell, Sequence[tuple[Runnable, Record]]]


class Choice(NamedTuple):
    """What tuning chose: the learner, its metric on the examples held out, how many settings were
    tried and in how many seconds.
    """

    learner: Learner
    validation: float
    tried: int
    diverged: int
    seconds: float


def choose(trials: Sequence[Trial], records: Mapping[str, Record]) -> Choice:
    """The setting with the best metric on the examples held out; of equal ones the least loss, then
    the first.
    """
    metric = trials[0].family.metric
    found: list[tuple[float, float, float, Learner]] = []
    for trial in trials:
        record = records[trial.id]
        for step, learner in trial.learner.options(trial.n).items():
            value, lost = (
                record.value(f"validation_{metric.name}", step),
                record.value("validation_loss", step),
            )
            found.append((_rank(value if metric.higher else -value), _rank(-lost), value, learner))
    best = max(found, key=lambda entry: entry[:2])
    used = [records[trial.id] for trial in trials]
    return Choice(
        best[3],
        best[2],
        len(found),
        sum(r.status == "diverged" for r in used),
        sum(r.seconds for r in used),
    )


def _rank(value: float) -> float:
    """What is not a number is behind all others."""
    return value if value == value else -float("inf")
