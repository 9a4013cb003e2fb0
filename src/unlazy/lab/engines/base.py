"""Engine interface: run trials, report progress, yield records."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from types import TracebackType
from typing import Protocol, Self

from unlazy.core.errors import BadInput
from unlazy.lab.costs import Costs
from unlazy.lab.trials import Failure, Record, Runnable, Trial


class Callback(Protocol):
    """Receives progress events."""

    def compiling(self, programs: int) -> None:
        """The engine waits for compilation; `programs` are compiled so far."""

    def compiled(self, programs: int, seconds: float) -> None:
        """`programs` were compiled in this run so far, in `seconds`."""

    def running(self, trials: int) -> None:
        """A chunk of `trials` has started."""

    def finished(self, trial: Runnable, seconds: float) -> None:
        """A trial is finished."""

    def staffed(self, workers: int) -> None:
        """`workers` are available; not called by an engine without workers."""


class NullCallback:
    """A callback that does nothing."""

    def compiling(self, programs: int) -> None:
        pass

    def compiled(self, programs: int, seconds: float) -> None:
        pass

    def running(self, trials: int) -> None:
        pass

    def finished(self, trial: Runnable, seconds: float) -> None:
        pass

    def staffed(self, workers: int) -> None:
        pass


@dataclasses.dataclass(frozen=True)
class Plan:
    """Estimated cost of a run.

    `shapes`: number of shape groups. `cost_of_all`: sum of the seconds of all trials. `seconds`:
    time of the run with all programs cached. `compile_seconds`: time of compilation without cache.
    `memory`: bytes per program. `cost`: estimated seconds of one trial.
    """

    trials: int
    shapes: int
    cost_of_all: float
    seconds: float
    compile_seconds: float
    memory: int
    cost: Callable[[Runnable], float]


class Engine(ABC):
    """Runs trials. `costs`: cost model of trials.

    An engine with worker processes keeps them until it is closed; use it as a context manager.
    """

    costs: Costs

    @abstractmethod
    def plan(self, trials: Sequence[Runnable]) -> Plan:
        """Return the estimated cost of running these trials."""

    @abstractmethod
    def run(self, trials: Sequence[Runnable], callback: Callback) -> Generator[Record | Failure]:
        """Yield records as they finish, and failures if the engine can continue after one.

        Closing the iterator stops the engine.
        """

    @property
    def summary(self) -> str:
        """A sentence on where trials ran; empty if all ran in this process."""
        return ""

    def close(self) -> None:
        """Stop worker processes; the engine can be used again."""
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def require_data(trials: Sequence[Runnable]) -> None:
    """Raise an error if data of a trial are missing, before anything runs."""
    for trial in trials:
        if isinstance(trial, Trial) and (lacking := trial.family.missing) is not None:
            raise BadInput(lacking)
