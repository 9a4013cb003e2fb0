"""Views on the terminal, made with Rich."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from unlazy.core.errors import printable
from unlazy.report.formulas import plain
from unlazy.report.labels import COLORS, MARKS
from unlazy.report.view import View, ViewTable, view_of

#: The ends of an interval, and the space before it.
_ENDS = re.compile(r"\[(\S+), (\S+)\]")
_INTERVAL = re.compile(r" \[(?=[-\d])")
#: The spaces at which the name of a column is folded: "n = 100" stays whole.
_HEADS = re.compile(r"(?<!=) (?!=)")
#: A formula at the end of a definition, with its unit: it gets a line of its own.
_FORMULA = re.compile(r" (?=\$[^$]+\$( \(unit: [^()]*\))?$)")
#: Maximum width of cells that are never folded, and of a column of sentences at its narrowest.
_NAME, _SENTENCE = 24, 20


class _Limits(NamedTuple):
    """Maximum number of rows per table and of lines per text in the short form."""

    rows: int = sys.maxsize
    lines: int = sys.maxsize


#: Tried in this order until a view fits its maximum number of lines.
_LIMITS = tuple(_Limits(rows, 3 if rows > 4 else 2 if rows > 1 else 1) for rows in range(8, 0, -1))


def print_outcome(outcome: Any, console: Console, *, details: bool = False) -> None:
    """Print an outcome of any kind."""
    print_view(view_of(outcome), console)


def max_lines_at(width: int, max_lines: int) -> int:
    """Return the number of lines of a width for a text of `max_lines` lines of 100 columns."""
    return max_lines * max(width, 100) // width


def print_view(view: View, console: Console, *, details: bool = False) -> None:
    """Print a view: the takeaway first, details on request.

    The short form has at most `view.max_lines` lines of 100 columns (0: any number), and as many
    more as a narrower terminal needs for the same text.
    """
    console.print()
    limited = view.max_lines and not details
    max_lines = max_lines_at(console.width, view.max_lines)
    for limits in _LIMITS if limited else (_Limits(),):
        group = Group(*_whole(view, console.width, details, limits))
        if not limited or len(console.render_lines(group, pad=False)) <= max_lines:
            break
    console.print(group, crop=False)


def _whole(view: View, width: int, details: bool, limits: _Limits) -> Iterator[RenderableType]:
    context = f" · {escaped(plain(view.context))}" if view.context else ""
    yield _text(f"[bold]{escaped(plain(view.title))}[/]{context}")
    yield from _body(view, width, details, limits)
    if view.more and view.details and not details:
        hidden = ", ".join(part.title for part in view.details)
        yield _text(f"[dim]{escaped(plain(view.more))}: {escaped(hidden)}[/]")


def _body(view: View, width: int, details: bool, limits: _Limits) -> Iterator[RenderableType]:
    takeaway = escaped(plain(view.takeaway))
    if view.status:
        mark = MARKS[view.status]
        word = f"[bold {COLORS[view.status]}]{mark[:2]}{mark[2:].upper()}[/]"
        yield _text(word + (f": {takeaway}" if takeaway else ""))
    elif takeaway:
        yield _text(f"[bold]{takeaway}[/]")
    if view.lines:
        yield _labeled(view.lines, width, limits)
    for item in view.items:
        text = plain(_FORMULA.sub("\n", item))
        bullet = Table.grid(padding=(0, 1, 0, 0))
        bullet.add_row("  ·", escaped(text))
        yield bullet
    for each in view.tables:
        yield table(each, details=details, limit=limits.rows)
        if each.caption:
            yield _text(f"[dim]{escaped(_cut(plain(each.caption), width, limits))}[/]")
    if view.code:  # wrapped lines would not be code
        yield Text(view.code, no_wrap=True, overflow="ignore")
    for note in view.notes:
        yield _text(f"[yellow]Note:[/] {escaped(_cut(plain(note), width - 6, limits))}")
    for part in (*view.parts, *(view.details if details else ())):
        if part.title:
            yield _text(f"[bold]{escaped(plain(part.title))}[/]")
        yield from _body(part, width, details, limits)


def escaped(text: str) -> str:
    """Return a text without markup of the terminal."""
    return escape(printable(text))


def _text(markup: str) -> Text:
    return Text.from_markup(markup)


def _cut(text: str, width: int, limits: _Limits) -> str:
    """Return a text cut to a number of lines."""
    if len(text) <= width:
        return text
    lines = textwrap.wrap(text, max(width, 20))
    if len(lines) <= limits.lines:
        return text
    kept = " ".join(lines[: limits.lines])
    return textwrap.shorten(kept, len(kept) - 2, placeholder=" …") if len(kept) > 8 else kept


def _labeled(lines: tuple[tuple[str, str], ...], width: int, limits: _Limits) -> Table:
    """Return labels in a column and sentences next to them."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    available = width - max(len(label) for label, _ in lines) - 4
    for label, text in lines:
        grid.add_row(f"[bold]{escaped(label)}[/]", escaped(_cut(plain(text), available, limits)))
    return grid


