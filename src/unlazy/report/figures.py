"""Print figures of plots, made with Matplotlib: PNG, PDF and SVG files in several styles, with
their numbers as CSV.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation, Transform

from unlazy.core.errors import unknown
from unlazy.report.charts import step_ticks
from unlazy.report.files import replacing
from unlazy.report.palette import PRINT_STYLE, Look, looks
from unlazy.report.view import View, ViewPlot, ViewSeries, finite

#: More grid points than these do not all get a tick; panels in a row; width of a digit.
MAX_TICKS, COLUMNS, DIGIT = 9, 3, 0.036
_DASHES: dict[str, Any] = {"solid": "-", "dash": (0, (5, 3)), "dot": ":"}


class PrintStyle(NamedTuple):
    """Width in inches, None for as drawn; relative sizes of letters and lines; columns of the
    legend at most.
    """

    width: float | None
    letters: float
    lines: float
    columns: int


STYLES = {
    "page": PrintStyle(None, 1.0, 1.0, 9),
    "column": PrintStyle(3.3, 0.78, 0.75, 1),
    "wide": PrintStyle(6.8, 0.9, 0.9, 3),
    "slide": PrintStyle(9.0, 1.6, 1.7, 3),
}


def draw(plot: ViewPlot, style: str = "page") -> Figure:
    """Return the figure of a plot."""
    if style not in STYLES:
        raise unknown("style", style, STYLES)
    panels = _panels(plot)
    columns = len(panels) if plot.frames else min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    looked = dict(zip(map(id, plot.everything), looks(plot.everything), strict=True))
    with matplotlib.rc_context(PRINT_STYLE):
        figure = Figure(figsize=_size(plot, columns, rows), layout="constrained")
        grid = figure.subplots(
            rows, columns, squeeze=False, sharex=plot.facets, sharey=plot.facets and plot.steps
        )
        for axes in grid.flat[len(panels) :]:
            axes.remove()
        for place, (axes, (title, series)) in enumerate(zip(grid.flat, panels, strict=False)):
            for each in series:
                _draw(axes, plot, each, looked[id(each)])
            axes.set_title(title, loc="center" if plot.frames else "left")
            _axes(axes, plot, place % columns == 0, place + columns >= len(panels))
        handles = _legend(plot, panels, looked)
        if len(panels) > 1 and not plot.frames:
            figure.suptitle(plot.title, fontsize=11)
        if handles:
            longest = max(len(str(handle.get_label())) for handle in handles)
            many = 3 if longest < 22 else 2 if longest < 42 else 1
            figure.legend(
                handles=handles,
                loc="outside lower center",
                ncols=min(many, len(handles)),
                fontsize=9,
            )
    return _styled(figure, STYLES[style])


def _panels(plot: ViewPlot) -> list[tuple[str, list[ViewSeries]]]:
    """Return the panels with their titles and series."""
    if plot.frames:
        return [
            (f"{frame.title}\n{frame.caption}".replace("; ", "\n"), [*plot.series, *frame.series])
            for frame in plot.frames
            if frame.printed
        ]
    if not plot.facets:
        return [(plot.title, list(plot.series))]
    panels = []
    shared = [each for each in plot.series if each.kind in ("chance", "guide")]
    own = [each for each in plot.series if each.kind not in ("chance", "guide")]
    for family in dict.fromkeys(each.family for each in own):
        mine = [each for each in own if each.family == family]
        last = next((each.text[-1] for each in mine if each.text), "")
        panels.append((f"{family}\n{last}" if last else family, [*shared, *mine]))
    return panels


def _size(plot: ViewPlot, columns: int, rows: int) -> tuple[float, float]:
    if plot.categories:
        return 6.8, 1.3 + 0.3 * len(plot.categories)
    if plot.frames:
        return max(2.2 * columns, 6.0), 3.4
    if plot.bare:
        depth = len({y for series in plot.series for y in series.y})
        widest = max(len(series.x) for series in plot.series)
        return max(5.0, min(14.0, 0.4 * widest)), 0.75 * depth + 1.6
    if plot.facets:
        return max(2.6 * columns, 5.2), 2.3 * rows + 0.8
    return 6.6, 4.6


def _draw(axes: Axes, plot: ViewPlot, series: ViewSeries, look: Look) -> None:
    x, y = np.asarray(series.x, object if plot.categories else float), np.asarray(series.y, float)
    low, high = np.asarray(series.low, float), np.asarray(series.high, float)
    style: dict[str, Any] = {"color": look.color, "alpha": look.opacity}
    if plot.categories:
        order = {name: len(plot.categories) - 1 - i for i, name in enumerate(plot.categories)}
        x, y = y, np.array([order[name] for name in series.x], float)
        bars = {"xerr": np.clip([x - low, high - x], 0, None)} if len(low) else {}
        if series.mark == "bars":
            axes.barh(y, x, height=0.65, ecolor="#333333", label=series.name, **style, **bars)
            return
        if bars:
            axes.errorbar(x, y, linestyle="", elinewidth=1, **style, **bars)
    elif len(low) and series.interval == "band":
        axes.fill_between(x, low, high, color=look.color, alpha=0.18, linewidth=0)
    elif len(low):
        ends = np.clip([y - low, high - y], 0, None)
        style["transform"] = _shifted(axes, plot, series)
        axes.errorbar(x, y, yerr=ends, linestyle="", capsize=2.5, elinewidth=1, **style)
    options = _line(series, look)
    if _has_bars(plot, series):
        options["transform"] = _shifted(axes, plot, series)
        axes.update_datalim(np.column_stack([np.tile(x, 2), [*low, *high]]))
        axes.autoscale()
    axes.plot(x, y, label=series.name, clip_on=not plot.steps, **options)
    if series.text and not plot.facets:
        for at, height, text in zip(x, y, series.text, strict=True):
            box = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"}
            axes.annotate(
                text,
                (at, height),
                (0, 6),
                textcoords="offset points",
                ha="center",
                va="bottom",
                fontsize=8 if len(series.text) < 20 else 6,
                zorder=5,
                bbox=box | {"alpha": 0.8} if plot.bare else None,
            )


def _has_bars(plot: ViewPlot, series: ViewSeries) -> bool:
    """Return whether the intervals of a series are drawn as vertical bars."""
    return bool(series.low) and series.interval == "bars" and not plot.categories


def _shifted(axes: Axes, plot: ViewPlot, series: ViewSeries) -> Transform:
    """Return a transform that moves a series by a few points, so that bars at one x do not overlap;
    its data stay the same.
    """
    others = [each for each in plot.everything if _has_bars(plot, each)]
    place = next(i for i, each in enumerate(others) if each is series)
    points = (place - (len(others) - 1) / 2) * min(3.0, 20 / len(others))
    shift: Transform = ScaledTranslation(points / 72, 0, axes.figure.dpi_scale_trans)
    return axes.transData + shift


def _line(series: ViewSeries, look: Look) -> dict[str, Any]:
    """Return Matplotlib's options of a line."""
    marker = (look.marker or ("", ""))[0]
    found: dict[str, Any] = {
        "color": look.color,
        "alpha": look.opacity,
        "marker": marker,
        "markersize": look.size,
        "linewidth": look.width,
        "linestyle": _DASHES[look.dash] if series.mark == "line" else "",
    }
    if look.edge == "open":
        found["fillstyle"] = "none"
    elif look.edge:
        found |= {"markeredgecolor": look.edge, "markeredgewidth": 0.8 if look.size > 10 else 0.3}
    return found


