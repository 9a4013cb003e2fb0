"""Scaling studies for people: the table, the sentences, and the figure in log-log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.markup import escape

from unlazy.lab.claims import Plot
from unlazy.lab.exponents import Needed, ScalingOutcome, ScalingRow, not_reached
from unlazy.lab.statistics import Estimate
from unlazy.report.palette import ARM_COLOURS, ARM_MARKERS, PRINT_STYLE
from unlazy.report.plots import Line, plot_chart, ticks_of_few_decades
from unlazy.report.tables import Rows, terminal

PREDICTED = "predicted (ridgeless)"


def table(outcome: ScalingOutcome) -> Rows:
    """A row a learner: its exponent, with and without a log factor, and how many examples it needs
    at each place.
    """
    header = ["learner", "exponent [95 %]", f"with log {outcome.field} [95 %]"]
    header += [f"{outcome.field} = {cell.place:g}" for cell in outcome.rows[0].cells]
    rows = []
    for row in outcome.rows:
        law = row.law
        fits = ["–"] * 2
        if law is not None:
            fits = [
                f"{law.exponent:.2f}{_span(law.interval)}",
                f"{law.with_log:.2f}{_span(law.interval_with_log)}".replace("nan", "–"),
            ]
        rows.append(
            [
                row.learner + (" (one pass)" if row.how == "one pass" else ""),
                *fits,
                *(_cell(cell) for cell in row.cells),
            ]
        )
        if row.predicted:
            told = [
                f"{row.predicted[cell.place]:,.0f}" if cell.place in row.predicted else "–"
                for cell in row.cells
            ]
            rows.append([f"{row.learner}, {PREDICTED}", *["–"] * 2, *told])
    return header, rows


def _cell(cell: Needed) -> str:
    if not cell.whole:
        return not_reached(cell)
    return f"{math.exp(float(np.mean(np.log(np.array(cell.examples, float))))):,.0f}"


def _span(interval: tuple[float, float]) -> str:
    """An interval in brackets; nothing where one seed gives none."""
    return f" [{interval[0]:.2f}, {interval[1]:.2f}]" if all(map(math.isfinite, interval)) else ""


def caption(outcome: ScalingOutcome) -> str:
    """What the numbers of the table are."""
    seeds = f"{len(outcome.seeds)} seed{'s' * (len(outcome.seeds) != 1)}"
    return (
        f"examples to {_error(outcome)} of {outcome.target:g}, geometric mean over {seeds}; at "
        f"most {outcome.most:,}"
    )


def _error(outcome: ScalingOutcome) -> str:
    return "a test error" if outcome.metric.unit == "%" else f"a {outcome.metric.label}"


def scaling_ledger(outcomes: Sequence[ScalingOutcome]) -> Rows:
    """One row a study."""
    rows = []
    for outcome in outcomes:
        places = ", ".join(f"{cell.place:g}" for cell in outcome.rows[0].cells)
        found = ", ".join(
            f"{row.learner} {'not reached' if row.law is None else f'{row.law.exponent:.2f}'}"
            for row in outcome.rows
        )
        rows.append(
            [
                outcome.task,
                f"{outcome.field} = {places}",
                f"{outcome.target:g}",
                str(len(outcome.seeds)),
                found,
            ]
        )
    return ["task", "varied", "target", "seeds", "exponents"], rows


def print_scaling(outcome: ScalingOutcome, console: Console) -> None:
    """The whole outcome in the terminal."""
    console.print()
    console.print(terminal(table(outcome), f"{outcome.task}: {caption(outcome)}"))
    for sentence in outcome.sentences:
        console.print(f"[bold]{escape(sentence)}[/]", highlight=False)


def figure(outcome: ScalingOutcome) -> Figure:
    """Sample sizes with their fitted power laws; dashed: predicted; open, with an arrow: not
    reached by that many examples.
    """
    with matplotlib.rc_context(PRINT_STYLE):
        drawn = Figure(figsize=(6.8, 4.9), layout="constrained")
        axes = drawn.subplots()
        for place, row in enumerate(outcome.rows):
            colour, marker = (
                ARM_COLOURS[place % len(ARM_COLOURS)],
                ARM_MARKERS[place % len(ARM_MARKERS)][0],
            )
            _draw_row(axes, row, _name(row), colour, marker)
        axes.set(
            xscale="log",
            yscale="log",
            xlabel=outcome.field,
            ylabel=f"examples to {_error(outcome)} of {outcome.target:g}",
        )
        ticks = [cell.place for cell in outcome.rows[0].cells]
        axes.set_xticks(
            ticks, labels=[f"{tick:g}" for tick in ticks], rotation=45 if len(ticks) > 8 else 0
        )
        axes.minorticks_off()
        ticks_of_few_decades(axes)
        seeds = f"{len(outcome.seeds)} seed{'s' * (len(outcome.seeds) != 1)}"
        axes.set_title(f"{outcome.task}, {seeds}", loc="left")
        axes.grid(True, color="#DDDDDD", linewidth=0.6)
        axes.set_axisbelow(True)
        drawn.legend(loc="outside lower center", ncols=2, fontsize=8.5)
    return drawn


def _name(row: ScalingRow) -> str:
    if row.law is None:
        return row.learner if len(row.places) else f"{row.learner}: not reached"
    return f"{row.learner}: exponent {row.law.exponent:.2f}{_span(row.law.interval)}"


def _draw_row(axes: Any, row: ScalingRow, name: str, colour: str, marker: str) -> None:
    look: dict[str, Any] = {"linestyle": "", "marker": marker, "color": colour}
    for line in row.samples:
        axes.plot(row.places, line, markersize=3, alpha=0.4, **look)
    if len(row.places):
        axes.plot(row.places, row.means, label=name, markersize=6, **look)
    if row.law is not None:
        axes.plot(row.places, row.law(row.places), color=colour, linewidth=1.4)
    missed = [cell for cell in row.cells if not cell.whole]
    if missed:
        label = None if len(row.places) else name
        x, y = [cell.place for cell in missed], [cell.sizes[-1] for cell in missed]
        axes.plot(
            x,
            y,
            linestyle="",
            marker=marker,
            markersize=6,
            color=colour,
            fillstyle="none",
            label=label,
        )
        for at, n in zip(x, y, strict=True):
            axes.annotate(
                "", (at, n * 1.3), (at, n * 1.04), arrowprops={"arrowstyle": "->", "color": colour}
            )
        axes.set_ylim(top=max(axes.get_ylim()[1], 1.45 * max(y)))
    if row.predicted:
        axes.plot(
            *zip(*sorted(row.predicted.items()), strict=True),
            color=colour,
            linewidth=1,
            linestyle=(0, (5, 3)),
            label=f"{row.learner}, {PREDICTED}",
        )


def scaling_chart(outcome: ScalingOutcome) -> dict[str, Any]:
    """The same for the page. What was not reached is left out here; the sentences tell of it."""
    found = []
    for row in outcome.rows:
        if len(row.places):
            spans = [
                Estimate(float(m), float(min(s)), float(max(s)), len(s))
                for m, s in zip(row.means, row.samples.T, strict=True)
            ]
            found.append(Line(_name(row), tuple(map(float, row.places)), tuple(spans)))
        if row.predicted:
            x = tuple(sorted(row.predicted))
            told = [
                Estimate(row.predicted[place], row.predicted[place], row.predicted[place], 1)
                for place in x
            ]
            found.append(
                Line(f"{row.learner}, {PREDICTED}", tuple(map(float, x)), tuple(told), theory=True)
            )
    plot = Plot(
        outcome.task,
        outcome.field,
        f"examples to {_error(outcome)} of {outcome.target:g}",
        (),
        log_x=True,
        log_y=True,
    )
    return plot_chart(plot, found, ticks=[cell.place for cell in outcome.rows[0].cells])
