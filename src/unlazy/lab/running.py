"""From a claim to its verdict: what is not in the store is run, everything is judged from the store."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Sequence
from typing import TypeVar

from unlazy.core.errors import require
from unlazy.lab.claims import FIRST_SEED, SCALES, Claim, Scale
from unlazy.lab.engines.base import Engine, Silent, Watcher
from unlazy.lab.judging import Verdict, judge
from unlazy.lab.provenance import source_hash
from unlazy.lab.store import Run, Store
from unlazy.lab.trials import Record, Runnable, now

R = TypeVar("R", bound=Runnable)


@dataclasses.dataclass(frozen=True)
class Study:
    """A claim at a scale on chosen seeds: its trials by arm."""

    claim: Claim
    scale: Scale
    seeds: tuple[int, ...]
    arms: dict[str, list[Runnable]]

    @property
    def trials(self) -> list[Runnable]:
        """All trials, each once."""
        return list({trial.key: trial for arm in self.arms.values() for trial in arm}.values())


def study(claim: Claim, scale: Scale, *, seeds: int | None = None, first_seed: int = FIRST_SEED) -> Study:
    """Lay out the trials of a claim."""
    require(scale in SCALES, f"The scale must be one of {', '.join(SCALES)}, but is {scale!r}.")
    count = claim.seeds[scale] if seeds is None else seeds
    require(count >= 1, f"The number of seeds must be at least 1, but is {count}.")
    chosen = tuple(range(first_seed, first_seed + count))
    return Study(claim, scale, chosen, {name: arm.trials(chosen) for name, arm in claim.study(scale).items()})


def absent(trials: Iterable[R], store: Store) -> list[R]:
    """Those that have no record yet, each once."""
    wanted = {trial.key: trial for trial in trials}
    known = store.known(wanted)
    return [trial for key, trial in wanted.items() if key not in known]


def keep(trials: Iterable[Runnable], store: Store, engine: Engine, watcher: Watcher | None = None) -> None:
    """Run what the store lacks, and keep each record as it comes. Whatever ends it, the engine is told to stop."""
    with contextlib.closing(engine.run(absent(trials, store), watcher or Silent())) as records:
        for record in records:
            store.add(record)


def run(studies: Sequence[Study], store: Store, engine: Engine) -> list[Verdict]:
    """Register the rules, run what is missing, and judge."""
    store.register_rules({each.claim.id: each.claim.rule for each in studies})
    keep([trial for each in studies for trial in each.trials], store, engine)
    verdicts = []
    for each in studies:
        arms = {name: [trial.key for trial in arm] for name, arm in each.arms.items()}
        note = Run("claim", each.claim.id, each.scale, each.seeds[0], len(each.seeds), arms, now())
        store.add_run(note)
        verdicts.append(verdict_of(each.claim, note, store))
    return verdicts


def records_of(claim: Claim, run: Run, store: Store, *, arrays: bool = False) -> dict[str, list[Record]]:
    """The records of a run by arm, joined to one a seed."""
    seeds = range(run.first_seed, run.first_seed + run.seeds)
    arms = claim.study(run.setting)  # type: ignore[arg-type]
    return {
        name: arms[name].join([store.get(key, arrays=arrays) for key in keys], seeds) for name, keys in run.arms.items() if name in arms
    }


def is_current(claim: Claim, run: Run) -> bool:
    """Whether the trials of a run are those that the claim's study has now."""
    seeds = range(run.first_seed, run.first_seed + run.seeds)
    return {name: [trial.key for trial in arm.trials(seeds)] for name, arm in claim.study(run.setting).items()} == run.arms  # type: ignore[arg-type]


def verdict_of(claim: Claim, run: Run, store: Store) -> Verdict:
    """Judge a run from the store."""
    # A rule that this store has never seen is younger than all its records.
    registered = store.rule_registered(claim.id, claim.rule) or now()
    return judge(claim, run.setting, records_of(claim, run, store), source=source_hash(), registered=registered)  # type: ignore[arg-type]
