"""Judging: rules fixed before the run, and the verdict that records lead to.

A check compares the mean of a measurement over seeds with bounds. It holds where the whole confidence interval of the mean lies within the
bounds, fails where the interval lies wholly outside, and is undecided between, or with fewer seeds than the claim asks for. A claim
holds where all its checks hold, and fails where one fails.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import scipy.stats

from unlazy.lab.trials import Experiment, Measurement, Record, Runnable, Trial
from unlazy.learners.base import Learner
from unlazy.probes import Probe
from unlazy.tasks.base import Family

Scale = Literal["smoke", "laptop", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "laptop", "paper")
Outcome = Literal["holds", "fails", "undecided"]
#: Confidence level of all intervals.
LEVEL = 0.95
#: Seeds below this were used to choose settings; studies start here, so that no verdict rests on a seed that was tuned on.
FIRST_SEED = 10


@dataclasses.dataclass(frozen=True)
class Arm:
    """One learner on one family, in a study."""

    family: Family
    learner: Learner
    n: int
    probes: tuple[Probe, ...]

    def trials(self, seeds: Sequence[int]) -> list[Runnable]:
        """One trial a seed."""
        return [Trial(self.family, self.learner, self.n, seed, self.probes) for seed in seeds]


@dataclasses.dataclass(frozen=True)
class Instrument:
    """One experiment, in a study: the other kind of arm."""

    experiment: Experiment

    def trials(self, seeds: Sequence[int]) -> list[Runnable]:
        """One run a seed."""
        return [Measurement(self.experiment, seed) for seed in seeds]


@dataclasses.dataclass(frozen=True)
class Quantity:
    """A measurement of an arm, at a step (None: the last)."""

    arm: str
    measure: str
    step: int | None = None

    def __str__(self) -> str:
        return f"{self.arm} {self.measure}" + ("" if self.step is None else f" at step {self.step}")


@dataclasses.dataclass(frozen=True)
class Check:
    """lower ≤ mean of the quantity over seeds ≤ upper. `scales`: where the bounds are meant to hold."""

    quantity: Quantity
    lower: float = -math.inf
    upper: float = math.inf
    scales: tuple[Scale, ...] = ("laptop", "paper")

    def __str__(self) -> str:
        if math.isinf(self.upper):
            return f"{self.quantity} ≥ {self.lower:g}"
        if math.isinf(self.lower):
            return f"{self.quantity} ≤ {self.upper:g}"
        return f"{self.quantity} in [{self.lower:g}, {self.upper:g}]"


@dataclasses.dataclass(frozen=True)
class Published:
    """A number printed in the paper. It counts as reproduced where the measured mean is within `tolerance` of it."""

    quantity: Quantity
    value: float
    tolerance: float


@dataclasses.dataclass(frozen=True)
class Series:
    """One line of a plot: a measure of an arm against its steps, or against another measure `x` of the same arm.

    `theory` draws it as a thin dashed line without marks, as is fit for a bound or a prediction.
    """

    arm: str
    measure: str
    name: str
    x: str | None = None
    theory: bool = False


@dataclasses.dataclass(frozen=True)
class Plot:
    """A chart that a claim wants on the page and among its figures."""

    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    log_x: bool = False
    log_y: bool = False
    caption: str = ""


@dataclasses.dataclass(frozen=True)
class Claim:
    """A checkable statement of a paper.

    `study` gives the arms at a scale. `seeds` is the number of seeds a scale takes by default, `least_seeds` the number below which nothing
    is decided; an exact computation may ask for one, whose interval then has no width. `deviations` says what had to differ from the paper.
    """

    id: str
    where: str
    kind: Literal["task", "learner", "lemma", "table", "figure", "bound"]
    statement: str
    study: Callable[[Scale], Mapping[str, Arm | Instrument]]
    checks: tuple[Check, ...]
    published: tuple[Published, ...] = ()
    deviations: tuple[str, ...] = ()
    seeds: Mapping[Scale, int] = dataclasses.field(default_factory=lambda: {"smoke": 1, "laptop": 3, "paper": 5})
    least_seeds: int = 3
    plots: tuple[Plot, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether the claim is a computation without chance, for which one run is enough."""
        return self.least_seeds == 1

    @property
    def rule(self) -> str:
        """The rule as a sentence."""
        interval = f"the {LEVEL:.0%} interval of the mean over at least {self.least_seeds} seeds lies"
        return f"holds if {'what was computed exactly lies' if self.exact else interval} within the bounds of every check: " + "; ".join(
            f"{check} ({' and '.join(check.scales)})" if check.scales != ("laptop", "paper") else str(check) for check in self.checks
        )


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Mean over seeds with its confidence interval."""

    mean: float
    low: float
    high: float
    seeds: int

    @property
    def half(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


def estimate(values: Sequence[float], *, exact: bool = False) -> Estimate:
    """Mean of `values` and Student's interval at `LEVEL`; NaN where a value is not finite.

    For one value it is infinitely wide, unless the value is `exact`: then it has no width.
    """
    array = np.asarray(values, float)
    if not np.all(np.isfinite(array)):
        return Estimate(math.nan, math.nan, math.nan, len(array))
    mean = float(np.mean(array))
    if len(array) < 2:
        return Estimate(mean, mean, mean, 1) if exact else Estimate(mean, -math.inf, math.inf, len(array))
    half = float(scipy.stats.t.ppf((1 + LEVEL) / 2, len(array) - 1) * np.std(array, ddof=1) / math.sqrt(len(array)))
    return Estimate(mean, mean - half, mean + half, len(array))


@dataclasses.dataclass(frozen=True)
class Judgement:
    """A check and what became of it."""

    check: Check
    outcome: Outcome
    measured: Estimate
    reason: str = ""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The outcome of a claim, with all that led to it.

    `other_source` counts records that another version of the source made; `older_than_rule` counts records that were there before the store
    first saw the rule, for which the rule was not written before the run.
    """

    claim: Claim
    scale: Scale
    outcome: Outcome
    reason: str
    judgements: tuple[Judgement, ...]
    measured: dict[Quantity, Estimate]
    not_reproduced: tuple[str, ...]
    seeds: tuple[int, ...]
    diverged: int
    trials: int
    seconds: float
    other_source: int
    older_than_rule: int
    provenance: dict[str, list[str]]

    @property
    def command(self) -> str:
        """The command that makes these records and this verdict."""
        seeds = f"--seeds {len(self.seeds)} --first-seed {self.seeds[0]}"
        return f"unlazy reproduce {self.claim.id} --scale {self.scale} {seeds}"

    def to_json(self) -> dict[str, Any]:
        """The verdict as plain data."""
        return {
            "id": self.claim.id,
            "where": self.claim.where,
            "statement": self.claim.statement,
            "verdict": self.outcome,
            "reason": self.reason,
            "scale": self.scale,
            "rule": self.claim.rule,
            "checks": [
                {"check": str(j.check), "verdict": j.outcome, "measured": _plain(j.measured.mean), "reason": j.reason}
                for j in self.judgements
            ],
            "published": {str(p.quantity): p.value for p in self.claim.published},
            "measured": {str(q): _plain(e.mean) for q, e in self.measured.items()},
            "interval": {str(q): [_plain(e.low), _plain(e.high)] for q, e in self.measured.items()},
            "seeds": list(self.seeds),
            "seconds": round(self.seconds, 3),
            "deviations": list(self.claim.deviations),
            "not_reproduced": list(self.not_reproduced),
            "diverged": self.diverged,
            "trials": self.trials,
            "other_source": self.other_source,
            "older_than_rule": self.older_than_rule,
            "command": self.command,
            "provenance": self.provenance,
        }


