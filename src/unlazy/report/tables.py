"""Tables: a header and rows of strings, made from verdicts, and their form for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from unlazy.lab.claims import NotRun
from unlazy.lab.judging import Verdict, level_of
from unlazy.lab.rules import DEVELOPMENT, JUDGING, Quantity
from unlazy.lab.statistics import Estimate

Rows = tuple[list[str], list[list[str]]]

NAMES = {"test_accuracy": "test %", "train_accuracy": "train %"}
MARKS = {
    "holds after correction": "✓ holds after correction",  # before the mark that it begins with
    "holds": "✓ holds",
    "fails": "✗ fails",
    "undecided": "? undecided",
    "outside hypotheses": "○ outside hypotheses",
    "not run": "· not run",
}
COLOURS = {
    "holds": "green",
    "holds after correction": "green",
    "fails": "red",
    "undecided": "yellow",
    "outside hypotheses": "blue",
    "not run": "bright_black",
}
#: Whose bounds a check has, as it is told beside them.
ORIGINS = {"paper": "the paper's", "ours": "ours", "identity": "identity, does not count"}


def number(value: float, measure: str = "") -> str:
    """A number with the digits that its measure deserves."""
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    return (
        f"{value:.3f}"
        if measure == "cosine"
        else f"{value:.2f}"
        if "accuracy" in measure
        else f"{value:.4g}"
    )


def spread(estimate: Estimate, measure: str = "") -> str:
    """Mean ± half the interval; for a single seed the mean alone."""
    if not math.isfinite(estimate.half):
        return number(estimate.mean, measure)
    return f"{number(estimate.mean, measure)} ± {number(estimate.half, measure)}"


def comparison(verdict: Verdict) -> Rows:
    """Published beside measured: a row an arm, two columns a published measure."""
    published = {p.quantity: p.printed for p in verdict.claim.published}
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
            row.append(published.get(quantity, ""))
            row.append(
                spread(verdict.measured[quantity], measure) if quantity in verdict.measured else ""
            )
        rows.append(row)
    return header, rows


def checks(verdict: Verdict) -> Rows:
    """The rule, check by check."""
    rows = [
        [
            str(j.check),
            ORIGINS[j.check.origin],
            spread(j.measured, j.check.quantity.measure),
            MARKS[j.outcome] + (f" ({j.reason})" if j.reason else ""),
        ]
        for j in verdict.judgements
    ]
    return ["check", "bounds", "measured", "outcome"], rows


def conditions(verdict: Verdict) -> Rows:
    """The conditions of the theorem at the sizes of the run."""
    rows = [
        [
            met.condition.text,
            number(met.value),
            f"{met.condition.sense} {number(met.needed)}",
            "met" if met.met else f"missed {number(met.factor)}-fold",
        ]
        for met in verdict.conditions
    ]
    return ["condition", "here", "asked", "outcome"], rows


def notes(verdict: Verdict) -> list[str]:
    """What a reader should know before trusting the verdict."""
    found = []
    first, seeds = verdict.claim.first_seed, len(verdict.seeds)
    if any(seed < first for seed in verdict.seeds) and not verdict.claim.exact:
        ranges = (
            (DEVELOPMENT, "settings were chosen"),
            (JUDGING, "rules were looked at"),
            (first, "an older rule was judged"),
        )
        used = next(use for end, use in ranges if verdict.seeds[0] < end)
        found.append(
            f"{sum(seed < first for seed in verdict.seeds)} of {seeds} seeds lie below {first}; "
            f"on such seeds {used}, so this run tests "
            "less than one on judging seeds would."
        )
    if verdict.look:
        found.append(
            f"Seeds were added until it was decided: this is look {verdict.look}, whose "
            f"intervals are at {level_of(verdict.look):.2%}."
        )
    if verdict.older_than_rule:
        found.append(
            f"{verdict.older_than_rule} of {verdict.trials} records are older than the rule in "
            "this store: for them the rule was not "
            "written before the run; --fresh runs them anew."
        )
    if verdict.older:
        found.append(
            f"{verdict.older} of {verdict.trials} records were made by another version "
            "of the source; --fresh runs them anew."
        )
    if verdict.diverged:
        found.append(
            f"{verdict.diverged} of {verdict.trials} runs diverged; they count with what they "
            "measured."
        )
    return found


def ledger(verdicts: Sequence[Verdict]) -> Rows:
    """One row a claim."""
    rows = [
        [v.claim.id, MARKS[v.outcome], str(v.numbers), control_mark(v), v.scale] for v in verdicts
    ]
    return ["claim", "statement", "numbers", "control", "scale"], rows


def waiting(rows: Sequence[NotRun]) -> Rows:
    """What nothing runs yet."""
    return ["claim", "where", "reason"], [[row.id, row.where, row.reason] for row in rows]


def null_sentence(verdicts: Sequence[Verdict]) -> str:
    """How many rules hold although no learner saw a label that says anything."""
    able = [verdict for verdict in verdicts if any(j.check.counts for j in verdict.judgements)]
    held = [verdict.claim.id for verdict in able if verdict.seen == "holds"]
    return f"{len(held)} of {len(able)} rules hold by error{': ' if held else ''}{', '.join(held)}."


def control_mark(verdict: Verdict) -> str:
    """What the rule says where the statement is false: it should be rejected there."""
    return "none" if verdict.control is None else control_word(verdict.control.outcome)


def control_word(outcome: str) -> str:
    """A control's outcome as people read it."""
    return {"not run": "not run", "holds": "✗ holds there too", "undecided": "✓ not held"}.get(
        outcome, "✓ rejected"
    )


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
        # Numbers and names stay whole on a narrow screen, and take no more than they need;
        # sentences may be folded.
        drawn.add_column(name, overflow="fold", width=longest if longest <= 24 else None)
    for row in rows:
        drawn.add_row(*(_coloured(cell) for cell in row))
    return drawn


