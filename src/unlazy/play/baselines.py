"""Final test errors of baselines and of watched learners, as trials that the store caches."""

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

#: Number of test examples.
TEST = 10_000
#: Hyperparameter configurations per baseline.
BUDGET = 4


@dataclasses.dataclass(frozen=True)
class FinalErrors:
    """Study of the final test error of an arm on a family, one value per seed."""

    family: Family
    arm: StudyArm
    seeds: tuple[int, ...]

    arrays = False

    @property
    def title(self) -> str:
        """Name of the family."""
        return type(self.family).__name__

    def rounds(self, store: Store, say: Say = silent) -> Rounds[list[float | None]]:
        """Run all seeds in one round."""
        trials = self.arm.trials(self.seeds)
        records = yield trials
        joined = self.arm.join([records[trial.id] for trial in trials], self.seeds)
        measure = f"test_{self.family.metric.name}"
        return errors_of(self.family, {measure: [record.value(measure) for record in joined]})


def baseline(scenario: Scenario, learner: Learner) -> FinalErrors:
    """Return the study of a baseline, tuned on held-out examples."""
    arm = Tuned(scenario.family, learner, scenario.baseline_n, (Performance(TEST),), BUDGET)
    return FinalErrors(scenario.family, arm, scenario.seeds)


def watched(scenario: Scenario, learner: Learner) -> FinalErrors:
    """Return the study of a watched learner at the end of its training."""
    arm = Arm(scenario.family, learner, scenario.n, (Performance(TEST),))
    return FinalErrors(scenario.family, arm, scenario.seeds)


class Abandoned(Exception):
    """Raised to end a run whose result is no longer needed."""


class Abandoning(NullRunCallback):
    """Callback that ends a run once its result is no longer needed."""

    def __init__(self, wanted: Callable[[], bool]) -> None:
        self._wanted = wanted

    def running(self, trials: int) -> None:
        self._check()

    def finished(self, trial: Runnable, seconds: float) -> None:
        self._check()

    def _check(self) -> None:
        if not self._wanted():
            raise Abandoned
        time.sleep(0)  # yields to the training thread
