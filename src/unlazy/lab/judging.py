"""Judging: rules fixed before the run, and the verdict that records lead to.

A check compares the mean of a measurement over seeds with bounds. It holds where the whole confidence interval of the mean lies within the
bounds, fails where the interval lies wholly outside, and is undecided between, or with fewer seeds than the claim asks for. A claim
holds where all its checks hold, and fails where one fails.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from unlazy.lab.claims import SCALES, Check, Claim, Quantity, Scale
from unlazy.lab.statistics import Estimate, estimate
from unlazy.lab.trials import Record

Ruling = Literal["holds", "fails", "undecided"]


@dataclasses.dataclass(frozen=True)
class Judgement:
    """A check and what became of it."""

    check: Check
    outcome: Ruling
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
    outcome: Ruling
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

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from unlazy.report.notebook import verdict_html

        return verdict_html(self)


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
