"""Plots of HTML pages: Plotly's data, layout and frames as plain dictionaries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from unlazy.report.labels import number
from unlazy.report.palette import Look, looks, translucent
from unlazy.report.view import ViewPlot, ViewSeries, finite

#: Width of a digit of a tick label, as a fraction of the axis.
_DIGIT = 0.026


def chart(plot: ViewPlot) -> dict[str, Any]:
    """Return Plotly's data and layout; with frames, also these and a caption for each."""
    moving = plot.frames[0].series if plot.frames else ()
    drawn = looks([*plot.series, *moving])
    data: list[dict[str, Any]] = []
    for series, look in zip((*plot.series, *moving), drawn, strict=True):
        if series.low and not plot.categories and series.interval == "band":
            first = not any(trace.get("legendgroup") == "intervals" for trace in data)
            data.append(_band(plot, series, look, first))
        trace = _trace(plot, series, look)
        same = (each["showlegend"] and each["name"] == trace["name"] for each in data)
        trace["showlegend"] &= not any(same)
        data.append(trace)
    layout = {
        "height": _height(plot),
        "margin": {"l": 65, "r": 15, "t": 15, "b": 50},
        "font": {"size": 14},
        "hovermode": "closest",
        "dragmode": False,  # a finger on the chart scrolls the page
        "xaxis": _x_axis(plot),
        "yaxis": _y_axis(plot),
        "legend": {"orientation": "h", "y": -0.2, "yanchor": "top", "x": 0},
    }
    spec: dict[str, Any] = {"data": data, "layout": layout}
    if plot.categories or plot.bare:
        layout["legend"] = {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0}
    if plot.frames:
        places = list(range(len(data) - len(moving), len(data)))
        layout |= {"margin": {"l": 10, "r": 10, "t": 10, "b": 130}}
        layout |= _controls([frame.title for frame in plot.frames])
        spec["frames"] = [
            {
                "name": frame.title,
                "data": [
                    {"x": _x(plot, series.x), "y": _plain(series.y)} for series in frame.series
                ],
                "traces": places,
            }
            for frame in plot.frames
        ]
        spec["captions"] = {frame.title: frame.caption for frame in plot.frames}
    return spec


def _trace(plot: ViewPlot, series: ViewSeries, look: Look) -> dict[str, Any]:
    shown = series.text and not plot.facets
    x, y = _x(plot, series.x), _plain(series.y)
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": {"line": "lines+markers", "points": "markers", "bars": ""}[series.mark],
        "name": escape(series.name),
        "legendgroup": escape(series.family),
        "showlegend": series.legend,
        "x": x,
        "y": y,
        "opacity": look.opacity,
        "line": {"color": look.color, "width": 1.45 * look.width, "dash": look.dash},
    }
    trace |= {"mode": "lines"} if look.marker == ("", "") else {"marker": _marker(look)}
    if shown:
        trace |= {"mode": f"{trace['mode']}+text", "textposition": "top center"}
        trace |= {"text": [escape(text) for text in series.text], "textfont": {"size": 12}}
    if series.mark == "bars":
        trace = {name: trace[name] for name in ("name", "legendgroup", "showlegend", "x", "y")}
        trace |= {"type": "bar", "marker": {"color": look.color}}
    if plot.categories:
        trace |= {"x": y, "y": [escape(str(name)) for name in series.x]}
        trace |= {"orientation": "h"} if series.mark == "bars" else {}
    if series.low and (plot.categories or series.interval == "bars"):
        ends = [
            _plain([high - at for at, high in zip(series.y, series.high, strict=True)]),
            _plain([at - low for at, low in zip(series.y, series.low, strict=True)]),
        ]
        bars = {"type": "data", "array": ends[0], "arrayminus": ends[1], "thickness": 1.5}
        trace["error_x" if plot.categories else "error_y"] = bars | (
            {"color": "#808080"} if series.mark == "bars" else {}
        )
    if plot.bare and not series.hover:
        return trace | {"hoverinfo": "name" if series.legend else "skip"}
    trace["customdata"] = [escape(text) for text in series.hover or _hover(plot, series)]
    trace["hovertemplate"] = f"{escape(series.name)}<br>%{{customdata}}<extra></extra>"
    return trace


def _hover(plot: ViewPlot, series: ViewSeries) -> list[str]:
    """Return the hover text of each point: x, y, and the interval."""
    found = []
    ends = zip(series.low, series.high, strict=True) if series.low else [None] * len(series.y)
    for x, y, between in zip(series.x, series.y, ends, strict=True):
        at = x if isinstance(x, str) else number(x)
        spread = "" if between is None else f" [{number(between[0])}, {number(between[1])}]"
        found.append(f"{at}: {number(y)}{spread}")
    return found


def _marker(look: Look) -> dict[str, Any]:
    symbol = (look.marker or ("", ""))[1]
    # Points of print; large marks, such as stars, grow less than small ones.
    marker = {"color": look.color, "symbol": symbol, "size": min(1.8 * look.size, look.size + 4)}
    if look.edge == "open":
        return marker | {"symbol": f"{symbol}-open", "line": {"width": 2}}
    edge = {"width": 1 if look.size > 10 else 0.4, "color": look.edge}
    return marker | ({"line": edge, "opacity": 1} if look.edge else {})


