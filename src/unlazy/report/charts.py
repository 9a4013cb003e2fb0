"""Charts of the page: Plotly's data, layout and frames as plain dictionaries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from unlazy.lab.trials import Record
from unlazy.report.figures import (
    SIDE_COLOURS,
    SIDE_MARKERS,
    SIDE_SIZES,
    Curve,
    star_colour,
    star_size,
    step_ticks,
)
from unlazy.report.neurons import frames, side_names, sides, star_names
from unlazy.report.palette import translucent
from unlazy.report.tables import spread


def curve_chart(lines: Sequence[Curve]) -> dict[str, Any]:
    """Plotly's data and layout for the curves.

    Intervals are hidden at first: with few seeds they cover one another.
    """
    ends = _spaced((0, max(line.steps[-1] for line in lines)))
    data = [_curve(line) for line in lines]
    for line in lines:
        if line.published is not None:
            note = {
                "hovertemplate": f"{escape(line.arm)}, published: {line.published:g} "
                f"{line.metric.unit}<extra></extra>",
                "showlegend": False,
            }
            data.append(
                _line(line.arm, ends, [line.published] * 2, line.colour, "dash")
                | note
                | {"legendgroup": line.arm}
            )
    for line in lines:
        if line.band is not None:
            x, y = (
                _spaced((*line.steps, *reversed(line.steps))),
                _plain([*line.band[0], *reversed(line.band[1])]),
            )
            shade = {
                "fill": "toself",
                "fillcolor": translucent(line.colour),
                "visible": "legendonly",
                "legendgroup": "intervals",
            }
            first = not any(trace.get("legendgroup") == "intervals" for trace in data)
            data.append(
                _line("95 % intervals", x, y, "rgba(0,0,0,0)", "solid")
                | shade
                | {"showlegend": first}
            )
    chance = next((line.chance for line in lines if line.chance is not None), None)
    if chance is not None:
        data.append(_line("chance", ends, [chance] * 2, "#808080", "dot"))
    if any(line.published is not None for line in lines):
        data.append(_line("published final value", ends, [None] * 2, "#808080", "dash"))
    ticks = step_ticks((step for line in lines for step in line.steps), digit=0.026)
    places = {
        "tickvals": _spaced(ticks),
        "ticktext": list(map(str, ticks)),
        "tickangle": 0,
        "tickfont": {"size": 12},
    }
    layout = {
        "height": 540,
        "margin": {"l": 55, "r": 15, "t": 15, "b": 50},
        "font": {"size": 14},
        "hovermode": "closest",
        "dragmode": False,  # a finger on the chart scrolls the page
        "xaxis": {"title": {"text": "gradient step", "standoff": 8}, "zeroline": False, **places},
        "yaxis": {"title": {"text": lines[0].metric.label}, "zeroline": False},
        "legend": {"orientation": "h", "y": -0.2, "yanchor": "top", "x": 0},
    }
    return {"data": data, "layout": layout}


def _curve(line: Curve) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": escape(line.arm),
        "legendgroup": line.arm,
        "x": _spaced(line.steps),
        "y": _plain([e.mean for e in line.estimates]),
        "customdata": [
            f"step {step}: {spread(e, line.metric.name)} {line.metric.unit}"
            for step, e in zip(line.steps, line.estimates, strict=True)
        ],
        "hovertemplate": f"{escape(line.arm)}<br>%{{customdata}}<extra></extra>",
        "line": {"color": line.colour, "width": 2.5},
        "marker": {"color": line.colour, "symbol": line.marker[1], "size": 8},
    }


def _line(
    name: str, x: Sequence[float | None], y: Sequence[float | None], colour: str, dash: str
) -> dict[str, Any]:
    """A thin line that says nothing when touched."""
    style = {"color": colour, "dash": dash, "width": 1}
    return {
        "type": "scatter",
        "mode": "lines",
        "name": escape(name),
        "x": x,
        "y": y,
        "line": style,
        "hoverinfo": "skip",
    }


def neuron_chart(record: Record) -> dict[str, Any]:
    """Plotly's data, layout and frames for the neurons of one record at all its recorded steps,
    with a caption for each.
    """
    side, shown = sides(record), frames(record)
    names = side_names(record)
    signs = [sign for sign in (0, 1, -1) if (side == sign).any()]
    angle = np.linspace(0, 2 * np.pi, 121)
    circle = _line("circle", _plain(np.cos(angle)), _plain(np.sin(angle)), "#808080", "solid") | {
        "showlegend": False
    }
    stars = star_names(record)
    marks = [
        _mark(name, star_colour(sign, stars), "star", 1.17 * star_size(shown[0]))
        for sign, name in stars.items()
    ]
    for sign in signs:
        name = f"{names[sign]} ({(side == sign).sum()})"
        marks.append(_mark(name, SIDE_COLOURS[sign], SIDE_MARKERS[sign][1], 2.7 * SIDE_SIZES[sign]))
    moved = []
    for frame in shown:
        groups = [*frame.stars.values(), *(frame.points[side == sign] for sign in signs)]
        moved.append([{"x": _plain(group[:, 0]), "y": _plain(group[:, 1])} for group in groups])
    traces = list(range(1, len(marks) + 1))
    axis = {"range": [-1.15, 1.15], "visible": False, "fixedrange": True}
    layout = {
        "height": 640,
        "margin": {"l": 10, "r": 10, "t": 10, "b": 130},
        "font": {"size": 14},
        "hovermode": "closest",
        "dragmode": False,
        "xaxis": axis,
        "yaxis": axis | {"scaleanchor": "x"},
        "legend": {
            "orientation": "h",
            "y": 1.0,
            "yanchor": "bottom",
            "x": 0,
            "itemsizing": "trace",
        },
        **_controls([frame.step for frame in shown]),
    }
    return {
        "data": [circle, *(mark | place for mark, place in zip(marks, moved[0], strict=True))],
        "layout": layout,
        "frames": [
            {"name": str(frame.step), "data": places, "traces": traces}
            for frame, places in zip(shown, moved, strict=True)
        ],
        "captions": {str(frame.step): f"Step {frame.step}: {frame.caption}" for frame in shown},
    }


def _controls(steps: Sequence[int]) -> dict[str, Any]:
    """A slider over the steps, and buttons below it."""
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
    stops = [
        {"label": str(step), "method": "animate", "args": [[str(step)], quick]} for step in steps
    ]
    buttons = [
        {"label": "▶ Play", "method": "animate", "args": [None, slow]},
        {"label": "❚❚ Pause", "method": "animate", "args": [[None], quick]},
    ]
    place = {"x": 0, "xanchor": "left", "y": 0, "yanchor": "top", "pad": {"t": 90}}
    return {
        "sliders": [
            {
                "active": 0,
                "x": 0.02,
                "len": 0.96,
                "y": 0,
                "pad": {"t": 5},
                "currentvalue": {"prefix": "step "},
                "steps": stops,
            }
        ],
        "updatemenus": [
            {
                "type": "buttons",
                "direction": "left",
                "showactive": False,
                "buttons": buttons,
                **place,
            }
        ],
    }


def _mark(name: str, colour: str, symbol: str, size: float) -> dict[str, Any]:
    # Grey shows the edge of a star on a light and on a dark page.
    edge = (
        {"width": 1, "color": "#606060"} if symbol == "star" else {"width": 0.4, "color": "#ffffff"}
    )
    marker = {"color": colour, "symbol": symbol, "size": size, "line": edge, "opacity": 1}
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "marker": marker,
        "hoverinfo": "name",
    }


def _spaced(steps: Iterable[int]) -> list[float | None]:
    """Places on an axis of log(1 + step); Plotly has no such axis of its own."""
    return [round(math.log1p(step), 4) for step in steps]


def _plain(values: Iterable[float]) -> list[float | None]:
    """JSON has no NaN and no infinity; Plotly leaves a gap at null.

    Four digits are finer than any screen.
    """
    return [round(float(value), 4) if math.isfinite(value) else None for value in values]
