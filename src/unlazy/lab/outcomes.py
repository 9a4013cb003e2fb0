"""Results of benchmarks: metrics of all runs, means, paired differences and conclusions."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import scipy.stats

from unlazy.core.metrics import METRICS, Metric
from unlazy.lab.serialization import from_plain, to_plain
from unlazy.lab.showing import Shown
from unlazy.lab.statistics import LEVEL, Estimate, estimate, estimate_of
from unlazy.learners.base import Learner

_KEYS = {"validation_fraction": "held_out", "test": "test_examples"}


class Cell(NamedTuple):
    """Learner, number of examples and seed of one result."""

    learner: str
    n: int
    seed: int


@dataclasses.dataclass(frozen=True)
class Result:
    """Result of one learner for one number of examples and one seed.

    `value` and `validation`: metric on test and validation examples. `chosen`: the selected
    configuration. `tried`: number of configurations tried. `trial`: id of the record. `learner`:
    the selected learner; None if the result was read from a store, which keeps only the
    configuration.
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
        """Return the result as JSON data."""
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
        """Build from `to_json` output."""
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
    """Paired difference between the best learner and another one, in units of the metric.

    Both have the same tasks, samples and test examples. `ahead`: mean difference, positive if the
    best learner is better. `decided`: whether it is significant.
    """

    other: str
    ahead: Estimate
    decided: bool


@dataclasses.dataclass(frozen=True)
class BenchmarkResult(Shown):
    """Result of a benchmark. `command`: the command that reproduces it, if there is one."""

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
        """Description that distinguishes this benchmark from others on the same task."""
        described = (
            f"{', '.join(self.learners)}; n = {', '.join(map(str, self.sizes))}; {self.budget} "
            f"settings; {self.test} test examples"
        )
        return self.command or described

    def values(self, learner: str, n: int) -> list[float]:
        """Return the test metric for each seed."""
        return [self.results[Cell(learner, n, seed)].value for seed in self.seeds]

    def mean(self, learner: str, n: int) -> Estimate:
        """Return the mean over seeds."""
        return estimate_of(self.metric.name, self.values(learner, n))

    def order(self, n: int) -> list[str]:
        """Return the learners sorted by their mean at n, the best first."""
        sign = -1 if self.metric.higher else 1
        means = {learner: sign * self.mean(learner, n).mean for learner in self.learners}
        return sorted(means, key=lambda learner: (means[learner] != means[learner], means[learner]))

    def differences(self, n: int) -> tuple[str, list[PairedDifference]]:
        """Return the learner with the best mean at n, and its paired differences to all others.

        Differences are sorted by their mean. The best learner was selected from the data, so the
        intervals have Bonferroni-corrected level 1 − (1 − LEVEL)/(number of others).
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
        """Return one sentence: the best learner, the difference to others, its significance."""
        leader, differences = self.differences(n)
        at, best = f"At n = {n:,}, ", self._value(self.mean(leader, n).mean)
        if not differences:
            return f"{at}{leader} has {best} (no other learner)."
        seeds = "1 seed" if len(self.seeds) == 1 else f"{len(self.seeds)} paired seeds"
        tied = [each.other for each in differences if each.ahead.mean == 0]
        worse = [each for each in differences if each.decided]
        unclear = [each for each in differences if not each.decided and each.ahead.mean != 0]
        if not tied and not unclear:
            runner_up = ", the runner-up" if len(worse) > 1 else ""
            over = "over" if self.metric.higher else "versus"
            return (
                f"{at}{leader} is best ({best}): {self._difference(worse[0].ahead)} {over} "
                f"{worse[0].other}{runner_up} (significant, {seeds})."
            )
        parts = [f"{_listed([leader, *tied])} tie at {best}" if tied else ""]
        if unclear:
            others = [each.other for each in unclear]
            names = (
                _listed(others) if len(others) < 3 else f"{others[0]} and {len(others) - 1} others"
            )
            known = f"{self._difference(unclear[0].ahead)}, {seeds}"
            parts.append(f"not significantly better than {names} ({known})")
        if worse:
            parts.append(f"significantly better than {len(worse)} other{'s' * (len(worse) != 1)}")
        if not tied:
            highest = "highest" if self.metric.higher else "lowest"
            parts[:2] = [f"{leader} has the {highest} mean ({best}), but is {parts[1]}"]
        return f"{at}{'; '.join(parts)}."

    def _value(self, value: float) -> str:
        return (
            f"{value:.2f} %"
            if self.metric.unit == "%"
            else f"{value:.4g} {self.metric.label.removeprefix('test ')}"
        )

    def _difference(self, e: Estimate) -> str:
        """Return such as "+15.4 ± 10.8 points", with the sign of the metric."""
        sign, unit = "+" if self.metric.higher else "−", " points" * (self.metric.unit == "%")
        digits = ".3g" if not unit else ".1f" if e.mean >= 10 else ".2f"
        spread = f" ± {e.half:{digits}}" if e.half < float("inf") else ""
        return f"{sign}{e.mean:{digits}}{spread}{unit}"

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as JSON data."""
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
        """Build from `to_json` output; means and conclusions are computed again."""
        metric = METRICS[told["metric"]]
        results = [Result.from_json(each, metric) for each in told["results"]]
        by_cell = {result.place: result for result in results}
        return from_plain(cls, told, _KEYS, metric=metric, results=by_cell)


def _listed(names: Sequence[str]) -> str:
    """Return such as "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _finite(value: float) -> float | None:
    """Return None for NaN and infinity, which JSON does not have."""
    return value if abs(value) < float("inf") else None


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _widened(e: Estimate, comparisons: int) -> Estimate:
    """Return the interval with Bonferroni correction for this number of comparisons."""
    if e.seeds < 2 or comparisons < 2:
        return e
    t = scipy.stats.t(e.seeds - 1)
    factor = t.ppf(1 - (1 - LEVEL) / (2 * comparisons)) / t.ppf((1 + LEVEL) / 2)
    return dataclasses.replace(
        e, low=float(e.mean - factor * e.half), high=float(e.mean + factor * e.half)
    )