def _coloured(cell: str) -> str:
    colour = next(
        (COLOURS[outcome] for outcome, mark in MARKS.items() if cell.startswith(mark)), None
    )
    return f"[{colour}]{escape(cell)}[/]" if colour else escape(cell)


def print_verdict(verdict: Verdict, console: Console) -> None:
    """The whole verdict: published beside measured, the rule check by check, and what differs from
    the paper.
    """
    claim = verdict.claim
    console.print()
    if claim.published:
        console.print(terminal(comparison(verdict), f"{claim.id} · {claim.where}"))
    else:
        console.print(f"[bold]{escape(f'{claim.id} · {claim.where}')}[/]", highlight=False)
    if verdict.judgements:
        before = "" if verdict.older_than_rule else ", written before the run"
        console.print(terminal(checks(verdict), f"The rule{before}"))
    if verdict.conditions:
        console.print(terminal(conditions(verdict), "The conditions of the theorem"))
    changes = [f"{change.date}: {change.what} ({change.why})" for change in claim.history]
    corrected = [f"see docs/errata.md: {name}" for name in claim.corrections]
    lists = {
        "Numbers not reproduced": verdict.numbers.lines,
        "Corrected": corrected,
        "Deviations from the paper": claim.deviations,
        f"Changed after a run, judged on seeds from {claim.first_seed}": changes,
    }
    for title, lines in lists.items():
        if lines:
            console.print(f"[bold]{title}[/]")
            for line in lines:
                console.print(f"  · {escape(line)}", highlight=False)
    for note in notes(verdict):
        console.print(f"[yellow]Note:[/] {escape(note)}", highlight=False)
    if verdict.control is not None:
        said = (
            "was not run (--controls runs it)"
            if verdict.control.outcome == "not run"
            else f"the rule says {MARKS[verdict.control.outcome]}"
        )
        console.print(f"[bold]Control[/] ({escape(verdict.control.what)}): {said}", highlight=False)
    mark = f"[bold {COLOURS[verdict.outcome]}]{MARKS[verdict.outcome]}[/]"
    how = f"{len(verdict.seeds)} seeds, {verdict.scale} scale, {verdict.seconds:.0f} s of running"
    reason = f": {escape(verdict.reason)}" if verdict.reason else ""
    numbers = f"; numbers {verdict.numbers}" if verdict.numbers.of else ""
    console.print(f"[bold]{claim.id}[/]: {mark}{numbers} ({how}){reason}", highlight=False)
