"""Published numbers next to measured ones, in views of verdicts."""

from __future__ import annotations

from unlazy.lab.draws import Draw
from unlazy.lab.judging import Verdict
from unlazy.lab.rules import Quantity
from unlazy.report.labels import (
    CI,
    label_of,
    number,
    quantity_label,
    spread,
)
from unlazy.report.view import ViewTable

#: Marks of published values, within printed precision and as draws.
_REPRODUCED = {"holds": " ✓", "fails": " ✗", "undecided": " ?"}
_CONSISTENT = {"consistent": " ✓", "inconsistent": " ✗", "not informative": " ~"}


def comparison(verdict: Verdict) -> ViewTable:
    """Return published next to measured values: one row per arm, two columns per measure."""
    claim = verdict.claim
    published = {p.quantity: p for p in claim.published}
    draws = {draw.quantity: draw for draw in verdict.draws}
    measures = list(dict.fromkeys(q.measure for q in published))
    columns = ["method"]
    for measure in measures:
        columns += ["paper", f"ours: {label_of(claim, measure).partition(' to ')[0]}"]
    rows, urgent = [], []
    others = [q for q in verdict.measured if q.step is None and q.minus is None]
    for arm in dict.fromkeys(q.arm for q in [*published, *others]):
        row = [arm]
        for measure in measures:
            quantity = Quantity(arm, measure)
            printed = published.get(quantity)
            outcome = verdict.numbers.outcomes.get(printed) if printed else None
            mark = _REPRODUCED[outcome] if outcome else ""
            if draw := draws.get(quantity):  # a single seed has no interval
                mark = " ?" if draw.low is None else _CONSISTENT[draw.outcome]
            here = verdict.measured.get(quantity)
            row += [
                printed.printed if printed else "",
                spread(here, measure) + mark if here else "",
            ]
        if any(row[1:]):
            urgent.append(0 if any("✗" in cell for cell in row) else 1 if any(row[1::2]) else 2)
            rows.append(tuple(row))
    meaning = "✓ 90 % CI within rounding and two stated SDs, ✗ mean outside, ? undecided"
    if draws:
        tally = verdict.tally
        meaning = (
            "✓ printed number within the 95 % prediction interval of our runs (wider than ±), "
            "✗ outside, ~ within, but not informative. "
            f"{tally}; {verdict.numbers.reproduced} within rounding and two stated SDs"
        )
    return ViewTable(
        tuple(columns),
        tuple(rows),
        "Published and measured",
        f"Mean {CI}; {meaning}",
        "l" + "r" * (len(columns) - 1),
        brief=tuple(sorted(range(len(rows)), key=urgent.__getitem__)),
    )


def missed_draws(verdict: Verdict) -> tuple[str, ...]:
    """Return the printed numbers that are not consistent with our runs, and their intervals."""
    return tuple(
        f"{quantity_label(verdict.claim, draw.quantity)}: published {draw.printed}, "
        + (
            f"prediction interval {_end(draw, draw.low)} to {_end(draw, draw.high)}"
            if draw.low is not None and draw.high is not None
            else "no prediction interval (one seed)"
        )
        + (
            f"; it contains the mean of {draw.other}, too"
            if draw.outcome == "not informative" and draw.other
            else ""
        )
        for draw in verdict.draws
        if draw.outcome != "consistent"
    )


def missed_title(verdict: Verdict) -> str:
    """Return how many printed numbers are inconsistent and how many are not informative."""
    outcomes = [draw.outcome for draw in verdict.draws]
    kinds = [each for each in ("inconsistent", "not informative") if each in outcomes]
    numbers = " and ".join(f"{outcomes.count(kind)} {kind}" for kind in kinds)
    many = sum(outcomes.count(kind) for kind in kinds)
    return f"{numbers} published number{'s' * (many != 1)}"


def _end(draw: Draw, value: float) -> str:
    """Return an end of an interval; it differs from the printed number unless they are equal."""
    text = number(value, draw.measure)
    printed = float(draw.printed)
    for digits in range(3, 7):
        if float(text) != printed or value == printed:
            break
        text = f"{value:.{digits}f}"
    return text


def missed_numbers(verdict: Verdict) -> tuple[str, ...]:
    """Return the printed numbers that are not reproduced within their printed precision."""
    return tuple(
        f"{quantity_label(verdict.claim, p.quantity)}: {p.printed} (accepted: ± {number(p.margin)})"
        + (f", measured {spread(e, p.quantity.measure)}" if e else "")
        + (" (undecided)" if outcome == "undecided" else "")
        for p, outcome in verdict.numbers.outcomes.items()
        if outcome != "holds"
        for e in [verdict.measured.get(p.quantity)]
    )