def _axes(axes: Axes, plot: ViewPlot, first: bool, lowest: bool) -> None:
    if plot.bare:
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        if plot.limits:
            axes.set(xlim=plot.limits, ylim=plot.limits, aspect="equal")
        else:
            axes.margins(x=0.04, y=0.12)
        return
    axes.grid(True, axis="x" if plot.categories else "both", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    if plot.categories:
        axes.set_yticks(range(len(plot.categories)), list(reversed(plot.categories)))
        axes.set(xlabel=plot.y, xscale="log" if plot.log_y else "linear")
        axes.set_ylim(-0.6, len(plot.categories) - 0.3)
        axes.margins(x=0.12)
        return
    axes.tick_params(labelbottom=lowest)
    axes.set(xlabel=plot.x if lowest else "", ylabel=plot.y if first else "")
    places = sorted(set(finite(x for series in plot.series for x in series.x)))
    ticks: Sequence[float] = plot.ticks
    if plot.steps:  # steps 0, 1 and 2, in which features emerge, take a fifth of the axis
        axes.set_xscale("function", functions=(np.log1p, np.expm1))
        ticks = step_ticks(places, digit=DIGIT)
        axes.set_xlim(0, max(*places, 1) * 1.06)
    if plot.log_x:
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
        ticks = ticks or (places if len(places) <= MAX_TICKS else ())
    if len(ticks):
        labels = [f"{tick:,.10g}" for tick in ticks]
        axes.set_xticks(ticks, labels, rotation=45 if len(ticks) > MAX_TICKS else 0)
        axes.xaxis.set_minor_locator(NullLocator())
    if plot.log_y:
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter(NullFormatter())
        bottom, top = axes.get_ylim()
        if top / bottom < 300:
            ticks = LogLocator(subs=(1, 2, 5)).tick_values(bottom, top)
            few = sum(bottom <= tick <= top for tick in ticks) < 2
            axes.yaxis.set_major_locator(MaxNLocator(4) if few else LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    if plot.limits:
        axes.set_ylim(plot.limits)


def _legend(
    plot: ViewPlot, panels: Sequence[tuple[str, Sequence[ViewSeries]]], looked: dict[int, Look]
) -> list[Line2D]:
    """Return one handle per name; panels of groups have their names as titles."""
    handles: dict[str, Line2D] = {}
    for series in panels[0][1] if plot.frames else plot.series:
        titled = plot.facets and series.kind not in ("published", "chance", "guide")
        if series.legend and not titled and series.name not in handles:
            options = _line(series, looked[id(series)])
            options["markersize"] = min(options["markersize"], 12.0)
            if series.mark == "bars":
                options |= {"linewidth": 6, "linestyle": "-", "marker": ""}
            handles[series.name] = Line2D([], [], label=series.name, **options)
    if plot.facets and any(series.low for series in plot.series):
        gray: dict[str, Any] = {"color": "#606060", "alpha": 0.3, "linewidth": 8}
        handles["interval"] = Line2D([], [], label="95 % CI", **gray)
    return list(handles.values()) if len(handles) > 1 or plot.facets else []


def _styled(figure: Figure, look: PrintStyle) -> Figure:
    """Change sizes to those of a style; the data drawn stay the same."""
    if look.width is None:
        return figure
    wide, high = figure.get_size_inches()
    # A narrow figure keeps more of its height: its letters do not shrink as much as its width.
    figure.set_size_inches(look.width, high * max(look.width / wide, 0.62))
    for text in figure.findobj(Text):
        text.set_fontsize(float(text.get_fontsize()) * look.letters)
    for axes in figure.axes:
        axes.tick_params(labelsize=10 * look.letters)
        for line in axes.lines:
            line.set_linewidth(line.get_linewidth() * look.lines)
            line.set_markersize(line.get_markersize() * look.lines)
    for legend in figure.legends:
        legend.set_ncols(min(look.columns, getattr(legend, "_ncols", look.columns)))
    return figure


def numbers_of(plot: ViewPlot) -> Iterator[dict[str, Any]]:
    """Yield the numbers of a plot, one row per point."""
    frames = plot.frames or [None]
    for frame in frames:
        series = plot.series if frame is None else (*plot.series, *frame.series)
        for each in series:
            for place, (x, y) in enumerate(zip(each.x, each.y, strict=True)):
                yield {
                    "panel": frame.title if frame else each.family if plot.facets else plot.title,
                    "series": each.name,
                    "x_label": plot.x,
                    "y_label": plot.y,
                    "x": x,
                    "y": y,
                    "low": each.low[place] if each.low else "",
                    "high": each.high[place] if each.high else "",
                }


def save_plot(plot: ViewPlot, path: Path, style: str = "page") -> Path:
    """Write a figure in the format of its suffix, and its numbers as CSV next to it; return the
    path of the numbers.
    """
    numbers = path.with_suffix(".csv")
    with replacing(numbers) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        names = ["panel", "series", "x_label", "y_label", "x", "y", "low", "high"]
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(numbers_of(plot))
    save_figure(draw(plot, style), path)
    return numbers


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format of its suffix.

    Without date and version, equal records give equal files.
    """
    kind = path.suffix.removeprefix(".")
    undated = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
    with matplotlib.rc_context(PRINT_STYLE), replacing(path) as draft:
        figure.savefig(draft, format=kind, metadata=undated[kind])


def save_plots(view: View, folder: Path, style: str = "page") -> list[Path]:
    """Write all plots of a view as CSV, PNG and PDF, and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for plot in view.all_plots:
        stem = view.slug if plot.slug in view.slug else f"{view.slug}-{plot.slug}"
        paths.append(save_plot(plot, folder / f"{stem}.png", style))
        save_figure(draw(plot, style), folder / f"{stem}.pdf")
        paths += [folder / f"{stem}.png", folder / f"{stem}.pdf"]
    return paths
