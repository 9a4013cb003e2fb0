"""Colors, markers and line styles of series, shared by print figures and HTML pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from unlazy.report.view import ViewSeries

#: Okabe and Ito's colors, distinct with any color vision, without the yellow and the black that
#: vanish on one of the two backgrounds; then a wine red and a gray, and for figures of many lines
#: an indigo and an olive.
COLORS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"),
    *("#56B4E9", "#A23B72", "#808080", "#5B4FC4", "#8A8A22"),
)
#: Color families of learners: cool for fixed features, warm for learned features.
FAMILIES = {
    "fixed": ("#0072B2", "#009E73", "#56B4E9", "#5B4FC4", "#5F7A8C", "#2F6F6F"),
    "learned": ("#D55E00", "#CC79A7", "#E69F00", "#A23B72", "#C8102E", "#8A5A2B"),
    "tree": ("#808080", "#8A8A22"),
}
#: Matplotlib's marker and Plotly's, a second sign next to the color.
MARKERS = (
    *(("o", "circle"), ("s", "square"), ("^", "triangle-up"), ("D", "diamond")),
    *(("v", "triangle-down"), ("X", "x"), ("P", "cross")),
)
_NO_MARKER = ("", "")


class Look(NamedTuple):
    """How a series is drawn: no color means the next one of the palette, no marker the next one.

    `size` and `width` are in points of print; `dash` is solid, dash or dot.
    """

    color: str = ""
    marker: tuple[str, str] | None = None
    size: float = 5.0
    width: float = 1.7
    dash: str = "solid"
    opacity: float = 1.0
    edge: str = ""


#: By kind of series. Red and orange neurons as in shi2022, in shades that also differ in lightness;
#: their sizes differ, because antisymmetric initialization puts two neurons at one point.
KINDS = {
    "measured": Look(),
    "theory": Look(marker=_NO_MARKER, width=1.1, dash="dash"),
    "published": Look(marker=_NO_MARKER, width=0.9, dash="dash"),
    "chance": Look("#808080", _NO_MARKER, width=0.9, dash="dot"),
    "guide": Look("#B8B8B8", _NO_MARKER, width=0.8),
    "fit": Look(marker=_NO_MARKER, width=1.4),
    "sample": Look(size=3.0, opacity=0.4),
    "missed": Look(marker=("x", "x-thin-open"), size=7.0),
    "fixed": Look(COLORS[0], MARKERS[0], size=6.0),
    "learned": Look(COLORS[1], MARKERS[1], size=6.0),
    "tree": Look(COLORS[2], MARKERS[2], size=6.0),
    "ours": Look(COLORS[1], MARKERS[0], size=6.0),
    "others": Look(COLORS[7], MARKERS[1], size=5.0),
    "star": Look("#C8102E", ("*", "star"), size=20.5, edge="#404040"),
    "opposite": Look("#F0A30A", ("*", "star"), size=20.5, edge="#404040"),
    "side+": Look("#C8102E", MARKERS[0], size=3.8, edge="#FFFFFF"),
    "side-": Look("#F0A30A", MARKERS[3], size=2.2, edge="#FFFFFF"),
    "side0": Look("#808080", ("x", "x-thin-open"), size=3.0),
    "right": Look(COLORS[2], MARKERS[0], size=9.0),
    "wrong": Look(COLORS[1], MARKERS[1], size=9.0),
    "idle": Look("#B0B0B0", MARKERS[3], size=9.0),
}

PRINT_STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "legend.frameon": False,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,  # letters stay text that can be searched and edited
}


def looks(series: Sequence[ViewSeries]) -> list[Look]:
    """Return the look of each series.

    Groups take colors and markers in their order, within the color family of their features. Lines
    of fixed features have open markers.
    """
    taken = {KINDS[each.kind].color for each in series}
    others = [color for color in COLORS if color not in taken]
    places: dict[str, dict[str, int]] = {}
    found = []
    for each in series:
        look, own = KINDS[each.kind], places.setdefault(each.features, {})
        place = 0 if look.color else own.setdefault(each.family, len(own))
        colors = FAMILIES.get(each.features, others)
        found.append(
            look._replace(
                color=look.color or colors[place % len(colors)],
                marker=MARKERS[place % len(MARKERS)] if look.marker is None else look.marker,
                size=each.size or look.size,
                edge="open" if each.features == "fixed" and look.marker is None else look.edge,
            )
        )
    return found


def translucent(color: str) -> str:
    """Return a color #rrggbb at a fifth of its strength."""
    red, green, blue = (int(color[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.2)"
