"""Verdicts as views: published and measured values, checks, assumptions, control, history."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from unlazy.lab.checking import CheckResult
from unlazy.lab.claims import Claim
from unlazy.lab.judging import Verdict, level_of
from unlazy.lab.rules import DEVELOPMENT, EVALUATION, SCALES, Quantity
from unlazy.lab.trials import Record
from unlazy.report.citations import short_citation
from unlazy.report.labels import (
    MARKS,
    ORIGINS,
    PASSES,
    bounds_of,
    count,
    definitions_of,
    number,
    percent,
    quantity_label,
    spread,
)
from unlazy.report.published import comparison, missed_draws, missed_numbers
from unlazy.report.training import arm_views, training_plots
from unlazy.report.view import View, ViewTable, slug

#: Maximum number of terminal lines per claim, without details.
MAX_LINES = 30
#: Marks of checks; those of statements otherwise.
_RESULTS = {"holds": PASSES}


def view(verdict: Verdict, records: Mapping[str, Sequence[Record]] | None = None) -> View:
    """Return the view of a verdict, with plots if there are records read with their arrays."""
    claim, records = verdict.claim, records or {}
    seeds = "exact" if claim.exact else count(len(verdict.seeds), "seed")
    run = f"{verdict.scale} scale, {seeds}, compute time {verdict.seconds:.0f} s"
    counted = [j for j in verdict.check_results if j.check.counts]
    open_checks = [j for j in counted if j.outcome != "holds"]
    passing = [j for j in counted if j.outcome == "holds"]
    tables = [comparison(verdict)] if claim.published else []
    if open_checks:
        why = {"fails": "Why it fails", "undecided": "Why it is undecided"}.get(
            verdict.outcome, "Checks that do not pass"
        )
        ordered = sorted(open_checks, key=lambda j: j.outcome != "fails")  # failures first
        table = checks(verdict, ordered, why)
        rest = "; ".join(_in_short(verdict, j) for j in passing)
        tables.append(dataclasses.replace(table, caption=f"Passing: {rest}" if rest else ""))
    elif passing:
        tables.append(checks(verdict, passing, "Checks"))
    if verdict.conditions:
        tables.append(conditions(verdict))
    lines = [("Claim", claim.statement)]
    if claim.readings:
        lines.append(("Reading", _reading(verdict)))
    if verdict.control is not None:
        lines.append(("Control", _control(verdict)))
    if claim.corrections:
        lines.append(("Errata applied", f"{', '.join(claim.corrections)} (see the errata)"))
    if claim.discrepancies:
        lines.append(("Questions", f"{', '.join(claim.discrepancies)} (to the authors)"))
    return View(
        title=claim.id,
        heading=f"{short_citation(claim.id.partition('/')[0])}: {claim.where}",
        takeaway=_takeaway(verdict, counted),
        status=verdict.outcome,
        context=f"{claim.where} · {run}",
        lines=tuple(lines),
        tables=tuple(tables),
        plots=tuple(training_plots(verdict, records)),
        parts=tuple(arm_views(verdict, records)),
        notes=tuple(notes(verdict)),
        details=_details(verdict),
        more="Details (-v)",
        kind="Claims",
        facts={
            "claim": claim.id,
            "statement": MARKS[verdict.outcome] + _checks_in_short(verdict),
            "numbers": str(verdict.tally) if verdict.draws else str(verdict.numbers),
            "control": control_mark(verdict),
            "scale": verdict.scale,
            "seeds": _seeds(verdict),
        },
        name=f"{slug(claim.id)}-{verdict.scale}",
        max_lines=MAX_LINES,
    )


def _checks_in_short(verdict: Verdict) -> str:
    """Return the result of the checks, if the verdict's word does not state it."""
    if verdict.outcome not in ("ours", "assumptions not met", "not testable at finite size"):
        return ""
    words = {"holds": "checks pass", "fails": "checks fail", "undecided": "checks undecided"}
    return f" ({words[verdict.seen]})"


