"""Contests for people: the table, the sentence and the picture."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from rich.console import Console
from rich.markup import escape

from unlazy.lab.claims import Plot
from unlazy.lab.outcomes import ContestOutcome, Place, Result
from unlazy.report.palette import ARM_COLOURS, ARM_MARKERS, PRINT_STYLE
from unlazy.report.plots import Line, bar_chart, plot_chart
from unlazy.report.progress import duration
from unlazy.report.tables import Rows, number, spread, terminal


def standings(outcome: ContestOutcome) -> Rows:
    """A row a learner, the best at the largest n first: accuracy at each n, what was chosen there,
    and what it cost.
    """
    last = outcome.sizes[-1]
    order = outcome.order(last)
    header = ["learner", *(f"n = {n:,}" for n in outcome.sizes), "chosen", "tried", "tuning", "fit"]
    rows = []
    for learner in order:
        results = [outcome.results[Place(learner, last, seed)] for seed in outcome.seeds]
        tuning = statistics.mean(result.tuning_seconds for result in results)
        fit = statistics.mean(result.seconds for result in results)
        cells = [spread(outcome.mean(learner, n), outcome.metric.name) for n in outcome.sizes]
        rows.append(
            [
                learner,
                *cells,
                chosen(results),
                str(results[0].tried),
                duration(tuning),
                duration(fit),
            ]
        )
    return header, rows


def chosen(results: Sequence[Result]) -> str:
    """The settings that tuning chose over seeds: a value, or the range of values."""
    names = dict.fromkeys(name for result in results for name in result.chosen)
    parts = []
    for name in names:
        values = sorted(
            {result.chosen[name] for result in results if name in result.chosen}, key=str
        )
        if all(isinstance(value, (int, float)) for value in values):
            low, high = min(values), max(values)
            parts.append(
                f"{name} {number(float(low))}" + (f"…{number(float(high))}" if high != low else "")
            )
    return ", ".join(parts)


def caption(outcome: ContestOutcome) -> str:
    """What the numbers of the table are."""
    seeds = f"{len(outcome.seeds)} seed{'s' * (len(outcome.seeds) != 1)}"
    over = (
        f"mean over {seeds} ± half of the 95 % interval" if len(outcome.seeds) > 1 else "one seed"
    )
    return f"{outcome.metric.label}, {over}; settings at n = {outcome.sizes[-1]:,}"


def contests_ledger(outcomes: Sequence[ContestOutcome]) -> Rows:
    """One row a contest."""
    rows = []
    for outcome in outcomes:
        sizes = ", ".join(f"{n:,}" for n in outcome.sizes)
        rows.append(
            [
                outcome.task,
                sizes,
                str(len(outcome.learners)),
                str(len(outcome.seeds)),
                outcome.conclusion(outcome.sizes[-1]),
            ]
        )
    return ["task", "n", "learners", "seeds", "conclusion"], rows


def print_outcome(outcome: ContestOutcome, console: Console) -> None:
    """The whole outcome in the terminal."""
    console.print()
    console.print(terminal(standings(outcome), f"{outcome.task}: {caption(outcome)}"))
    diverged = sum(result.diverged for result in outcome.results.values())
    if diverged:
        console.print(
            f"[yellow]Note:[/] {diverged} runs left the finite numbers; they count with what "
            "they measured.",
            highlight=False,
        )
    for n in outcome.sizes:
        console.print(f"[bold]{escape(outcome.conclusion(n))}[/]", highlight=False)


def learning_curves(outcome: ContestOutcome) -> Figure:
    """The metric against the number of examples; at a single number, bars."""
    if len(outcome.sizes) == 1:
        return _bars(outcome)
    order = [row[0] for row in standings(outcome)[1]]
    with matplotlib.rc_context(PRINT_STYLE):
        figure = Figure(figsize=(6.4, 4.6), layout="constrained")
        axes = figure.subplots()
        for place, learner in enumerate(order):
            found = [outcome.mean(learner, n) for n in outcome.sizes]
            halves = [e.half if e.half < float("inf") else 0.0 for e in found]
            # Side by side, so that intervals do not cover one another.
            shift = 1 + 0.02 * (place - (len(order) - 1) / 2)
            colour, marker = (
                ARM_COLOURS[place % len(ARM_COLOURS)],
                ARM_MARKERS[place % len(ARM_MARKERS)][0],
            )
            axes.errorbar(
                [n * shift for n in outcome.sizes],
                [e.mean for e in found],
                yerr=halves,
                label=learner,
                color=colour,
                marker=marker,
                markersize=4.5,
                linewidth=1.5,
                capsize=2.5,
                linestyle="-" if place < len(ARM_COLOURS) else "--",
            )
        axes.set_xscale("log")
        axes.set_xticks(outcome.sizes, labels=[f"{n:,}" for n in outcome.sizes])
        axes.minorticks_off()
        axes.set(xlabel="examples n", ylabel=outcome.metric.label)
        axes.set_title(outcome.task, loc="left")
        axes.grid(True, axis="y", color="#DDDDDD", linewidth=0.6)
        axes.set_axisbelow(True)
        figure.legend(loc="outside lower center", ncols=3, fontsize=9)
    return figure


def _bars(outcome: ContestOutcome) -> Figure:
    (n,) = outcome.sizes
    order = [row[0] for row in standings(outcome)[1]][::-1]
    found = [outcome.mean(learner, n) for learner in order]
    with matplotlib.rc_context(PRINT_STYLE):
        figure = Figure(figsize=(6.4, 0.34 * len(order) + 1.3), layout="constrained")
        axes = figure.subplots()
        halves = [e.half if e.half < float("inf") else 0.0 for e in found]
        axes.barh(
            order,
            [e.mean for e in found],
            xerr=halves,
            color="#56B4E9",
            ecolor="#333333",
            height=0.65,
        )
        for place, e in enumerate(found):
            axes.annotate(
                number(e.mean, outcome.metric.name),
                (e.mean + halves[place], place),
                (4, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
            )
        if outcome.metric.unit == "%":
            axes.set(xlim=(max(0.0, min([50.0, *(e.mean for e in found)]) - 3), 106))
        axes.set(xlabel=f"{outcome.metric.label} from n = {n:,} examples")
        axes.set_title(outcome.task, loc="left")
    return figure


def contest_chart(outcome: ContestOutcome) -> dict[str, Any]:
    """The same for the page."""
    order = [row[0] for row in standings(outcome)[1]]
    if len(outcome.sizes) == 1:
        (n,) = outcome.sizes
        label = f"{outcome.metric.label} from n = {n:,} examples"
        return bar_chart(
            {learner: outcome.mean(learner, n) for learner in order}, label, outcome.metric.name
        )
    found = [
        Line(
            learner,
            tuple(map(float, outcome.sizes)),
            tuple(outcome.mean(learner, n) for n in outcome.sizes),
        )
        for learner in order
    ]
    plot = Plot(outcome.task, "examples n", outcome.metric.label, (), log_x=True)
    return plot_chart(plot, found, ticks=outcome.sizes)