def table(view: ViewTable, *, details: bool = True, limit: int = sys.maxsize) -> RenderableType:
    """Return the table for the terminal; without details, its short form of at most `limit`
    rows.
    """
    short = view.brief if view.brief and not details else range(len(view.rows))
    chosen = sorted(short[:limit])
    rows = [[_compact(plain(cell)) for cell in view.rows[index]] for index in chosen]
    hidden = len(view.rows) - len(rows)
    return _Fitted(view, rows, f"… {hidden} more: -v" if hidden else None)


class _Fitted(NamedTuple):
    """Table whose columns continue below if they do not fit, after the first column again."""

    view: ViewTable
    rows: Sequence[Sequence[str]]
    caption: str | None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        columns = [_Column.of(self.view, i, self.rows) for i in range(len(self.view.columns))]
        blocks = _blocks(columns, options.max_width)
        for place, block in enumerate(blocks):
            part = Table(
                title=escaped(self.view.title) if self.view.title and not place else None,
                title_justify="left",
                title_style="bold",
                header_style="bold",
                box=box.SIMPLE_HEAD,
                show_edge=False,
                pad_edge=False,
                padding=(0, 1, 0, 0),
                caption=self.caption if place == len(blocks) - 1 else None,
                caption_justify="left",
            )
            for column in block:
                part.add_column(
                    escaped(column.name), overflow="fold", width=column.width, justify=column.side
                )
            for row in self.rows:
                part.add_row(*(_colored(row[column.place]) for column in block))
            yield part


class _Column(NamedTuple):
    """Column of a table; without a fixed `width` it may be folded down to `minimum`."""

    place: int
    name: str
    width: int | None
    minimum: int
    side: Literal["left", "right"]

    @classmethod
    def of(cls, view: ViewTable, index: int, rows: Sequence[Sequence[str]]) -> _Column:
        """Build from a column of cells.

        Numbers and names stay whole on a narrow screen; sentences may be folded, and so may
        intervals, after their mean.
        """
        name = view.columns[index]
        heads = _HEADS.split(name)
        parts = [part for row in rows for part in _INTERVAL.sub("\n[", row[index]).split("\n")]
        longest = max(map(len, [*heads, *parts]), default=0)
        fixed = longest <= _NAME and len(parts) == len(rows)
        words = [*heads, *(word for part in parts for word in part.split())]
        word = max(map(len, words), default=0)
        return cls(
            index,
            name,
            longest if fixed else None,
            longest if fixed else max(word, min(longest, _SENTENCE)),
            "right" if view.side(index) == "r" else "left",
        )


def _blocks(columns: Sequence[_Column], width: int) -> list[list[_Column]]:
    """Return columns that fit next to each other, the first one at the start of each block."""
    blocks = [list(columns[:1])]
    for column in columns[1:]:
        if sum(each.minimum + 2 for each in [*blocks[-1], column]) - 2 > width and blocks[-1][1:]:
            blocks.append([columns[0]])
        blocks[-1].append(column)
    return blocks


def _compact(cell: str) -> str:
    """Return a cell without the spaces within mean ± half-width and within an interval."""
    return _ENDS.sub(r"[\1,\2]", cell.replace(" ± ", "±"))


def _colored(cell: str) -> str:
    mark = cell.partition(" ")[0]
    color = next((COLORS[key] for key in MARKS if MARKS[key].partition(" ")[0] == mark), None)
    return f"[{color}]{escaped(cell)}[/]" if color else escaped(cell)
