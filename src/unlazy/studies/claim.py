"""Studies of claims, which return verdicts."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from unlazy.core.errors import require, require_one_of
from unlazy.lab.arms import StudyArm, shuffled_labels
from unlazy.lab.claims import Claim, NotRun
from unlazy.lab.judging import TriedReading, Verdict, judge
from unlazy.lab.rules import SCALES, Scale, shuffled
from unlazy.lab.store import Run, Store
from unlazy.lab.study import Records, Rounds, Say, silent
from unlazy.lab.trials import Record, Runnable, Trial, now
from unlazy.studies.readings import ReadingsOutcome

#: Whether the arms are those of the claim or those of its negative control.
Role = Literal["claim", "control"]
ArmRecords = dict[str, list[Record]]


@dataclasses.dataclass(frozen=True)
class ClaimStudy:
    """A claim at a scale on chosen seeds, with its negative control if `with_control`.

    `look`: number of the interim analysis, or 0 if the number of seeds is fixed (see `judging`).
    `other_reading`: the claim is under another reading than the one that is judged by default.
    """

    claim: Claim
    scale: Scale
    seeds: tuple[int, ...]
    with_control: bool = False
    look: int = 0
    other_reading: bool = False

    arrays = False

    @property
    def title(self) -> str:
        """The claim's id."""
        return self.claim.id

    @functools.cached_property
    def arms(self) -> dict[Role, Mapping[str, StudyArm]]:
        """The arms of the claim, and of its control if that is run too; built once."""
        found: dict[Role, Mapping[str, StudyArm]] = {"claim": arms_of(self.claim, self.scale)}
        if self.with_control and self.claim.control is not None:
            found["control"] = arms_of(self.claim, self.scale, "control")
        return found

    @functools.cached_property
    def trials(self) -> dict[Role, dict[str, list[Runnable]]]:
        """The trials of each arm."""
        return {
            role: {name: arm.trials(self.seeds) for name, arm in arms.items()}
            for role, arms in self.arms.items()
        }

    @property
    def missing(self) -> str | None:
        """A sentence on missing data and how to get them; None if no data are missing."""
        for arm in self.trials["claim"].values():
            for trial in arm[:1]:
                if isinstance(trial, Trial) and trial.family.missing is not None:
                    return trial.family.missing
        return None

    def rounds(self, store: Store, say: Say = silent) -> Rounds[Verdict]:
        """Run all trials in one round and compute the verdict."""
        rule = {self.claim.id: self.claim.rule}
        store.register_rules(rule)
        found = yield [
            trial for arms in self.trials.values() for arm in arms.values() for trial in arm
        ]
        joined = {role: self._joined(role, found) for role in self.trials}
        for role in self.trials:
            store.add_run(self._note(role, found))
        control = joined.get("control")
        if control is None:
            control = stored_control(self.claim, self.scale, store)
        used = list(dict.fromkeys(found))
        return judge(
            self.claim,
            self.scale,
            joined["claim"],
            registered=store.rule_registered(self.claim.id, self.claim.rule),
            look=self.look,
            control=control,
            older=sum(found[each].id != each for each in used),
            tried=tried_readings(self.claim, self.scale, store),
        )

    def _joined(self, role: Role, found: Records) -> ArmRecords:
        return {
            name: self.arms[role][name].join([found[trial.id] for trial in trials], self.seeds)
            for name, trials in self.trials[role].items()
        }

    def _note(self, role: Role, found: Records) -> Run:
        arms = {
            name: [found[trial.id].id for trial in arm] for name, arm in self.trials[role].items()
        }
        first, count = self.seeds[0], len(self.seeds)
        outcome = {"look": self.look}
        # A run under another reading must not replace the one that is judged.
        name = self.claim.id + (f" ({self.claim.reading})" if self.other_reading else "")
        return Run(role, name, self.scale, first, count, arms, now(), outcome)


def claim_study(
    claim: Claim,
    scale: Scale,
    *,
    seeds: int | None = None,
    first_seed: int | None = None,
    with_control: bool = False,
    reading: str | None = None,
) -> ClaimStudy:
    """Build the study of a claim, by default on its held-out seeds and under its own reading."""
    require_one_of("`scale`", scale, SCALES)
    other = reading is not None and reading != claim.judged.name
    claim = claim if reading is None else claim.under(reading)
    count = claim.seeds[scale] if seeds is None else seeds
    require(count >= 1, f"The number of seeds must be positive, got {count}.")
    first = claim.first_seed if first_seed is None else first_seed
    seeds_used = tuple(range(first, first + count))
    return ClaimStudy(claim, scale, seeds_used, with_control, other_reading=other)


