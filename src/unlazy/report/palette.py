"""The palette that figures for print and the page share."""

from __future__ import annotations

from typing import Any

#: Okabe and Ito's colours, told apart with any colour vision, without the yellow and the black that
#: vanish on one of the two backgrounds; then a wine red and a grey, and for figures of many lines
#: an indigo and an olive.
ARM_COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#A23B72",
    "#808080",
    "#5B4FC4",
    "#8A8A22",
)
#: A second sign beside the colour, by arm: Matplotlib's marker and Plotly's.
ARM_MARKERS = (
    ("o", "circle"),
    ("s", "square"),
    ("^", "triangle-up"),
    ("D", "diamond"),
    ("v", "triangle-down"),
    ("X", "x"),
    ("P", "cross"),
)

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


def translucent(colour: str) -> str:
    """A colour #rrggbb at a fifth of its strength."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.2)"
