"""Verdicts as views: published and measured values, checks, assumptions, control, history."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from unlazy.lab.claims import Claim
from unlazy.lab.judging import (
    FORMER_OUTCOMES,
    CheckResult,
    ControlVerdict,
    Numbers,
    Verdict,
    level_of,
)
from unlazy.lab.rules import DEVELOPMENT, EVALUATION, Met, Quantity
from unlazy.lab.statistics import Estimate
from unlazy.lab.trials import Record
from unlazy.report.labels import (
    MARKS,
    ORIGINS,
    bounds_of,
    count,
    number,
    quantity_label,
    short_label,
    spread,
)
from unlazy.report.training import arm_views, training_plots
from unlazy.report.view import View, ViewTable, slug

#: What the outcome of a published value is marked by.
_REPRODUCED = {"holds": " ✓", "fails": " ✗", "undecided": " ?"}


def view(verdict: Verdict, records: Mapping[str, Sequence[Record]] | None = None) -> View:
    """Return the view of a verdict, with plots if there are records read with their arrays."""
    claim, records = verdict.claim, records or {}
    seeds = "exact" if claim.exact else count(len(verdict.seeds), "seed")
    where = f"{verdict.scale} scale, {seeds}, {verdict.seconds:.0f} s"
    counted = [j for j in verdict.check_results if j.check.counts]
    open_checks = [j for j in counted if j.outcome != "holds"]
    passing = [j for j in counted if j.outcome == "holds"]
    tables = [comparison(verdict)] if claim.published else []
    if open_checks:
        why = {"fails": "Why it fails", "undecided": "Why it is undecided"}.get(
            verdict.outcome, "Checks that do not pass"
        )
        table = checks(verdict, open_checks, why)
        told = "; ".join(_in_short(verdict, j) for j in passing)
        tables.append(dataclasses.replace(table, caption=f"Passing: {told}" if told else ""))
    elif passing:
        tables.append(checks(verdict, passing, "Checks"))
    if verdict.conditions:
        tables.append(conditions(verdict))
    lines = [("Claim", claim.statement)]
    if verdict.control is not None:
        lines.append(("Control", _control(verdict)))
    if claim.corrections:
        lines.append(("Corrected", f"{', '.join(claim.corrections)} (see the errata)"))
    return View(
        title=claim.id,
        takeaway=_takeaway(verdict, counted),
        status=verdict.outcome,
        context=f"{claim.where} · {where}",
        lines=tuple(lines),
        tables=tuple(tables),
        plots=tuple(training_plots(verdict, records)),
        parts=tuple(arm_views(verdict, records)),
        notes=tuple(notes(verdict)),
        details=_details(verdict),
        more=f"unlazy show {claim.id} --details",
        kind="Claims",
        facts={
            "claim": claim.id,
            "statement": MARKS[verdict.outcome],
            "numbers": str(verdict.numbers),
            "control": control_mark(verdict),
            "scale": verdict.scale,
            "seeds": _seeds(verdict),
        },
        name=f"{slug(claim.id)}-{verdict.scale}",
    )


def _takeaway(verdict: Verdict, counted: Sequence[CheckResult]) -> str:
    """Return how many checks pass and how many numbers are reproduced."""
    if not counted:
        return f"{_capital(verdict.reason)}."
    held = sum(j.outcome == "holds" for j in counted)
    told = f"{held} of {count(len(counted), 'check')} pass{'es' * (len(counted) == 1)}"
    if verdict.numbers.of:
        of = f"{verdict.numbers.of} published number{'s' * (verdict.numbers.of != 1)}"
        told += f", {verdict.numbers.reproduced} of {of} reproduced"
    missed = [met for met in verdict.conditions if not met.met]
    if missed:
        told += f"; {len(missed)} of {count(len(verdict.conditions), 'assumption')} not met"
    broken = any(not j.check.counts and j.outcome == "fails" for j in verdict.check_results)
    return f"{told}." + (f" {_capital(verdict.reason)}." if broken else "")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _in_short(verdict: Verdict, judgement: CheckResult) -> str:
    quantity = judgement.check.quantity
    return (
        f"{quantity_label(verdict.claim, quantity)} "
        f"{spread(judgement.measured, quantity.measure)} ({bounds_of(judgement.check)})"
    )


def _control(verdict: Verdict) -> str:
    control = verdict.control
    assert control is not None
    if control.outcome == "not run":
        return f"{control.what}: not run (--controls)"
    same = f". These checks hold there too: {'; '.join(control.held)}" if control.held else ""
    return f"{control.what}: {control_word(control.outcome)}{same}"


def control_mark(verdict: Verdict) -> str:
    """Return the result of the negative control, on which the criteria must fail."""
    return "none" if verdict.control is None else control_word(verdict.control.outcome)


def control_word(outcome: str) -> str:
    """Return a control's outcome in words."""
    return {"not run": "not run", "holds": "✗ holds there too", "undecided": "✓ not held"}.get(
        outcome, "✓ rejected"
    )


