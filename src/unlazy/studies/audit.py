"""Audits: test whether feature learning helps on a table, or a fixed kernel suffices.

First, methods with fixed and with learned features are compared by nested cross-validation, fold by
fold. Then diagnostics explain the result. Each fold of each method and each diagnostic is a trial:
an audit resumes where it was interrupted, on any engine.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from unlazy.core.errors import require, unknown
from unlazy.core.metrics import Kind
from unlazy.estimators.catalog import AUDIT, GROUPS, Group
from unlazy.lab.provenance import made_by
from unlazy.lab.serialization import from_plain, to_plain
from unlazy.lab.showing import Shown
from unlazy.lab.store import Run, Store
from unlazy.lab.study import Rounds, Say, silent
from unlazy.lab.trials import Measurement, Record, Runnable, now
from unlazy.solvers.policy import EXACT_POINTS
from unlazy.tables.cross_validation import CVResults, FoldResult, schedule
from unlazy.tables.decision import AuditDecision, judge
from unlazy.tables.diagnostics import DIAGNOSTICS
from unlazy.tables.explain import Explanation, Selected, SelectedFold
from unlazy.tables.folds import FoldTrial, TableData
from unlazy.tasks.tables.columns import Table
from unlazy.tasks.tables.files import table_of
from unlazy.tasks.tables.problems import FOLDS, Problem, problem_of

#: Below this number of rows, cross-validation is repeated with other folds.
REPEATED_ROWS, REPEATS = 400, 2
#: Seconds per fold on two cores: a constant, per 1,000 training rows, and per cube of 10,000 rows.
FOLD_SECONDS = (8.0, 10.0, 60.0)
#: Smallest number of rows to which a table is reduced.
MIN_ROWS = 400
#: Fraction of the time for the comparison; the rest is for diagnostics.
COMPARISON_FRACTION = 0.75
#: Number of folds on which diagnostics refit the selected methods.
SELECTED_FOLDS = 2
_KEYS = {
    "kind": "task",
    "findings": "explanations",
    "left_out": "left out",
}


@dataclasses.dataclass(frozen=True)
class MethodLosses:
    """The mean test loss of a method on each fold, and the seconds that all folds took."""

    name: str
    group: Group
    losses: tuple[float, ...]
    seconds: float

    @property
    def mean(self) -> float:
        """Mean over folds."""
        return float(np.mean(self.losses))

    @property
    def deviation(self) -> float:
        """Standard deviation between folds."""
        return float(np.std(self.losses))


@dataclasses.dataclass(frozen=True)
class AuditOutcome(Shown):
    """Result of an audit.

    `selected`: the mean loss of each group, represented by the method that was selected in each
    fold; `constant`: the loss of the best constant on each fold.
    """

    table: str
    kind: Kind
    rows: int
    columns: int
    classes: tuple[str, ...]
    decisions: tuple[str, ...]
    decision: AuditDecision
    methods: tuple[MethodLosses, ...]
    selected: Mapping[Group, float]
    constant: tuple[float, ...]
    findings: tuple[Explanation, ...]
    left_out: tuple[str, ...]
    seconds: float
    command: str = ""
    provenance: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def answer(self) -> str:
        """The result as one paragraph."""
        return self.decision.paragraph

    @property
    def folds(self) -> int:
        """Number of completed folds."""
        return len(self.constant)

    def __str__(self) -> str:
        return self.answer

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as JSON data."""
        methods = {
            method.name: {
                "group": method.group,
                "loss": method.mean,
                "by fold": method.losses,
                "seconds": method.seconds,
            }
            for method in self.methods
        }
        findings = {each.name: {"says": each.says, "data": each.data} for each in self.findings}
        data = to_plain(self, _KEYS, methods=methods, findings=findings, folds=self.folds)
        del data["decision"]
        return data | self.decision.to_json()

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Self:
        """Build from `to_json` output."""
        return from_plain(
            cls,
            told,
            _KEYS,
            decision=AuditDecision.from_json(told),
            methods=tuple(
                MethodLosses(name, each["group"], tuple(each["by fold"]), each["seconds"])
                for name, each in (
                    told["methods"] if "methods" in told else told["contenders"]
                ).items()
            ),
            findings=tuple(
                Explanation(name, **each) for name, each in told["explanations"].items()
            ),
        )


