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

from unlazy.core.errors import require
from unlazy.core.metrics import Metric
from unlazy.lab.engines.base import Engine
from unlazy.lab.outcomes import ContestOutcome, Place, Result
from unlazy.lab.running import keep
from unlazy.lab.store import Run, Store
from unlazy.lab.trials import Record, Trial, now
from unlazy.learners.base import Learner
from unlazy.learners.holdout import HoldOut
from unlazy.probes.performance import Performance
from unlazy.tasks.base import Family


@dataclasses.dataclass(frozen=True)
class Contest:
    """Learners on one family at several sample sizes. `budget`: settings tried for each; `share`:
    part of the examples held out for it.

    `task` is what the family is called, `command` what makes the contest again.
    """

    family: Family
    learners: Mapping[str, Learner]
    sizes: tuple[int, ...]
    seeds: tuple[int, ...]
    budget: int = 24
    share: float = 0.2
    test: int = 10_000
    task: str = ""
    command: str = ""

    def __post_init__(self) -> None:
        """Refuse what is no contest."""
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
    def places(self) -> list[Place]:
        """All of them."""
        return [
            Place(name, n, seed)
            for name in self.learners
            for n in self.sizes
            for seed in self.seeds
        ]

    def rehearsals(self, place: Place) -> list[Trial]:
        """The trials that tune a learner: each holds a part of its examples out."""
        candidates = self.learners[place.learner].suited(self.family).tuning(self.budget)
        tried = [HoldOut.of(candidate, self.share) for candidate in candidates]
        count = sum(len(trial.options(place.n)) for trial in tried)
        require(
            count <= self.budget,
            f"{place.learner} tries {count} settings, but only {self.budget} are allowed.",
        )
        return [Trial(self.family, trial, place.n, place.seed, ()) for trial in tried]

    @property
    def all_rehearsals(self) -> list[Trial]:
        """The trials that tune all learners."""
        return [trial for place in self.places for trial in self.rehearsals(place)]

    def choice(self, place: Place, store: Store) -> Choice:
        """What tuning chose, from the store."""
        trials = self.rehearsals(place)
        return choose(trials, {trial.key: store.get(trial.key, arrays=False) for trial in trials})

    def finals(self, store: Store) -> dict[Place, Trial]:
        """The trials of the learners that were chosen, on all examples."""
        return {
            place: self.final(place, self.choice(place, store).learner) for place in self.places
        }

    def final(self, place: Place, chosen: Learner) -> Trial:
        """The trial of the learner that was chosen, on all examples."""
        return Trial(self.family, chosen, place.n, place.seed, (Performance(self.test),))

    @property
    def metric(self) -> Metric:
        """By what learners are compared: that of the data."""
        return self.family.metric


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
        record = records[trial.key]
        for step, learner in trial.learner.options(trial.n).items():
            value, lost = (
                record.value(f"validation_{metric.name}", step),
                record.value("validation_loss", step),
            )
            found.append((_rank(value if metric.higher else -value), _rank(-lost), value, learner))
    best = max(found, key=lambda entry: entry[:2])
    used = [records[trial.key] for trial in trials]
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


def run(contest: Contest, store: Store, engine: Engine) -> ContestOutcome:
    """Tune, choose, test; what the store already holds is not run again."""
    keep(contest.all_rehearsals, store, engine)
    keep(list(contest.finals(store).values()), store, engine)
    return finish(contest, store)


def finish(contest: Contest, store: Store) -> ContestOutcome:
    """The outcome of a contest whose trials are all in the store, which notes that it was run."""
    found = outcome_of(contest, store)
    finals = contest.finals(store)
    arms: dict[str, list[str]] = {name: [] for name in contest.learners}
    for place, final in finals.items():
        arms[place.learner] += [*(trial.key for trial in contest.rehearsals(place)), final.key]
    kept = {name: list(dict.fromkeys(keys)) for name, keys in arms.items()}
    store.add_run(
        Run(
            "contest",
            found.task,
            found.settings,
            contest.seeds[0],
            len(contest.seeds),
            kept,
            now(),
            found.to_json(),
        )
    )
    return found


def outcome_of(contest: Contest, store: Store) -> ContestOutcome:
    """The outcome of a contest whose trials are all in the store."""
    results = {}
    for place in contest.places:
        choice = contest.choice(place, store)
        record = store.get(contest.final(place, choice.learner).key, arrays=False)
        results[place] = Result(
            place,
            value=record.value(f"test_{contest.metric.name}"),
            validation=choice.validation,
            chosen=choice.learner.settings,
            tried=choice.tried,
            diverged=choice.diverged + (record.status == "diverged"),
            tuning_seconds=choice.seconds,
            seconds=record.seconds,
            trial=record.key,
            learner=choice.learner,
        )
    return ContestOutcome(
        task=contest.task or type(contest.family).__name__,
        learners=tuple(contest.learners),
        sizes=contest.sizes,
        seeds=contest.seeds,
        metric=contest.metric,
        results=results,
        budget=contest.budget,
        share=contest.share,
        test=contest.test,
        command=contest.command,
    )
