"""An audit for people: a bar while it runs, the answer on a terminal, and a page with figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable

import unlazy
from unlazy.estimators.catalog import AUDIT, GROUPS
from unlazy.report.files import replacing
from unlazy.report.html import chart_html, list_html, table_html
from unlazy.report.page import document
from unlazy.report.palette import ARM_COLOURS, translucent
from unlazy.report.progress import duration
from unlazy.tables.audit import AuditOutcome
from unlazy.tables.explain import Explanation
from unlazy.tables.judgement import HEADLINES

#: What a newcomer must know to read an answer.
_WORDS = (
    "<strong>Fixed features</strong> are chosen before the data are seen: the columns "
    "themselves, kernels (RBF, Laplace, and NTK and NNGP "
    "of infinitely wide networks), random features. <strong>Learned features</strong> are "
    "directions in the columns that networks and "
    "recursive feature machines (RFM) find in the data. <strong>Tree ensembles</strong> "
    "are outside of the question."
)
#: A colour for each side, the same in all figures.
COLOURS = dict(zip(GROUPS, ARM_COLOURS, strict=False))


class AuditBar:
    """An `AuditWatcher` that draws a bar with the time that is left."""

    def __init__(self, console: Console) -> None:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("· {task.fields[left]}"),
        )
        self._bar = Progress(*columns, console=console, transient=True)
        self._task = self._bar.add_task("reading", total=None, left="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()
        if kind is KeyboardInterrupt:
            self._bar.console.print(
                "Stopped. What is finished is kept: the same command goes on from there."
            )

    def planned(self, text: str) -> None:
        self._bar.console.print(text, soft_wrap=True)

    def began(self, what: str) -> None:
        self._bar.update(self._task, description=what)

    def went(self, done: int, total: int, seconds_left: float) -> None:
        self._bar.update(
            self._task,
            completed=done,
            total=total,
            left=f"about {duration(seconds_left)} left" if seconds_left else "",
        )


def _rows(outcome: AuditOutcome) -> list[list[str]]:
    """Contenders, the best first: side, mean loss, interval over folds, seconds."""
    found = []
    for name in outcome.standings.names:
        losses = [bout.loss for bout in outcome.standings.of(name)]
        seconds = sum(bout.seconds for bout in outcome.standings.of(name))
        found.append(
            (
                float(np.mean(losses)),
                [
                    name,
                    AUDIT[name].group,
                    f"{np.mean(losses):.2f}",
                    f"{np.std(losses):.2f}",
                    f"{seconds:.0f}",
                ],
            )
        )
    constant = float(np.mean([bout.loss for bout in outcome.standings.constant()]))
    found.append((constant, ["a constant", "–", f"{constant:.2f}", "–", "–"]))
    return [row for _, row in sorted(found, key=lambda pair: pair[0])]


def _loss_name(outcome: AuditOutcome) -> str:
    return "wrong (%)" if outcome.problem.kind == "classification" else "variance left (%)"


def _size(outcome: AuditOutcome) -> str:
    problem = outcome.problem
    return f"{len(problem):,} rows, {len(problem.names)} columns, {problem.kind}"


def print_audit(outcome: AuditOutcome, console: Console) -> None:
    """The answer first, then the standings and what explains them."""
    judgement = outcome.judgement
    console.print(Panel(outcome.answer, title=HEADLINES[judgement.decision], title_align="left"))
    table = RichTable(title="Held-out rows", title_justify="left")
    for name in ("contender", "features", _loss_name(outcome), "± between folds", "seconds"):
        table.add_column(name, justify="left" if name in ("contender", "features") else "right")
    for row in _rows(outcome):
        table.add_row(*row)
    console.print(table)
    for finding in outcome.findings:
        console.print(f"[bold]{finding.name}:[/bold] {finding.says}", highlight=False)
    console.print(f"[bold]What would change it:[/bold] {judgement.changes}", highlight=False)
    for note in (*outcome.problem.decisions, *(f"Left out: {what}." for what in outcome.left_out)):
        console.print(f"[dim]{note}[/dim]", highlight=False)
    console.print(
        "\nTo use it:\n" + judgement.code, highlight=False, markup=False, soft_wrap=True
    )  # broken lines would be no code


def write_audit(outcome: AuditOutcome, path: Path) -> None:
    """Write the page."""
    with replacing(path) as draft:
        draft.write_text(audit_page(outcome), encoding="utf-8")


def audit_page(outcome: AuditOutcome) -> str:
    """The page as text: the answer on the first screen, then what it rests on, then what explains
    it.
    """
    problem, judgement = outcome.problem, outcome.judgement
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    body = [
        f'<header><p class="soft">Audit of {escape(problem.name)}: {_size(outcome)}</p>',
        f"<h1>{escape(HEADLINES[judgement.decision])}</h1>",
        f"<p>{escape(outcome.answer.removeprefix(HEADLINES[judgement.decision]).strip())}</p>",
        f"<p><strong>What would change it:</strong> {escape(judgement.changes)}</p>",
        f'<p class="soft">{_WORDS}</p></header>',
        chart_html(
            "standings",
            _standings_chart(outcome),
            f"Held-out loss of every contender, {_loss_name(outcome)}",
            f"Held-out rows, {_loss_name(outcome)}: less is better. Lines reach one standard "
            "deviation between folds to both sides.",
        ),
        "<details open><summary>Code to use it</summary>"
        f'<div class="scroll"><pre><code>{escape(judgement.code)}</code></pre></div></details>',
        "<section><h2>The contest</h2><p>Everything was tuned and fitted within the training "
        "rows of each fold. In each fold the contender "
        "of a side that did best on these speaks for it, so that the number of a side may "
        "differ a little from its best row here.</p>",
        table_html(
            "All contenders",
            (
                ["contender", "features", _loss_name(outcome), "± between folds", "seconds"],
                _rows(outcome),
            ),
            "numbers",
        ),
        "</section>",
        *(_section(finding) for finding in outcome.findings),
        "<section><h2>About this audit</h2>",
        list_html("Decisions on the table", problem.decisions, "None: it was used as it is."),
        list_html("Left out", outcome.left_out, "Nothing."),
        f'<p class="soft">{escape(problem.name)}: {_size(outcome)}. '
        f"{len(outcome.standings.complete)} folds in {duration(outcome.seconds)}. Made {made} "
        f"by unlazy {escape(unlazy.__version__)}. "
        "This file needs no network.</p></section>",
    ]
    return document(f"unlazy audit: {problem.name}", body)


def _section(finding: Explanation) -> str:
    title, draw, caption = _DRAWN[finding.name]
    charts = draw(finding.data) if draw is not None else {}
    drawn = "".join(
        chart_html(f"{name}-chart", spec, f"{title}: {name}", caption)
        for name, spec in charts.items()
    )
    return f"<section><h2>{escape(title)}</h2><p>{escape(finding.says)}</p>{drawn}</section>"


def _layout(height: int, x: str, y: str, **axes: Any) -> dict[str, Any]:
    return {
        "height": height,
        "margin": {"l": 60, "r": 15, "t": 15, "b": 50},
        "font": {"size": 14},
        "hovermode": "closest",
        "dragmode": False,
        "xaxis": {"title": {"text": x}, "zeroline": False, **axes.get("xaxis", {})},
        "yaxis": {
            "title": {"text": y},
            "zeroline": False,
            "automargin": True,
            **axes.get("yaxis", {}),
        },
        "legend": {"orientation": "h", "y": -0.25, "yanchor": "top", "x": 0},
    }


def _standings_chart(outcome: AuditOutcome) -> dict[str, Any]:
    means = {
        name: [bout.loss for bout in outcome.standings.of(name)] for name in outcome.standings.names
    }
    order = sorted(means, key=lambda name: -float(np.mean(means[name])))
    data = []
    for side, words in GROUPS.items():
        names = [name for name in order if AUDIT[name].group == side]
        if names:
            losses = [round(float(np.mean(means[name])), 3) for name in names]
            bars = {
                "type": "data",
                "array": [round(float(np.std(means[name])), 3) for name in names],
                "thickness": 1.5,
            }
            marker = {"color": COLOURS[side], "size": 11}
            data.append(_points(words, losses, names, marker) | {"error_x": bars})
    layout = _layout(
        110 + 30 * len(order),
        _loss_name(outcome),
        "",
        yaxis={"categoryorder": "array", "categoryarray": order},
    )
    return {
        "data": data,
        "layout": layout | {"legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}},
    }


def _points(
    name: str, x: Sequence[Any], y: Sequence[Any], marker: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": escape(name),
        "x": list(x),
        "y": list(y),
        "marker": dict(marker),
    }


def _lines(
    name: str, x: Sequence[Any], y: Sequence[Any], colour: str, dash: str = "solid"
) -> dict[str, Any]:
    style = {"color": colour, "width": 2.5, "dash": dash}
    clean = [
        None if value is None or not np.isfinite(value) else round(float(value), 4) for value in y
    ]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": escape(name),
        "x": list(x),
        "y": clean,
        "line": style,
    }


def _curves(data: Mapping[str, Any]) -> dict[str, Any]:
    lines = [
        _lines(f"{GROUPS[side]}: {curve['name']}", curve["rows"], curve["losses"], COLOURS[side])
        for side, curve in data["curves"].items()
    ]
    rows = sorted({count for curve in data["curves"].values() for count in curve["rows"]})
    ticks = {"type": "log", "tickvals": rows, "ticktext": [f"{count:,}" for count in rows]}
    return {
        "curves": {
            "data": lines,
            "layout": _layout(420, "training rows", data["unit"], xaxis=ticks),
        }
    }


def _scales(data: Mapping[str, Any]) -> dict[str, Any]:
    ends = [data["scales"][0], data["scales"][-1]]
    lines = [
        _lines("two-layer network", data["scales"], data["losses"], ARM_COLOURS[1]),
        _lines(
            "ridge on its tangent kernel before training",
            ends,
            [data["tangent before"]] * 2,
            ARM_COLOURS[0],
            "dash",
        ),
        _lines(
            "ridge on its tangent kernel after training",
            ends,
            [data["tangent after"]] * 2,
            ARM_COLOURS[2],
            "dot",
        ),
    ]
    return {
        "scales": {
            "data": lines,
            "layout": _layout(
                420,
                "output scale α: rich on the left, lazy on the right",
                data["unit"],
                xaxis={"type": "log"},
            ),
        }
    }


def _alignment(data: Mapping[str, Any]) -> dict[str, Any]:
    lines = [
        _lines(name, data["ranks"], shares, colour)
        for (name, shares), colour in zip(data["shares"].items(), ARM_COLOURS, strict=False)
    ]
    return {
        "alignment": {
            "data": lines,
            "layout": _layout(
                420, "leading eigenvectors", "share of the target", xaxis={"type": "log"}
            ),
        }
    }


def _gradients(data: Mapping[str, Any]) -> dict[str, Any]:
    places = list(range(1, len(data["spectrum"]) + 1))
    band = {
        "type": "scatter",
        "x": [*places, *reversed(places)],
        "y": [*data["high"], *reversed(data["low"])],
        "fill": "toself",
        "fillcolor": translucent(ARM_COLOURS[1]),
        "line": {"width": 0},
        "mode": "lines",
        "name": "nine tenths of the resamplings",
        "hoverinfo": "skip",
    }
    spectrum = {
        "data": [band, _lines("mean", places, data["spectrum"], ARM_COLOURS[1])],
        "layout": _layout(360, "direction", "share of the gradients"),
    }
    shares, low, high = (np.array(data[name]) for name in ("shares", "shares low", "shares high"))
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": [round(float(value), 4) for value in shares],
        "y": [escape(name) for name in data["columns"]],
        "marker": {"color": ARM_COLOURS[1]},
        "error_x": {
            "type": "data",
            "array": [round(float(v), 4) for v in high - shares],
            "arrayminus": [round(float(v), 4) for v in shares - low],
        },
        "name": "share of the gradients",
    }
    columns = _layout(
        90 + 30 * len(shares),
        "share of the gradients",
        "",
        yaxis={"autorange": "reversed", "type": "category"},
    )
    return {"spectrum": spectrum, "columns": {"data": [bars], "layout": columns}}


_DRAWN: dict[str, tuple[str, Any, str]] = {
    "learning curves": (
        "With fewer rows",
        _curves,
        "Held-out loss of the best of each side when fewer training rows are used.",
    ),
    "gradients": (
        "Which directions and columns matter",
        _gradients,
        "From a recursive feature machine on resampled rows.",
    ),
    "from lazy to rich": (
        "One network, from rich to lazy",
        _scales,
        "The same network and rows; only how far the weights move differs.",
    ),
    "kernel alignment": (
        "How the target lies in the kernels",
        _alignment,
        "The share of the target along the leading eigenvectors: a kernel learns quickly what "
        "lies along few.",
    ),
    "rotation": ("Rotated columns", None, ""),
    "permuted labels": ("Where there is nothing to learn", None, ""),
}
