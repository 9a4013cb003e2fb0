"""Claims as views: how a claim is tested."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from rich.console import Console

from unlazy.lab.claims import Claim
from unlazy.lab.paper_files import definition_of
from unlazy.lab.rules import DEVELOPMENT, EVALUATION, SCALES, TUNING, Check
from unlazy.lab.store import Store
from unlazy.report.labels import ORIGINS, quantity_label
from unlazy.report.terminal import print_view
from unlazy.report.view import View, ViewTable


def rule_view(claim: Claim, registered: str | None) -> View:
    """Return checks, assumptions, control, seeds and history of a claim; `registered` is the time
    at which the store first saw the criteria.
    """
    rows = tuple(
        (
            quantity_label(claim, check.quantity),
            required(check),
            ORIGINS[check.origin],
            ", ".join(check.scales),
        )
        for check in claim.checks
    )
    columns = ("quantity", "required", "bounds from", "scales")
    tables = [ViewTable(columns, rows, "Checks: all that count must pass")]
    defined = [found for name in claim.measures if (found := definition_of(claim.id, name))]
    if defined:
        meanings = tuple((d.measure, d.definition, f"${d.notation}$", d.unit) for d in defined)
        names = ("measure", "definition", "notation", "unit")
        tables.append(ViewTable(names, meanings, "Measured quantities"))
    if claim.conditions:
        asked = tuple(
            (each.text, " and ".join(f"{each.needed(scale):.4g} ({scale})" for scale in SCALES[1:]))
            for each in claim.conditions
        )
        tables.append(ViewTable(("assumption", "required"), asked, "Assumptions of the theorem"))
    if claim.history:
        changes = tuple(
            (each.date, each.what, each.why, f"from {each.first_seed}") for each in claim.history
        )
        tables.append(
            ViewTable(("date", "changed after a run", "why", "seeds"), changes, "History")
        )
    control = f"{claim.control.what}; the checks must fail on it" if claim.control else "none"
    lines = [("Claim", claim.statement), ("Control", control)]
    if claim.corrections:
        lines.append(("Corrected", f"{', '.join(claim.corrections)} (see docs/errata.md)"))
    if not claim.exact:
        lines.append(
            (
                "Seeds",
                f"tuning {TUNING}–{DEVELOPMENT - 1}, development {DEVELOPMENT}–{EVALUATION - 1}, "
                f"evaluation from {claim.first_seed} on: {claim.seeds['laptop']} at laptop and "
                f"{claim.seeds['paper']} at paper scale",
            )
        )
    if not claim.history:
        lines.append(("History", "No bound, size or arm was changed after a run."))
    since = f"The store first saw this rule {registered[:19]} UTC." if registered else ""
    lines.append(("Store", since or "The store has not seen this rule yet."))
    return View(claim.id, context=claim.where, lines=tuple(lines), tables=tuple(tables))


def rule_json(claim: Claim) -> dict[str, Any]:
    """Return checks, with bounds, origin, and the definitions of what they measure, as data."""
    return {
        "id": claim.id,
        "where": claim.where,
        "statement": claim.statement,
        "rule": claim.rule,
        "checks": [
            {
                "check": str(check),
                "required": required(check),
                "origin": check.origin,
                "scales": check.scales,
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


def required(check: Check) -> str:
    """Return the bounds of a check, with strict ones told from others: "≥ 1 + 1e-12"."""

    def exact(bound: float) -> str:
        near = float(f"{bound:g}")
        rest = bound - near
        if 0 < abs(rest) < 1e-7 * abs(near):
            return f"{near:g} {'+' if rest > 0 else '−'} {abs(rest):.1g}"
        return f"{bound:g}"

    if math.isinf(check.upper):
        text = f"≥ {exact(check.lower)}"
    elif math.isinf(check.lower):
        text = f"≤ {exact(check.upper)}"
    else:
        text = f"in [{exact(check.lower)}, {exact(check.upper)}]"
    return text if check.share is None else f"{text} for more than {check.share:.0%} of seeds"


def print_rule(claim: Claim, store: Store | None, console: Console) -> None:
    """Print how a claim is tested."""
    since = None if store is None else store.rule_registered(claim.id, claim.rule)
    print_view(rule_view(claim, since), console)