def _plain(value: float) -> float | None:
    """Seven digits, so that small gaps stay visible; JSON has no NaN and no infinity."""
    return float(f"{value:.7g}") if math.isfinite(value) else None


def judge_check(check: Check, measured: Estimate, least_seeds: int) -> Judgement:
    """Apply one check."""
    if math.isnan(measured.mean):
        return Judgement(check, "fails", measured, "some runs gave no finite value")
    if measured.seeds < least_seeds:
        return Judgement(check, "undecided", measured, f"{measured.seeds} of at least {least_seeds} seeds")
    if check.lower <= measured.low and measured.high <= check.upper:
        return Judgement(check, "holds", measured)
    if measured.high < check.lower or measured.low > check.upper:
        return Judgement(check, "fails", measured)
    return Judgement(check, "undecided", measured, "the interval crosses a bound: more seeds may decide")


def judge(
    claim: Claim, scale: Scale, records: Mapping[str, Sequence[Record]], *, source: str | None = None, registered: str | None = None
) -> Verdict:
    """The verdict on a claim from the records of each arm. A diverged run counts with what it measured; it is never dropped.

    `source`: hash of the present source; `registered`: when the rule was first seen. Both only serve to point out what differs.
    """
    everything = [record for arm in records.values() for record in arm]
    wanted = [check.quantity for check in claim.checks] + [published.quantity for published in claim.published]
    measured = {
        q: estimate([record.value(q.measure, q.step) for record in records[q.arm]], exact=claim.exact) for q in dict.fromkeys(wanted)
    }
    checks = [check for check in claim.checks if scale in check.scales]
    judgements = tuple(judge_check(check, measured[check.quantity], claim.least_seeds) for check in checks)
    outcomes = {judgement.outcome for judgement in judgements}
    if not judgements:
        outcome, reason = (
            "undecided",
            f"the {scale} scale only shows that everything runs; the rule speaks of {_scales(claim)}",
        )
    elif "fails" in outcomes:
        failed = [j for j in judgements if j.outcome == "fails"]
        outcome, reason = "fails", "; ".join(f"{j.check}, but {j.reason or f'{j.measured.mean:.4g} was measured'}" for j in failed)
    elif "undecided" in outcomes:
        open_ones = [j for j in judgements if j.outcome == "undecided"]
        outcome, reason = "undecided", "; ".join(f"{j.check}: {j.reason}" for j in open_ones)
    else:
        outcome, reason = "holds", ""
    return Verdict(
        claim=claim,
        scale=scale,
        outcome=outcome,  # type: ignore[arg-type]
        reason=reason,
        judgements=judgements,
        measured=measured,
        not_reproduced=tuple(
            f"{p.quantity}: published {p.value:g}, measured {measured[p.quantity].mean:.4g}"
            for p in claim.published
            if not abs(measured[p.quantity].mean - p.value) <= p.tolerance
        ),
        seeds=tuple(sorted({record.seed for record in everything})),
        diverged=sum(record.status == "diverged" for record in everything),
        trials=len(everything),
        seconds=sum(record.seconds for record in everything),
        other_source=sum(source is not None and record.provenance.get("source") != source for record in everything),
        older_than_rule=sum(registered is not None and record.created < registered for record in everything),
        provenance=_provenance(everything),
    )


def _provenance(records: Sequence[Record]) -> dict[str, list[str]]:
    """Everything that the records say of where they come from; usually one value each."""
    names = dict.fromkeys(name for record in records for name in record.provenance)
    return {name: sorted({str(r.provenance[name]) for r in records if name in r.provenance}) for name in names}


def _scales(claim: Claim) -> str:
    return " and ".join(scale for scale in SCALES if any(scale in check.scales for check in claim.checks))
