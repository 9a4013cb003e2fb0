"""A scaling study as a table and as a figure in log-log."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from unlazy.lab.scaling import Outcome
from unlazy.report.palette import ARM_COLOURS, ARM_MARKERS, PRINT_STYLE
from unlazy.report.tables import Rows, number


def table(found: Sequence[Outcome]) -> Rows:
    """Exponents with and without a log factor, and the mean sample sizes."""
    header = ["learner", "exponent", "95 %", "with log d", "95 %", "examples (mean over seeds), predicted in brackets"]
    rows = []
    for each in found:
        law = each.law
        fits = ["–"] * 4
        if law is not None:
            fits = [number(law.exponent), _span(law.interval), number(law.with_log), _span(law.interval_with_log)]
        means = dict(zip(each.row.run, np.mean(each.samples, axis=0), strict=True))
        shown = [_place(d, means.get(d), each.row.predicted.get(d)) for d in sorted({*means, *each.row.predicted})]
        rows.append([each.row.name, *fits, ", ".join(shown)])
    return header, rows


def _place(d: int, measured: float | None, predicted: float | None) -> str:
    return f"d={d}: {'not run' if measured is None else f'{measured:.0f}'}" + ("" if predicted is None else f" ({predicted:.0f})")


def _span(interval: tuple[float, float]) -> str:
    return f"{interval[0]:.3f} … {interval[1]:.3f}"


def sentences(found: Mapping[tuple[str, str], float]) -> list[str]:
    """Where learners cross."""
    return [f"{one} needs fewer examples than {other} above d ≈ {place:.0f}." for (one, other), place in found.items()]


def figure(found: Sequence[Outcome], title: str, target: float) -> Figure:
    """Sample sizes with their fitted slopes; dashed: predicted, and d·log d through the middle of what was measured online."""
    with matplotlib.rc_context(PRINT_STYLE):
        drawn = Figure(figsize=(6.8, 4.9), layout="constrained")
        axes = drawn.subplots()
        for place, each in enumerate(found):
            colour, marker = ARM_COLOURS[place % len(ARM_COLOURS)], ARM_MARKERS[place % len(ARM_MARKERS)]
            d = np.array(each.row.run, float)
            name = each.row.name if each.law is None else f"{each.row.name}: slope {each.law.exponent:.2f} ({_span(each.law.interval)})"
            for line in each.samples:
                axes.plot(d, line, linestyle="", marker=marker[0], markersize=3, color=colour, alpha=0.4)
            look: dict[str, Any] = {"linestyle": "", "marker": marker[0], "markersize": 6, "color": colour}
            axes.plot(d, np.exp(np.mean(np.log(each.samples), axis=0)), label=name, **look)
            if each.law is not None:
                axes.plot(d, each.law(d), color=colour, linewidth=1.4)
            if each.row.predicted:
                far = np.array(sorted(each.row.predicted), float)
                label = f"{each.row.name}, predicted"
                axes.plot(far, [each.row.predicted[int(x)] for x in far], color=colour, linewidth=1, linestyle=(0, (5, 3)), label=label)
            elif each.law is not None and len(d) > 2:
                middle = math.exp(float(np.mean(np.log(d))))
                guide = d * np.log(d) * float(each.law(np.array([middle]))[0]) / (middle * math.log(middle))
                axes.plot(d, guide, color=colour, linewidth=1, linestyle=(0, (1, 2)), label=f"∝ d·log d ({each.row.name})")
        axes.set(xscale="log", yscale="log", xlabel="dimension d", ylabel=f"examples to an error of {target:g}")
        ticks = sorted({d for each in found for d in each.row.run})
        axes.set_xticks(ticks, labels=[str(d) for d in ticks], rotation=45 if len(ticks) > 8 else 0)
        axes.minorticks_off()
        axes.set_title(title, loc="left")
        axes.grid(True, color="#DDDDDD", linewidth=0.6)
        axes.set_axisbelow(True)
        drawn.legend(loc="outside lower center", ncols=2, fontsize=8.5)
    return drawn