@dataclasses.dataclass(frozen=True)
class UntilDecided:
    """Study of a claim that doubles the seeds at each interim analysis until it is conclusive.

    The j-th analysis spends a fraction 2^−j of the error. The study stops at `max_seeds`.
    """

    study: ClaimStudy
    max_seeds: int = 40

    arrays = False

    @property
    def title(self) -> str:
        """The claim's id."""
        return self.study.title

    def rounds(self, store: Store, say: Say = silent) -> Rounds[Verdict]:
        """Run the study with an increasing number of seeds."""
        first, count, look = self.study.seeds[0], len(self.study.seeds), 1
        while True:
            seeds = tuple(range(first, first + (count << (look - 1))))
            again = dataclasses.replace(
                self.study,
                seeds=seeds,
                look=look,
                with_control=self.study.with_control and look == 1,
            )
            verdict = yield from again.rounds(store, say)
            inconclusive = verdict.seen == "undecided" and not verdict.claim.exact
            if not inconclusive or 2 * len(seeds) > self.max_seeds:
                return verdict
            look += 1


def arms_of(claim: Claim, scale: Scale, role: Role = "claim") -> Mapping[str, StudyArm]:
    """Return the arms of a claim, or of its control."""
    return claim.arms(scale) if role == "claim" else claim.control_arms(scale)


def waiting_for_data(
    studies: Iterable[ClaimStudy],
) -> tuple[list[ClaimStudy], list[NotRun]]:
    """Return studies that can be run, and a `NotRun` row for each with missing data."""
    runnable, rows = [], []
    for study in studies:
        reason, claim = study.missing, study.claim
        if reason is None:
            runnable.append(study)
        else:
            rows.append(NotRun(claim.id, claim.where, claim.kind, claim.statement, reason))
    return runnable, rows


def null_of(claim: Claim) -> Claim | None:
    """Return the claim with shuffled labels.

    None if no arm learns from labels, or if the statement is true for any labels.
    """
    if claim.label_free_reason or all(
        shuffled_labels(arm) is None for arm in claim.arms("laptop").values()
    ):
        return None
    return dataclasses.replace(
        claim,
        id=f"{claim.id} (null)",
        study=shuffled(claim.study).study,
        published=(),
        conditions=(),
        control=None,
        corrections=(),
        discrepancies=(),
        plots=(),
    )


def records_of(claim: Claim, run: Run, store: Store, *, arrays: bool = False) -> ArmRecords:
    """Return the records of a stored run by arm, joined to one per seed."""
    seeds = range(run.first_seed, run.first_seed + run.seeds)
    arms = arms_of(claim, run.setting, run.kind)  # type: ignore[arg-type]
    return {
        name: arms[name].join([store.get(each, arrays=arrays) for each in ids], seeds)
        for name, ids in run.arms.items()
        if name in arms
    }


def present(claim: Claim, run: Run) -> dict[str, list[Runnable]] | None:
    """Return the trials of a stored run by arm; None if the study has other trials now."""
    seeds = range(run.first_seed, run.first_seed + run.seeds)
    arms = arms_of(claim, run.setting, run.kind)  # type: ignore[arg-type]
    trials = {name: arm.trials(seeds) for name, arm in arms.items()}
    keys = {name: [trial.key for trial in arm] for name, arm in trials.items()}
    stored = {name: [each.partition(".")[0] for each in ids] for name, ids in run.arms.items()}
    return trials if keys == stored else None


def newest(
    store: Store, runs: Iterable[Run], claim: Claim, role: Role, scale: str | None = None
) -> Run | None:
    """Return the newest run of a claim or control that is complete and has the present trials."""
    for run in runs:  # the newest first
        if run.kind != role or run.name != claim.id or run.setting not in SCALES:
            continue
        if scale not in (None, run.setting) or (role == "control" and claim.control is None):
            continue
        ids = {each for arm in run.arms.values() for each in arm}
        if len(store.known(ids)) == len(ids) and present(claim, run) is not None:
            return run
    return None


def stored_control(claim: Claim, scale: Scale, store: Store) -> ArmRecords | None:
    """Return the records of the control that was run at the same scale."""
    run = newest(store, store.runs("control"), claim, "control", scale)
    return None if run is None else records_of(claim, run, store)


def verdict_of(claim: Claim, run: Run, store: Store) -> Verdict:
    """Compute the verdict of a stored run, with the control that was run at the same scale."""
    trials = present(claim, run) or {}
    now_ids: Sequence[str] = [trial.id for arm in trials.values() for trial in arm]
    then = [each for arm in run.arms.values() for each in arm]
    return judge(
        claim,
        run.setting,  # type: ignore[arg-type]
        records_of(claim, run, store),
        # Criteria that are not registered in this store are newer than all its records.
        registered=store.rule_registered(claim.id, claim.rule) or now(),
        look=(run.outcome or {}).get("look", 0),
        control=stored_control(claim, run.setting, store),  # type: ignore[arg-type]
        older=len({*then} - {*now_ids}),
        tried=tried_readings(claim, run.setting, store),
    )


def tried_readings(claim: Claim, scale: str, store: Store) -> list[TriedReading]:
    """Return the readings of the newest comparison of readings of a claim at a scale."""
    for run in store.runs("readings"):
        told = run.outcome or {}
        if told.get("scale") == scale and claim.id in told.get("claims", ()):
            outcome = ReadingsOutcome.from_json(told)
            return [
                TriedReading(each.reading.name, own.tally.consistent, own.tally.of, own.statement)
                for each in outcome.results
                for own in each.claims
                if own.claim == claim.id
            ]
    return []
