"""Results in a store: verdicts on the newest run of each claim, and outcomes of other studies."""

from __future__ import annotations

import difflib
import fnmatch
import importlib
from typing import Any, NamedTuple

from unlazy.core.errors import BadInput, StoreError
from unlazy.lab.claims import Claim
from unlazy.lab.judging import Verdict
from unlazy.lab.registry import claims, find_claims
from unlazy.lab.store import Run, Store
from unlazy.lab.trials import Record
from unlazy.report.view import View, view_of
from unlazy.studies.claim import newest, records_of, verdict_of

#: Module and class of the outcome of each kind of run but claims, which are judged from their
#: records. Modules are imported on demand: audits need scikit-learn.
OUTCOMES = {
    "contest": ("unlazy.lab.outcomes", "BenchmarkResult"),
    "scaling": ("unlazy.lab.exponents", "ScalingOutcome"),
    "audit": ("unlazy.studies.audit", "AuditOutcome"),
    "ranking": ("unlazy.studies.ranking", "RankingOutcome"),
    "readings": ("unlazy.studies.readings", "ReadingsOutcome"),
}
IndexEntry = tuple[Verdict, dict[str, list[Record]]]


class Found(NamedTuple):
    """Claims with their records by arm; other outcomes, newest first."""

    claims: list[IndexEntry]
    outcomes: list[Any]

    @property
    def views(self) -> list[View]:
        """Views of all results."""
        verdicts = [view_of(verdict, records=records) for verdict, records in self.claims]
        return verdicts + [view_of(outcome) for outcome in self.outcomes]


def found_in(
    store: Store, pattern: str | None = None, scale: str | None = None, *, arrays: bool = False
) -> Found:
    """Return the results of a name or pattern; with a scale, claims only."""
    runs = store.runs()
    others = [
        run
        for kind in OUTCOMES
        for run in runs
        if run.kind == kind and run.outcome and not scale and _matches(run.name, pattern)
    ]
    found = Found(
        _claims(store, [run for run in runs if run.kind == "claim"], pattern, scale, arrays),
        [_outcome(run, store) for run in others],
    )
    if not any(found):
        _refuse(store, runs, pattern, scale)
    return found


def _outcome(run: Run, store: Store) -> Any:
    """Return the outcome of a run as the store keeps it."""
    try:
        module, name = OUTCOMES[run.kind]
        return getattr(importlib.import_module(module), name).from_json(run.outcome or {})
    except Exception as error:
        raise StoreError(
            f"The run {run.name:.60} in {store.path} is damaged: {type(error).__name__}: {error}."
        ) from error


def _matches(name: str, pattern: str | None) -> bool:
    """Return whether a name matches; changes of a task and files of own tasks may be omitted."""
    plain = name.partition(" with ")[0]
    return pattern is None or any(
        fnmatch.fnmatchcase(each, pattern) for each in (name, plain, plain.rpartition(":")[2])
    )


def _claims(
    store: Store, runs: list[Run], pattern: str | None, scale: str | None, arrays: bool
) -> list[IndexEntry]:
    if pattern is not None and ":" in pattern:
        wanted = {claim.id: claim for claim in _own(pattern)}
    else:
        wanted = {name: claim for name, claim in claims().items() if _matches(name, pattern)}
    # Runs whose records were removed, or whose study has changed since, are skipped.
    chosen = [
        (claim, run)
        for claim in wanted.values()
        if (run := newest(store, runs, claim, "claim", scale))
    ]
    return [
        (verdict_of(claim, run, store), records_of(claim, run, store, arrays=arrays))
        for claim, run in chosen
    ]


def _own(pattern: str) -> list[Claim]:
    try:
        return find_claims([pattern])
    except BadInput:  # it may still be the task of a comparison
        return []


def _refuse(store: Store, runs: list[Run], pattern: str | None, scale: str | None) -> None:
    """Raise an error that names the command to make the missing result."""
    if pattern is not None and not any(_matches(run.name, pattern) for run in runs):
        known = [*claims(), *(run.name for run in runs)]
        if not any(_matches(name, pattern) for name in known):
            near = difflib.get_close_matches(pattern, known, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else "See `unlazy list claims`."
            raise BadInput(f"No stored result named {pattern!r}. {hint}")
    where = f" at {scale} scale" if scale else ""
    hint = (
        f"unlazy reproduce {pattern or 'ID'}{f' --scale {scale}' if scale else ''} --store "
        f"{store.path}"
    )
    raise BadInput(
        f"The store has no run of {pattern or 'any claim'}{where}. Make one with `{hint}`."
    )
