"""A progress bar for runs: how far, how fast, how long still; compiling is shown apart."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from unlazy.lab.engines.base import Plan
from unlazy.lab.trials import Runnable


def duration(seconds: float) -> str:
    """A length of time as a person would say it."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class ProgressBar:
    """A `Watcher` that draws a bar. The time left is estimated from the work already done in this
    run.

    `programs`, `compile_seconds`: what the engine has compiled so far.
    """

    def __init__(self, plan: Plan, console: Console, *, transient: bool = False) -> None:
        self._work, self._left = 0.0, plan.work
        self._seconds = 0.0
        self._planned, self._shapes = plan.shapes, 0
        self._waited, self._begin = 0.0, 0.0
        self.programs, self.compile_seconds = 0, 0.0
        self._workers, self._done, self._start = 0, 0, time.perf_counter()
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("trials ·"),
        )
        self._bar = Progress(
            *columns,
            TimeElapsedColumn(),
            TextColumn("· {task.fields[left]}"),
            console=console,
            transient=transient,
        )
        self._task = self._bar.add_task("starting", total=plan.trials, left="")

    def __enter__(self) -> Self:
        """Show the bar."""
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the bar as it stands."""
        done = self._bar.finished
        self._bar.update(
            self._task,
            description="done" if done else "stopped",
            left="" if done else "what is finished is kept",
        )
        self._bar.stop()

    def compiling(self, programs: int) -> None:
        self._begin = time.perf_counter()
        self._bar.update(self._task, description=f"compiling program {programs + 1}")

    def compiled(self, programs: int, seconds: float) -> None:
        self.programs, self.compile_seconds = programs, seconds
        self._shapes += 1

    def staffed(self, workers: int) -> None:
        self._workers = workers

    def running(self, trials: int) -> None:
        if self._begin:
            self._waited += time.perf_counter() - self._begin
            self._begin = 0.0
        self._bar.update(
            self._task, description=f"running {trials} at once" if trials > 1 else "running"
        )

    def finished(self, trial: Runnable, seconds: float) -> None:
        self._work += trial.work
        self._left = max(0.0, self._left - trial.work)
        self._seconds += seconds
        self._done += 1
        left = self._left * self._seconds / max(self._work, 1.0)
        left += max(0, self._planned - self._shapes) * self._waited / max(1, self._shapes)
        speed = ""
        if self._workers:  # they run and compile at once: only the clock on the wall knows
            passed = time.perf_counter() - self._start
            left = self._left * passed / max(self._work, 1.0)
            speed = (
                f"{self._done / max(passed, 1e-9):.2g} a second, {self._workers} "
                f"worker{'s' if self._workers > 1 else ''}, "
            )
        self._bar.update(
            self._task, advance=1, left=f"{speed}about {duration(left)} left" if self._left else ""
        )