def _band(plot: ViewPlot, series: ViewSeries, look: Look, first: bool) -> dict[str, Any]:
    # In a plot of many groups the intervals overlap: they are hidden at first.
    grouped: dict[str, Any] = {"legendgroup": escape(series.family), "showlegend": False}
    if plot.facets:
        grouped = {"legendgroup": "intervals", "visible": "legendonly", "showlegend": first}
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "intervals",
        "x": _x(plot, [*series.x, *reversed(series.x)]),
        "y": _plain([*series.low, *reversed(series.high)]),
        "fill": "toself",
        "fillcolor": translucent(look.color),
        "line": {"width": 0},
        "hoverinfo": "skip",
        **grouped,
    }


def _height(plot: ViewPlot) -> int:
    if plot.categories:
        return 120 + 30 * len(plot.categories)
    return 640 if plot.bare else 480


def _x_axis(plot: ViewPlot) -> dict[str, Any]:
    if plot.bare:
        return _hidden(plot)
    label = plot.y if plot.categories else plot.x
    axis: dict[str, Any] = {
        "title": {"text": escape(label), "standoff": 8},
        "zeroline": False,
        "type": "log" if (plot.log_y if plot.categories else plot.log_x) else "linear",
    }
    ticks: Sequence[float] = plot.ticks
    if plot.steps:
        ticks = step_ticks(finite(x for series in plot.series for x in series.x), _DIGIT)
        axis |= {"tickangle": 0, "tickfont": {"size": 12}}
    if ticks:
        axis |= {"tickvals": _x(plot, ticks), "ticktext": [f"{tick:,.10g}" for tick in ticks]}
    return axis


def _y_axis(plot: ViewPlot) -> dict[str, Any]:
    if plot.bare:
        equal = {"scaleanchor": "x"} if plot.limits else {}
        return _hidden(plot) | equal
    if plot.categories:
        order = [escape(name) for name in reversed(plot.categories)]
        return {
            "automargin": True,
            "type": "category",
            "categoryorder": "array",
            "categoryarray": order,
            "range": [-0.6, len(order) - 0.3],
        }
    axis: dict[str, Any] = {
        "title": {"text": escape(plot.y)},
        "zeroline": False,
        "type": "log" if plot.log_y else "linear",
    }
    marks = decade_ticks(plot) if plot.log_y else []
    if marks:
        axis |= {"tickvals": marks, "ticktext": [f"{mark:,.10g}" for mark in marks]}
    return axis


def _hidden(plot: ViewPlot) -> dict[str, Any]:
    reach = {"range": list(plot.limits)} if plot.limits else {}
    return {"visible": False, "fixedrange": True, **reach}


def step_ticks(steps: Iterable[float], digit: float) -> list[float]:
    """Return steps whose labels fit an axis of log(1 + step), the last always; `digit` is the width
    of a digit as a fraction of the axis.
    """
    steps = sorted(set(steps))
    length = max(math.log1p(steps[-1]), 1e-6)
    ticks = [steps[-1]]
    for step in steps[:-1]:
        gaps = (
            (abs(math.log1p(step) - math.log1p(tick)) / length, len(f"{step:g}{tick:g}") / 2)
            for tick in ticks
        )
        if all(gap >= digit * (digits + 0.6) for gap, digits in gaps):
            ticks.append(step)
    return sorted(ticks)


def decade_ticks(plot: ViewPlot) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten that series reach, if these are few: Plotly would
    write the digits alone. If the series lie between two of them, return evenly spaced values.
    """
    series = plot.everything
    values = [v for s in series for v in finite((*s.y, *s.low, *s.high)) if v > 0]
    if not values or max(values) / min(values) >= 300:
        return []
    powers = range(math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))) + 1)
    ticks = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    if sum(min(values) <= tick <= max(values) for tick in ticks) > 1 or max(values) == min(values):
        return ticks
    spacing = 10.0 ** math.floor(math.log10((max(values) - min(values)) / 2))
    first, last = math.floor(min(values) / spacing), math.ceil(max(values) / spacing)
    return [round(i * spacing, 12) for i in range(first, last + 1, max(1, (last - first) // 5))]


def _controls(steps: Sequence[str]) -> dict[str, Any]:
    """Return a slider over the frames, and buttons below it."""
    quick = {
        "mode": "immediate",
        "frame": {"duration": 0, "redraw": False},
        "transition": {"duration": 400},
    }
    slow = {
        "mode": "immediate",
        "fromcurrent": True,
        "frame": {"duration": 1100, "redraw": False},
        "transition": {"duration": 700},
    }
    stops = [{"label": step, "method": "animate", "args": [[step], quick]} for step in steps]
    buttons = [
        {"label": "▶ Play", "method": "animate", "args": [None, slow]},
        {"label": "❚❚ Pause", "method": "animate", "args": [[None], quick]},
    ]
    slider = {"active": 0, "x": 0.02, "len": 0.96, "y": 0, "pad": {"t": 5}, "steps": stops}
    menu = {"type": "buttons", "direction": "left", "showactive": False, "buttons": buttons}
    place = {"x": 0, "xanchor": "left", "y": 0, "yanchor": "top", "pad": {"t": 90}}
    return {"sliders": [slider], "updatemenus": [menu | place]}


def _x(plot: ViewPlot, values: Sequence[Any]) -> list[Any]:
    """Return values on the axis; Plotly has no axis of log(1 + x)."""
    if plot.categories:
        return [escape(str(value)) for value in values]
    return _plain([math.log1p(value) for value in values] if plot.steps else values)


def _plain(values: Iterable[float]) -> list[float | None]:
    """Return numbers of six digits, None for NaN and infinity: Plotly leaves a gap there."""
    return [float(f"{value:.6g}") if math.isfinite(value) else None for value in values]
