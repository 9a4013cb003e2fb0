"""`unlazy audit`: does this table reward feature learning, or is a kernel enough?

First a contest decides (`unlazy.tables.contest`), then instruments explain
(`unlazy.tables.explain`). Every finished piece is written down at once under a name made of the
table's content, so that an audit that was stopped goes on where it was.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from unlazy.core.errors import require, unknown
from unlazy.core.metrics import Kind
from unlazy.estimators.catalog import AUDIT, GROUPS, Group
from unlazy.solvers.policy import EXACT_POINTS
from unlazy.tables.contest import Bout, Encoded, Standings, bout, schedule
from unlazy.tables.diagnostics import DIAGNOSTICS
from unlazy.tables.explain import Explanation, Selected
from unlazy.tables.journal import FORM, Journal
from unlazy.tables.judgement import AuditJudgement, judge
from unlazy.tasks.tables.columns import Table
from unlazy.tasks.tables.files import table_of
from unlazy.tasks.tables.problems import FOLDS, Problem, problem_of

#: Below this number of rows cross-validation is repeated with other folds.
REPEATED, REPEATS = 400, 2
#: Seconds that a fold takes on two cores: a part for any table, for each thousand training rows,
#: and for the cube of ten thousand rows.
FOLD_SECONDS = (8.0, 10.0, 60.0)
#: A contest is never cut down below so many rows.
SMALL = 400
#: Folds in which diagnostics fit the selected methods again.
REFITTED = 2
#: The share of the time that the contest may take.
CONTEST = 0.75


class AuditWatcher(Protocol):
    """Who wants to know how far an audit is."""

    def planned(self, text: str) -> None:
        """What will be done, and about how long it takes."""

    def began(self, what: str) -> None:
        """A piece of work begins."""

    def went(self, done: int, total: int, seconds_left: float) -> None:
        """A piece of work is done."""


class _Silent:
    def planned(self, text: str) -> None: ...

    def began(self, what: str) -> None: ...

    def went(self, done: int, total: int, seconds_left: float) -> None: ...


@dataclasses.dataclass(frozen=True)
class AuditOutcome:
    """What an audit found: the problem, the standings of the contest, the explanations, and the
    judgement.
    """

    problem: Problem
    standings: Standings
    findings: tuple[Explanation, ...]
    judgement: AuditJudgement
    left_out: tuple[str, ...]
    seconds: float

    @property
    def answer(self) -> str:
        """The answer, one paragraph in plain words."""
        return self.judgement.paragraph

    def __str__(self) -> str:
        return self.answer

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        problem, standings = self.problem, self.standings
        return {
            "table": problem.name,
            "task": problem.kind,
            "rows": len(problem),
            "columns": len(problem.names),
            "classes": list(problem.classes),
            "decisions": list(problem.decisions),
            **self.judgement.to_json(),
            "folds": len(standings.complete),
            "contenders": {
                name: {
                    "group": AUDIT[name].group,
                    "loss": float(np.mean([found.loss for found in standings.of(name)])),
                    "by fold": [found.loss for found in standings.of(name)],
                    "seconds": float(np.sum([found.seconds for found in standings.of(name)])),
                }
                for name in standings.names
            },
            "explanations": {
                finding.name: {"says": finding.says, **finding.data} for finding in self.findings
            },
            "left out": list(self.left_out),
            "seconds": self.seconds,
        }

    def page(self, path: Path | str) -> None:
        """Write the page."""
        from unlazy.report.audits import write_audit

        write_audit(self, Path(path))


def fingerprint(problem: Problem) -> str:
    """A name made of the content of a problem."""
    content = hashlib.sha256()
    X = (
        problem.X
        if not problem.words
        else np.array([[str(value) for value in row] for row in problem.X])
    )
    for part in (
        repr((FORM, problem.kind, problem.names, problem.classes)).encode(),
        X.tobytes(),
        problem.y.tobytes(),
    ):
        content.update(part)
    return content.hexdigest()[:16]


def audit(
    X: Any,
    y: Any = None,
    *,
    task: Kind | None = None,
    seconds: float | None = None,
    contenders: Sequence[str] | None = None,
    explain: bool = True,
    journal: Path | str | None = None,
    watcher: AuditWatcher | None = None,
    name: str = "the table",
) -> AuditOutcome:
    """Find out whether a table rewards feature learning.

    `X` holds rows and columns (an array or a data frame) and `y` what is to be predicted, or the
    name of a column of the data frame; or `X` is a `Table`. `seconds` is the time that may be
    spent; explanations follow as long as there is any left. `journal` is a file for finished
    pieces, from which a later audit of the same table goes on.
    """
    begin = time.monotonic()
    table = X if isinstance(X, Table) else table_of(X, y)
    problem = problem_of(table, task, name=name)
    watcher = watcher or _Silent()
    problem = _fitting(problem, seconds, watcher)
    names = list(AUDIT) if contenders is None else list(contenders)
    for each in names:
        if each not in AUDIT:
            raise unknown("contender", each, AUDIT)
    sides = {AUDIT[each].group for each in names}
    require(
        {"fixed", "learned"} <= sides,
        "A contest needs at least one contender with fixed and one with learned features.",
    )
    require(seconds is None or seconds > 0, f"The time must be positive, but is {seconds} seconds.")
    deadline = None if seconds is None else begin + seconds
    kept = Journal(None if journal is None else Path(journal))
    left_out: list[str] = []
    standings = Standings(problem, names)
    findings: list[Explanation] = []
    try:
        _contest(standings, kept, deadline, watcher, left_out)
        if explain:
            _explanations(standings, findings, kept, deadline, watcher, left_out)
    except KeyboardInterrupt:
        if not standings.complete:
            raise
        left_out.append("what was not done when it was stopped")
    return AuditOutcome(
        problem,
        standings,
        tuple(findings),
        judge(standings),
        tuple(left_out),
        time.monotonic() - begin,
    )


def contest_seconds(rows: int, folds: int = FOLDS) -> float:
    """About how long a contest with all contenders takes on two cores that are free."""
    train = rows * (FOLDS - 1) / FOLDS / 1000
    return folds * (FOLD_SECONDS[0] + FOLD_SECONDS[1] * train + FOLD_SECONDS[2] * (train / 10) ** 3)


def _fitting(problem: Problem, seconds: float | None, watcher: AuditWatcher) -> Problem:
    """The problem, or where the time is too short for it a random part of its rows that fits."""
    rows = len(problem)
    while seconds is not None and rows > SMALL and contest_seconds(rows) > CONTEST * seconds:
        rows = max(SMALL, int(0.8 * rows))
    if rows < len(problem):
        some = np.sort(np.random.default_rng(0).permutation(len(problem))[:rows])
        told = (
            f"{rows:,} of {len(problem):,} rows were drawn at random, so that the contest fits "
            "into the time; more time allows more rows."
        )
        watched = dataclasses.replace(
            problem, X=problem.X[some], y=problem.y[some], decisions=(*problem.decisions, told)
        )
        if problem.kind == "classification":  # a rare class may have lost too many rows
            counts = np.bincount(watched.y, minlength=len(problem.classes))
            kept = np.flatnonzero(counts[watched.y] >= FOLDS)
            names = tuple(
                name for name, count in zip(problem.classes, counts, strict=True) if count >= FOLDS
            )
            y = np.unique(watched.y[kept], return_inverse=True)[1]
            watched = dataclasses.replace(watched, X=watched.X[kept], y=y, classes=names)
        problem = watched
    memory = 3 * 8 * min(rows, EXACT_POINTS) ** 2 / 1e9
    repeats = REPEATS if rows < REPEATED else 1
    about = contest_seconds(rows, FOLDS * repeats) / CONTEST
    length = f"{about:.0f} s" if about < 90 else f"{about / 60:.0f} min"
    size = f"{rows:,} rows, {len(problem.names)} columns, {problem.kind}"
    watcher.planned(
        f"{problem.name}: {size}. About {length} on two free cores, at most {memory + 1:.1f} GB."
    )
    return problem


def _contest(
    standings: Standings,
    kept: Journal,
    deadline: float | None,
    watcher: AuditWatcher,
    left_out: list[str],
) -> None:
    problem, names = standings.problem, standings.names
    places = schedule(problem, REPEATS if len(problem) < REPEATED else 1)
    mark, begin = fingerprint(problem), time.monotonic()
    total = len(places) * len(names)
    for index, (repeat, fold, test) in enumerate(places):
        data: Encoded | None = None
        for number, name in enumerate(names):
            key = f"{mark}/bout/{name}/{repeat}/{fold}"
            if key not in kept.pieces:
                now = time.monotonic()
                late = deadline is not None and now + (number == 0) * (now - begin) / max(
                    index, 1
                ) > begin + CONTEST * (deadline - begin)
                if late and standings.complete:
                    left_out.append(
                        f"{len(places) - index} of {len(places)} folds, for there was no time"
                    )
                    return
                data = data or Encoded(problem, test)
                watcher.began(f"fold {index + 1} of {len(places)}: {name}")
            found = kept.get(key, functools.partial(_bout, name, data, repeat, fold))
            standings.add(
                Bout(**{**found, "rows": tuple(found["rows"]), "losses": tuple(found["losses"])})
            )
            done = index * len(names) + number + 1
            watcher.went(done, total, (time.monotonic() - begin) / done * (total - done))


def _bout(name: str, data: Encoded | None, repeat: int, fold: int) -> dict[str, Any]:
    assert data is not None
    return dataclasses.asdict(bout(AUDIT[name], data, repeat, fold))


def _explanations(
    standings: Standings,
    findings: list[Explanation],
    kept: Journal,
    deadline: float | None,
    watcher: AuditWatcher,
    left_out: list[str],
) -> None:
    problem = standings.problem
    mark, selected = fingerprint(problem), selected_methods(standings)
    for number, (name, diagnostic) in enumerate(DIAGNOSTICS.items()):
        inputs = hashlib.sha256(repr(selected if diagnostic.refits else {}).encode()).hexdigest()
        key = f"{mark}/explain/{name}/{inputs[:16]}"
        if key not in kept.pieces:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left < diagnostic.seconds(len(problem)):
                left_out.append(f"{name}, for there was no time")
                continue
            watcher.began(name)
        make = functools.partial(diagnostic.run, problem, selected)
        found = kept.get(key, lambda make=make: dataclasses.asdict(make()))  # type: ignore[misc]
        findings.append(Explanation(**found))
        watcher.went(number + 1, len(DIAGNOSTICS), 0.0)


def selected_methods(standings: Standings) -> dict[Group, Selected]:
    """Return the method that was selected most often in each group, in the first folds."""
    found: dict[Group, Selected] = {}
    for group in GROUPS:
        if any(AUDIT[name].group == group for name in standings.names):
            name = standings.favourite(group)
            bouts = standings.of(name)[:REFITTED]
            found[group] = Selected(
                name,
                tuple(bout.fold for bout in bouts),
                tuple(bout.setting for bout in bouts),
                tuple(bout.rows for bout in bouts),
                tuple(bout.loss for bout in bouts),
            )
    return found
