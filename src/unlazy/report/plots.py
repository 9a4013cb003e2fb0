"""Plots: what a claim or a contest wants to see drawn, resolved from records, for print and for the
page.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from unlazy.lab.claims import Plot, PlotLine
from unlazy.lab.statistics import Estimate, estimate, estimate_of
from unlazy.lab.trials import Record
from unlazy.report.palette import ARM_COLOURS, ARM_MARKERS, PRINT_STYLE, translucent
from unlazy.report.tables import number, spread

#: More places than these do not all get a tick.
MOST_TICKS = 9


@dataclasses.dataclass(frozen=True)
class Line:
    """A line to draw: places on the axis, and an estimate at each."""

    name: str
    x: tuple[float, ...]
    estimates: tuple[Estimate, ...]
    theory: bool = False
    points: bool = False

    @property
    def band(self) -> tuple[list[float], list[float]] | None:
        """Lower and upper edge of the interval; None where one seed gives none."""
        if self.theory or self.points or not all(math.isfinite(e.half) for e in self.estimates):
            return None
        return [e.low for e in self.estimates], [e.high for e in self.estimates]


def lines(plot: Plot, records: Mapping[str, Sequence[Record]]) -> list[Line]:
    """The lines of a plot. What was not measured is left out."""
    found = [
        _line(series, records[series.arm])
        for series in plot.series
        if _has(series, records.get(series.arm, ()))
    ]
    return [_above_zero(line) for line in found] if plot.log_y else found


def _above_zero(line: Line) -> Line:
    """A logarithmic axis has no place for zero, as a distance from the start is at the start."""
    kept = [i for i, e in enumerate(line.estimates) if not e.mean <= 0]
    return dataclasses.replace(
        line, x=tuple(line.x[i] for i in kept), estimates=tuple(line.estimates[i] for i in kept)
    )


def _has(series: PlotLine, records: Sequence[Record]) -> bool:
    wanted = {series.measure, *([series.x] if series.x else [])}
    return bool(records) and all(wanted <= record.measurements.keys() for record in records)


def _line(series: PlotLine, records: Sequence[Record]) -> Line:
    if series.x is None:
        x = [float(step) for step in records[0].steps]
    else:
        x = [
            estimate(values).mean
            for values in zip(*(record.measurements[series.x] for record in records), strict=True)
        ]
    values = zip(*(record.measurements[series.measure] for record in records), strict=True)
    estimates = [
        estimate_of(series.measure, [v if math.isfinite(v) else math.nan for v in column])
        for column in values
    ]
    order = sorted(range(len(x)), key=lambda i: x[i])
    return Line(
        series.name,
        tuple(x[i] for i in order),
        tuple(estimates[i] for i in order),
        series.theory,
        series.points,
    )


def _looks(found: Sequence[Line]) -> list[tuple[str, tuple[str, str]]]:
    """Colour and mark of each line."""
    return [
        (ARM_COLOURS[i % len(ARM_COLOURS)], ARM_MARKERS[i % len(ARM_MARKERS)])
        for i in range(len(found))
    ]


def draw(plot: Plot, found: Sequence[Line]) -> Figure:
    """The plot for print."""
    with matplotlib.rc_context(PRINT_STYLE):
        figure = Figure(figsize=(6.4, 4.2), layout="constrained")
        axes = figure.subplots()
        for line, (colour, marker) in zip(found, _looks(found), strict=True):
            if line.band:
                axes.fill_between(line.x, *line.band, color=colour, alpha=0.18, linewidth=0)
            look: dict[str, Any] = (
                {"linestyle": (0, (5, 3)), "linewidth": 1.1}
                if line.theory
                else {"marker": marker[0], "markersize": 4.5, "linewidth": 1.7}
            )
            if line.points:
                look |= {"linestyle": "", "markersize": 6}
            axes.plot(
                line.x, [e.mean for e in line.estimates], color=colour, label=line.name, **look
            )
        if plot.log_x:
            axes.set_xscale("log")
            _plain_ticks(axes, sorted({x for line in found for x in line.x}))
        if plot.log_y:
            axes.set_yscale("log")
            ticks_of_few_decades(axes)
        axes.set(xlabel=plot.x, ylabel=plot.y)
        axes.set_title(plot.title, loc="left")
        axes.grid(True, color="#DDDDDD", linewidth=0.6)
        axes.set_axisbelow(True)
        longest = max((len(line.name) for line in found), default=0)
        columns = 3 if longest < 22 else 2 if longest < 40 else 1
        figure.legend(
            loc="outside lower center", ncols=min(columns, max(1, len(found))), fontsize=9
        )
    return figure


def ticks_of_few_decades(axes: Axes) -> None:
    """An axis over few powers of ten also gets ticks at 2 and 5 times them, and plain numbers."""
    axes.yaxis.set_minor_formatter(NullFormatter())
    low, high = axes.get_ylim()
    if high / low < 300:
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def _plain_ticks(axes: Axes, places: Sequence[float]) -> None:
    """Ticks of a logarithmic axis at the measured places, as plain numbers; where they are many, at
    powers of ten.
    """
    axes.xaxis.set_minor_formatter(NullFormatter())
    if len(places) <= MOST_TICKS:
        axes.set_xticks(places, [f"{place:,.10g}" for place in places])
        axes.xaxis.set_minor_locator(NullLocator())


def plot_chart(plot: Plot, found: Sequence[Line], *, ticks: Sequence[float] = ()) -> dict[str, Any]:
    """Plotly's data and layout for the page; `ticks` are places of the axis that are marked."""
    data: list[dict[str, Any]] = []
    for line, (colour, marker) in zip(found, _looks(found), strict=True):
        if line.band:
            low, high = line.band
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "x": _plain([*line.x, *reversed(line.x)]),
                    "y": _plain([*low, *reversed(high)]),
                    "fill": "toself",
                    "fillcolor": translucent(colour),
                    "line": {"width": 0},
                    "hoverinfo": "skip",
                    "showlegend": False,
                    "legendgroup": line.name,
                }
            )
        look = {"line": {"color": colour, "width": 1.5, "dash": "dash"}, "mode": "lines"}
        if not line.theory:
            look = {
                "line": {"color": colour, "width": 2.5},
                "marker": {"color": colour, "symbol": marker[1], "size": 8},
                "mode": "markers" if line.points else "lines+markers",
            }
        data.append(
            {
                "type": "scatter",
                "name": escape(line.name),
                "legendgroup": line.name,
                "x": _plain(line.x),
                "y": _plain([e.mean for e in line.estimates]),
                "customdata": [
                    f"{number(x)}: {_interval(e)}"
                    for x, e in zip(line.x, line.estimates, strict=True)
                ],
                "hovertemplate": f"{escape(line.name)}<br>%{{customdata}}<extra></extra>",
                **look,
            }
        )
    layout = {
        "height": 480,
        "margin": {"l": 65, "r": 15, "t": 15, "b": 50},
        "font": {"size": 14},
        "hovermode": "closest",
        "dragmode": False,
        "xaxis": {
            "title": {"text": escape(plot.x), "standoff": 8},
            "zeroline": False,
            "type": "log" if plot.log_x else "linear",
        },
        "yaxis": {
            "title": {"text": escape(plot.y)},
            "zeroline": False,
            "type": "log" if plot.log_y else "linear",
        },
        "legend": {"orientation": "h", "y": -0.22, "yanchor": "top", "x": 0},
    }
    marks = _decade_ticks(found) if plot.log_y else []
    if marks:
        layout["yaxis"] |= {"tickvals": marks, "ticktext": [f"{mark:,.10g}" for mark in marks]}  # type: ignore[operator]
    if ticks:
        layout["xaxis"] |= {
            "tickvals": _plain(ticks),
            "ticktext": [f"{tick:,.10g}" for tick in ticks],
        }  # type: ignore[operator]
    return {"data": data, "layout": layout}


