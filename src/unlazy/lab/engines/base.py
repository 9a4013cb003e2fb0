"""The engine protocol: submit trials, be told how it goes, take records as they finish, stop."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from typing import Protocol

from unlazy.core.errors import BadInput
from unlazy.lab.trials import Record, Runnable, Trial


class Watcher(Protocol):
    """Is told how a run goes on."""

    def compiling(self, programs: int) -> None:
        """The engine waits for a program; `programs` are compiled so far."""

    def compiled(self, programs: int, seconds: float) -> None:
        """So many programs have been compiled in this run, in so many seconds altogether."""

    def running(self, trials: int) -> None:
        """A chunk of so many trials has started."""

    def finished(self, trial: Runnable, seconds: float) -> None:
        """A trial is done."""


class Silent:
    """A watcher that says nothing."""

    def compiling(self, programs: int) -> None:
        pass

    def compiled(self, programs: int, seconds: float) -> None:
        pass

    def running(self, trials: int) -> None:
        pass

    def finished(self, trial: Runnable, seconds: float) -> None:
        pass


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a run will take: how many trials in how many shapes, estimated seconds with all programs in the cache, and without any.

    `memory` is how many bytes one program may use.
    """

    trials: int
    shapes: int
    work: float
    seconds: float
    compile_seconds: float
    memory: int


class Engine(ABC):
    """Runs trials wherever it runs them."""

    @abstractmethod
    def plan(self, trials: Sequence[Runnable]) -> Plan:
        """What running these would take."""

    @abstractmethod
    def run(self, trials: Sequence[Runnable], watcher: Watcher) -> Generator[Record]:
        """Records as they finish. Closing the iterator stops the engine: nothing is begun after it."""


def require_data(trials: Sequence[Runnable]) -> None:
    """Refuse trials whose data are not there, before anything runs."""
    for trial in trials:
        if isinstance(trial, Trial) and (lacking := trial.family.missing) is not None:
            raise BadInput(lacking)
