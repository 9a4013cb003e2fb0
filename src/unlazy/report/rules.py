"""By what a claim is judged, for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from unlazy.lab.claims import Claim
from unlazy.lab.rules import DEVELOPMENT, JUDGING, SCALES, TUNING
from unlazy.lab.store import Store
from unlazy.report.tables import ORIGINS, terminal


def print_rule(claim: Claim, store: Store | None, console: Console) -> None:
    """Statement, checks, conditions, control, seeds and history; and since when the store knows the
    rule.
    """
    console.print(f"\n[bold]{escape(f'{claim.id} · {claim.where}')}[/]", highlight=False)
    console.print(escape(claim.statement), highlight=False)
    rows = [[str(check), ORIGINS[check.origin], ", ".join(check.scales)] for check in claim.checks]
    console.print(
        terminal(
            (["check", "bounds", "scales"], rows), "The rule: every check that counts must hold"
        )
    )
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
