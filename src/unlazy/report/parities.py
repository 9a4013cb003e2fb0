"""How a network learns a parity: its neurons' weights on the bits of the parity against those off
them, and its score by number of ones.

Made from the arrays of `PartWeights` and `ScoreByOnes`, step by step.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from unlazy.core.errors import require
from unlazy.core.metrics import TIE
from unlazy.lab.trials import Record
from unlazy.report.palette import ARM_COLOURS, ARM_MARKERS, PRINT_STYLE, translucent

_WEIGHTS, _SCORES = {"neuron_on", "neuron_off"}, {"ones_mean", "ones_low", "ones_high"}
#: Colours of the numbers of ones at which the parity is 1 and −1.
SIGN_COLOURS = {1: ARM_COLOURS[0], -1: ARM_COLOURS[1]}
#: Numbers of any size without an offset beside the axis.
_SHORT = FuncFormatter(lambda value, _: f"{value:.3g}")
#: At most so many steps have panels of their own.
MOST_PANELS = 4


def has_parity(record: Record) -> bool:
    """Whether a record holds what these pictures need."""
    return record.arrays.keys() >= _WEIGHTS | _SCORES


def shown_steps(record: Record) -> list[int]:
    """The steps that are drawn: the first two, the last, and what lies in the middle between."""
    steps = list(record.steps)
    if len(steps) <= MOST_PANELS:
        return steps
    return [*steps[: MOST_PANELS - 2], steps[(MOST_PANELS - 2 + len(steps)) // 2], steps[-1]]


def _name(step: int) -> str:
    return "initialisation" if step == 0 else f"step {step}"


def parity_signs(record: Record) -> np.ndarray:
    """The parity at 0, 1, …, k ones: with all bits one it is 1."""
    k = record.arrays["ones_mean"].shape[1] - 1
    return np.where((k - np.arange(k + 1)) % 2 == 0, 1, -1)


def parity_figure(record: Record, steps: Sequence[int] | None = None) -> Figure:
    """One column a step: the weights of the neurons above, the score by number of ones below."""
    require(
        has_parity(record),
        "This record holds no weights by part and scores by ones: its trial lacked these "
        "probes, or their arrays.",
    )
    wanted = shown_steps(record) if steps is None else list(steps)
    absent = [step for step in wanted if step not in record.steps]
    require(
        not absent,
        f"Step {absent[:1]} is not recorded. Recorded: {', '.join(map(str, record.steps))}.",
    )
    with matplotlib.rc_context(PRINT_STYLE):
        figure = Figure(figsize=(max(2.5 * len(wanted), 5.0), 5.6), layout="constrained")
        panels = figure.subplots(2, len(wanted), squeeze=False)
        for column, step in enumerate(wanted):
            place = record.steps.index(step)
            _draw_weights(panels[0, column], record, place)
            panels[0, column].set_title(_name(step), loc="left")
            _draw_scores(panels[1, column], record, place)
        panels[0, 0].set_ylabel("mean weight on A")
        panels[1, 0].set_ylabel("score")
        figure.legend(handles=_legend(), loc="outside lower center", ncols=2, fontsize=9)
    return figure


def _draw_weights(axes: Axes, record: Record, place: int) -> None:
    off, on = record.arrays["neuron_off"][place], record.arrays["neuron_on"][place]
    reach = 1.1 * max(
        float(np.nanmax(np.abs(on), initial=0.0)), float(np.nanmax(off, initial=0.0)), 1e-30
    )
    axes.plot([0, reach], [0, reach], color="#A0A0A0", linewidth=0.8, linestyle=":")
    axes.plot([0, reach], [0, -reach], color="#A0A0A0", linewidth=0.8, linestyle=":")
    axes.scatter(off, on, s=9, color=ARM_COLOURS[2], alpha=0.6, linewidths=0)
    axes.set(xlim=(-0.02 * reach, reach), ylim=(-reach, reach), xlabel="root mean square off A")
    axes.locator_params(nbins=4)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(_SHORT)


def _draw_scores(axes: Axes, record: Record, place: int) -> None:
    mean, low, high = (record.arrays[f"ones_{part}"][place] for part in ("mean", "low", "high"))
    ones, sign = np.arange(len(mean)), parity_signs(record)
    axes.axhline(0, color="#A0A0A0", linewidth=0.8)
    axes.fill_between(ones, low, high, color="#808080", alpha=0.2, linewidth=0)
    axes.plot(ones, mean, color="#606060", linewidth=1.2, zorder=1)
    for side, colour in SIGN_COLOURS.items():
        chosen = sign == side
        axes.plot(
            ones[chosen],
            mean[chosen],
            linestyle="",
            marker=_mark(side)[0],
            markersize=6,
            color=colour,
            zorder=2,
        )
    axes.set(xlabel="ones among the bits of A", xticks=ones)
    axes.locator_params(axis="y", nbins=5)
    axes.yaxis.set_major_formatter(_SHORT)
    if np.max(np.abs(mean)) <= TIE:  # rounding, not a score
        axes.set_ylim(-1, 1)


def _mark(side: int) -> tuple[str, str]:
    return ARM_MARKERS[0] if side > 0 else ARM_MARKERS[1]


def _legend() -> list[Line2D]:
    neurons = Line2D(
        [], [], linestyle="", marker="o", markersize=4, color=ARM_COLOURS[2], label="neuron"
    )
    equal = Line2D(
        [], [], linestyle=":", linewidth=0.8, color="#A0A0A0", label="as much on A as off it"
    )
    signs = [
        Line2D(
            [],
            [],
            linestyle="",
            marker=_mark(side)[0],
            color=colour,
            label=f"mean score where the parity is {'1' if side > 0 else '−1'}",
        )
        for side, colour in SIGN_COLOURS.items()
    ]
    return [neurons, signs[0], equal, signs[1]]


def weights_chart(record: Record) -> dict[str, Any]:
    """Plotly's data and layout of the weights: one cloud a step, in units of the step's root mean
    square weight.
    """
    data = []
    for index, step in enumerate(shown_steps(record)):
        place = record.steps.index(step)
        off, on = (
            record.arrays["neuron_off"][place].astype(float),
            record.arrays["neuron_on"][place].astype(float),
        )
        unit = max(float(np.sqrt(np.mean(on**2 + off**2))), 1e-30)
        colour, marker = ARM_COLOURS[index], ARM_MARKERS[index]
        look = {"color": colour, "symbol": marker[1], "size": 6, "opacity": 0.7}
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": _name(step),
                "x": _plain(off / unit),
                "y": _plain(on / unit),
                "marker": look,
            }
        )
    return {
        "data": data,
        "layout": _layout(
            "root mean square weight off A", "mean weight on A, in units of the step"
        ),
    }


def scores_chart(record: Record) -> dict[str, Any]:
    """Plotly's data and layout of the score by number of ones: one line a step, in units of its
    greatest mean.
    """
    data: list[dict[str, Any]] = []
    sign = parity_signs(record)
    for index, step in enumerate(shown_steps(record)):
        place = record.steps.index(step)
        mean, low, high = (
            record.arrays[f"ones_{part}"][place].astype(float) for part in ("mean", "low", "high")
        )
        unit, ones, name = max(float(np.max(np.abs(mean))), TIE), np.arange(len(mean)), _name(step)
        colour, marker = ARM_COLOURS[index], ARM_MARKERS[index]
        band = {
            "fill": "toself",
            "fillcolor": translucent(colour),
            "line": {"width": 0},
            "hoverinfo": "skip",
            "showlegend": False,
        }
        around = {
            "x": _plain([*ones, *ones[::-1]]),
            "y": _plain([*(low / unit), *(high[::-1] / unit)]),
        }
        data.append({"type": "scatter", "mode": "lines", "legendgroup": name, **around, **band})
        told = [
            f"{count} ones, parity {side}: mean score {value:.3g}"
            for count, side, value in zip(ones, sign, mean, strict=True)
        ]
        line = {
            "line": {"color": colour, "width": 2.5},
            "marker": {"color": colour, "symbol": marker[1], "size": 9},
        }
        text = {
            "customdata": told,
            "hovertemplate": f"{escape(name)}<br>%{{customdata}}<extra></extra>",
            "legendgroup": name,
        }
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": name,
                "x": _plain(ones),
                "y": _plain(mean / unit),
                **line,
                **text,
            }
        )
    layout = _layout("ones among the bits of A", "mean score, in units of the step")
    layout["xaxis"] |= {"tickvals": _plain(np.arange(len(sign)))}
    return {"data": data, "layout": layout}


def _layout(x: str, y: str) -> dict[str, Any]:
    return {
        "height": 440,
        "margin": {"l": 65, "r": 15, "t": 15, "b": 50},
        "font": {"size": 14},
        "hovermode": "closest",
        "dragmode": False,
        "xaxis": {"title": {"text": x, "standoff": 8}, "zeroline": False},
        "yaxis": {"title": {"text": y}, "zeroline": True},
        "legend": {"orientation": "h", "y": -0.22, "yanchor": "top", "x": 0},
    }


def _plain(values: Any) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]
