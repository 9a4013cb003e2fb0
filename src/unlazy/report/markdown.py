"""Views as Markdown, for README.md and the documentation."""

from __future__ import annotations

import re

from unlazy.report.formulas import plain
from unlazy.report.labels import MARKS
from unlazy.report.view import View, ViewTable

#: Code and formulas, in which no character is escaped.
_LITERAL = re.compile(r"(`[^`]*`|\$(?=\S)[^$]*[^$\s]\$|\]\([^()]*\))")


def escaped(text: str) -> str:
    """Return a text whose stars and underscores are shown, not read as emphasis."""
    pieces = _LITERAL.split(text)
    return "".join(p if i % 2 else _escaped(p) for i, p in enumerate(pieces))


def _escaped(text: str) -> str:
    inner = r"(?<=[^\W_])_(?=[^\W_])"  # within a word, an underscore is no emphasis
    return re.sub(rf"{inner}|([_*])", lambda found: f"\\{found[1]}" if found[1] else "_", text)


def view_markdown(view: View, level: int = 2) -> str:
    """Return a view under a heading of a level, without plots; formulas are Unicode text."""
    return _markdown(view, level)


def _markdown(view: View, level: int) -> str:
    mark = f": {MARKS[view.status]}" if view.status else ""
    parts = [f"{'#' * level} {view.title}{mark}" if level < 4 else f"**{view.title}{mark}**"]
    if not view.title:
        parts = []
    parts += [_shown(view.takeaway)] if view.takeaway else []
    parts += [f"*{_shown(view.context)}.*"] if view.context else []
    lines = [(label, _shown(text)) for label, text in view.lines]
    parts += [f"**{label}:** {text}" if label else text for label, text in lines]
    parts += [f"**Note:** {_shown(note)}" for note in view.notes]
    parts += [f"```python\n{view.code}\n```"] if view.code else []
    parts += ["\n".join(f"- {_shown(item)}" for item in view.items)] if view.items else []
    parts += [table_markdown(table) for table in view.tables]
    parts += [_markdown(part, max(level + 1, 4)) for part in (*view.parts, *view.details)]
    return "\n\n".join(parts)


def table_markdown(table: ViewTable) -> str:
    """Return a table, with its title above and its caption below."""
    rules = ["---:" if table.side(i) == "r" else "---" for i in range(len(table.columns))]
    rows = [table.columns, tuple(rules), *table.rows]
    lines = "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in rows)
    title = f"{_shown(table.title)}:\n\n" if table.title else ""
    return title + lines + (f"\n\n{_shown(table.caption)}" if table.caption else "")


def _cell(text: str) -> str:
    return _shown(text).replace("|", "\\|").replace("\n", " ")


def _shown(text: str) -> str:
    """Return a text with formulas in Unicode, without emphasis."""
    return escaped(plain(text))
