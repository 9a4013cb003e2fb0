"""Figures for print, made with Matplotlib. The palette and the curves are shared with the page."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from unlazy.core.errors import require
from unlazy.core.metrics import ACCURACY, METRICS, Metric
from unlazy.lab.arms import Row
from unlazy.lab.exponents import ScalingOutcome
from unlazy.lab.judging import Verdict
from unlazy.lab.outcomes import ContestOutcome
from unlazy.lab.statistics import Estimate, estimate
from unlazy.lab.trials import Instrument, Record
from unlazy.report.neurons import SHORT, Frame, frames, has_neurons, side_names, sides, star_names
from unlazy.report.palette import ARM_COLOURS, ARM_MARKERS, PRINT_STYLE
from unlazy.report.parities import has_parity, parity_figure
from unlazy.report.plots import draw, lines
from unlazy.report.prints import save_all

#: Red and orange as in the paper, in shades that also differ in lightness; grey for neurons near
#: neither star.
SIDE_COLOURS = {1: "#C8102E", -1: "#F0A30A", 0: "#808080"}
SIDE_MARKERS = {1: ("o", "circle"), -1: ("D", "diamond"), 0: ("x", "x-thin-open")}
#: Unequal, because a mirrored initialisation puts two neurons at each place, and both should be
#: seen.
SIDE_SIZES = {1: 3.4, -1: 1.7, 0: 3.0}

#: Accuracy of a guess of signs, in percent.
CHANCE = 50.0
#: Fewer steps make no curve.
LEAST_STEPS = 4


@dataclasses.dataclass(frozen=True)
class Curve:
    """The test metric of an arm against the step, as mean over seeds with its interval; `published`
    is the paper's last value, if any.

    `chance` is what guessing gives, where that is known: for the accuracy of signs.
    """

    arm: str
    colour: str
    marker: tuple[str, str]
    steps: tuple[int, ...]
    estimates: tuple[Estimate, ...]
    published: float | None
    metric: Metric
    chance: float | None

    @property
    def band(self) -> tuple[list[float], list[float]] | None:
        """Lower and upper edge of the interval, cut to what the metric can be; None where one seed
        gives no interval.
        """
        if not all(math.isfinite(e.half) for e in self.estimates):
            return None
        most = 100.0 if self.metric.unit == "%" else math.inf
        return [max(e.low, 0.0) for e in self.estimates], [
            min(e.high, most) for e in self.estimates
        ]


def arm_order(verdict: Verdict, records: Mapping[str, Sequence[Record]]) -> list[str]:
    """The arms as the paper prints them, then those it does not print."""
    printed = [published.quantity.arm for published in verdict.claim.published]
    return [arm for arm in dict.fromkeys([*printed, *records]) if arm in records]


def curves(verdict: Verdict, records: Mapping[str, Sequence[Record]]) -> list[Curve]:
    """The curves of all arms that have more than three recorded steps, by the metric that the first
    of them was measured with.

    What a row or an instrument measures at its places, such as dimensions, is no curve of training:
    the claim's own plots draw it.
    """
    places = {
        name
        for name, arm in verdict.claim.study(verdict.scale).items()
        if isinstance(arm, Row | Instrument)
    }
    order = [name for name in arm_order(verdict, records) if name not in places and records[name]]
    order = [name for name in order if len(records[name][0].steps) >= LEAST_STEPS]
    metric = next(
        (each for arm in order for each in METRICS.values() if _has(records[arm], each)), None
    )
    if metric is None:
        return []
    measure = f"test_{metric.name}"
    published = {
        p.quantity.arm: p.value
        for p in verdict.claim.published
        if p.quantity.measure == measure and p.quantity.step is None
    }
    found = []
    for place, arm in enumerate(arm for arm in order if _has(records[arm], metric)):
        steps = records[arm][0].steps
        # A value that is not finite would spoil the whole mean with a warning; as NaN it leaves a
        # gap.
        values = [
            [
                _or_nan(record.value(measure, step))
                for record in records[arm]
                if step in record.steps
            ]
            for step in steps
        ]
        colour, marker = (
            ARM_COLOURS[place % len(ARM_COLOURS)],
            ARM_MARKERS[place % len(ARM_MARKERS)],
        )
        chance = CHANCE if metric is ACCURACY and _signs(records[arm][0]) else None
        found.append(
            Curve(
                arm,
                colour,
                marker,
                steps,
                tuple(map(estimate, values)),
                published.get(arm),
                metric,
                chance,
            )
        )
    return found


def _has(arm: Sequence[Record], metric: Metric) -> bool:
    return all(f"test_{metric.name}" in record.measurements for record in arm)


def _signs(record: Record) -> bool:
    """Whether labels are signs: a family of several classes says how many they are."""
    family = record.trial.get("family") or {}
    return not any(name in family for name in ("classes", "outputs"))


def _or_nan(value: float) -> float:
    return value if math.isfinite(value) else math.nan


def step_ticks(steps: Iterable[int], digit: float) -> list[int]:
    """Steps whose labels have room on an axis of log(1 + step), the last always; `digit` is a
    digit's width as a share of the axis.
    """
    steps = sorted(set(steps))
    length = max(math.log1p(steps[-1]), SHORT)
    ticks = [steps[-1]]
    for step in steps[:-1]:
        gaps = (
            (abs(math.log1p(step) - math.log1p(tick)) / length, len(f"{step}{tick}") / 2)
            for tick in ticks
        )
        if all(gap >= digit * (digits + 0.6) for gap, digits in gaps):
            ticks.append(step)
    return sorted(ticks)


def accuracy_curves(verdict: Verdict, records: Mapping[str, Sequence[Record]]) -> Figure:
    """The test metric against the step (Figure 5 of Shi et al.), one panel an arm: intervals of few
    seeds would cover one another.
    """
    lines = curves(verdict, records)
    require(
        bool(lines),
        f"No arm of {verdict.claim.id} has more than three recorded steps, so there is no curve "
        "to draw.",
    )
    columns = min(3, len(lines))
    rows = -(-len(lines) // columns)
    with matplotlib.rc_context(PRINT_STYLE):
        figure = Figure(figsize=(max(2.6 * columns, 5.2), 2.3 * rows + 0.8), layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for axes in panels.flat[len(lines) :]:
            axes.remove()
        for place, (axes, line) in enumerate(zip(panels.flat, lines, strict=False)):
            _draw_curve(axes, line)
            # Panels above a gap in the last row are the lowest of their column.
            lowest = place + columns >= len(lines)
            axes.tick_params(labelbottom=lowest)
            axes.set(
                xlabel="gradient step" if lowest else "",
                ylabel="" if place % columns else lines[0].metric.label,
            )
        steps = {step for line in lines for step in line.steps}
        ticks = step_ticks(steps, digit=0.036)
        panels[0, 0].set_xticks(ticks, labels=[str(tick) for tick in ticks])
        panels[0, 0].set(xlim=(0, max(*steps, 1) * 1.06), ylim=_limits(lines))
        seeds = len(verdict.seeds)
        figure.suptitle(
            f"{verdict.claim.id}, {verdict.scale} scale, {seeds} seed{'s' * (seeds != 1)}",
            fontsize=11,
        )
        figure.legend(
            handles=_curve_legend(lines),
            loc="outside lower center",
            ncols=4 if columns == 3 else 2,
            fontsize=9,
        )
    return figure


def _draw_curve(axes: Axes, line: Curve) -> None:
    # log(1 + step): steps 0, 1 and 2, in which features emerge, take a fifth of the axis.
    axes.set_xscale("function", functions=(np.log1p, np.expm1))
    if line.chance is not None:
        axes.axhline(line.chance, color="#808080", linewidth=0.8, linestyle=":")
    if line.band:
        axes.fill_between(line.steps, *line.band, color=line.colour, alpha=0.2, linewidth=0)
    if line.published is not None:
        axes.axhline(line.published, color="black", linewidth=0.8, linestyle=(0, (6, 4)))
    axes.plot(
        line.steps,
        [e.mean for e in line.estimates],
        color=line.colour,
        marker=line.marker[0],
        markersize=3.5,
        linewidth=1.6,
        clip_on=False,
    )
    axes.minorticks_off()
    last = line.estimates[-1]
    digits = ".1f" if line.metric.unit == "%" else ".3g"
    spread = f" ± {last.half:{digits}}" if math.isfinite(last.half) else ""
    axes.set_title(f"{line.arm}\n{last.mean:{digits}}{spread} at the end", loc="left")


def _limits(lines: Sequence[Curve]) -> tuple[float, float]:
    """Room for the means and the published values; wide intervals are cut rather than that they
    press the means together.
    """
    values = [e.mean for line in lines for e in line.estimates if math.isfinite(e.mean)]
    values += [each for line in lines for each in (line.published, line.chance) if each is not None]
    if lines[0].metric.unit != "%":
        return 0.0, 1.08 * max(values, default=1.0)
    return max(-2.0, min(values, default=CHANCE) - 8), min(103.0, max(values, default=CHANCE) + 8)


def _curve_legend(lines: Sequence[Curve]) -> list[Line2D]:
    grey: dict[str, Any] = {"color": "#606060"}
    handles = [Line2D([], [], linewidth=1.6, label="mean over seeds", **grey)]
    if any(line.band for line in lines):
        handles.append(Line2D([], [], alpha=0.3, linewidth=8, label="95 % interval", **grey))
    if any(line.published is not None for line in lines):
        handles.append(
            Line2D(
                [],
                [],
                color="black",
                linewidth=0.8,
                linestyle=(0, (6, 3)),
                label="published final value",
            )
        )
    if any(line.chance is not None for line in lines):
        handles.append(Line2D([], [], linewidth=0.8, linestyle=":", label="chance", **grey))
    return handles


def neuron_map(record: Record, steps: Sequence[int] | None = None) -> Figure:
    """The neurons around the hidden direction (Figure 6 of Shi et al.), one panel a step: by
    default 0, 1, 2 and the last.
    """
    require(
        has_neurons(record),
        "This record holds no neurons: its trial had no Silhouette probe, or it was read "
        "without arrays.",
    )
    wanted = dict.fromkeys([*record.steps[:3], record.steps[-1]] if steps is None else steps)
    absent = [step for step in wanted if step not in record.steps]
    require(
        not absent,
        f"Step {absent[:1]} is not recorded. Recorded: {', '.join(map(str, record.steps))}.",
    )
    shown, side = [frame for frame in frames(record) if frame.step in wanted], sides(record)
    with matplotlib.rc_context(PRINT_STYLE):
        figure = Figure(figsize=(max(2.2 * len(shown), 6.0), 3.4), layout="constrained")
        panels = figure.subplots(1, len(shown), squeeze=False)[0]
        for axes, frame in zip(panels, shown, strict=True):
            _draw(axes, frame, side)
        figure.legend(
            handles=_neuron_legend(record), loc="outside lower center", ncols=2, fontsize=9
        )
    return figure


def _draw(axes: Axes, frame: Frame, side: np.ndarray) -> None:
    angle = np.linspace(0, 2 * np.pi, 200)
    # Neurons that lie in the plane altogether are on this circle; the farther inside, the less of
    # them is seen.
    axes.plot(np.cos(angle), np.sin(angle), color="#C0C0C0", linewidth=0.7, zorder=0)
    for sign, stars in frame.stars.items():
        look: dict[str, Any] = {
            "s": star_size(frame) ** 2,
            "linewidths": 0.8 if star_size(frame) > 15 else 0.4,
        }
        axes.scatter(
            stars[:, 0],
            stars[:, 1],
            marker="*",
            color=star_colour(sign, frame.stars),
            edgecolors="black",
            zorder=1,
            **look,
        )
    for sign in (0, 1, -1):
        chosen = frame.points[(side == sign) & np.isfinite(frame.points[:, 0])]
        edge: dict[str, Any] = {} if sign == 0 else {"edgecolors": "white", "linewidths": 0.3}
        look = {
            "marker": SIDE_MARKERS[sign][0],
            "s": SIDE_SIZES[sign] ** 2,
            "color": SIDE_COLOURS[sign],
        }
        axes.scatter(chosen[:, 0], chosen[:, 1], zorder=2, **look, **edge)
    stage = "initialisation" if frame.step == 0 else f"step {frame.step}"
    axes.set_title(f"{stage}\n{_short(frame)}")
    axes.set(xlim=(-1.2, 1.2), ylim=(-1.05, 1.05), xticks=[], yticks=[], aspect="equal")
    axes.spines[:].set_visible(False)


def _short(frame: Frame) -> str:
    """A caption narrow enough for a panel."""
    cosine = f"max cosine {frame.cosine:.3f}" if math.isfinite(frame.cosine) else "no finite cosine"
    return cosine + (f"\n{frame.left_out} neurons not finite" if frame.left_out else "")


def star_colour(sign: int, stars: Collection[int]) -> str:
    """That of the neurons on its side; where there are no opposites, the other one, on which those
    neurons are seen.
    """
    return SIDE_COLOURS[sign if -1 in stars else -1]


def star_size(frame: Frame) -> float:
    """Size of a star in points: smaller where there are many."""
    return 20.5 if len(frame.stars) > 1 else max(7.0, 40 / math.sqrt(len(frame.stars[1])))


def _neuron_legend(record: Record) -> list[Line2D]:
    side, names = sides(record), star_names(record)
    stars = [
        Line2D(
            [],
            [],
            linestyle="",
            marker="*",
            markersize=13,
            color=star_colour(sign, names),
            markeredgecolor="black",
            label=name,
        )
        for sign, name in names.items()
    ]
    dots = []
    for sign, name in side_names(record).items():
        if (side == sign).any():
            look: dict[str, Any] = {
                "marker": SIDE_MARKERS[sign][0],
                "markersize": SIDE_SIZES[sign],
                "color": SIDE_COLOURS[sign],
            }
            dots.append(
                Line2D([], [], linestyle="", label=f"{name} ({(side == sign).sum()})", **look)
            )
    return stars + dots


def slug(text: str) -> str:
    """A name of letters, digits and hyphens, for files and anchors."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def save_figures(
    verdict: Verdict,
    records: Mapping[str, Sequence[Record]],
    folder: Path | str,
    style: str = "page",
) -> list[Path]:
    """Write all figures that the records allow, each as PNG and PDF with its numbers, and name the
    files; maps are of the first seed.
    """
    folder = Path(folder)
    name = f"{slug(verdict.claim.id)}-{verdict.scale}"
    made: dict[str, Figure] = {}
    trained = curves(verdict, records)
    if trained:
        made[
            f"{name}-{'accuracy' if trained[0].metric is ACCURACY else slug(trained[0].metric.name)}"
        ] = accuracy_curves(verdict, records)
    for plot in verdict.claim.plots:
        found = lines(plot, records)
        if found:
            made[f"{name}-{slug(plot.title)}"] = draw(plot, found)
    for arm in arm_order(verdict, records):
        if records[arm] and has_neurons(records[arm][0]):
            made[f"{name}-neurons-{slug(arm)}"] = neuron_map(records[arm][0])
        if records[arm] and has_parity(records[arm][0]):
            made[f"{name}-parity-{slug(arm)}"] = parity_figure(records[arm][0])
    return save_all(made, folder, style)


def save_outcomes(
    outcomes: Sequence[ContestOutcome | ScalingOutcome], folder: Path, style: str = "page"
) -> list[Path]:
    """Write the figures of contests and scaling studies, each as PNG and PDF with its numbers."""
    made: dict[str, Figure] = {}
    for outcome in outcomes:
        kind = "scaling" if isinstance(outcome, ScalingOutcome) else "contest"
        count = sum(stem.startswith(f"{slug(outcome.task)}-{kind}") for stem in made)
        made[f"{slug(outcome.task)}-{kind}" + (f"-{count + 1}" if count else "")] = outcome.figure()
    return save_all(made, folder, style)
