"""Benchmarks: learners with the same examples and tuning budget, and differences paired by seed.

For each learner, sample size and seed, at most `budget` configurations are fitted to a part of the
n examples and scored on the rest. The best one is fitted to all n examples and tested. Test
examples are never used for tuning. Every fit is a trial in the store, so an interrupted benchmark
resumes.
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

    `budget`: configurations tried per learner; `validation_fraction`: fraction of the
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
        require(bool(self.learners), "A benchmark needs at least one learner.")
        require(
            bool(self.sizes) and min(self.sizes) >= 2,
            f"Sample sizes must be integers ≥ 2, got {list(self.sizes)}.",
        )
        require(
            len(set(self.sizes)) == len(self.sizes),
            f"Sample sizes must be distinct, got {list(self.sizes)}.",
        )
        require(bool(self.seeds), "A benchmark needs at least one seed.")
        require(
            self.budget >= 1,
            f"`budget` must be a positive number of configurations, got {self.budget}.",
        )

    @property
    def cells(self) -> list[Cell]:
        """All combinations of learner, sample size and seed."""
        return [
            Cell(name, n, seed) for name in self.learners for n in self.sizes for seed in self.seeds
        ]

    def rehearsals(self, cell: Cell) -> list[Trial]:
        """Return the trials that tune a learner, each on a part of its examples."""
        candidates = self.learners[cell.learner].suited(self.family).tuning(self.budget)
        tried = [HoldOut.of(candidate, self.validation_fraction) for candidate in candidates]
        count = sum(len(trial.options(cell.n)) for trial in tried)
        require(
            count <= self.budget,
            f"{cell.learner} has {count} configurations, but the budget is {self.budget}.",
        )
        return [Trial(self.family, trial, cell.n, cell.seed, ()) for trial in tried]

    def final(self, cell: Cell, chosen: Learner) -> Trial:
        """Return the trial of the selected learner on all examples."""
        return Trial(self.family, chosen, cell.n, cell.seed, (Performance(self.test),))

    @property
    def metric(self) -> Metric:
        """Ranking metric."""
        return self.family.metric

    @property
    def title(self) -> str:
        """The task and the learners."""
        return f"{self.task or type(self.family).__name__}: {', '.join(self.learners)}"

    arrays = False

    def rounds(self, store: Store, say: Say = silent) -> Rounds[BenchmarkResult]:
        """Tune all learners in the first round, test the selected ones in the second."""
        results, used = yield from self.results(say)
        outcome = self._outcome(results, used)
        arms: dict[str, dict[str, None]] = {name: {} for name in self.learners}
        for cell, records in used.items():
            arms[cell.learner] |= {record.id: None for _, record in records}
        first, count = self.seeds[0], len(self.seeds)
        kept = {name: list(ids) for name, ids in arms.items()}
        store.add_run(
            Run(
                *("contest", outcome.task, outcome.settings, first, count),
                *(kept, now(), outcome.to_json()),
            )
        )
        return outcome

    def results(self, say: Say = silent) -> Rounds[tuple[dict[Cell, Result], Used]]:
        """Yield the trials of both rounds, and return the result of each cell."""
        rehearsals = {cell: self.rehearsals(cell) for cell in self.cells}
        say("tuning", passing=True)
        tuned = yield [trial for trials in rehearsals.values() for trial in trials]
        choices = {cell: choose(trials, tuned) for cell, trials in rehearsals.items()}
        finals = {cell: self.final(cell, choice.learner) for cell, choice in choices.items()}
        say("final runs", passing=True)
        tested = yield list(finals.values())
        results, used = dict[Cell, Result](), dict[Cell, list[tuple[Runnable, Record]]]()
        for cell, choice in choices.items():
            record = tested[finals[cell].id]
            used[cell] = [
                *((trial, tuned[trial.id]) for trial in rehearsals[cell]),
                (finals[cell], record),
            ]
            results[cell] = Result(
                cell,
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


#: Trials and their records, by cell.
Used = Mapping[Cell, Sequence[tuple[Runnable, Record]]]


class Choice(NamedTuple):
    """The learner that tuning selected, its validation metric, and the cost of tuning."""

    learner: Learner
    validation: float
    tried: int
    diverged: int
    seconds: float


def choose(trials: Sequence[Trial], records: Mapping[str, Record]) -> Choice:
    """Return the configuration with the best validation metric; validation loss breaks ties."""
    metric = trials[0].family.metric
    found: list[tuple[float, float, float, Learner]] = []
    for trial in trials:
        record = records[trial.id]
        for step, learner in trial.learner.options(trial.n).items():
            value, loss = (
                record.value(f"validation_{metric.name}", step),
                record.value("validation_loss", step),
            )
            found.append((_rank(value if metric.higher else -value), _rank(-loss), value, learner))
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
    """Rank NaN last."""
    return value if value == value else -float("inf")
