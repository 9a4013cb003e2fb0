"""Cost model of trials, fitted to times in the store: seconds = a + b·work.

Trials of one kind have one learner class and one family class; a run at a small scale predicts
larger ones. The cost of an exact computation is its cost for another seed, or the median of its
class.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from unlazy.core.naming import describe
from unlazy.lab.trials import Runnable, Trial, key_of

#: Default multiply-adds per second; training reaches about half the speed of a matrix product.
SPEED = 2.5e10
#: Default seconds to compile the programs of one shape group that are not in the cache.
COMPILE_SECONDS = 4.0
#: Default seconds of an exact computation of a class that was never run.
EXACT_SECONDS = 2.0
#: Kind of entries for compilation: number of shapes (as work) and seconds.
COMPILING = "compiling"


class Cost(NamedTuple):
    """Seconds per trial of one kind and size."""

    kind: str
    work: float
    seconds: float


def kind_of(trial: Runnable) -> str:
    """Return the kind of a trial."""
    if isinstance(trial, Trial):
        return f"{type(trial.family).__name__} {type(trial.learner).__name__}"
    content = key_of(describe(trial.computation, brief=True))
    return f"{type(trial.computation).__name__} {content[:8]}"


class CostRecorder:
    """A callback that records the cost of trials and forwards all events to another callback."""

    def __init__(self, shapes: int, callback: Any) -> None:
        self._callback, self._shapes, self._compiled = callback, shapes, 0.0
        self._seconds: dict[tuple[str, float], list[float]] = {}

    @property
    def costs(self) -> list[Cost]:
        """Median seconds of each kind and size, and the time of compilation."""
        found = [Cost(*of, statistics.median(seconds)) for of, seconds in self._seconds.items()]
        return (
            [*found, Cost(COMPILING, self._shapes, self._compiled)]
            if self._compiled and self._shapes
            else found
        )

    def compiling(self, programs: int) -> None:
        self._callback.compiling(programs)

    def compiled(self, programs: int, seconds: float) -> None:
        self._compiled = seconds
        self._callback.compiled(programs, seconds)

    def running(self, trials: int) -> None:
        self._callback.running(trials)

    def finished(self, trial: Runnable, seconds: float) -> None:
        self._seconds.setdefault((kind_of(trial), trial.work), []).append(seconds)
        self._callback.finished(trial, seconds)

    def staffed(self, workers: int) -> None:
        self._callback.staffed(workers)


class Price(NamedTuple):
    """Seconds of a trial: fixed, and per multiply-add."""

    fixed: float
    each: float

    def __call__(self, work: float) -> float:
        return self.fixed + self.each * work


class Costs:
    """Cost model of trials, fitted to past costs."""

    def __init__(self, past: Iterable[Cost] = ()) -> None:
        past = [cost for cost in past if cost.work > 0 and cost.seconds > 0]
        compiling = [cost for cost in past if cost.kind == COMPILING]
        trials = [cost for cost in past if cost.kind != COMPILING]
        self.known = bool(trials)
        self.compile_seconds = (
            statistics.median(cost.seconds / cost.work for cost in compiling)
            if compiling
            else COMPILE_SECONDS
        )
        points = [(cost.work, cost.seconds) for cost in trials if cost.work != 1.0]
        self._typical = fitted(points, 1 / SPEED) if points else Price(0.0, 1 / SPEED)
        by_kind: dict[str, list[tuple[float, float]]] = {}
        for cost in trials:
            by_kind.setdefault(cost.kind, []).append((cost.work, cost.seconds))
        self._lines = {kind: fitted(points, self._typical.each) for kind, points in by_kind.items()}

    def seconds(self, trial: Runnable) -> float:
        """Return the estimated seconds of a trial."""
        kind = kind_of(trial)
        if isinstance(trial, Trial) or kind in self._lines:
            return self._lines.get(kind, self._typical)(trial.work)
        own = kind.split()[0]
        same = [line(1.0) for name, line in self._lines.items() if name.split()[0] == own]
        return statistics.median(same) if same else EXACT_SECONDS


def fitted(points: list[tuple[float, float]], typical: float) -> Price:
    """Fit a line with nonnegative coefficients by least squares of relative errors.

    If the sizes differ by less than a factor of 2, the slope is `typical`.
    """
    work, seconds = (np.array(column) for column in zip(*points, strict=True))
    if work.max() < 2 * work.min():
        w, s = float(np.median(work)), float(np.median(seconds))
        return Price(s - typical * w, typical) if s > typical * w else Price(0.0, s / w)
    scale = work.max()
    (fixed, each), _ = nnls(
        np.column_stack([1 / seconds, work / scale / seconds]), np.ones(len(work))
    )
    return Price(float(fixed), float(each / scale))
