"""Claims as views: how a claim is tested."""

from __future__ import annotations

import dataclasses
from typing import Any

from rich.console import Console

from unlazy.lab import registry
from unlazy.lab.claims import Claim
from unlazy.lab.conditions import Condition
from unlazy.lab.controls import (
    MIN_POWER,
    ControlVerdict,
    judge_control,
    power,
    seeds_for_power,
)
from unlazy.lab.paper_files import definition_of
from unlazy.lab.rules import DEVELOPMENT, EVALUATION, SCALES, TUNING, USUAL_SCALES
from unlazy.lab.store import Store
from unlazy.report.labels import (
    ORIGINS,
    bounds_of,
    count,
    definitions_of,
    number,
    percent,
    quantity_label,
)
from unlazy.report.terminal import print_view
from unlazy.report.view import View, ViewTable
from unlazy.studies.claim import stored_control


def rule_view(claim: Claim, registered: str | None, control: ControlVerdict | None = None) -> View:
    """Return how a claim is tested.

    `registered`: time at which the store first saw the acceptance criteria. `control`: the stored
    negative control at laptop scale, from which the power of the criteria is computed.
    """
    rows = tuple(
        (
            quantity_label(claim, check.quantity),
            bounds_of(check)
            + (
                f" ({' and '.join(check.scales)} scale)"
                if check.scales not in ((), USUAL_SCALES)
                else ""
            ),
            ORIGINS[check.origin] + ", can only refute" * check.only_refutes,
        )
        for check in claim.checks
    )
    tables = [ViewTable(("quantity", "required", "source"), rows, "Checks (all must pass)")]
    if claim.conditions:
        assumptions = tuple((each.text, _needed(each)) for each in claim.conditions)
        columns = ("assumption", "required")
        tables.append(ViewTable(columns, assumptions, "Assumptions of the theorem"))
    return View(
        claim.id,
        context=claim.where,
        lines=(*_lines(claim, registered), ("Power", _power(claim, control))),
        tables=tuple(tables),
        parts=tuple(_parts(claim)),
    )


def _needed(condition: Condition) -> str:
    values = {scale: f"{condition.sense} {number(condition.needed(scale))}" for scale in SCALES[1:]}
    if len(set(values.values())) == 1:
        return next(iter(values.values()))
    return ", ".join(f"{value} ({scale})" for scale, value in values.items())


def _lines(claim: Claim, registered: str | None) -> tuple[tuple[str, str], ...]:
    control = (
        f"{claim.control.what} (at least one check must fail on it)" if claim.control else "none"
    )
    lines = [("Claim", claim.statement), ("Negative control", control)]
    if claim.readings:
        names = "; ".join(
            f"{each.name}{' (judged)' * (each == claim.judged)}" for each in claim.readings
        )
        lines.append(("Readings", f"{names}. Compare: unlazy readings {claim.id}"))
    if claim.corrections:
        lines.append(("Errata applied", f"{', '.join(claim.corrections)} (see docs/errata.md)"))
    if claim.discrepancies:
        lines.append(("Questions", f"{', '.join(claim.discrepancies)} (see docs/errata.md)"))
    if claim.exact:
        lines.append(("Seeds", "none: exact computation"))
    else:
        lines.append(
            (
                "Seeds",
                f"tuning {TUNING}–{DEVELOPMENT - 1}, development {DEVELOPMENT}–{EVALUATION - 1}, "
                f"evaluation from {claim.first_seed}: {claim.seeds['laptop']} at laptop and "
                f"{claim.seeds['paper']} at paper scale",
            )
        )
    if not claim.history:
        lines.append(("History", "No bound, size or arm was changed after a run."))
    since = f"These criteria are in the store since {registered[:19]} UTC." if registered else ""
    lines.append(("Store", since or "Not yet run with this store."))
    return tuple(lines)


def _power(claim: Claim, control: ControlVerdict | None) -> str:
    """Return the power of the criteria with the default number of seeds, in words."""
    if claim.exact:
        return "exact: the criteria fail on the control, or not; seeds have no effect"
    if control is None:
        return (
            f"not computed: run unlazy reproduce {claim.id} --controls --first-seed {DEVELOPMENT}"
        )
    seeds = claim.seeds["laptop"]
    found = power(claim, control.checks, seeds)
    text = (
        f"≥ {percent(found)} to reject the control with {count(seeds, 'seed')}, from "
        f"{count(control.seeds, 'run')} of the control"
    )
    needed = None if found >= MIN_POWER else seeds_for_power(claim, control.checks)
    return text if found >= MIN_POWER else f"{text}; {needed or 'more than 100'} seeds needed"


def _erratum(erratum: Any) -> str:
    return f"printed: {erratum.printed.rstrip('.')}. Correction: {erratum.correction}"


def _parts(claim: Claim) -> list[View]:
    parts = []
    known: tuple[tuple[str, tuple[str, ...], dict[str, Any]], ...] = (
        ("Errata applied", claim.corrections, registry.errata()),
        ("Questions to the authors", claim.discrepancies, registry.discrepancies()),
    )
    for title, names, entries in known:
        items = tuple(
            f"{name}: " + (each.question if hasattr(each, "question") else _erratum(each))
            for name in names
            if (each := entries.get(name))
        )
        if items:
            parts.append(View(title, items=items))
    definitions = [f"{label}: {meaning}" for label, meaning in definitions_of(claim)]
    if definitions:
        parts.append(View("Definitions of measured quantities", items=tuple(definitions)))
    if claim.history:
        seeds = "" if claim.exact else ", seeds from {}"
        changes = tuple(
            f"{each.date}{seeds.format(each.first_seed)}: {each.what}. Reason: {each.why}."
            for each in claim.history
        )
        parts.append(View(f"{count(len(changes), 'change')} after a run", items=changes))
    return parts


def rule_json(claim: Claim) -> dict[str, Any]:
    """Return checks and definitions as plain data."""
    return {
        "id": claim.id,
        "where": claim.where,
        "statement": claim.statement,
        "rule": claim.rule,
        "checks": [
            {
                "check": str(check),
                "required": bounds_of(check),
                "origin": check.origin,
                "scales": [scale for scale in SCALES if check.applies(scale, exact=claim.exact)],
                "only_refutes": check.only_refutes,
                "measures": check.quantity.measures,
            }
            for check in claim.checks
        ],
        "quantities": {
            name: dataclasses.asdict(found)
            for name in claim.measures
            if (found := definition_of(claim.id, name))
        },
    }


def print_rule(claim: Claim, store: Store | None, console: Console) -> None:
    """Print how a claim is tested."""
    since = None if store is None else store.rule_registered(claim.id, claim.rule)
    records = None if store is None else stored_control(claim, "laptop", store)
    control = None if records is None else judge_control(claim, "laptop", records)
    print_view(rule_view(claim, since, control), console)
