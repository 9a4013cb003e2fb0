"""Run studies with any store and engine.

Each round collects the trials of all studies, looks up stored records, runs the other trials
together, and stores each record when it is finished. An interrupted run resumes from the store.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from unlazy.core.errors import StoreError
from unlazy.lab.costs import CostRecorder, Costs
from unlazy.lab.engines.base import Callback, Engine, NullCallback, Plan
from unlazy.lab.provenance import changes
from unlazy.lab.stopping import writing
from unlazy.lab.store import Store
from unlazy.lab.study import Rounds, Study, advance
from unlazy.lab.trials import Failure, Record, Runnable

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Round:
    """Trials that run together: the engine's plan, and the numbers of all and of stored trials.

    `outdated`: number of trials whose only records were made by other code, libraries or data.
    `changed`: what differs. `reused`: number of trials for which such records are used.
    """

    plan: Plan
    total: int
    stored: int
    outdated: int = 0
    changed: tuple[str, ...] = ()
    reused: int = 0


class RunCallback(Callback, Protocol):
    """Receives the events of a run."""

    def began(self, round: Round) -> None:
        """A round began; its plan is empty if all its trials are stored."""

    def ended(self, round: Round, failures: Sequence[Failure], summary: str) -> None:
        """A round ended; `summary`: where its trials ran."""

    def interrupted(self, round: Round, saved: int) -> None:
        """A round was interrupted; `saved` records are stored."""

    def noted(self, sentence: str, *, passing: bool = False) -> None:
        """A study has an intermediate result; with `passing`, a status."""


class NullRunCallback(NullCallback):
    """A callback that does nothing."""

    def began(self, round: Round) -> None:
        pass

    def ended(self, round: Round, failures: Sequence[Failure], summary: str) -> None:
        pass

    def interrupted(self, round: Round, saved: int) -> None:
        pass

    def noted(self, sentence: str, *, passing: bool = False) -> None:
        pass


@dataclasses.dataclass(frozen=True)
class Incomplete(Generic[T]):
    """A study that has no outcome, since some of its trials could not be run."""

    study: Study[T]
    failures: tuple[Failure, ...]

    def __str__(self) -> str:
        first = self.failures[0]
        count = len(self.failures)
        return (
            f"{self.study.title}: {count} trial{'s' * (count != 1)} could not be run. "
            f"First error: {first.reason}. Rerun to try again."
        )


def run(
    studies: Sequence[Study[T]],
    store: Store,
    engine: Engine,
    *,
    callback: RunCallback | None = None,
    fresh: bool = False,
    reuse_older: bool = False,
) -> list[T | Incomplete[T]]:
    """Run studies to their outcomes, in their order.

    `fresh`: run every trial again and replace its record. `reuse_older`: also use records made by
    other code, libraries or data, if there is no current record.
    """
    driver = _Driver(store, engine, callback or NullRunCallback(), fresh, reuse_older)
    return driver.run(studies)


def run_one(study: Study[T], store: Store, engine: Engine, **options: Any) -> T:
    """Run one study; raise an error if trials could not be run."""
    (outcome,) = run([study], store, engine, **options)
    if isinstance(outcome, Incomplete):
        raise StoreError(str(outcome))
    return outcome


class _Driver:
    """One call of `run`: records so far, and failures."""

    def __init__(
        self, store: Store, engine: Engine, callback: RunCallback, fresh: bool, reuse_older: bool
    ) -> None:
        self.store, self.engine, self.callback = store, engine, callback
        self.fresh, self.reuse_older = fresh, reuse_older
        self.records: dict[str, Record] = {}
        self.failures: dict[str, Failure] = {}

    def run(self, studies: Sequence[Study[T]]) -> list[T | Incomplete[T]]:
        outcomes: dict[int, T | Incomplete[T]] = {}
        asked: dict[int, Sequence[Runnable]] = {}
        self.engine.costs = Costs(self.store.costs())
        rounds: dict[int, Rounds[Any]] = {
            i: study.rounds(self.store, self.callback.noted) for i, study in enumerate(studies)
        }
        for i in rounds:
            advance(rounds[i], None, i, asked, outcomes)
        arrays = any(study.arrays for study in studies)  # several studies may use one record
        while asked:
            self.answer([trial for trials in asked.values() for trial in trials], arrays)
            for i, trials in list(asked.items()):
                ids = {trial.id for trial in trials}
                failed = tuple(self.failures[each] for each in ids & self.failures.keys())
                if failed:
                    rounds[i].close()
                    del asked[i]
                    outcomes[i] = Incomplete(studies[i], failed)
                else:
                    sent = {each: self.records[each] for each in ids}
                    advance(rounds[i], sent, i, asked, outcomes)
        return [outcomes[i] for i in range(len(studies))]

    def answer(self, trials: Iterable[Runnable], arrays: bool) -> None:
        """Get a record or a failure of each trial, from this run, the store, or the engine."""
        wanted = {
            trial.id: trial
            for trial in trials
            if trial.id not in self.records and trial.id not in self.failures
        }
        if not wanted:
            return
        if not self.fresh:
            self.records |= self.store.find(
                wanted.values(), arrays=arrays, reuse_older=self.reuse_older
            )
        absent = [trial for each, trial in wanted.items() if each not in self.records]
        outdated, changed = self._outdated(absent)
        reused = sum(self.records[each].id != each for each in wanted.keys() & self.records.keys())
        round = Round(
            self.engine.plan(absent),
            len(wanted),
            len(wanted) - len(absent),
            outdated,
            changed,
            reused,
        )
        self.callback.began(round)
        try:
            failed = self._run(absent, round.plan.shapes, arrays) if absent else []
        except BaseException:
            self.callback.interrupted(round, sum(trial.id in self.records for trial in absent))
            raise
        self.failures |= {failure.id: failure for failure in failed}
        self.callback.ended(round, failed, self.engine.summary)

    def _outdated(self, trials: Sequence[Runnable]) -> tuple[int, tuple[str, ...]]:
        """Count trials that have records of other fingerprints only, and name what changed."""
        if self.fresh:
            return 0, ()
        count, changed = 0, dict[str, None]()
        compared: set[tuple[str, str]] = set()
        for trial in trials:
            others = self.store.others(trial.key)
            count += bool(others)
            pair = (others[0], trial.fingerprint.id) if others else None
            if pair is not None and pair not in compared:
                compared.add(pair)
                old = self.store.fingerprint(others[0])
                named = changes(old, trial.fingerprint.to_json()) if old else []
                changed |= dict.fromkeys(named or ["records of an earlier version of the store"])
        return count, tuple(changed)

    def _run(self, trials: Sequence[Runnable], shapes: int, arrays: bool) -> list[Failure]:
        prints = {trial.fingerprint.id: trial.fingerprint for trial in trials}
        self.store.add_fingerprints({name: each.to_json() for name, each in prints.items()})
        recorder = CostRecorder(shapes, self.callback)
        failed = []
        try:
            with contextlib.closing(self.engine.run(trials, recorder)) as found:
                for one in found:
                    with writing():
                        if isinstance(one, Failure):
                            self.store.add_failure(one)
                            failed.append(one)
                            continue
                        self.store.add(one, replace=self.fresh)
                        kept = one if arrays else dataclasses.replace(one, arrays={})
                        self.records[one.id] = kept
        finally:
            with contextlib.suppress(StoreError):  # the original error is more informative
                self.store.add_costs(recorder.costs)
        return failed
