"""The fair contest: the same examples and the same tuning budget for every learner, and differences that are paired by seed.

For each learner, sample size and seed, at most `budget` settings are tried on a part of the n examples and scored on the rest of them; the
best is fitted to all n and meets the test. Nobody sees the test examples before. Everything is a trial in the store: a contest that was
stopped goes on where it was, and what was chosen, and in how many seconds, can be looked up.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import scipy.stats

from unlazy.core.errors import require
from unlazy.core.metrics import Metric
from unlazy.lab.engines.base import Engine
from unlazy.lab.running import keep
from unlazy.lab.statistics import LEVEL, Estimate, estimate
from unlazy.lab.store import Store
from unlazy.lab.trials import Record, Trial
from unlazy.learners.base import Learner
from unlazy.learners.holdout import HoldOut
from unlazy.probes.performance import Performance
from unlazy.tasks.base import Family


class Place(NamedTuple):
    """Who, with how many examples, under which seed."""

    learner: str
    n: int
    seed: int


@dataclasses.dataclass(frozen=True)
class Contest:
    """Learners on one family at several sample sizes. `budget`: settings tried for each; `share`: part of the examples held out for it."""

    family: Family
    learners: Mapping[str, Learner]
    sizes: tuple[int, ...]
    seeds: tuple[int, ...]
    budget: int = 24
    share: float = 0.2
    test: int = 10_000

    def __post_init__(self) -> None:
        """Refuse what is no contest."""
        require(bool(self.learners), "A contest needs at least one learner.")
        require(bool(self.sizes) and min(self.sizes) >= 2, f"Sample sizes must be whole numbers of at least 2, but are {list(self.sizes)}.")
        require(len(set(self.sizes)) == len(self.sizes), f"Each sample size may be given once, but they are {list(self.sizes)}.")
        require(bool(self.seeds), "A contest needs at least one seed.")
        require(self.budget >= 1, f"The budget is a number of settings to try, at least 1, but is {self.budget}.")

    @property
    def places(self) -> list[Place]:
        """All of them."""
        return [Place(name, n, seed) for name in self.learners for n in self.sizes for seed in self.seeds]

    def rehearsals(self, place: Place) -> list[Trial]:
        """The trials that tune a learner: each holds a part of its examples out."""
        candidates = self.learners[place.learner].suited(self.family).tuning(self.budget)
        tried = [HoldOut.of(candidate, self.share) for candidate in candidates]
        count = sum(len(trial.options(place.n)) for trial in tried)
        require(count <= self.budget, f"{place.learner} tries {count} settings, but only {self.budget} are allowed.")
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
        return {place: self.final(place, self.choice(place, store).learner) for place in self.places}

    def final(self, place: Place, chosen: Learner) -> Trial:
        """The trial of the learner that was chosen, on all examples."""
        return Trial(self.family, chosen, place.n, place.seed, (Performance(self.test),))

    @property
    def metric(self) -> Metric:
        """By what learners are compared: that of the data."""
        return self.family.metric


class Choice(NamedTuple):
    """What tuning chose: the learner, its metric on the examples held out, how many settings were tried and in how many seconds."""

    learner: Learner
    validation: float
    tried: int
    diverged: int
    seconds: float


def choose(trials: Sequence[Trial], records: Mapping[str, Record]) -> Choice:
    """The setting with the best metric on the examples held out; of equal ones the least loss, then the first."""
    metric = trials[0].family.metric
    found: list[tuple[float, float, float, Learner]] = []
    for trial in trials:
        record = records[trial.key]
        for step, learner in trial.learner.options(trial.n).items():
            value, lost = record.value(f"validation_{metric.name}", step), record.value("validation_loss", step)
            found.append((_rank(value if metric.higher else -value), _rank(-lost), value, learner))
    best = max(found, key=lambda entry: entry[:2])
    used = [records[trial.key] for trial in trials]
    return Choice(best[3], best[2], len(found), sum(r.status == "diverged" for r in used), sum(r.seconds for r in used))


def _rank(value: float) -> float:
    """What is not a number is behind all others."""
    return value if value == value else -float("inf")


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of one learner under one seed."""

    place: Place
    choice: Choice
    record: Record
    metric: Metric

    @property
    def value(self) -> float:
        """The metric on the test."""
        return self.record.value(f"test_{self.metric.name}")

    def to_json(self) -> dict[str, Any]:
        """The result as plain data."""
        return {
            "learner": self.place.learner,
            "n": self.place.n,
            "seed": self.place.seed,
            f"test_{self.metric.name}": self.value,
            f"validation_{self.metric.name}": self.choice.validation,
            "chosen": dict(self.choice.learner.settings),
            "tried": self.choice.tried,
            "diverged": self.choice.diverged + (self.record.status == "diverged"),
            "tuning_seconds": round(self.choice.seconds, 3),
            "seconds": round(self.record.seconds, 3),
            "trial": self.record.key,
        }


class Lead(NamedTuple):
    """By how much the leader is ahead of another learner, in units of the metric, on the same secrets, samples and test examples."""

    other: str
    ahead: Estimate
    decided: bool


