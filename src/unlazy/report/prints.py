"""Figures as files: in the style of where they go, and with the numbers that are drawn beside
them.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.collections import PathCollection
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.text import Text

from unlazy.core.errors import unknown
from unlazy.report.files import replacing
from unlazy.report.palette import PRINT_STYLE


class PrintStyle(NamedTuple):
    """Width in inches, None for as it is drawn; sizes of letters and lines, relative to that;
    columns of the legend at most.
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


def styled(figure: Figure, style: str) -> Figure:
    """The figure in a style: sizes are changed, and what is drawn is not."""
    if style not in STYLES:
        raise unknown("style", style, STYLES)
    look = STYLES[style]
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


def numbers_of(figure: Figure) -> Iterator[dict[str, Any]]:
    """What is drawn, row by row: the panel, the name of the series, and x and y; of a series
    without a name its kind and place.
    """
    for panel, axes in enumerate(figure.axes):
        title = axes.get_title(loc="left") or axes.get_title() or f"panel {panel + 1}"
        common = {
            "panel": title.replace("\n", ", "),
            "x_label": axes.get_xlabel(),
            "y_label": axes.get_ylabel(),
        }
        for container in axes.containers:
            if isinstance(container, BarContainer):
                names = [label.get_text() for label in axes.get_yticklabels()]
                for place, bar in enumerate(container):
                    yield common | {
                        "series": names[place] if place < len(names) else f"bar {place + 1}",
                        "x": bar.get_width(),
                        "y": place,
                    }
        bars = {id(line) for container in axes.containers for line in container.get_children()}
        for place, line in enumerate(axes.lines):
            label = str(line.get_label())
            if label.startswith("_") and id(line) in bars and len(np.ravel(line.get_xdata())) == 0:
                continue
            name = f"line {place + 1}" if label.startswith("_") else label
            yield from _points(common, name, line.get_xdata(), line.get_ydata())
        clouds = [each for each in axes.collections if isinstance(each, PathCollection)]
        for place, cloud in enumerate(clouds):
            label = str(cloud.get_label())
            offsets = np.asarray(cloud.get_offsets(), float)
            yield from _points(
                common,
                f"points {place + 1}" if label.startswith("_") else label,
                offsets[:, 0],
                offsets[:, 1],
            )


def _points(common: dict[str, Any], name: str, xs: Any, ys: Any) -> Iterator[dict[str, Any]]:
    for x, y in zip(np.ravel(xs), np.ravel(ys), strict=False):
        yield common | {"series": name, "x": float(x), "y": float(y)}


def save_numbers(figure: Figure, path: Path) -> Path:
    """The numbers of a figure as a table."""
    with replacing(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["panel", "series", "x_label", "y_label", "x", "y"])
        writer.writeheader()
        writer.writerows(numbers_of(figure))
    return path


def save_figure(figure: Figure, path: Path, style: str = "page") -> None:
    """Write a figure, in the format that its name ends with.

    Without date and version, equal records give equal files.
    """
    kind = path.suffix.removeprefix(".")
    undated = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}[
        kind
    ]
    with matplotlib.rc_context(PRINT_STYLE), replacing(path) as draft:
        styled(figure, style).savefig(draft, format=kind, metadata=undated)


def save_all(made: Mapping[str, Figure], folder: Path, style: str) -> list[Path]:
    """Each figure as PNG and PDF, and its numbers as CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for stem, figure in made.items():
        paths.append(save_numbers(figure, folder / f"{stem}.csv"))
        for kind in ("png", "pdf"):
            # The first file has the style already.
            save_figure(figure, folder / f"{stem}.{kind}", style if kind == "png" else "page")
            paths.append(folder / f"{stem}.{kind}")
    return paths