def comparison(verdict: Verdict) -> ViewTable:
    """Return published next to measured values: one row per arm, two columns per measure."""
    claim = verdict.claim
    published = {p.quantity: p for p in claim.published}
    measures = list(dict.fromkeys(q.measure for q in published))
    columns = ["method"]
    for measure in measures:
        columns += [f"{short_label(claim, measure)} paper", "here"]
    rows = []
    others = [q for q in verdict.measured if q.step is None and q.minus is None]
    for arm in dict.fromkeys(q.arm for q in [*published, *others]):
        row = [arm]
        for measure in measures:
            quantity = Quantity(arm, measure)
            printed = published.get(quantity)
            outcome = verdict.numbers.outcomes.get(printed) if printed else None
            mark = _REPRODUCED[outcome] if outcome else ""
            here = verdict.measured.get(quantity)
            row += [
                printed.printed if printed else "",
                spread(here, measure) + mark if here else "",
            ]
        rows.append(tuple(row))
    caption = "Mean ± half of the 95 % interval. ✓ reproduced within printed precision and "
    return ViewTable(
        tuple(columns),
        tuple(row for row in rows if any(row[1:])),
        "Published and measured",
        caption + "stated spread, ✗ not, ? undecided",
        "l" + "r" * (len(columns) - 1),
    )


def checks(verdict: Verdict, check_results: Sequence[CheckResult], title: str) -> ViewTable:
    """Return checks with what was measured, the interval and the bounds."""
    rows = []
    for j in check_results:
        measure, e = j.check.quantity.measure, j.measured
        ends = (
            f"{number(e.low, measure)} to {number(e.high, measure)}"
            if math.isfinite(e.half) and e.half and e.seeds > 1
            else ""
        )
        rows.append(
            (
                quantity_label(verdict.claim, j.check.quantity),
                _printed(verdict.claim, j.check.quantity),
                number(e.mean, measure) if math.isfinite(e.mean) else "not finite",
                ends,
                bounds_of(j.check),
                ORIGINS[j.check.origin],
                MARKS[j.outcome] + (f" ({j.reason})" if j.reason else ""),
            )
        )
    columns = ["quantity", "paper", "here", "95 % interval", "accepted", "bounds from", "result"]
    if verdict.look:
        columns[3] = f"{level_of(verdict.look):.2%} interval"
    kept = [i for i in range(len(columns)) if i not in (1, 3) or any(row[i] for row in rows)]
    return ViewTable(
        tuple(columns[i] for i in kept),
        tuple(tuple(row[i] for i in kept) for row in rows),
        title,
        align="".join("lrrrlll"[i] for i in kept),
    )


def _printed(claim: Claim, quantity: Quantity) -> str:
    """Return the published value of a quantity or the difference of two; empty if none."""
    known = {p.quantity: p.printed for p in claim.published}
    other = quantity.minus
    if other is None:
        return known.get(quantity, "")
    first = _printed(claim, dataclasses.replace(quantity, minus=None))
    second = _printed(claim, other)
    if not first or not second:
        return ""
    digits = max(len(text.partition(".")[2]) for text in (first, second))
    return f"{float(first) - float(second):.{digits}f}"


def conditions(verdict: Verdict) -> ViewTable:
    """Return the assumptions of the theorem at the sizes of the run."""
    rows = tuple(
        (
            met.condition.text,
            number(met.value),
            f"{met.condition.sense} {number(met.needed)}",
            "met" if met.met else f"missed by a factor {number(met.factor)}",
        )
        for met in verdict.conditions
    )
    columns = ("assumption", "here", "required", "result")
    return ViewTable(columns, rows, "Assumptions of the theorem", align="lrll")


