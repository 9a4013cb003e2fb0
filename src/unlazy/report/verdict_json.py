"""Verdicts from the JSON files in which they were stored."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from unlazy.lab.checking import CheckResult, Numbers
from unlazy.lab.claims import Claim
from unlazy.lab.conditions import Met
from unlazy.lab.controls import ControlCheck, ControlVerdict
from unlazy.lab.draws import Draw
from unlazy.lab.judging import FORMER_OUTCOMES, TriedReading, Verdict
from unlazy.lab.statistics import Estimate


def _control_checks(control: Mapping[str, Any]) -> tuple[ControlCheck, ...]:
    """Return the checks of a control; earlier files name only those that hold on it."""
    if "checks" in control:
        return msgspec.convert(control["checks"], tuple[ControlCheck, ...])
    return tuple(ControlCheck(check, "holds", None, None) for check in control["held"])


def verdict_from_json(data: Mapping[str, Any], claim: Claim) -> Verdict:
    """Build a verdict from `Verdict.to_json` output and its claim, under the stored reading."""
    reading = data.get("reading")
    if reading and reading["name"] != claim.judged.name:
        claim = claim.under(reading["name"])

    def value(number: float | None, otherwise: float = math.nan) -> float:
        return otherwise if number is None else number

    def estimated(quantity: str) -> Estimate:
        low, high = data["interval"][quantity]
        return Estimate(
            value(data["measured"][quantity]),
            value(low, -math.inf),
            value(high, math.inf),
            len(data["seeds"]),
        )

    by_check = {str(check): check for check in claim.checks}
    control = data["control"]
    check_results = [
        CheckResult(check, row["verdict"], estimated(str(check.quantity)), row["reason"])
        for row in data["checks"]
        for check in [by_check[row["check"]]]
    ]
    outcomes = {
        p: data["published_outcomes"][str(p.quantity)]
        for p in claim.published
        if str(p.quantity) in data["published_outcomes"]
    }
    return Verdict(
        claim=claim,
        scale=data["scale"],
        outcome=FORMER_OUTCOMES.get(data["verdict"], data["verdict"]),
        seen=data["seen"],
        reason=data["reason"],
        check_results=tuple(check_results),
        numbers=Numbers(outcomes, tuple(data["not_reproduced"])),
        conditions=tuple(
            Met(condition, value(h["value"], math.inf), value(h["needed"]))
            for condition, h in zip(claim.conditions, data["hypotheses"], strict=True)
        ),
        control=ControlVerdict(
            control["what"],
            control["verdict"],
            _control_checks(control),
            control.get("seeds", 0),
            control.get("power"),
        )
        if control
        else None,
        measured={q: estimated(str(q)) for q in claim.quantities if str(q) in data["measured"]},
        seeds=tuple(data["seeds"]),
        look=data["look"],
        diverged=data["diverged"],
        trials=data["trials"],
        seconds=data["seconds"],
        older=data.get("older", 0),  # files written before fingerprints have none
        older_than_rule=data["older_than_rule"],
        provenance=data["provenance"],
        # Files written before printed numbers were compared as draws have none.
        draws=msgspec.convert(data.get("draws", []), tuple[Draw, ...]),
        tried=msgspec.convert(data.get("tried", []), tuple[TriedReading, ...]),
    )
