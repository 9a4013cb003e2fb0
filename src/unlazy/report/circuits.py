"""A learned circuit beside its target: as text for a terminal, and drawn as a tree.

Gates are right (up to sign), wrong, or without influence on the output.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from unlazy.core.errors import require
from unlazy.report.files import replacing
from unlazy.report.palette import PRINT_STYLE
from unlazy.tasks.circuits.circuit import NAMES, Circuit
from unlazy.tasks.circuits.recovery import Recovery

#: By status: what it means, the mark in text, colour and marker in print.
LOOKS: dict[int, tuple[str, str, str, str]] = {
    1: ("right, up to sign", "✓", "#009E73", "o"),
    -1: ("wrong", "✗", "#D55E00", "s"),
    0: ("without influence", "·", "#B0B0B0", "D"),
}
#: Trees with more inputs than this are drawn without names; those with more than `MOST` are not
#: drawn.
NAMED, MOST = 32, 1024


def recovery_text(target: Circuit, learned: Circuit, seen: Recovery) -> str:
    """The learned circuit as an indented tree; of a wrong gate the target's is shown too.

    The last lines count.
    """
    lines: list[str] = []

    def write(level: int, place: int, before: str, branch: str) -> None:
        if level == target.depth:
            lines.append(f"{before}{branch}x{place + 1}")
            return
        status = int(seen.status[level][place])
        name, wanted = NAMES[learned.levels[level][place]], NAMES[target.levels[level][place]]
        note = f" (target {wanted})" if status and name != wanted else ""
        lines.append(f"{before}{branch}{LOOKS[status][1]} {name}{note}")
        inner = before + {"": "", "├─ ": "│  ", "└─ ": "   "}[branch]
        write(level + 1, 2 * place, inner, "├─ ")
        write(level + 1, 2 * place + 1, inner, "└─ ")

    write(0, 0, "", "")
    return "\n".join([*lines, summary(seen)])


def summary(seen: Recovery) -> str:
    """One line: how many gates of each status, and the exact error."""
    counts = {
        status: sum(int((level == status).sum()) for level in seen.status) for status in LOOKS
    }
    parts = ", ".join(f"{counts[status]} {LOOKS[status][0]}" for status in LOOKS if counts[status])
    return f"{parts}; error {100 * seen.error:.4g} %"


def draw_recovery(target: Circuit, learned: Circuit, seen: Recovery) -> Figure:
    """The learned circuit as a tree, its output on top."""
    require(target.n <= MOST, f"A tree of {target.n} inputs is too wide to draw: at most {MOST}.")
    named = target.n <= NAMED
    with matplotlib.rc_context(PRINT_STYLE):
        figure = Figure(
            figsize=(max(5.0, min(14.0, 0.62 * target.n)), 0.75 * target.depth + 1.6),
            layout="constrained",
        )
        axes = figure.subplots()

        def across(level: int, place: int) -> float:
            return float((place + 0.5) / 2**level)

        for level in range(target.depth):
            for child in range(2 ** (level + 1)):
                faint: dict[str, Any] = {"color": "#C8C8C8", "linewidth": 0.8, "zorder": 0}
                axes.plot(
                    [across(level, child // 2), across(level + 1, child)],
                    [-level, -level - 1],
                    **faint,
                )
            for place, status in enumerate(seen.status[level]):
                _, _, colour, marker = LOOKS[int(status)]
                size = 90 if named else max(4.0, 60.0 * NAMED / target.n)
                axes.scatter(
                    across(level, place),
                    -level,
                    s=size,
                    color=colour,
                    marker=marker,
                    edgecolors="white",
                    linewidths=0.5,
                    zorder=2,
                )
                if named:
                    name, wanted = (
                        NAMES[learned.levels[level][place]],
                        NAMES[target.levels[level][place]],
                    )
                    text = name if name == wanted or not status else f"{name}\n(for {wanted})"
                    axes.annotate(
                        text,
                        (across(level, place), -level),
                        xytext=(0, 7),
                        textcoords="offset points",
                        ha="center",
                        va="bottom",
                        fontsize=7 if level < target.depth - 1 or target.n <= 16 else 5.5,
                        zorder=3,
                        bbox={
                            "boxstyle": "round,pad=0.1",
                            "facecolor": "white",
                            "edgecolor": "none",
                            "alpha": 0.85,
                        },
                    )
        if named:
            for place in range(target.n):
                axes.text(
                    across(target.depth, place),
                    -target.depth - 0.08,
                    f"x{place + 1}",
                    ha="center",
                    va="top",
                    fontsize=7,
                )
        axes.set(xlim=(0, 1), ylim=(-target.depth - 0.5, 0.6), xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        axes.set_title(f"Learned circuit, {target.n} inputs: {summary(seen)}", loc="left")
        handles = [
            Line2D([], [], linestyle="", marker=marker, markersize=7, color=colour, label=text)
            for text, _, colour, marker in LOOKS.values()
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=9)
    return figure


def save_recovery(target: Circuit, learned: Circuit, seen: Recovery, path: Path | str) -> Path:
    """Write the drawing as PNG."""
    path = Path(path)
    figure = draw_recovery(target, learned, seen)
    with matplotlib.rc_context(PRINT_STYLE), replacing(path) as draft:
        figure.savefig(draft, format="png", metadata={"Software": None})
    return path
