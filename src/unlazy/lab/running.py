"""From a claim to its verdict: what is not in the store is run, everything is judged from the
store.
"""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeVar

from unlazy.core.errors import StoreError, require
from unlazy.lab.arms import StudyArm, relabelled
from unlazy.lab.claims import Claim, NotRun
from unlazy.lab.costs import Costs, CostTeller
from unlazy.lab.engines.base import Engine, Silent, Watcher
from unlazy.lab.judging import Verdict, judge
from unlazy.lab.provenance import source_hash
from unlazy.lab.rules import SCALES, Scale, shuffled
from unlazy.lab.stopping import writing
from unlazy.lab.store import Run, Store
from unlazy.lab.trials import Failure, Record, Runnable, Trial, now

R = TypeVar("R", bound=Runnable)
#: In which world a study is run: that of the claim, or that of its control.
World = Literal["claim", "control"]


@dataclasses.dataclass(frozen=True)
class Study:
    """A claim, or its control, at a scale on chosen seeds: its trials by arm.

    `look`: see `judging`.
    """

    claim: Claim
    scale: Scale
    seeds: tuple[int, ...]
    arms: dict[str, list[Runnable]]
    world: World = "claim"
    look: int = 0

    @property
    def trials(self) -> list[Runnable]:
        """All trials, each once."""
        return list({trial.key: trial for arm in self.arms.values() for trial in arm}.values())

    @property
    def note(self) -> Run:
        """What the store keeps of it."""
        arms = {name: [trial.key for trial in arm] for name, arm in self.arms.items()}
        return Run(
            self.world,
            self.claim.id,
            self.scale,
            self.seeds[0],
            len(self.seeds),
            arms,
            now(),
            {"look": self.look},
        )


def arms_of(claim: Claim, scale: Scale, world: World = "claim") -> Mapping[str, StudyArm]:
    """The arms of a claim, or of its control."""
    if world == "claim":
        return claim.study(scale)
    require(claim.control is not None, f"{claim.id} has no control.")
    assert claim.control is not None
    return claim.control.study(scale)


def study(
    claim: Claim,
    scale: Scale,
    *,
    seeds: int | None = None,
    first_seed: int | None = None,
    world: World = "claim",
    look: int = 0,
) -> Study:
    """Lay out the trials of a claim, by default on the seeds on which it is judged."""
    require(scale in SCALES, f"The scale must be one of {', '.join(SCALES)}, but is {scale!r}.")
    count = claim.seeds[scale] if seeds is None else seeds
    require(count >= 1, f"The number of seeds must be at least 1, but is {count}.")
    first = claim.first_seed if first_seed is None else first_seed
    chosen = tuple(range(first, first + count))
    arms = {name: arm.trials(chosen) for name, arm in arms_of(claim, scale, world).items()}
    return Study(claim, scale, chosen, arms, world, look)


def lacking(claim: Claim, scale: Scale) -> str | None:
    """One sentence on data that a claim needs and that are not there, and how to get them; None
    where it can be run.
    """
    trials = (trial for arm in arms_of(claim, scale).values() for trial in arm.trials([0]))
    return next(
        (
            found
            for trial in trials
            if isinstance(trial, Trial) and (found := trial.family.missing) is not None
        ),
        None,
    )


def waiting_for_data(claims: Iterable[Claim], scale: Scale) -> tuple[list[Claim], list[NotRun]]:
    """Claims that can be run, and rows for those whose data are not there."""
    able, rows = [], []
    for claim in claims:
        reason = lacking(claim, scale)
        if reason is None:
            able.append(claim)
        else:
            rows.append(NotRun(claim.id, claim.where, claim.kind, claim.statement, reason))
    return able, rows


def controls_of(studies: Iterable[Study]) -> list[Study]:
    """The controls of claims that have one, at the same scale on the same seeds."""
    return [
        study(
            each.claim, each.scale, seeds=len(each.seeds), first_seed=each.seeds[0], world="control"
        )
        for each in studies
        if each.claim.control is not None
    ]


def null_of(claim: Claim) -> Claim | None:
    """The claim where all learners see labels of other inputs; None where nothing in it learns from
    labels, or it is true of any.
    """
    if claim.whatever_labels or all(
        relabelled(arm) is None for arm in claim.study("laptop").values()
    ):
        return None
    null = shuffled(claim.study)
    return dataclasses.replace(
        claim,
        id=f"{claim.id} (null)",
        study=null.study,
        published=(),
        conditions=(),
        control=None,
        corrections=(),
        plots=(),
    )