def _takeaway(verdict: Verdict, counted: Sequence[CheckResult]) -> str:
    """Return how many checks pass and how many published numbers are reproduced."""
    if not counted:
        scales = [s for s in SCALES if any(c.counts for c in verdict.claim.checks_at(s))]
        return (
            f"The {verdict.scale} scale only tests that everything runs; the checks apply at "
            f"{' and '.join(scales)} scale."
        )
    held = sum(j.outcome == "holds" for j in counted)
    text = f"{held} of {count(len(counted), 'check')} pass{'es' * (len(counted) == 1)}"
    if held == len(counted) > 1:
        text = f"All {held} checks pass"
    if verdict.draws:
        tally, of = verdict.tally, count(len(verdict.draws), "published number")
        text += f", {tally.consistent} of {of} consistent with our runs"
    elif verdict.numbers.of:
        of = count(verdict.numbers.of, "published number")
        text += f", {verdict.numbers.reproduced} of {of} reproduced"
    if failing := {j.check.origin for j in counted if j.outcome == "fails"}:
        text += f", in our implementation{'; all bounds missed are ours' * (failing == {'ours'})}"
    if verdict.outcome == "holds, loosely" and verdict.slack:
        text += f"; every bound of the paper is satisfied by a factor ≥ {number(verdict.slack)}"
    if verdict.outcome == "ours":
        text += "; not an assertion of the paper"
    if verdict.outcome == "not testable at finite size":
        text += f"; {verdict.claim.asymptotic}"
    missed = [met for met in verdict.conditions if not met.met]
    if missed:
        text += f"; {len(missed)} of {count(len(verdict.conditions), 'assumption')} not met"
    broken = [j for j in verdict.check_results if not j.check.counts and j.outcome == "fails"]
    for j in broken:
        text += (
            f". The measurements are invalid: {quantity_label(verdict.claim, j.check.quantity)} "
            f"must be {bounds_of(j.check)} by construction, got {number(j.measured.mean)}"
        )
    return f"{text}."


def _reading(verdict: Verdict) -> str:
    """Return the judged reading in words, and how many were tried."""
    reading, tried = verdict.claim.judged, verdict.tried
    text = f"{reading.name}: {reading.why}"
    if reading.departs:
        text += f". Departs from the text: {'; '.join(reading.departs)}"
    if tried:
        text += f". Chosen among {count(len(tried), 'reading')} on development seeds"
    return f"{text}."


def _in_short(verdict: Verdict, result: CheckResult) -> str:
    quantity = result.check.quantity
    return (
        f"{quantity_label(verdict.claim, quantity)} "
        f"{spread(result.measured, quantity.measure)} ({bounds_of(result.check)})"
    )


def _control(verdict: Verdict) -> str:
    control = verdict.control
    assert control is not None
    if control.outcome == "not run":
        return f"not run (add --controls): {control.what}"
    claim = verdict.claim
    names = {str(c): f"{quantity_label(claim, c.quantity)} {bounds_of(c)}" for c in claim.checks}
    held = "; ".join(names.get(check, check) for check in control.held)
    same = f". These checks hold there too: {held}" if held else ""
    power = "" if control.power is None else f" (power {percent(control.power)})"
    return f"{control_word(control.outcome)}{power}: {control.what}{same}"


def control_mark(verdict: Verdict) -> str:
    """Return the result of the negative control, on which the criteria must fail."""
    return "none" if verdict.control is None else control_word(verdict.control.outcome)


def control_word(outcome: str) -> str:
    """Return a control's outcome in words."""
    return {"not run": "not run", "holds": "✗ holds there too", "undecided": "? undecided"}.get(
        outcome, "✓ rejected"
    )


def checks(verdict: Verdict, check_results: Sequence[CheckResult], title: str) -> ViewTable:
    """Return checks with published and measured values, bounds and results."""
    rows = []
    for j in check_results:
        quantity, e = j.check.quantity, j.measured
        measured = spread(e, quantity.measure) if e.half else number(e.mean, quantity.measure)
        rows.append(
            (
                quantity_label(verdict.claim, quantity),
                _printed(verdict.claim, quantity),
                measured if math.isfinite(e.mean) else "not finite",
                bounds_of(j.check),
                ORIGINS[j.check.origin] + ", can only refute" * j.check.only_refutes,
                _RESULTS.get(j.outcome, MARKS[j.outcome]) + (f" ({j.reason})" if j.reason else ""),
            )
        )
    level = f"{level_of(verdict.look):.2%}" if verdict.look else "95 %"
    spread_shown = any(sign in row[2] for row in rows for sign in (" ± ", " ["))
    measured = f"measured ({level} CI)" if spread_shown else "measured"
    columns = ("quantity", "paper", measured, "required", "source", "result")
    kept = [i for i in range(len(columns)) if i != 1 or any(row[i] for row in rows)]
    return ViewTable(
        tuple(columns[i] for i in kept),
        tuple(tuple(row[i] for i in kept) for row in rows),
        title,
        align="".join("lrrlll"[i] for i in kept),
    )


