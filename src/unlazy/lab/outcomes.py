"""What became of a contest: plain data that a store keeps and gives back, with means, leads and
conclusions read off them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import scipy.stats

from unlazy.core.metrics import METRICS, Metric
from unlazy.lab.serialization import from_plain, to_plain
from unlazy.lab.showing import Shown
from unlazy.lab.statistics import LEVEL, Estimate, estimate, estimate_of
from unlazy.learners.base import Learner

_KEYS = {"validation_fraction": "held_out", "test": "test_examples"}


class Cell(NamedTuple):
    """Who, with how many examples, under which seed."""

    learner: str
    n: int
    seed: int


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of one learner under one seed: its metric on the test and on the examples held
    out, what was chosen, and the price.

    `trial` is the key of the record. `learner` is what tuning chose, as long as it is at hand: a
    store keeps its settings alone.
    """

    place: Cell
    value: float
    validation: float
    chosen: Mapping[str, float | str]
    tried: int
    diverged: int
    tuning_seconds: float
    seconds: float
    trial: str
    learner: Learner | None = dataclasses.field(default=None, compare=False)

    def to_json(self, metric: Metric) -> dict[str, Any]:
        """The result as plain data."""
        return {
            **self.place._asdict(),
            f"test_{metric.name}": _finite(self.value),
            f"validation_{metric.name}": _finite(self.validation),
            "chosen": dict(self.chosen),
            "tried": self.tried,
            "diverged": self.diverged,
            "tuning_seconds": round(self.tuning_seconds, 3),
            "seconds": round(self.seconds, 3),
            "trial": self.trial,
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any], metric: Metric) -> Self:
        """Undo `to_json`."""
        place = Cell(told["learner"], told["n"], told["seed"])
        value, validation = (
            _number(told[f"{part}_{metric.name}"]) for part in ("test", "validation")
        )
        rest = (
            told[name]
            for name in ("chosen", "tried", "diverged", "tuning_seconds", "seconds", "trial")
        )
        return cls(place, value, validation, *rest)


class PairedDifference(NamedTuple):
    """By how much the leader is ahead of another learner, in units of the metric, on the same
    secrets, samples and test examples.
    """

    other: str
    ahead: Estimate
    decided: bool