def absent(trials: Iterable[R], store: Store) -> list[R]:
    """Those that have no record yet, each once."""
    wanted = {trial.key: trial for trial in trials}
    known = store.known(wanted)
    return [trial for key, trial in wanted.items() if key not in known]


def keep(
    trials: Iterable[Runnable], store: Store, engine: Engine, watcher: Watcher | None = None
) -> None:
    """Run what the store lacks, and keep each record as it comes. Whatever ends it, the engine is
    told to stop.

    The store keeps what trials cost, and why some could not be run; those are tried again by the
    next run.
    """
    waiting = absent(trials, store)
    engine.costs = Costs(store.costs())
    if not waiting:
        return
    teller = CostTeller(engine.plan(waiting).shapes, watcher or Silent())
    try:
        with contextlib.closing(engine.run(waiting, teller)) as found:
            for one in found:
                with writing():
                    if isinstance(one, Failure):
                        store.add_failure(one)
                    else:
                        store.add(one)
    finally:
        with contextlib.suppress(StoreError):  # what ended the run says it better
            store.add_costs(teller.costs)


def run(studies: Sequence[Study], store: Store, engine: Engine) -> list[Verdict]:
    """Register the rules, run what is missing, and judge; controls are part of the verdicts on
    their claims.

    A study with a trial that could not be run is not judged: `incomplete` names those, and a
    warning does.
    """
    store.register_rules({each.claim.id: each.claim.rule for each in studies})
    keep([trial for each in studies for trial in each.trials], store, engine)
    lacking = incomplete(studies, store)
    for each in lacking:
        warnings.warn(
            f"{each.claim.id} is not judged: trials of it could not be run. The store says why.",
            stacklevel=2,
        )
    noted = [
        (each.claim, each.note) for each in studies if not any(each is other for other in lacking)
    ]
    for _, note in noted:
        store.add_run(note)
    return [verdict_of(claim, note, store) for claim, note in noted if note.kind == "claim"]


def incomplete(studies: Iterable[Study], store: Store) -> list[Study]:
    """Those of which the store lacks a record, since a trial could not be run."""
    return [each for each in studies if absent(each.trials, store)]


def records_of(
    claim: Claim, run: Run, store: Store, *, arrays: bool = False
) -> dict[str, list[Record]]:
    """The records of a run by arm, joined to one a seed."""
    seeds = range(run.first_seed, run.first_seed + run.seeds)
    arms = arms_of(claim, run.setting, run.kind)  # type: ignore[arg-type]
    return {
        name: arms[name].join([store.get(key, arrays=arrays) for key in keys], seeds)
        for name, keys in run.arms.items()
        if name in arms
    }


def is_current(claim: Claim, run: Run) -> bool:
    """Whether the trials of a run are those that the claim's study has now."""
    seeds = range(run.first_seed, run.first_seed + run.seeds)
    arms = arms_of(claim, run.setting, run.kind)  # type: ignore[arg-type]
    return {
        name: [trial.key for trial in arm.trials(seeds)] for name, arm in arms.items()
    } == run.arms


def newest(
    store: Store, runs: Iterable[Run], claim: Claim, world: World, scale: str | None = None
) -> Run | None:
    """The newest run of a claim or of its control whose records are all there and whose study is
    still the present one.
    """
    for run in runs:  # the newest first
        if (
            run.setting in SCALES
            and run.kind == world
            and run.name == claim.id
            and scale in (None, run.setting)
            and (world == "claim" or claim.control)
        ):
            keys = {key for arm in run.arms.values() for key in arm}
            if len(store.known(keys)) == len(keys) and is_current(claim, run):
                return run
    return None


def verdict_of(claim: Claim, run: Run, store: Store) -> Verdict:
    """Judge a run from the store, with the control that was run at the same scale."""
    # A rule that this store has never seen is younger than all its records.
    registered = store.rule_registered(claim.id, claim.rule) or now()
    control = newest(store, store.runs("control"), claim, "control", run.setting)
    return judge(
        claim,
        run.setting,  # type: ignore[arg-type]
        records_of(claim, run, store),
        source=source_hash(),
        registered=registered,
        look=(run.outcome or {}).get("look", 0),
        control=None if control is None else records_of(claim, control, store),
    )
