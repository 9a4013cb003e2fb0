"""Pieces of HTML that the page and notebooks share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from unlazy.report.tables import MARKS, Rows


def badge(outcome: str) -> str:
    """A verdict as a mark with its word."""
    return f'<span class="badge {outcome.split()[0]}">{MARKS[outcome]}</span>'


def cell_html(text: str) -> str:
    """A cell of text; a mark at its start becomes a badge."""
    for outcome, mark in MARKS.items():
        if text.startswith(mark):
            return badge(outcome) + escape(text.removeprefix(mark))
    return escape(text)


def table_html(caption: str, table: Rows, kind: str = "") -> str:
    """A table with its caption, which scrolls by itself where it is too wide."""
    header, rows = table
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{cell_html(entry)}</td>" for entry in row[1:])
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table '
        f'class="{kind}">'
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def list_html(title: str, lines: Iterable[str], otherwise: str) -> str:
    """A list under a title, or a sentence where it is empty."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<h3>{title}</h3>" + (f"<ul>{items}</ul>" if items else f"<p>{otherwise}</p>")


def chart_html(
    name: str, spec: Mapping[str, Any], label: str, caption: str, reading: str = ""
) -> str:
    """A place for a chart, and the data that the page's script draws there."""
    # "<" is spelled out, so that no text within can end the script element.
    data = json.dumps(spec, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    live = (
        f'<p aria-live="polite"><strong id="{name}-reading">{escape(reading)}</strong></p>'
        if reading
        else ""
    )
    return (
        f'<figure>{live}<div class="chart" id="{name}" role="group" aria-label="{escape(label)}" '
        f'style="height:{spec["layout"]["height"]}px"></div><figcaption>{escape(caption)}</figcaption></figure>'
        f'<script type="application/json" id="{name}-data">{data}</script>'
    )
