"""What a store has to show: the newest run of each claim, judged."""

from __future__ import annotations

from unlazy.core.errors import BadInput
from unlazy.lab.judging import Verdict
from unlazy.lab.registry import find_claims
from unlazy.lab.running import is_current, records_of, verdict_of
from unlazy.lab.store import Run, Store
from unlazy.lab.trials import Record


def entries(
    store: Store, pattern: str | None = None, scale: str | None = None, *, arrays: bool = False
) -> list[tuple[Verdict, dict[str, list[Record]]]]:
    """The newest run of each claim in the store, judged: pairs of verdict and records by arm."""
    wanted = {claim.id: claim for claim in find_claims([pattern or "*"])}
    newest: dict[str, Run] = {}
    for run in store.runs():
        keys = {key for arm in run.arms.values() for key in arm}
        # A run is not one any more where its records were removed, as by a --fresh that was stopped, or where the study has changed since.
        here = run.claim in wanted and scale in (None, run.scale) and len(store.known(keys)) == len(keys)
        if here and run.claim not in newest and is_current(wanted[run.claim], run):
            newest.setdefault(run.claim, run)
    if not newest:
        where = f" at {scale} scale" if scale else ""
        hint = f"unlazy reproduce {pattern or 'ID'}{f' --scale {scale}' if scale else ''} --store {store.path}"
        raise BadInput(f"The store holds no run of {pattern or 'any claim'}{where}. Make one with `{hint}`.")
    chosen = [(claim, newest[name]) for name, claim in wanted.items() if name in newest]
    return [(verdict_of(claim, run, store), records_of(claim, run, store, arrays=arrays)) for claim, run in chosen]
