"""Errors beside the training that is watched: of rivals, and of the watched learner at its end.

They are trials like others: the store answers what was asked before.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

from unlazy.lab.arms import Arm, StudyArm, Tuned
from unlazy.lab.run import NullRunCallback
from unlazy.lab.store import Store
from unlazy.lab.study import Rounds, Say, silent
from unlazy.lab.trials import Runnable
from unlazy.learners.base import Learner
from unlazy.play.frames import errors_of
from unlazy.play.scenario import Scenario
from unlazy.probes.performance import Performance
from unlazy.tasks.base import Family

#: Test examples.
TEST = 10_000
#: Settings that a rival may try.
BUDGET = 4


@dataclasses.dataclass(frozen=True)
class FinalErrors:
    """A study of the test error that an arm reaches on a family, by seed."""

    family: Family
    arm: StudyArm
    seeds: tuple[int, ...]

    arrays = False

    @property
    def title(self) -> str:
        """The family."""
        return type(self.family).__name__

    def rounds(self, store: Store, say: Say = silent) -> Rounds[list[float | None]]:
        """Run all seeds in one round."""
        trials = self.arm.trials(self.seeds)
        records = yield trials
        joined = self.arm.join([records[trial.id] for trial in trials], self.seeds)
        measure = f"test_{self.family.metric.name}"
        return errors_of(self.family, {measure: [record.value(measure) for record in joined]})


def baseline(scenario: Scenario, learner: Learner) -> FinalErrors:
    """Return the study of a rival: the best of a few settings, chosen on held-out examples."""
    arm = Tuned(scenario.family, learner, scenario.baseline_n, (Performance(TEST),), BUDGET)
    return FinalErrors(scenario.family, arm, scenario.seeds)


def watched(scenario: Scenario, learner: Learner) -> FinalErrors:
    """Return the study of a watched learner at the end of its training."""
    arm = Arm(scenario.family, learner, scenario.n, (Performance(TEST),))
    return FinalErrors(scenario.family, arm, scenario.seeds)


class Abandoned(Exception):
    """Nobody waits for the result any more."""


class Abandoning(NullRunCallback):
    """A watcher that ends a run once its result is not wanted any more."""

    def __init__(self, wanted: Callable[[], bool]) -> None:
        self._wanted = wanted

    def running(self, trials: int) -> None:
        self._check()

    def finished(self, trial: Runnable, seconds: float) -> None:
        self._check()

    def _check(self) -> None:
        if not self._wanted():
            raise Abandoned
        time.sleep(0)  # let the training thread have its turn
