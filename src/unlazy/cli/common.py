"""What commands share: options, the store, the console, and output as JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from unlazy.cli.defaults import QUIET, is_set
from unlazy.core.errors import BadInput
from unlazy.report.files import check_writable, replacing

SCALES = click.Choice(["smoke", "laptop", "paper"])

store_option = click.option(
    "--store",
    "store_path",
    type=click.Path(path_type=Path),
    help="Store file [default: $UNLAZY_STORE or the user's data folder].",
)
scale_option = click.option("--scale", type=SCALES, default="laptop", show_default=True, help="How large to run.")
memory_option = click.option(
    "--memory",
    type=click.FloatRange(min=0, min_open=True),
    help="GiB that a running program may use [default: half of what is free, at most 2].",
)
json_option = click.option(
    "--json", "json_path", type=click.Path(path_type=Path), help="Write what was found to this file ('-': standard output)."
)
figure_option = click.option(
    "--figure", "--out", "figure", type=click.Path(path_type=Path), help="Write the figure to this file (.png, .pdf or .svg)."
)
style_option = click.option(
    "--style",
    type=click.Choice(["page", "column", "wide", "slide"]),
    default="page",
    show_default=True,
    help="Figures for a page, a column of a paper, both columns, or a slide.",
)
learner_option = click.option(
    "--learner",
    "names",
    multiple=True,
    metavar="NAME",
    help="A learner, again for each: one of 'unlazy list learners', or of your own, as file.py:Name.",
)
set_option = click.option("--set", "changes", multiple=True, metavar="NAME=VALUE", help="Change a number of the task, such as d=100.")
first_seed_option = click.option(
    "--first-seed",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="First seed; those below 10 were used to choose settings.",
)


def default_store() -> Path:
    """$UNLAZY_STORE, or a file in the user's data folder."""
    import platformdirs

    return Path(os.environ.get("UNLAZY_STORE") or Path(platformdirs.user_data_dir("unlazy")) / "store.sqlite")


def console() -> Any:
    """Where people read: standard output, or standard error while a machine reads standard output."""
    from rich.console import Console

    return Console(stderr=click.get_current_context().meta.get("machine_reads_output", False), quiet=is_set(QUIET))


def say(text: str) -> None:
    """A line for people, which a quiet run leaves out."""
    if not is_set(QUIET):
        click.echo(text, err=click.get_current_context().meta.get("machine_reads_output", False))


def open_in_browser(path: Path) -> None:
    """Show a page that was written."""
    import webbrowser

    if not webbrowser.open(path.resolve().as_uri()):
        say(f"No browser was found: open {path.resolve()} in one.")


def prepare_outputs(json_path: Path | None, figure: Path | None = None) -> None:
    """Refuse output files that cannot be written, before anything is run; keep standard output for a machine that reads it."""
    if figure is not None and figure.suffix not in (".png", ".pdf", ".svg"):
        raise BadInput(f"A figure ends with .png, .pdf or .svg, but {figure.name!r} does not.")
    for path in (json_path if str(json_path) != "-" else None, figure):
        if path is not None:
            check_writable(path)
    click.get_current_context().meta["machine_reads_output"] = str(json_path) == "-"


def write_json(data: Any, path: Path | None) -> None:
    """Write to a file, to standard output where the path is '-', or nowhere."""
    if path is None:
        return
    text = json.dumps(data, indent=2, ensure_ascii=False)
    if str(path) == "-":
        click.echo(text)
        return
    with replacing(path) as draft:
        draft.write_text(text + "\n", encoding="utf-8")


def write_figure(outcome: Any, path: Path | None, style: str = "page") -> None:
    """Write the figure of an outcome, in the format that the name ends with, and beside it the numbers that are drawn."""
    if path is None:
        return
    from unlazy.report.prints import save_figure, save_numbers

    figure = outcome.figure()
    save_figure(figure, path, style)
    numbers = save_numbers(figure, path.with_suffix(".csv"))
    console().print(f"Figure written to {path}, its numbers to {numbers}", soft_wrap=True)


def whole_numbers(name: str, text: str) -> tuple[int, ...]:
    """Numbers such as 1000,10000."""
    try:
        return tuple(sorted({int(part) for part in text.replace("_", "").split(",")}))
    except ValueError:
        raise BadInput(f"{name} takes whole numbers with commas between, such as 1000,10000, but is {text!r}.") from None