@dataclasses.dataclass(frozen=True)
class Audit:
    """An audit of a table. `seconds`: time limit, or None."""

    data: TableData
    methods: tuple[str, ...] = tuple(AUDIT)
    seconds: float | None = None
    explain: bool = True
    command: str = ""

    arrays = True

    def __post_init__(self) -> None:
        for each in self.methods:
            if each not in AUDIT:
                raise unknown("method", each, AUDIT)
        groups = {AUDIT[each].group for each in self.methods}
        require(
            {"fixed", "learned"} <= groups,
            "An audit needs at least one method with fixed and one with learned features.",
        )
        require(
            self.seconds is None or self.seconds > 0,
            f"`seconds` must be positive, got {self.seconds}.",
        )

    @property
    def title(self) -> str:
        """The table and its size."""
        problem = self.data.problem
        size = f"{len(problem):,} rows, {len(problem.names)} input columns"
        return f"{self.data.name} · {size} · {problem.kind}"

    @property
    def settings(self) -> str:
        """Description that distinguishes this audit from others of a table of the same name."""
        return self.command or f"{', '.join(self.methods)}; {self.data.digest}"

    def rounds(self, store: Store, say: Say = silent) -> Rounds[AuditOutcome]:
        """Compare fold by fold while there is time, then run diagnostics."""
        begin = time.monotonic()
        problem = self.data.problem
        standings, left_out = CVResults(problem, self.methods), list[str]()
        used: dict[str, list[tuple[Runnable, Record]]] = {name: [] for name in self.methods}
        folds = schedule(problem, REPEATS if len(problem) < REPEATED_ROWS else 1)
        for index, (repeat, fold, _) in enumerate(folds):
            trials = {
                name: Measurement(FoldTrial.of(self.data, AUDIT[name], repeat, fold), 0)
                for name in self.methods
            }
            if index and self._is_late(begin, index) and not _stored(trials.values(), store):
                count = len(folds)
                left_out.append(f"{count - index} of {count} folds (time limit)")
                break
            passed = time.monotonic() - begin
            remaining = (
                f", about {passed / index * (len(folds) - index):.0f} s left" if index else ""
            )
            say(f"fold {index + 1} of {len(folds)}{remaining}", passing=True)
            records = yield list(trials.values())
            for name, trial in trials.items():
                record = records[trial.id]
                used[name].append((trial, record))
                standings.add(FoldResult.of(trial.computation, record))  # type: ignore[arg-type]
        findings: list[Explanation] = []
        for name, planned in DIAGNOSTICS.items() if self.explain else ():
            trial = Measurement(planned.of(self.data, selection(standings)), 0)
            left = None if self.seconds is None else begin + self.seconds - time.monotonic()
            if (
                left is not None
                and left < planned.seconds(len(problem))
                and not _stored([trial], store)
            ):
                left_out.append(f"{name} (time limit)")
                continue
            say(name, passing=True)
            record = (yield [trial])[trial.id]
            used.setdefault("diagnostics", []).append((trial, record))
            findings.append(Explanation(**(record.details or {})))
        outcome = self._outcome(standings, findings, left_out, time.monotonic() - begin, used)
        arms = {name: [record.id for _, record in pairs] for name, pairs in used.items()}
        store.add_run(
            Run("audit", self.data.name, self.settings, 0, 1, arms, now(), outcome.to_json())
        )
        return outcome

    def _is_late(self, begin: float, done: int) -> bool:
        """Return whether another fold would exceed the time of the comparison."""
        if self.seconds is None:
            return False
        passed = time.monotonic() - begin
        return passed + passed / done > COMPARISON_FRACTION * self.seconds

    def _outcome(
        self,
        standings: CVResults,
        findings: Sequence[Explanation],
        left_out: Sequence[str],
        seconds: float,
        used: Mapping[str, Sequence[tuple[Runnable, Record]]],
    ) -> AuditOutcome:
        problem = self.data.problem
        return AuditOutcome(
            table=self.data.name,
            kind=problem.kind,
            rows=len(problem),
            columns=len(problem.names),
            classes=problem.classes,
            decisions=problem.decisions,
            decision=judge(standings),
            methods=tuple(
                MethodLosses(
                    name,
                    AUDIT[name].group,
                    tuple(result.loss for result in standings.of(name)),
                    float(sum(result.seconds for result in standings.of(name))),
                )
                for name in standings.names
            ),
            selected={
                group: float(np.mean([result.loss for result in standings.selected(group)]))
                for group in GROUPS
                if any(AUDIT[name].group == group for name in standings.names)
            },
            constant=tuple(result.loss for result in standings.constant()),
            findings=tuple(findings),
            left_out=tuple(left_out),
            seconds=seconds,
            command=self.command,
            provenance=made_by(pair for pairs in used.values() for pair in pairs),
        )