@dataclasses.dataclass(frozen=True)
class BenchmarkResult(Shown):
    """A contest that was run. `command` makes it again, where it was given by names."""

    task: str
    learners: tuple[str, ...]
    sizes: tuple[int, ...]
    seeds: tuple[int, ...]
    metric: Metric
    results: Mapping[Cell, Result]
    budget: int
    validation_fraction: float
    test: int
    command: str = ""
    provenance: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def settings(self) -> str:
        """What tells this contest from others on the task."""
        what = (
            f"{', '.join(self.learners)}; n = {', '.join(map(str, self.sizes))}; {self.budget} "
            f"settings; {self.test} test examples"
        )
        return self.command or what

    def values(self, learner: str, n: int) -> list[float]:
        """The metric on the test under each seed."""
        return [self.results[Cell(learner, n, seed)].value for seed in self.seeds]

    def mean(self, learner: str, n: int) -> Estimate:
        """Mean over seeds."""
        return estimate_of(self.metric.name, self.values(learner, n))

    def order(self, n: int) -> list[str]:
        """Learners by their mean at n, the best first."""
        sign = -1 if self.metric.higher else 1
        means = {learner: sign * self.mean(learner, n).mean for learner in self.learners}
        return sorted(means, key=lambda learner: (means[learner] != means[learner], means[learner]))

    def differences(self, n: int) -> tuple[str, list[PairedDifference]]:
        """The learner with the best mean at n, and how far it is ahead of each other, the nearest
        first.

        The leader was picked by looking, so each interval is at level 1 − (1 − LEVEL)/(number of
        others): all of them hold together.
        """
        leader, *others = self.order(n)
        differences = []
        for other in others:
            pairs = zip(self.values(leader, n), self.values(other, n), strict=True)
            ahead = _widened(
                estimate([(a - b) if self.metric.higher else (b - a) for a, b in pairs]),
                len(others),
            )
            differences.append(PairedDifference(other, ahead, bool(ahead.low > 0)))
        return leader, sorted(differences, key=lambda difference: difference.ahead.mean)

    def conclusion(self, n: int) -> str:
        """Who is ahead, by how much, and whether it is decided, in one sentence."""
        leader, differences = self.differences(n)
        best = self._said(self.mean(leader, n).mean)
        if not differences:
            return f"At n = {n:,}, {leader} has {best}; it is alone."
        behind, tied = (
            [difference for difference in differences if difference.decided],
            [difference for difference in differences if not difference.decided],
        )
        seeds = f"{len(self.seeds)} seed{'s' * (len(self.seeds) != 1)}"
        if not tied:
            first = behind[0]
            rest = ", and farther ahead of the others," if len(behind) > 1 else ""
            return (
                f"At n = {n:,}, {leader} ({best}) is ahead of {first.other}{rest} by "
                f"{self._ahead(first.ahead)} on the same "
                f"secrets and samples ({seeds}): decided."
            )
        names = (
            " and ".join(difference.other for difference in tied)
            if len(tied) < 3
            else f"{tied[0].other} and {len(tied) - 1} others"
        )
        apart = (
            f"; it is ahead of {len(behind)} other{'s' * (len(behind) != 1)}, decided"
            if behind
            else ""
        )
        greatest = "greatest" if self.metric.higher else "least"
        return (
            f"At n = {n:,}, {leader} ({best}) has the {greatest} mean, but its lead over "
            f"{names} is not decided "
            f"({self._ahead(tied[0].ahead)}, {seeds}){apart}."
        )

    def _said(self, value: float) -> str:
        return (
            f"{value:.2f} %"
            if self.metric.unit == "%"
            else f"{value:.4g} {self.metric.label.removeprefix('test ')}"
        )

    def _ahead(self, ahead: Estimate) -> str:
        digits, unit = (".2f", " points") if self.metric.unit == "%" else (".3g", "")
        spread = f" ± {ahead.half:{digits}}" if ahead.half < float("inf") else ""
        return f"{ahead.mean:{digits}}{spread}{unit}"

    def to_json(self) -> dict[str, Any]:
        """The outcome as plain data."""
        results = [result.to_json(self.metric) for result in self.results.values()]
        return to_plain(self, _KEYS, metric=self.metric.name, results=results) | {
            "conclusions": [self.conclusion(n) for n in self.sizes],
            "means": [
                {
                    "learner": learner,
                    "n": n,
                    "mean": _finite(e.mean),
                    "interval": [_finite(e.low), _finite(e.high)],
                }
                for n in self.sizes
                for learner in self.learners
                for e in [self.mean(learner, n)]
            ],
            "leads": [
                {
                    "n": n,
                    "leader": leader,
                    "other": difference.other,
                    "ahead": _finite(difference.ahead.mean),
                    "interval": [_finite(difference.ahead.low), _finite(difference.ahead.high)],
                    "decided": difference.decided,
                }
                for n in self.sizes
                for leader, differences in [self.differences(n)]
                for difference in differences
            ],
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Self:
        """Undo `to_json`; what follows from the results is computed anew."""
        metric = METRICS[told["metric"]]
        results = [Result.from_json(each, metric) for each in told["results"]]
        by_place = {result.place: result for result in results}
        return from_plain(cls, told, _KEYS, metric=metric, results=by_place)


def _finite(value: float) -> float | None:
    """JSON has no NaN and no infinity."""
    return value if abs(value) < float("inf") else None


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _widened(e: Estimate, comparisons: int) -> Estimate:
    """The interval at the level that holds for so many comparisons together."""
    if e.seeds < 2 or comparisons < 2:
        return e
    t = scipy.stats.t(e.seeds - 1)
    factor = t.ppf(1 - (1 - LEVEL) / (2 * comparisons)) / t.ppf((1 + LEVEL) / 2)
    return dataclasses.replace(
        e, low=float(e.mean - factor * e.half), high=float(e.mean + factor * e.half)
    )
