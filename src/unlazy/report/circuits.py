"""Circuits as views: the diagnosis of a dataset, and a learned circuit next to its target."""

from __future__ import annotations

import math

import numpy as np

from unlazy.core.errors import require
from unlazy.report.view import View, ViewPlot, ViewSeries
from unlazy.tasks.circuits.circuit import NAMES, Circuit
from unlazy.tasks.circuits.recovery import Recovery
from unlazy.theory.diagnosis import Diagnosis

#: By status of a gate: its meaning, the mark in text, and the kind of series.
STATUSES: dict[int, tuple[str, str, str]] = {
    1: ("right, up to sign", "✓", "right"),
    -1: ("wrong", "✗", "wrong"),
    0: ("without influence", "·", "idle"),
}
#: Trees with more inputs are drawn without names; those with more than `MAX_INPUTS` are not drawn.
NAMED, MAX_INPUTS = 32, 1024


def view(diagnosis: Diagnosis) -> View:
    """Return the view of a diagnosis: whether layerwise training works, and the guessed tree."""
    strongest = np.argsort(-np.abs(diagnosis.correlations))[:5]
    shown = ", ".join(f"{diagnosis.inputs[i]} {diagnosis.correlations[i]:+.3f}" for i in strongest)
    works = "works" if diagnosis.works else "does not work"
    return View(
        title="Circuit check",
        takeaway=f"Prediction: layerwise training {works} here. The guessed tree errs on "
        f"{100 * diagnosis.error:.2f} % of held-out examples (chance "
        f"{100 * diagnosis.chance:.2f} %).",
        lines=(
            ("Tree", diagnosis.formula()),
            ("Labels", f"mean {diagnosis.mean_label:+.3f}"),
            ("Correlations", f"{shown}; significant above {diagnosis.slack:.3f}"),
            (
                "Unused",
                f"{len(diagnosis.set_aside)} of {len(diagnosis.inputs)} inputs are uncorrelated "
                "with the label",
            ),
        ),
        kind="Circuit checks",
        facts={
            "tree": diagnosis.formula(),
            "error": f"{100 * diagnosis.error:.2f} %",
            "works": works,
        },
    )


def recovery_text(target: Circuit, learned: Circuit, seen: Recovery) -> str:
    """Return the learned circuit as an indented tree; a wrong gate is followed by the target's.

    The last line counts gates by status.
    """
    lines: list[str] = []

    def write(level: int, place: int, before: str, branch: str) -> None:
        if level == target.depth:
            lines.append(f"{before}{branch}x{place + 1}")
            return
        status = int(seen.status[level][place])
        name, wanted = NAMES[learned.levels[level][place]], NAMES[target.levels[level][place]]
        note = f" (target {wanted})" if status and name != wanted else ""
        lines.append(f"{before}{branch}{STATUSES[status][1]} {name}{note}")
        inner = before + {"": "", "├─ ": "│  ", "└─ ": "   "}[branch]
        write(level + 1, 2 * place, inner, "├─ ")
        write(level + 1, 2 * place + 1, inner, "└─ ")

    write(0, 0, "", "")
    return "\n".join([*lines, summary(seen)])


def summary(seen: Recovery) -> str:
    """Return how many gates have each status, and the exact error."""
    counts = {
        status: sum(int((level == status).sum()) for level in seen.status) for status in STATUSES
    }
    parts = ", ".join(f"{counts[s]} {STATUSES[s][0]}" for s in STATUSES if counts[s])
    return f"{parts}; error {100 * seen.error:.4g} %"


def recovery_plot(target: Circuit, learned: Circuit, seen: Recovery) -> ViewPlot:
    """Return the learned circuit as a tree, its output on top."""
    require(
        target.n <= MAX_INPUTS,
        f"A tree of {target.n} inputs is too wide to draw: at most {MAX_INPUTS}.",
    )
    named = target.n <= NAMED

    def across(level: int, place: int) -> float:
        return float((place + 0.5) / 2**level)

    x: list[float] = []
    y: list[float] = []
    for level in range(target.depth):
        for child in range(2 ** (level + 1)):
            x += [across(level, child // 2), across(level + 1, child), math.nan]
            y += [-float(level), -float(level + 1), math.nan]
    series = [ViewSeries("edges", tuple(x), tuple(y), kind="guide", legend=False)]
    for status, (meaning, _, kind) in STATUSES.items():
        gates = [
            (level, int(place))
            for level in range(target.depth)
            for place in np.flatnonzero(np.asarray(seen.status[level]) == status)
        ]
        names = [
            (NAMES[learned.levels[level][place]], NAMES[target.levels[level][place]])
            for level, place in gates
        ]
        text = [
            name if name == wanted or not status else f"{name}\n(for {wanted})"
            for name, wanted in names
        ]
        if gates:
            series.append(
                ViewSeries(
                    meaning,
                    tuple(across(*gate) for gate in gates),
                    tuple(-float(level) for level, _ in gates),
                    mark="points",
                    kind=kind,
                    text=tuple(text) if named else (),
                    hover=tuple(text),
                    size=9.0 if named else max(2.0, 9.0 * NAMED / target.n),
                )
            )
    if named:
        places = tuple(across(target.depth, place) for place in range(target.n))
        inputs = tuple(f"x{place + 1}" for place in range(target.n))
        below = (-float(target.depth) - 0.25,) * target.n
        series.append(
            ViewSeries("inputs", places, below, kind="guide", text=inputs, legend=False, size=0.1)
        )
    title = f"Learned circuit, {target.n} inputs: {summary(seen)}"
    return ViewPlot(title, "", "", tuple(series), bare=True, name="circuit")
