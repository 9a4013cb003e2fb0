"""Plots of a claim's records: plots of the claim, learning curves, and neurons of each arm."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from unlazy.core.metrics import ACCURACY, METRICS, Metric
from unlazy.lab.arms import Row
from unlazy.lab.claims import Plot, PlotLine
from unlazy.lab.judging import Verdict
from unlazy.lab.statistics import Estimate, estimate, estimate_of
from unlazy.lab.trials import ExactComputation, Record
from unlazy.report.features import feature_group, told_apart
from unlazy.report.labels import count, interval, number, spread
from unlazy.report.neurons import has_neurons, neuron_plot
from unlazy.report.parities import has_parity, parity_plots
from unlazy.report.tiles import has_tiles, tile_view
from unlazy.report.view import Interval, View, ViewPlot, ViewSeries, finite, slug

#: Accuracy of a guess of signs, in percent.
CHANCE = 50.0
#: Fewer steps make no curve.
MIN_STEPS = 4


def training_plots(verdict: Verdict, records: Mapping[str, Sequence[Record]]) -> Iterator[ViewPlot]:
    """Yield the plots of a claim, then its learning curves."""
    for plot in verdict.claim.plots:
        found = claim_plot(plot, records)
        if found.series:
            yield found
    curves = learning_curves(verdict, records)
    if curves is not None:
        yield curves


def arm_views(verdict: Verdict, records: Mapping[str, Sequence[Record]]) -> Iterator[View]:
    """Yield the neurons of each arm that recorded them, of the first seed."""
    for arm in arm_order(verdict, records):
        if not records[arm]:
            continue
        record, plots = records[arm][0], []
        if has_neurons(record):
            plots.append(neuron_plot(record, f"Neurons of {arm}, seed {record.seed}", slug(arm)))
        if has_parity(record):
            plots += parity_plots(record, arm)
        if plots:
            yield View("", plots=tuple(plots), name=slug(arm))
        if has_tiles(record):
            yield tile_view(arm, record)


def arm_order(verdict: Verdict, records: Mapping[str, Sequence[Record]]) -> list[str]:
    """Return the arms as the paper prints them, then the others."""
    printed = [published.quantity.arm for published in verdict.claim.published]
    return [arm for arm in dict.fromkeys([*printed, *records]) if arm in records]


def claim_plot(plot: Plot, records: Mapping[str, Sequence[Record]]) -> ViewPlot:
    """Return a plot of a claim with its measured values."""
    series = [
        _claim_series(line, records[line.arm], plot.log_y)
        for line in plot.series
        if _has(line, records.get(line.arm, ()))
    ]
    return ViewPlot(
        plot.title,
        plot.x,
        plot.y,
        told_apart(series, _groups(records, plot.series)),
        log_x=plot.log_x,
        log_y=plot.log_y,
        caption=plot.caption,
    )


def _groups(records: Mapping[str, Sequence[Record]], lines: Sequence[PlotLine]) -> dict[str, str]:
    """Return the feature group of each line of a learner."""
    found = {}
    for line in lines:
        learner = records[line.arm][0].trial.get("learner") if records.get(line.arm) else None
        found[line.name] = "" if line.theory else feature_group(learner or {})
    return found


def _has(line: PlotLine, records: Sequence[Record]) -> bool:
    wanted = {line.measure, *([line.x] if line.x else [])}
    return bool(records) and all(wanted <= record.measurements.keys() for record in records)


def _claim_series(line: PlotLine, records: Sequence[Record], log_y: bool) -> ViewSeries:
    def columns(measure: str) -> Iterator[tuple[float, ...]]:
        return zip(*(record.measurements[measure] for record in records), strict=True)

    if line.x is None:
        x = [float(step) for step in records[0].steps]
    else:
        x = [estimate(values).mean for values in columns(line.x)]
    found = [
        estimate_of(line.measure, [_or_nan(v) for v in column]) for column in columns(line.measure)
    ]
    # Zero cannot be drawn on a logarithmic axis.
    kept = [i for i in range(len(x)) if not (log_y and found[i].mean <= 0)]
    order = sorted(kept, key=lambda i: x[i])
    return series_of(
        line.name,
        [x[i] for i in order],
        [found[i] for i in order],
        kind="theory" if line.theory else "measured",
        points=line.points,
    )


def series_of(
    name: str,
    x: Sequence[float],
    estimates: Sequence[Estimate],
    *,
    kind: str = "measured",
    points: bool = False,
    drawn: Interval = "band",
) -> ViewSeries:
    """Return estimates as a series, with their intervals if every one of them has an interval."""
    plain = kind == "theory" or points or not all(math.isfinite(e.half) for e in estimates)
    return ViewSeries(
        name,
        tuple(x),
        tuple(e.mean for e in estimates),
        () if plain else tuple(e.low for e in estimates),
        () if plain else tuple(e.high for e in estimates),
        mark="points" if points else "line",
        kind=kind,
        interval=drawn,
        hover=tuple(f"{number(at)}: {interval(e)}" for at, e in zip(x, estimates, strict=True)),
    )


def learning_curves(verdict: Verdict, records: Mapping[str, Sequence[Record]]) -> ViewPlot | None:
    """Return the test metric by step of all arms with more than three recorded steps, by the metric
    of the first of them; None if there is no such arm.

    Rows and exact computations have no curves of training: their steps are sizes.
    """
    sizes = {
        name
        for name, arm in verdict.claim.arms(verdict.scale).items()
        if isinstance(arm, Row | ExactComputation)
    }
    order = [
        name
        for name in arm_order(verdict, records)
        if name not in sizes and records[name] and len(records[name][0].steps) >= MIN_STEPS
    ]
    metric = next(
        (m for arm in order for m in METRICS.values() if _measured(records[arm], m)), None
    )
    if metric is None:
        return None
    order = [arm for arm in order if _measured(records[arm], metric)]
    last = max(records[arm][0].steps[-1] for arm in order)
    series = [each for arm in order for each in _curve(verdict, arm, records[arm], metric, last)]
    if metric is ACCURACY and any(_has_sign_labels(records[arm][0]) for arm in order):
        chance = (CHANCE, CHANCE)
        series.append(ViewSeries("chance", (0.0, float(last)), chance, kind="chance"))
    values = [v for each in series for v in finite(each.y)]
    low, high = min(values, default=CHANCE), max(values, default=CHANCE)
    percent = metric.unit == "%"
    groups = {arm: feature_group(records[arm][0].trial.get("learner") or {}) for arm in order}
    seeds = count(len(verdict.seeds), "seed")
    return ViewPlot(
        f"{metric.label.removesuffix(' (%)').capitalize()} during training ({verdict.scale} scale, "
        f"{seeds})",
        "gradient step",
        metric.label,
        told_apart(series, groups),
        steps=True,
        facets=True,
        # Wide intervals are cut, so that differences of means stay visible.
        limits=(max(-2.0, low - 8), min(103.0, high + 8)) if percent else (0.0, 1.08 * high or 1.0),
        caption="Mean over seeds with its 95 % CI. Steps are spaced as log(1 + step). Click on a "
        "name to hide or show it.",
        name="accuracy" if metric is ACCURACY else slug(metric.name),
    )


def _curve(
    verdict: Verdict, arm: str, records: Sequence[Record], metric: Metric, last: int
) -> Iterator[ViewSeries]:
    measure, steps = f"test_{metric.name}", records[0].steps
    # Non-finite values leave a gap.
    found = [
        estimate_of(measure, [_or_nan(r.value(measure, step)) for r in records if step in r.steps])
        for step in steps
    ]
    banded = all(math.isfinite(e.half) for e in found)
    yield ViewSeries(
        arm,
        tuple(map(float, steps)),
        tuple(e.mean for e in found),
        tuple(e.low for e in found) if banded else (),
        tuple(e.high for e in found) if banded else (),
        group=arm,
        text=(*[""] * (len(steps) - 1), f"{spread(found[-1], metric.name)} at the last step"),
        hover=tuple(
            f"step {step}: {spread(e, metric.name)} {metric.unit}"
            for step, e in zip(steps, found, strict=True)
        ),
    )
    for p in verdict.claim.published:
        if (p.quantity.arm, p.quantity.measure, p.quantity.step) == (arm, measure, None):
            yield ViewSeries(
                "published final value",
                (0.0, float(last)),
                (p.value, p.value),
                kind="published",
                group=arm,
                hover=(f"{arm}: {p.printed} {metric.unit}",) * 2,
            )
            return


def _measured(arm: Sequence[Record], metric: Metric) -> bool:
    return all(f"test_{metric.name}" in record.measurements for record in arm)


def _has_sign_labels(record: Record) -> bool:
    """Return whether labels are signs; families of several classes state their number."""
    family = record.trial.get("family") or {}
    return not any(name in family for name in ("classes", "outputs"))


def _or_nan(value: float) -> float:
    return value if math.isfinite(value) else math.nan
