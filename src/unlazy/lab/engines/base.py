"""The engine protocol: submit trials, be told how it goes, take records as they finish, stop."""

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
    """Is told how a run goes on."""

    def compiling(self, programs: int) -> None:
        """The engine waits for a program; `programs` are compiled so far."""

    def compiled(self, programs: int, seconds: float) -> None:
        """So many programs have been compiled in this run, in so many seconds altogether."""

    def running(self, trials: int) -> None:
        """A chunk of so many trials has started."""

    def finished(self, trial: Runnable, seconds: float) -> None:
        """A trial is done."""

    def staffed(self, workers: int) -> None:
        """So many workers are there; an engine without workers never says so."""


class NullCallback:
    """A watcher that says nothing."""

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
    """What a run will take: how many trials in how many shapes, estimated seconds with all programs
    in the cache, and without any.

    `memory` is how many bytes one program may use. `cost` estimates the seconds of one trial alone,
    `cost_of_all` is their sum.
    """

    trials: int
    shapes: int
    cost_of_all: float
    seconds: float
    compile_seconds: float
    memory: int
    cost: Callable[[Runnable], float]


class Engine(ABC):
    """Runs trials wherever it runs them. `costs` is what it knows of the seconds that trials take.

    An engine that has processes of its own keeps them until it is closed; use it as a context
    manager.
    """

    costs: Costs

    @abstractmethod
    def plan(self, trials: Sequence[Runnable]) -> Plan:
        """What running these would take."""

    @abstractmethod
    def run(self, trials: Sequence[Runnable], callback: Callback) -> Generator[Record | Failure]:
        """Records as they finish, and failures where the engine can go on after one.

        Closing the iterator stops the engine.
        """

    @property
    def summary(self) -> str:
        """What ran where, in a sentence; nothing where all ran in this process."""
        return ""

    def close(self) -> None:
        """Let go of processes; the engine can be used again."""
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
    """Refuse trials whose data are not there, before anything runs."""
    for trial in trials:
        if isinstance(trial, Trial) and (lacking := trial.family.missing) is not None:
            raise BadInput(lacking)
