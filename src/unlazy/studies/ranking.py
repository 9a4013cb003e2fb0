"""Rankings: our estimators on UCI tables among 179 published classifiers.

Each estimator on each split of each table is a trial.

Reference: M. Fernández-Delgado, E. Cernadas, S. Barro, D. Amorim. Do we need hundreds of
classifiers to solve real world classification problems? JMLR 15, 2014.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import equinox as eqx
import numpy as np
from jaxtyping import PRNGKeyArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from unlazy.core.errors import unknown
from unlazy.core.naming import ContentHashed
from unlazy.estimators.catalog import RANKING
from unlazy.lab.provenance import made_by
from unlazy.lab.serialization import from_plain, to_plain
from unlazy.lab.showing import Shown
from unlazy.lab.store import Run, Store
from unlazy.lab.study import Rounds, Say, silent
from unlazy.lab.trials import ExactComputation, Measurement, Record, Runnable, now
from unlazy.tables.folds import fitted
from unlazy.tables.uci_benchmark import PairedTest, Standing, paired_tests, standings
from unlazy.tasks.tables.uci import UciTable

_KEYS = {
    "measured": "accuracies",
    "comparable": "standings on tables without a test set",
    "tests": "paired tests",
}


class UciData(ContentHashed):
    """A UCI table with its published splits. Two tables of one name differ by their content."""

    name: str = eqx.field(static=True)
    table: UciTable = eqx.field(static=True)

    held: ClassVar[tuple[str, ...]] = ("table",)

    @property
    def digest(self) -> str:
        return self.table.content


class SplitTrial(ExactComputation):
    """An estimator with default settings on standardized columns of one split of a UCI table."""

    data: UciData
    method: str = eqx.field(static=True)
    estimator: BaseEstimator = eqx.field(static=True)
    split: int = eqx.field(static=True)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        split = self.data.table.splits[self.split]
        if len(np.unique(split.y)) < 2:
            return {"test_accuracy": 100.0 * float(np.mean(split.y_test == split.y[0]))}
        model = fitted(make_pipeline(StandardScaler(), self.estimator), split.x, split.y)
        correct = model.predict(split.x_test) == split.y_test
        return {"test_accuracy": 100.0 * float(np.mean(correct))}


@dataclasses.dataclass(frozen=True)
class RankingOutcome(Shown):
    """Accuracies in percent by method and table, and ranks among the published classifiers.

    `comparable`: ranks without tables whose published accuracies are from a test set.
    """

    command: str
    tables: int
    apart: int
    measured: Mapping[str, Mapping[str, float]]
    standings: tuple[Standing, ...]
    comparable: tuple[Standing, ...]
    tests: tuple[PairedTest, ...]
    provenance: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as JSON data."""
        return to_plain(self, _KEYS)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Self:
        """Build from `to_json` output."""
        standings, comparable = (
            tuple(map(_standing, told[_KEYS.get(name, name)]))
            for name in ("standings", "comparable")
        )
        return from_plain(cls, told, _KEYS, standings=standings, comparable=comparable)


def _standing(told: Mapping[str, Any]) -> Standing:
    """Build from JSON data; a single table has an infinite interval, which JSON does not have."""
    half = told["rank_half"]
    return Standing(**{**told, "rank_half": math.inf if half is None else half})


@dataclasses.dataclass(frozen=True)
class Ranking:
    """Estimators on UCI tables. `published`: accuracies of the published `classifiers` by table."""

    tables: tuple[UciTable, ...]
    methods: tuple[str, ...]
    classifiers: Sequence[str]
    published: Mapping[str, np.ndarray]
    command: str = ""

    arrays = False

    def __post_init__(self) -> None:
        for name in self.methods:
            if name not in RANKING:
                raise unknown("method", name, RANKING)

    @property
    def title(self) -> str:
        """The methods and the number of tables."""
        return f"{', '.join(self.methods)} on {len(self.tables)} UCI tables"

    def rounds(self, store: Store, say: Say = silent) -> Rounds[RankingOutcome]:
        """Run all estimators on all splits in one round."""
        trials: dict[tuple[str, str], list[Runnable]] = {}
        for table in self.tables:
            data = UciData(table.name, table)
            for name in self.methods:
                estimator = RANKING[name].default("classification")
                trials[name, table.name] = [
                    Measurement(SplitTrial(data, name, estimator, index), 0)
                    for index in range(len(table.splits))
                ]
        records = yield [trial for each in trials.values() for trial in each]
        measured: dict[str, dict[str, float]] = {name: {} for name in self.methods}
        used: dict[str, list[tuple[Runnable, Record]]] = {name: [] for name in self.methods}
        for (name, table_name), each in trials.items():
            pairs = [(trial, records[trial.id]) for trial in each]
            used[name] += pairs
            scores = [record.value("test_accuracy") for _, record in pairs]
            measured[name][table_name] = float(np.mean(scores))
        outcome = self._outcome(measured, used)
        arms = {name: [record.id for _, record in pairs] for name, pairs in used.items()}
        setting = self.command or self.title
        store.add_run(Run("ranking", "uci", setting, 0, 1, arms, now(), outcome.to_json()))
        return outcome

    def _outcome(
        self,
        measured: Mapping[str, Mapping[str, float]],
        used: Mapping[str, Sequence[tuple[Runnable, Record]]],
    ) -> RankingOutcome:
        found = standings(measured, self.classifiers, self.published)
        apart = [table.name for table in self.tables if not table.comparable]
        same = found
        if 0 < len(apart) < len(self.tables):
            same = standings(measured, self.classifiers, self.published, without=apart)
        return RankingOutcome(
            self.command,
            len(self.tables),
            len(apart),
            measured,
            tuple(found),
            tuple(same),
            tuple(paired_tests(measured)),
            made_by(pair for pairs in used.values() for pair in pairs),
        )
