"""Progress of runs, for the command line, scripts and notebooks.

Prints the plan with its estimated time, a progress bar, failed trials, and the number of saved
trials on interruption.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

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
from unlazy.lab.run import NullRunCallback, Round, RunCallback
from unlazy.lab.trials import Failure, Runnable
from unlazy.report.terminal import escaped

#: Maximum number of failed trials printed.
FAILURES_SHOWN = 5
#: Maximum number of changed modules, libraries or files printed.
CHANGES_SHOWN = 6


def callback_of(progress: bool | None) -> RunCallback:
    """Return a callback for a script or notebook; by default, it prints progress in notebooks and
    on terminals.
    """
    console = Console(stderr=True)
    if progress is None:
        progress = console.is_jupyter or sys.stderr.isatty()
    return RunProgress(console, brief=True) if progress else NullRunCallback()


class RunProgress:
    """Callback that prints the progress of a run.

    `brief` prints only a transient bar and failures, for runs of many rounds.
    """

    def __init__(self, console: Console, *, brief: bool = False) -> None:
        self.console, self.brief = console, brief
        self.trials = 0
        self._bar: ProgressBar | None = None
        self._printed: set[str] = set()
        self._stage = ""

    def _print(self, text: str) -> None:
        self.console.print(text, highlight=False, soft_wrap=True)

    def began(self, round: Round) -> None:
        if round.reused:
            self._once(
                f"[yellow]{round.reused} of {round.total} answers come from records made by other "
                "code, libraries or data[/] (--reuse-older)."
            )
        if round.outdated:
            named = ", ".join(round.changed[:CHANGES_SHOWN])
            more = f" and {len(round.changed) - CHANGES_SHOWN} more" * (
                len(round.changed) > CHANGES_SHOWN
            )
            self._once(
                f"Running {_trials(round.outdated)} again: the stored records were made by other "
                f"code, libraries or data (changed: {escaped(named)}{more})."
            )
        if not round.plan.trials:
            if not self.brief:
                self._print(f"{_trials(round.total)}, already stored.")
            return
        if not self.brief:
            self._print(_announcement(round))
        self.trials += round.plan.trials
        if self.brief and not (self.console.is_terminal or self.console.is_jupyter):
            return  # a bar that disappears leaves an empty line in a file
        self._bar = ProgressBar(round.plan, self.console, self._stage, transient=self.brief)
        self._bar.start()

    def _once(self, text: str) -> None:
        if text not in self._printed:
            self._printed.add(text)
            self._print(text)

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            if self._bar.programs and not self.brief:
                seconds = self._bar.compile_seconds
                self._print(f"Compiled {self._bar.programs} programs in {seconds:.1f} s.")
            self._bar = None

    def ended(self, round: Round, failures: Sequence[Failure], summary: str) -> None:
        self._stop()
        if summary and round.plan.trials and not self.brief:
            self._print(summary)
        if failures:
            self._print(
                f"[red]{len(failures)} of {_trials(round.plan.trials)} could not be run;[/] the "
                "same command tries them again."
            )
        for failure in failures[:FAILURES_SHOWN]:
            self._print(f"  {failure.id}: {escaped(failure.reason)}")
        if len(failures) > FAILURES_SHOWN:
            self._print(f"  … and {len(failures) - FAILURES_SHOWN} more")

    def interrupted(self, round: Round, saved: int) -> None:
        self._stop()
        self._print(f"Interrupted; {saved} of {_trials(round.plan.trials)} saved. Rerun to resume.")

    def noted(self, sentence: str, *, passing: bool = False) -> None:
        if passing:
            self._stage = sentence
        else:
            self._print(f"  {escaped(sentence)}")

    def compiling(self, programs: int) -> None:
        if self._bar is not None:
            self._bar.compiling(programs)

    def compiled(self, programs: int, seconds: float) -> None:
        if self._bar is not None:
            self._bar.compiled(programs, seconds)

    def running(self, trials: int) -> None:
        if self._bar is not None:
            self._bar.running(trials)

    def finished(self, trial: Runnable, seconds: float) -> None:
        if self._bar is not None:
            self._bar.finished(trial, seconds)

    def staffed(self, workers: int) -> None:
        if self._bar is not None:
            self._bar.staffed(workers)


def _trials(count: int) -> str:
    return f"{count:,} trial{'s' * (count != 1)}"


def _announcement(round: Round) -> str:
    plan = round.plan
    groups = f" in {plan.shapes} shape group{'s' * (plan.shapes != 1)}" if plan.shapes else ""
    stored = f", {round.stored} of {round.total} are stored" if round.stored else ""
    compiling = (
        f", plus about {duration(plan.compile_seconds)} of compilation; "
        f"≤ {plan.memory / 2**30:.1f} GiB per program"
        if plan.shapes
        else ""
    )
    estimate = f"Estimated {duration(plan.seconds)}{compiling}."
    return f"{_trials(plan.trials)}{groups}{stored}. {estimate}"


def duration(seconds: float) -> str:
    """Return a duration in seconds, minutes or hours."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class ProgressBar:
    """Progress bar of one round, with the time left estimated from the work done.

    `programs` and `compile_seconds` count compilations so far.
    """

    def __init__(
        self, plan: Plan, console: Console, stage: str = "", *, transient: bool = False
    ) -> None:
        self._cost, self._spent, self._left = plan.cost, 0.0, plan.cost_of_all
        self._seconds = 0.0
        self._planned, self._shapes = plan.shapes, 0
        self._waited, self._begin = 0.0, 0.0
        self.programs, self.compile_seconds = 0, 0.0
        self._workers, self._done, self._start = 0, 0, time.perf_counter()
        columns = (
            SpinnerColumn(),
            *([TextColumn(f"{escaped(stage)} ·")] if stage else []),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("trials ·"),
        )
        self._bar = Progress(
            *columns,
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            transient=transient,
        )
        self._task = self._bar.add_task("starting", total=plan.trials, left="")

    def start(self) -> None:
        """Show the bar."""
        self._bar.start()

    def stop(self) -> None:
        """Stop the bar."""
        done = self._bar.finished
        self._bar.update(self._task, description="done" if done else "stopped", left="")
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
        cost = self._cost(trial)
        self._spent += cost
        self._left = max(0.0, self._left - cost)
        self._seconds += seconds
        self._done += 1
        left = self._left * self._seconds / max(self._spent, 1e-9)
        left += max(0, self._planned - self._shapes) * self._waited / max(1, self._shapes)
        speed = ""
        if self._workers:  # they run and compile in parallel: use wall time
            passed = time.perf_counter() - self._start
            left = self._left * passed / max(self._spent, 1e-9)
            speed = (
                f"{self._done / max(passed, 1e-9):.2g} per second, {self._workers} "
                f"worker{'s' if self._workers > 1 else ''}, "
            )
        self._bar.update(
            self._task,
            advance=1,
            left=f"· {speed}about {duration(left)} left" if self._left else "",
        )
