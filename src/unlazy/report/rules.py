"""By what a claim is judged, for the terminal."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.text import Text

from unlazy.lab.claims import Claim
from unlazy.lab.paper_files import definition_of
from unlazy.lab.rules import DEVELOPMENT, JUDGING, SCALES, TUNING, Check
from unlazy.lab.store import Store
from unlazy.report.tables import ORIGINS, terminal


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
    """Statement, checks, definitions, conditions, control, seeds and history; and since when the
    store knows the rule.
    """
    console.print(f"\n[bold]{escape(f'{claim.id} · {claim.where}')}[/]", highlight=False)
    console.print(escape(claim.statement), highlight=False)
    rows = [
        [str(check.quantity), required(check), ORIGINS[check.origin], ", ".join(check.scales)]
        for check in claim.checks
    ]
    header = ["quantity", "required", "bounds", "scales"]
    console.print(terminal((header, rows), "The rule: every check that counts must hold"))
    defined = [definition_of(claim.id, name) for name in claim.measures]
    if any(defined):
        console.print(Text("Quantities", style="bold"))
    for each in filter(None, defined):
        unit = "" if each.unit in ("", "1") else f" [{each.unit}]"
        console.print(Text(f"{each.measure}: {each.definition}{unit}"))
        if each.notation:
            console.print(Padding(Text(f"${each.notation}$", style="dim"), (0, 0, 0, 2)))
    if claim.conditions:
        asked = [
            [each.text, " and ".join(f"{each.needed(scale):.4g} ({scale})" for scale in SCALES[1:])]
            for each in claim.conditions
        ]
        console.print(terminal((["condition", "asked"], asked), "The conditions of the theorem"))
    lines = [
        f"Control: {claim.control.what}; there the rule must not hold."
        if claim.control
        else "It has no control."
    ]
    lines += (
        [f"Corrected as in docs/errata.md: {', '.join(claim.corrections)}."]
        if claim.corrections
        else []
    )
    if not claim.exact:
        lines.append(
            f"Seeds: settings were chosen on {TUNING}–{DEVELOPMENT - 1}, rules looked at on "
            f"{DEVELOPMENT}–{JUDGING - 1}; it is judged from "
            f"{claim.first_seed} on, with {claim.seeds['laptop']} at laptop and "
            f"{claim.seeds['paper']} at paper scale."
        )
    since = None if store is None else store.rule_registered(claim.id, claim.rule)
    lines.append(
        f"The store first saw this rule {since[:19]} UTC."
        if since
        else "The store has not seen this rule yet."
    )
    for line in lines:
        console.print(escape(line), highlight=False)
    if not claim.history:
        console.print("No bound, size or arm was changed after a run.")
        return
    changes = [
        [change.date, change.what, change.why, f"from {change.first_seed}"]
        for change in claim.history
    ]
    console.print(
        terminal((["date", "changed after a run", "why", "judged on seeds"], changes), "History")
    )