def notes(verdict: Verdict) -> list[str]:
    """Return what a reader must know before trusting the verdict."""
    found = []
    first, seeds, trials = verdict.claim.first_seed, len(verdict.seeds), verdict.trials
    below = sum(seed < first for seed in verdict.seeds)
    if below and not verdict.claim.exact:
        ranges = (
            (DEVELOPMENT, "used for tuning"),
            (EVALUATION, "used in development"),
            (first, "used to test an older version of the criteria"),
        )
        used = next(use for end, use in ranges if verdict.seeds[0] < end)
        found.append(
            f"{below} of {count(seeds, 'seed')} {'is' if below == 1 else 'are'} below {first} and "
            f"{'was' if below == 1 else 'were'} {used}; not a held-out test."
        )
    if verdict.look:
        found.append(
            f"Seeds were added until conclusive: this is look {verdict.look}, with intervals at "
            f"{level_of(verdict.look):.2%}."
        )
    if verdict.older_than_rule:
        found.append(
            f"{verdict.older_than_rule} of {trials} records are older than the rule in this "
            "store: its criteria were not fixed before the run; --fresh runs them again."
        )
    if verdict.older:
        found.append(
            f"{verdict.older} of {trials} records were made by other code, libraries or data; "
            "--fresh runs them again."
        )
    if verdict.diverged:
        found.append(f"{verdict.diverged} of {trials} runs diverged; they count as measured.")
    return found


def _details(verdict: Verdict) -> tuple[View, ...]:
    claim = verdict.claim
    found = []
    open_or_idle = any(j.outcome != "holds" or not j.check.counts for j in verdict.check_results)
    if open_or_idle:
        before = "" if verdict.older_than_rule else ", fixed before the run"
        table = checks(verdict, verdict.check_results, f"Acceptance criteria{before}")
        found.append(View("All checks", tables=(table,)))
    if verdict.numbers.lines:
        found.append(
            View(
                f"Numbers not reproduced ({len(verdict.numbers.lines)})",
                items=verdict.numbers.lines,
                name="numbers",
            )
        )
    if claim.history:
        changes = tuple(f"{each.date}: {each.what}. Why: {each.why}." for each in claim.history)
        title = f"Changed after a run ({len(changes)}); tested on seeds from {claim.first_seed}"
        found.append(View(title, items=changes, name="history"))
    if claim.deviations:
        title = f"Deviations from the paper ({len(claim.deviations)})"
        found.append(View(title, items=claim.deviations, name="deviations"))
    facts = {
        "command": [verdict.command],
        "seeds": [", ".join(map(str, verdict.seeds))],
        "trials": [f"{verdict.trials}, {verdict.diverged} of them diverged"],
        "seconds": [f"{verdict.seconds:.1f}"],
        "other code, libraries or data": [f"{verdict.older} of {verdict.trials} records"],
        **verdict.provenance,
    }
    lines = tuple((name, "; ".join(values)) for name, values in facts.items())
    found.append(View("Provenance", lines=lines))
    return tuple(found)


def _seeds(verdict: Verdict) -> str:
    if len(verdict.seeds) > 1:
        return f"{verdict.seeds[0]}–{verdict.seeds[-1]}"
    return "exact" if verdict.claim.exact else ", ".join(map(str, verdict.seeds))


def verdict_from_json(told: Mapping[str, Any], claim: Claim) -> Verdict:
    """Build a verdict from `Verdict.to_json` output and its claim."""

    def value(number: float | None, otherwise: float = math.nan) -> float:
        return otherwise if number is None else number

    def estimated(quantity: str) -> Estimate:
        low, high = told["interval"][quantity]
        return Estimate(
            value(told["measured"][quantity]),
            value(low, -math.inf),
            value(high, math.inf),
            len(told["seeds"]),
        )

    by_check = {str(check): check for check in claim.checks}
    by_condition = {each.text: each for each in claim.conditions}
    control = told["control"]
    check_results = [
        CheckResult(check, row["verdict"], estimated(str(check.quantity)), row["reason"])
        for row in told["checks"]
        for check in [by_check[row["check"]]]
    ]
    outcomes = {
        p: told["published_outcomes"][str(p.quantity)]
        for p in claim.published
        if str(p.quantity) in told["published_outcomes"]
    }
    return Verdict(
        claim=claim,
        scale=told["scale"],
        outcome=FORMER_OUTCOMES.get(told["verdict"], told["verdict"]),
        seen=told["seen"],
        reason=told["reason"],
        check_results=tuple(check_results),
        numbers=Numbers(outcomes, tuple(told["not_reproduced"])),
        conditions=tuple(
            Met(by_condition[h["condition"]], value(h["value"], math.inf), value(h["needed"]))
            for h in told["hypotheses"]
        ),
        control=ControlVerdict(control["what"], control["verdict"], tuple(control["held"]))
        if control
        else None,
        measured={q: estimated(str(q)) for q in claim.quantities if str(q) in told["measured"]},
        seeds=tuple(told["seeds"]),
        look=told["look"],
        diverged=told["diverged"],
        trials=told["trials"],
        seconds=told["seconds"],
        older=told.get("older", 0),  # files written before fingerprints have none
        older_than_rule=told["older_than_rule"],
        provenance=told["provenance"],
    )