def _stored(trials: Any, store: Store) -> bool:
    ids = [trial.id for trial in trials]
    return len(store.known(ids)) == len(ids)


def selection(standings: CVResults) -> dict[Group, Selected]:
    """Return the selected method of each group, with its estimators on the first folds."""
    found: dict[Group, Selected] = {}
    for group in GROUPS:
        if any(AUDIT[name].group == group for name in standings.names):
            name = standings.most_selected(group)
            kind = standings.problem.kind
            folds = tuple(
                SelectedFold(
                    result.repeat,
                    result.fold,
                    AUDIT[name].settings(kind, result.columns)[result.setting],
                    result.loss,
                )
                for result in standings.of(name)[:SELECTED_FOLDS]
            )
            found[group] = Selected(name, folds)
    return found


def benchmark_seconds(rows: int, folds: int = FOLDS) -> float:
    """Estimate how long a comparison of all methods takes on two free cores."""
    train = rows * (FOLDS - 1) / FOLDS / 1000
    return folds * (FOLD_SECONDS[0] + FOLD_SECONDS[1] * train + FOLD_SECONDS[2] * (train / 10) ** 3)


def plan(problem: Problem) -> str:
    """Return the estimated time on two free cores and the memory, as text."""
    rows = len(problem)
    memory = 3 * 8 * min(rows, EXACT_POINTS) ** 2 / 2**30
    repeats = REPEATS if rows < REPEATED_ROWS else 1
    about = benchmark_seconds(rows, FOLDS * repeats) / COMPARISON_FRACTION
    length = f"{about:.0f} s" if about < 90 else f"{about / 60:.0f} min"
    return f"estimated {length} on two cores, at most {memory + 1:.1f} GiB of memory"


def fitting(problem: Problem, seconds: float | None) -> Problem:
    """Return the problem, or a random subset of its rows if the time is too short for all."""
    rows = len(problem)
    while (
        seconds is not None
        and rows > MIN_ROWS
        and benchmark_seconds(rows) > COMPARISON_FRACTION * seconds
    ):
        rows = max(MIN_ROWS, int(0.8 * rows))
    if rows == len(problem):
        return problem
    some = np.sort(np.random.default_rng(0).permutation(len(problem))[:rows])
    subset = f"Used {rows:,} of {len(problem):,} rows, drawn at random (time limit)."
    part = dataclasses.replace(
        problem, X=problem.X[some], y=problem.y[some], decisions=(*problem.decisions, subset)
    )
    if problem.kind == "classification":  # a rare class may have lost too many rows
        counts = np.bincount(part.y, minlength=len(problem.classes))
        kept = np.flatnonzero(counts[part.y] >= FOLDS)
        names = tuple(
            name for name, count in zip(problem.classes, counts, strict=True) if count >= FOLDS
        )
        y = np.unique(part.y[kept], return_inverse=True)[1]
        part = dataclasses.replace(part, X=part.X[kept], y=y, classes=names)
    return part


def audit_of(
    X: Any,
    y: Any = None,
    *,
    task: Kind | None = None,
    seconds: float | None = None,
    methods: Sequence[str] | None = None,
    explain: bool = True,
    name: str = "the table",
    command: str = "",
) -> Audit:
    """Build the audit of a table, with as many rows as the time allows."""
    table = X if isinstance(X, Table) else table_of(X, y)
    problem = fitting(problem_of(table, task, name=name), seconds)
    methods = tuple(AUDIT) if methods is None else tuple(methods)
    return Audit(TableData(name, problem), methods, seconds, explain, command)