@dataclasses.dataclass(frozen=True)
class ContestOutcome:
    """A contest that was run."""

    contest: Contest
    results: dict[Place, Result]

    @property
    def metric(self) -> Metric:
        """By what learners were compared."""
        return self.contest.metric

    def values(self, learner: str, n: int) -> list[float]:
        """The metric on the test under each seed."""
        return [self.results[Place(learner, n, seed)].value for seed in self.contest.seeds]

    def mean(self, learner: str, n: int) -> Estimate:
        """Mean over seeds."""
        return estimate(self.values(learner, n))

    def order(self, n: int) -> list[str]:
        """Learners by their mean at n, the best first."""
        sign = -1 if self.metric.higher else 1
        means = {learner: sign * self.mean(learner, n).mean for learner in self.contest.learners}
        return sorted(means, key=lambda learner: (means[learner] != means[learner], means[learner]))

    def leads(self, n: int) -> tuple[str, list[Lead]]:
        """The learner with the best mean at n, and how far it is ahead of each other, the nearest first.

        The leader was picked by looking, so each interval is at level 1 − (1 − LEVEL)/(number of others): all of them hold together.
        """
        leader, *others = self.order(n)
        leads = []
        for other in others:
            pairs = zip(self.values(leader, n), self.values(other, n), strict=True)
            ahead = _widened(estimate([(a - b) if self.metric.higher else (b - a) for a, b in pairs]), len(others))
            leads.append(Lead(other, ahead, bool(ahead.low > 0)))
        return leader, sorted(leads, key=lambda lead: lead.ahead.mean)

    def conclusion(self, n: int) -> str:
        """Who is ahead, by how much, and whether it is decided, in one sentence."""
        leader, leads = self.leads(n)
        best = self._said(self.mean(leader, n).mean)
        if not leads:
            return f"At n = {n:,}, {leader} has {best}; it is alone."
        behind, tied = [lead for lead in leads if lead.decided], [lead for lead in leads if not lead.decided]
        seeds = f"{len(self.contest.seeds)} seed{'s' * (len(self.contest.seeds) != 1)}"
        if not tied:
            first = behind[0]
            rest = ", and farther ahead of the others," if len(behind) > 1 else ""
            return (
                f"At n = {n:,}, {leader} ({best}) is ahead of {first.other}{rest} by {self._ahead(first.ahead)} on the same "
                f"secrets and samples ({seeds}): decided."
            )
        names = " and ".join(lead.other for lead in tied) if len(tied) < 3 else f"{tied[0].other} and {len(tied) - 1} others"
        apart = f"; it is ahead of {len(behind)} other{'s' * (len(behind) != 1)}, decided" if behind else ""
        greatest = "greatest" if self.metric.higher else "least"
        return (
            f"At n = {n:,}, {leader} ({best}) has the {greatest} mean, but its lead over {names} is not decided "
            f"({self._ahead(tied[0].ahead)}, {seeds}){apart}."
        )

    def _said(self, value: float) -> str:
        return f"{value:.2f} %" if self.metric.unit == "%" else f"{value:.4g} {self.metric.label.removeprefix('test ')}"

    def _ahead(self, ahead: Estimate) -> str:
        digits, unit = (".2f", " points") if self.metric.unit == "%" else (".3g", "")
        spread = f" ± {ahead.half:{digits}}" if ahead.half < float("inf") else ""
        return f"{ahead.mean:{digits}}{spread}{unit}"

    def to_json(self) -> dict[str, Any]:
        """The outcome as plain data."""
        contest = self.contest
        return {
            "metric": self.metric.name,
            "sizes": list(contest.sizes),
            "seeds": list(contest.seeds),
            "budget": contest.budget,
            "held_out": contest.share,
            "test_examples": contest.test,
            "conclusions": [self.conclusion(n) for n in contest.sizes],
            "means": [
                {"learner": learner, "n": n, "mean": _finite(e.mean), "interval": [_finite(e.low), _finite(e.high)]}
                for n in contest.sizes
                for learner in contest.learners
                for e in [self.mean(learner, n)]
            ],
            "leads": [
                {
                    "n": n,
                    "leader": leader,
                    "other": lead.other,
                    "ahead": _finite(lead.ahead.mean),
                    "interval": [_finite(lead.ahead.low), _finite(lead.ahead.high)],
                    "decided": lead.decided,
                }
                for n in contest.sizes
                for leader, leads in [self.leads(n)]
                for lead in leads
            ],
            "results": [result.to_json() for result in self.results.values()],
        }


def _finite(value: float) -> float | None:
    return value if abs(value) < float("inf") else None


def _widened(e: Estimate, comparisons: int) -> Estimate:
    """The interval at the level that holds for so many comparisons together."""
    if e.seeds < 2 or comparisons < 2:
        return e
    t = scipy.stats.t(e.seeds - 1)
    factor = t.ppf(1 - (1 - LEVEL) / (2 * comparisons)) / t.ppf((1 + LEVEL) / 2)
    return dataclasses.replace(e, low=float(e.mean - factor * e.half), high=float(e.mean + factor * e.half))


def run(contest: Contest, store: Store, engine: Engine) -> ContestOutcome:
    """Tune, choose, test; what the store already holds is not run again."""
    keep(contest.all_rehearsals, store, engine)
    finals = contest.finals(store)
    keep(list(finals.values()), store, engine)
    return outcome_of(contest, store)


def outcome_of(contest: Contest, store: Store) -> ContestOutcome:
    """The outcome of a contest whose trials are all in the store."""
    finals = contest.finals(store)
    results = {
        place: Result(place, contest.choice(place, store), store.get(trial.key, arrays=False), contest.metric)
        for place, trial in finals.items()
    }
    return ContestOutcome(contest, results)
