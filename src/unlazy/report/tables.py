"""Tables: a header and rows of strings, made from verdicts, and their forms for terminal and Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from unlazy.lab.claims import FIRST_SEED, Quantity
from unlazy.lab.judging import Verdict
from unlazy.lab.statistics import Estimate

Rows = tuple[list[str], list[list[str]]]

NAMES = {"test_accuracy": "test %", "train_accuracy": "train %"}
MARKS = {"holds": "✓ holds", "fails": "✗ fails", "undecided": "? undecided"}
COLOURS = {"holds": "green", "fails": "red", "undecided": "yellow"}


def number(value: float, measure: str = "") -> str:
    """A number with the digits that its measure deserves."""
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    return f"{value:.3f}" if measure == "cosine" else f"{value:.2f}" if "accuracy" in measure else f"{value:.4g}"


def spread(estimate: Estimate, measure: str = "") -> str:
    """Mean ± half the interval; for a single seed the mean alone."""
    if not math.isfinite(estimate.half):
        return number(estimate.mean, measure)
    return f"{number(estimate.mean, measure)} ± {number(estimate.half, measure)}"


def comparison(verdict: Verdict) -> Rows:
    """Published beside measured: a row an arm, two columns a published measure."""
    published = {p.quantity: p.value for p in verdict.claim.published}
    quantities = [q for q in verdict.measured if q.step is None]
    measures = list(dict.fromkeys(q.measure for q in (published or quantities)))
    header = ["method"]
    for measure in measures:
        name = NAMES.get(measure, measure)
        header += [f"{name} paper", f"{name} here"]
    rows = []
    for arm in dict.fromkeys(q.arm for q in [*published, *quantities]):
        row = [arm]
        for measure in measures:
            quantity = Quantity(arm, measure)
            row.append(f"{published[quantity]:g}" if quantity in published else "")
            row.append(spread(verdict.measured[quantity], measure) if quantity in verdict.measured else "")
        rows.append(row)
    return header, rows


def checks(verdict: Verdict) -> Rows:
    """The rule, check by check."""
    rows = [
        [
            str(j.check),
            spread(j.measured, j.check.quantity.measure),
            MARKS[j.outcome] + (f" ({j.reason})" if j.reason else ""),
        ]
        for j in verdict.judgements
    ]
    return ["check", "measured", "outcome"], rows


def notes(verdict: Verdict) -> list[str]:
    """What a reader should know before trusting the verdict."""
    found = []
    tuned = sum(seed < FIRST_SEED for seed in verdict.seeds)
    if tuned:
        found.append(
            f"{tuned} of {len(verdict.seeds)} seeds lie below {FIRST_SEED}; settings were chosen on such seeds, so this run tests less "
            "than one on fresh seeds would."
        )
    if verdict.older_than_rule:
        found.append(
            f"{verdict.older_than_rule} of {verdict.trials} records are older than the rule in this store: for them the rule was not "
            "written before the run; --fresh runs them anew."
        )
    if verdict.other_source:
        found.append(
            f"{verdict.other_source} of {verdict.trials} records were made by another version of the source; --fresh runs them anew."
        )
    if verdict.diverged:
        found.append(f"{verdict.diverged} of {verdict.trials} runs diverged; they count with what they measured.")
    return found


def ledger(verdicts: Sequence[Verdict]) -> Rows:
    """One row a claim."""
    rows = [[v.claim.id, v.claim.where, v.scale, MARKS[v.outcome], str(len(v.seeds)), f"{v.seconds:.0f} s", v.reason] for v in verdicts]
    return ["claim", "where", "scale", "verdict", "seeds", "run time", "reason"], rows


def markdown(table: Rows) -> str:
    """The table in Markdown."""
    header, rows = table
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def terminal(table: Rows, title: str | None = None) -> Table:
    """The table for the terminal."""
    header, rows = table
    drawn = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    rows = [[cell.replace(" ± ", "±") for cell in row] for row in rows]
    for index, name in enumerate(header):
        longest = max(map(len, [*name.split(), *(row[index] for row in rows)]), default=0)
        # Numbers and names stay whole on a narrow screen, and take no more than they need; sentences may be folded.
        drawn.add_column(name, overflow="fold", width=longest if longest <= 24 else None)
    for row in rows:
        drawn.add_row(*(_coloured(cell) for cell in row))
    return drawn


def _coloured(cell: str) -> str:
    colour = next((COLOURS[outcome] for outcome, mark in MARKS.items() if cell.startswith(mark)), None)
    return f"[{colour}]{escape(cell)}[/]" if colour else escape(cell)


def print_verdict(verdict: Verdict, console: Console) -> None:
    """The whole verdict: published beside measured, the rule check by check, and what differs from the paper."""
    claim = verdict.claim
    console.print()
    if claim.published:
        console.print(terminal(comparison(verdict), f"{claim.id} · {claim.where}"))
    else:
        console.print(f"[bold]{escape(f'{claim.id} · {claim.where}')}[/]", highlight=False)
    if verdict.judgements:
        before = "" if verdict.older_than_rule else ", written before the run"
        console.print(terminal(checks(verdict), f"The rule{before}"))
    for title, lines in (("Not reproduced", verdict.not_reproduced), ("Deviations from the paper", claim.deviations)):
        if lines:
            console.print(f"[bold]{title}[/]")
            for line in lines:
                console.print(f"  · {escape(line)}", highlight=False)
    for note in notes(verdict):
        console.print(f"[yellow]Note:[/] {escape(note)}", highlight=False)
    mark = f"[bold {COLOURS[verdict.outcome]}]{MARKS[verdict.outcome]}[/]"
    how = f"{len(verdict.seeds)} seeds, {verdict.scale} scale, {verdict.seconds:.0f} s of running"
    reason = f": {escape(verdict.reason)}" if verdict.reason else ""
    console.print(f"[bold]{claim.id}[/]: {mark} ({how}){reason}", highlight=False)
