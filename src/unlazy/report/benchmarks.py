"""Comparisons of learners as views."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence

from unlazy.lab.outcomes import BenchmarkResult, Cell, Result
from unlazy.report.features import GROUPS, group_of, told_apart
from unlazy.report.labels import CI, count, number, spread, task_name
from unlazy.report.training import series_of
from unlazy.report.view import View, ViewPlot, ViewSeries, ViewTable, provenance, slug

#: Hyperparameters in words.
SETTINGS = {
    "rate w": "step size (weights)",
    "rate b": "step size (biases)",
    "rate a": "step size (output)",
    "decay": "weight decay",
    "w_variance": "weight variance",
    "b_variance": "bias variance",
    "penalty": "ridge",
}


def view(outcome: BenchmarkResult) -> View:
    """Return the view of a comparison: conclusions, table, and learning curves."""
    last = outcome.sizes[-1]
    diverged = sum(result.diverged for result in outcome.results.values())
    counted = (
        "non-finite outputs count as wrong labels"
        if outcome.metric.higher
        else "a learner with a non-finite test error ranks last"
    )
    others = tuple(("", outcome.conclusion(n)) for n in outcome.sizes[:-1])
    return View(
        title=f"Comparison on {outcome.task}",
        heading=f"Comparison: {task_name(outcome.task)}",
        takeaway=outcome.conclusion(last),
        context=f"{count(len(outcome.learners), 'learner')}, {count(len(outcome.seeds), 'seed')}, "
        f"{outcome.test:,} test examples · tuning: at most {outcome.budget} configurations per "
        f"learner, compared on {100 * outcome.validation_fraction:.0f} % of the training examples "
        f"· "
        "differences: ± half of the 95 % CI, Bonferroni-corrected",
        lines=others,
        tables=(standings(outcome),),
        plots=(curves(outcome),),
        notes=(f"{count(diverged, 'run')} diverged (NaN or inf); {counted}.",) if diverged else (),
        details=(provenance(outcome.command, outcome.seeds),),
        kind="Comparisons",
        facts={
            "task": outcome.task,
            "n": ", ".join(f"{n:,}" for n in outcome.sizes),
            "learners": str(len(outcome.learners)),
            "seeds": str(len(outcome.seeds)),
            "conclusion": outcome.conclusion(last),
        },
        name=f"{slug(outcome.task)}-benchmark",
    )


def standings(outcome: BenchmarkResult) -> ViewTable:
    """Return one row per learner, the best at the largest n first.

    Columns: features, metric at each n, times and the selected configuration at the largest n.
    """
    last = outcome.sizes[-1]
    groups = {learner: group_of(learner) for learner in outcome.learners}
    told = any(groups.values())
    rows = []
    for learner in outcome.order(last):
        results = [outcome.results[Cell(learner, last, seed)] for seed in outcome.seeds]
        rows.append(
            (
                learner,
                *([groups[learner] or "–"] if told else []),
                *(spread(outcome.mean(learner, n), outcome.metric.name) for n in outcome.sizes),
                str(results[0].tried),
                _seconds([result.tuning_seconds for result in results]),
                _seconds([result.seconds for result in results]),
                chosen(results),
            )
        )
    sizes = [f"n = {n:,}" for n in outcome.sizes]
    many = len(outcome.seeds) > 1
    over = f"mean over {len(outcome.seeds)} seeds {CI}" if many else "1 seed"
    features = ["features"] if told else []
    return ViewTable(
        ("learner", *features, *sizes, "tried", "tuning (s/seed)", "fit (s/seed)", "chosen"),
        tuple(rows),
        f"{outcome.metric.label.capitalize()}, {over}. Last columns at n = {last:,}: "
        "number of configurations tried, seconds, and the chosen configuration (a…b: range over "
        "seeds)",
        align="l" * (1 + told) + "r" * len(sizes) + "rrrl",
    )


def _seconds(values: Sequence[float]) -> str:
    return f"{statistics.mean(values):,.1f}"


def chosen(results: Sequence[Result]) -> str:
    """Return the configuration selected by tuning, with their range over seeds."""
    parts = []
    for name in dict.fromkeys(name for result in results for name in result.chosen):
        values = {result.chosen[name] for result in results if name in result.chosen}
        if all(isinstance(value, (int, float)) for value in values):
            low, high = (float(end(values)) for end in (min, max))
            label, ends = SETTINGS.get(name, name.replace("_", " ")), (f"{low:.3g}", f"{high:.3g}")
            parts.append(f"{label} {'…'.join(dict.fromkeys(ends))}")
    return ", ".join(parts)


def curves(outcome: BenchmarkResult) -> ViewPlot:
    """Return the metric by number of examples; at a single number, by learner."""
    label, order = outcome.metric.label, outcome.order(outcome.sizes[-1])
    title = label.removesuffix(" (%)").capitalize()
    group = {learner: group_of(learner) for learner in order}
    groups = {each: [name for name in order if group[name] == each] for each in group.values()}
    if len(outcome.sizes) == 1:
        (n,) = outcome.sizes
        return ViewPlot(
            f"{title} from n = {n:,} training examples",
            "learner",
            label,
            tuple(_points(outcome, n, group, names) for group, names in groups.items()),
            categories=tuple(order),
            caption="Lines: 95 % CI.",
            name="benchmark",
        )
    sizes = list(map(float, outcome.sizes))
    return ViewPlot(
        f"{title} by number of training examples",
        "training examples n",
        label,
        told_apart(
            [
                series_of(
                    learner, sizes, [outcome.mean(learner, n) for n in outcome.sizes], drawn="bars"
                )
                for learner in order
            ],
            group,
        ),
        log_x=True,
        ticks=tuple(sizes),
        caption="Bars: 95 % CI. Click on a name to hide or show it.",
        name="benchmark",
    )


def _points(outcome: BenchmarkResult, n: int, group: str, names: Sequence[str]) -> ViewSeries:
    """Return the means of the learners of one feature group at a single n."""
    found = [outcome.mean(name, n) for name in names]
    return dataclasses.replace(
        series_of(GROUPS.get(group, "learners"), [0.0] * len(names), found),
        x=tuple(names),
        mark="points",
        kind=group or "measured",
        text=tuple(number(e.mean, outcome.metric.name) for e in found),
        hover=tuple(spread(e, outcome.metric.name) for e in found),
        legend=bool(group),
    )