def _printed(claim: Claim, quantity: Quantity) -> str:
    """Return the published value of a quantity or difference; empty if there is none."""
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
            ("✓ met" if met.met else f"✗ missed by a factor {number(met.factor)}")
            + (f"; holds for {met.constants}" if met.constants else ""),
        )
        for met in verdict.conditions
    )
    missed = [i for i, met in enumerate(verdict.conditions) if not met.met]
    others = [i for i, met in enumerate(verdict.conditions) if met.met]
    columns = ("assumption", "value", "required", "result")
    return ViewTable(
        columns,
        rows,
        "Assumptions of the theorem",
        align="lrll",
        brief=(*missed, *others),
    )


def notes(verdict: Verdict) -> list[str]:
    """Return warnings about seeds, stored records and divergence."""
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
            f"Seeds were added until conclusive: this is interim analysis {verdict.look}, with "
            f"{level_of(verdict.look):.2%} intervals."
        )
    if verdict.older_than_rule:
        found.append(
            f"{verdict.older_than_rule} of {count(trials, 'record')} are older than the stored "
            "acceptance criteria, which were not fixed before the run; --fresh runs them again."
        )
    if verdict.older:
        found.append(
            f"{verdict.older} of {count(trials, 'record')} were made by other code, libraries or "
            "data; --fresh runs them again."
        )
    if verdict.diverged:
        found.append(
            f"{verdict.diverged} of {count(trials, 'run')} diverged; they count as measured."
        )
    return found


def _details(verdict: Verdict) -> tuple[View, ...]:
    claim = verdict.claim
    found = []
    open_or_idle = any(j.outcome != "holds" or not j.check.counts for j in verdict.check_results)
    if open_or_idle:
        run = "the run" if claim.exact else f"seeds {_seeds(verdict)} were run"
        before = "" if verdict.older_than_rule else f", fixed before {run}"
        table = checks(verdict, verdict.check_results, f"Acceptance criteria{before}")
        found.append(View("All checks", tables=(table,)))
    missed = missed_draws(verdict) if verdict.draws else missed_numbers(verdict)
    if missed:
        word = "not consistent" if verdict.draws else "not reproduced or undecided"
        title = f"{count(len(missed), 'published number')} {word}"
        found.append(View(title, items=missed, name="numbers"))
    if verdict.tried:
        rows = tuple(
            (each.name, f"{each.consistent} of {each.of}" if each.of else "–", each.statement)
            for each in verdict.tried
        )
        columns = ("reading", "consistent numbers", "statement")
        table = ViewTable(columns, rows, align="lrl")
        found.append(View("Readings tried on development seeds", tables=(table,), name="readings"))
    definitions = tuple(f"{label}: {meaning}" for label, meaning in definitions_of(claim))
    if definitions:
        found.append(View("Definitions", items=definitions, name="definitions"))
    if claim.history:
        changes = tuple(f"{each.date}: {each.what}. Reason: {each.why}." for each in claim.history)
        title = f"{count(len(changes), 'change')} after a run"
        seeds = f"Tested on seeds from {claim.first_seed}."
        found.append(View(title, takeaway=seeds, items=changes, name="history"))
    if claim.deviations:
        title = f"{count(len(claim.deviations), 'deviation')} from the paper"
        found.append(View(title, items=claim.deviations, name="deviations"))
    facts = {
        "command": [verdict.command],
        "seeds": [", ".join(map(str, verdict.seeds))],
        "trials": [f"{verdict.trials}, {verdict.diverged} of them diverged"],
        "compute time (s), sum over trials": [f"{verdict.seconds:.1f}"],
        "outdated": [f"{verdict.older} of {verdict.trials} records"],
        **verdict.provenance,
    }
    lines = tuple((name, "; ".join(values)) for name, values in facts.items())
    found.append(View("Provenance", lines=lines))
    return tuple(found)


def _seeds(verdict: Verdict) -> str:
    if len(verdict.seeds) > 1:
        return f"{verdict.seeds[0]}–{verdict.seeds[-1]}"
    return "exact" if verdict.claim.exact else ", ".join(map(str, verdict.seeds))