def _decade_ticks(found: Sequence[Line]) -> list[float]:
    """1, 2 and 5 times the powers of ten that lines reach, where these are few: Plotly would write
    the digits alone.
    """
    values = [
        v
        for line in found
        for e in line.estimates
        for v in (e.mean, e.low, e.high)
        if math.isfinite(v) and v > 0
    ]
    if not values or max(values) / min(values) >= 300:
        return []
    powers = range(math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))) + 1)
    return [digit * 10.0**power for power in powers for digit in (1, 2, 5)]


def bar_chart(values: Mapping[str, Estimate], label: str, measure: str = "") -> dict[str, Any]:
    """Plotly's data and layout of one bar a name, the first at the top."""
    names, found = list(values), list(values.values())
    halves = [e.half if math.isfinite(e.half) else 0.0 for e in found]
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": [escape(name) for name in names],
        "x": _plain([e.mean for e in found]),
        "error_x": {"type": "data", "array": _plain(halves), "color": "#808080"},
        "customdata": [spread(e, measure) for e in found],
        "hovertemplate": "%{y}<br>%{customdata}<extra></extra>",
        "marker": {"color": ARM_COLOURS[0]},
    }
    layout = {
        "height": 110 + 34 * len(names),
        "margin": {"l": 10, "r": 15, "t": 15, "b": 50},
        "font": {"size": 14},
        "dragmode": False,
        "xaxis": {"title": {"text": escape(label), "standoff": 8}, "zeroline": False},
        "yaxis": {"autorange": "reversed", "automargin": True},
        "showlegend": False,
    }
    return {"data": [bars], "layout": layout}


def _interval(e: Estimate) -> str:
    return (
        f"{number(e.mean)} [{number(e.low)}, {number(e.high)}]"
        if math.isfinite(e.half) and e.half
        else number(e.mean)
    )


def _plain(values: Sequence[float]) -> list[float | None]:
    """JSON has no NaN and no infinity; Plotly leaves a gap at null."""
    return [float(f"{value:.6g}") if math.isfinite(value) else None for value in values]
