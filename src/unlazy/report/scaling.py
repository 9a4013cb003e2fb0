"""Scaling studies as views."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from unlazy.lab.exponents import SampleComplexity, ScalingOutcome, ScalingRow, not_reached
from unlazy.report.features import group_of, told_apart
from unlazy.report.labels import count, listed, task_name
from unlazy.report.view import View, ViewPlot, ViewSeries, ViewTable, provenance, slug

PREDICTED = "predicted from its spectrum (ridge → 0)"


def view(outcome: ScalingOutcome) -> View:
    """Return the view of a scaling study: exponents, table, and the plot in log-log."""
    first, *others = outcome.sentences or ["No learner reached the target."]
    grid = [cell.place for cell in outcome.rows[0].cells]
    exponents = ", ".join(
        f"{row.learner} " + (f"{row.power_law.exponent:.2f}" if row.power_law else "not reached")
        for row in outcome.rows
    )
    return View(
        title=f"{outcome.task}: examples needed as {outcome.field} grows",
        heading=f"Examples needed as {outcome.field} grows: {task_name(outcome.task)}",
        takeaway=first,
        context=f"target: {_error(outcome)} of {outcome.target:g} · "
        f"{count(len(outcome.seeds), 'seed')} · n ≤ {outcome.max_n:,} · {_tuning(outcome)}",
        lines=tuple(("", sentence) for sentence in others),
        tables=(table(outcome),),
        plots=tuple(plots(outcome)),
        details=(provenance(outcome.command, outcome.seeds),),
        kind="Scaling studies",
        facts={
            "task": outcome.task,
            "varied": f"{outcome.field} = {listed(grid)}",
            "target": f"{outcome.target:g}",
            "seeds": str(len(outcome.seeds)),
            "exponents": exponents,
        },
        name=f"{slug(outcome.task)}-scaling",
    )


def table(outcome: ScalingOutcome) -> ViewTable:
    """Return one row per learner: exponent, with and without a log factor, and the examples needed
    at each grid point.
    """
    columns = ["learner", "exponent α [95 % CI]", f"α with log {outcome.field} [95 % CI]"]
    columns += [f"{outcome.field} = {cell.place:g}" for cell in outcome.rows[0].cells]
    rows = []
    for row in outcome.rows:
        power_law, fits = row.power_law, ["–"] * 2
        if power_law is not None:
            fits = [
                f"{power_law.exponent:.2f}{_span(power_law.interval)}",
                f"{power_law.with_log:.2f}{_span(power_law.interval_with_log)}".replace("nan", "–"),
            ]
        once = " (one pass)" if row.how == "one pass" else ""
        rows.append((row.learner + once, *fits, *(_cell(cell) for cell in row.cells)))
        if row.predicted:
            predicted = [
                f"{row.predicted[cell.place]:,.0f}" if cell.place in row.predicted else "–"
                for cell in row.cells
            ]
            rows.append((f"{row.learner}, {PREDICTED}", "", "", *predicted))
    title = f"Examples to {_error(outcome)} of {outcome.target:g}, geometric mean over "
    return ViewTable(
        tuple(columns),
        tuple(rows),
        title + count(len(outcome.seeds), "seed"),
        f"Fits: n ∝ {outcome.field}^α and n ∝ {outcome.field}^α·log {outcome.field}. Intervals: "
        "bootstrap over seeds, too narrow for few seeds",
        align="l" + "r" * (len(columns) - 1),
    )


def _cell(cell: SampleComplexity) -> str:
    if not cell.whole:
        return not_reached(cell)
    found = [n for n in cell.examples if n is not None]
    return f"{math.exp(sum(map(math.log, found)) / len(found)):,.0f}"


def _span(interval: tuple[float, float]) -> str:
    return f" [{interval[0]:.2f}, {interval[1]:.2f}]" if math.isfinite(interval[0]) else ""


def _tuning(outcome: ScalingOutcome) -> str:
    """Return how learners are tuned."""
    kinds = {row.how for row in outcome.rows}
    tuned = f"≤ {outcome.budget} configurations per learner and n"
    once = "one-pass learners are not tuned"
    return tuned if "one pass" not in kinds else f"{tuned}; {once}" if len(kinds) > 1 else once


def _error(outcome: ScalingOutcome) -> str:
    return "a test error" if outcome.metric.unit == "%" else f"a {outcome.metric.label}"


def plots(outcome: ScalingOutcome) -> Iterator[ViewPlot]:
    """Yield the plot of sample sizes with fitted power laws, unless it is empty."""
    groups = {row.learner: group_of(row.learner) for row in outcome.rows}
    series = told_apart([each for row in outcome.rows for each in _series(row)], groups)
    if series:
        yield ViewPlot(
            "Training examples needed",
            f"task parameter {outcome.field}",
            f"training examples to {_error(outcome)} of {outcome.target:g}",
            series,
            log_x=True,
            log_y=True,
            ticks=tuple(float(cell.place) for cell in outcome.rows[0].cells),
            caption="; ".join(_legend(series)),
            name="scaling",
        )


def _legend(series: Sequence[ViewSeries]) -> Iterator[str]:
    """Yield what the marks and lines of a plot mean."""
    kinds = {each.kind for each in series}
    yield "Large marks: geometric means; small marks: seeds; solid lines: fitted power laws"
    if "theory" in kinds:
        yield "dashed lines: predicted"
    if "missed" in kinds:
        yield "crosses: target not reached with that many examples"


def _series(row: ScalingRow) -> Iterator[ViewSeries]:
    x = tuple(map(float, row.places))
    name = row.learner
    if row.power_law is not None:
        name += f": exponent {row.power_law.exponent:.2f}{_span(row.power_law.interval)}"
        fitted = tuple(map(float, row.power_law(row.places)))
        yield ViewSeries(name, x, fitted, kind="fit", group=row.learner, legend=False)
    for samples in row.samples if len(x) else ():
        y = tuple(map(float, samples))
        yield ViewSeries(
            "seed", x, y, mark="points", kind="sample", group=row.learner, legend=False
        )
    if x:
        means = tuple(map(float, row.means))
        yield ViewSeries(name, x, means, mark="points", group=row.learner)
    missed = [cell for cell in row.cells if not cell.whole]
    if missed:
        yield ViewSeries(
            row.learner if x else f"{row.learner}: not reached",
            tuple(float(cell.place) for cell in missed),
            tuple(float(cell.sizes[-1]) for cell in missed),
            mark="points",
            kind="missed",
            group=row.learner,
            hover=tuple(f"{cell.place:g}: {not_reached(cell)}" for cell in missed),
            legend=not x,
        )
    if row.predicted:
        at = sorted(row.predicted)
        y = tuple(float(row.predicted[place]) for place in at)
        name = f"{row.learner}, {PREDICTED}"
        yield ViewSeries(name, tuple(map(float, at)), y, kind="theory", group=row.learner)
