"""Comparisons of learners as views."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence

from unlazy.lab.outcomes import BenchmarkResult, Cell, Result
from unlazy.report.labels import count, number, spread
from unlazy.report.progress import duration
from unlazy.report.training import series_of
from unlazy.report.view import View, ViewPlot, ViewTable, provenance, slug


def view(outcome: BenchmarkResult) -> View:
    """Return the view of a comparison: conclusions, table, and learning curves."""
    last = outcome.sizes[-1]
    diverged = sum(result.diverged for result in outcome.results.values())
    others = tuple(("", outcome.conclusion(n)) for n in outcome.sizes[:-1])
    return View(
        title=f"Comparison on {outcome.task}",
        takeaway=outcome.conclusion(last),
        context=f"{count(len(outcome.learners), 'learner')}, {count(len(outcome.seeds), 'seed')}, "
        f"≤ {outcome.budget} settings per learner, selected on "
        f"{100 * outcome.validation_fraction:.0f} % held-out examples; "
        f"{outcome.test:,} test examples",
        lines=others,
        tables=(standings(outcome),),
        plots=(curves(outcome),),
        notes=(f"{diverged} runs diverged (NaN or inf); they count as measured.",)
        if diverged
        else (),
        details=(provenance(outcome.command, outcome.seeds),),
        kind="Comparisons",
        facts={
            "task": outcome.task,
            "n": ", ".join(f"{n:,}" for n in outcome.sizes),
            "learners": str(len(outcome.learners)),
            "seeds": str(len(outcome.seeds)),
            "conclusion": outcome.conclusion(last),
        },
        name=f"{slug(outcome.task)}-contest",
    )


def standings(outcome: BenchmarkResult) -> ViewTable:
    """Return one row per learner, the best at the largest n first: the metric at each n, what was
    chosen at the largest, and the time.
    """
    last = outcome.sizes[-1]
    rows = []
    for learner in outcome.order(last):
        results = [outcome.results[Cell(learner, last, seed)] for seed in outcome.seeds]
        rows.append(
            (
                learner,
                *(spread(outcome.mean(learner, n), outcome.metric.name) for n in outcome.sizes),
                chosen(results),
                str(results[0].tried),
                duration(statistics.mean(result.tuning_seconds for result in results)),
                duration(statistics.mean(result.seconds for result in results)),
            )
        )
    sizes = [f"n = {n:,}" for n in outcome.sizes]
    many = len(outcome.seeds) > 1
    over = f"mean over {len(outcome.seeds)} seeds ± half of the 95 % interval" if many else "1 seed"
    return ViewTable(
        ("learner", *sizes, "chosen", "tried", "tuning", "fit"),
        tuple(rows),
        f"{outcome.metric.label.capitalize()}, {over}; settings chosen at n = {last:,}",
        align="l" + "r" * len(sizes) + "lrrr",
    )


def chosen(results: Sequence[Result]) -> str:
    """Return the settings that tuning chose over seeds: a value, or the range of values."""
    parts = []
    for name in dict.fromkeys(name for result in results for name in result.chosen):
        values = {result.chosen[name] for result in results if name in result.chosen}
        if all(isinstance(value, (int, float)) for value in values):
            low, high = (float(end(values)) for end in (min, max))
            parts.append(f"{name} {number(low)}" + (f"…{number(high)}" if high != low else ""))
    return ", ".join(parts)


def curves(outcome: BenchmarkResult) -> ViewPlot:
    """Return the metric by number of examples; at a single number, by learner."""
    label, order = outcome.metric.label, outcome.order(outcome.sizes[-1])
    if len(outcome.sizes) == 1:
        (n,) = outcome.sizes
        found = [outcome.mean(learner, n) for learner in order]
        series = dataclasses.replace(
            series_of("learners", [0.0] * len(order), found),
            x=tuple(order),
            mark="points",
            text=tuple(number(e.mean, outcome.metric.name) for e in found),
            hover=tuple(spread(e, outcome.metric.name) for e in found),
            legend=False,
        )
        return ViewPlot(
            outcome.task,
            "learner",
            f"{label} from n = {n:,} examples",
            (series,),
            categories=tuple(order),
            name="contest",
        )
    sizes = list(map(float, outcome.sizes))
    return ViewPlot(
        outcome.task,
        "examples n",
        label,
        tuple(
            series_of(
                learner, sizes, [outcome.mean(learner, n) for n in outcome.sizes], drawn="bars"
            )
            for learner in order
        ),
        log_x=True,
        ticks=tuple(sizes),
        caption="Bars: 95 % intervals. Click on a name to hide or show it.",
        name="contest",
    )
