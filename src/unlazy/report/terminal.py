"""Views on the terminal, made with Rich."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from unlazy.report.labels import COLORS, MARKS
from unlazy.report.view import View, ViewTable, view_of


def print_outcome(outcome: Any, console: Console) -> None:
    """Print an outcome of any kind."""
    print_view(view_of(outcome), console)


def print_view(view: View, console: Console, *, details: bool = False) -> None:
    """Print a view: the takeaway first, the details on request."""
    console.print()
    context = f" · {escape(view.context)}" if view.context else ""
    console.print(f"[bold]{escape(view.title)}[/]{context}", highlight=False)
    _print_body(view, console, details)
    if view.more and view.details and not details:
        hidden = " · ".join(part.title for part in view.details)
        console.print(f"[dim]{escape(hidden)}[/]", highlight=False)
        console.print(f"[dim]Details: {escape(view.more)}[/]", highlight=False)


def _print_body(view: View, console: Console, details: bool) -> None:
    if view.status:
        mark = MARKS[view.status]
        word = f"[bold {COLORS[view.status]}]{mark[:2]}{mark[2:].upper()}[/]"
        console.print(
            word + (f": {escape(view.takeaway)}" if view.takeaway else ""), highlight=False
        )
    elif view.takeaway:
        console.print(f"[bold]{escape(view.takeaway)}[/]", highlight=False)
    _print_lines(view.lines, console)
    for item in view.items:
        console.print(Padding(f"· {escape(item)}", (0, 0, 0, 2)), highlight=False)
    for each in view.tables:
        console.print(table(each, details=details))
        if each.caption:
            console.print(f"[dim]{escape(each.caption)}[/]", highlight=False)
    if view.code:  # wrapped lines would not be code
        console.print(view.code, highlight=False, markup=False, soft_wrap=True)
    for note in view.notes:
        console.print(f"[yellow]Note:[/] {escape(note)}", highlight=False)
    for part in (*view.parts, *(view.details if details else ())):
        if part.title:
            console.print(f"[bold]{escape(part.title)}[/]", highlight=False)
        _print_body(part, console, details)


def _print_lines(lines: tuple[tuple[str, str], ...], console: Console) -> None:
    """Print labels in a column and sentences next to them."""
    if not lines:
        return
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in lines:
        grid.add_row(f"[bold]{escape(label)}[/]", escape(text))
    console.print(grid, highlight=False)


def table(view: ViewTable, *, details: bool = True) -> Table:
    """Return the table for the terminal; without details, its short form."""
    chosen = view.brief if view.brief and not details else range(len(view.rows))
    rows = [[cell.replace(" ± ", "±") for cell in view.rows[place]] for place in chosen]
    hidden = len(view.rows) - len(rows)
    drawn = Table(
        title=escape(view.title) if view.title else None,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        caption=f"… {hidden} more with details" if hidden else None,
        caption_justify="left",
    )
    for index, name in enumerate(view.columns):
        longest = max(map(len, [*name.split(), *(row[index] for row in rows)]), default=0)
        # Numbers and names stay whole on a narrow screen, and take no more than they need;
        # sentences may be folded.
        drawn.add_column(
            escape(name),
            overflow="fold",
            width=longest if longest <= 24 else None,
            justify="right" if view.side(index) == "r" else "left",
        )
    for row in rows:
        drawn.add_row(*(_colored(cell) for cell in row))
    return drawn


def _colored(cell: str) -> str:
    color = next((COLORS[key] for key, mark in MARKS.items() if cell.startswith(mark)), None)
    return f"[{color}]{escape(cell)}[/]" if color else escape(cell)
