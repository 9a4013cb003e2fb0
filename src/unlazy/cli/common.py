"""What commands share: options, the store, the console, and output as JSON."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
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


def _use_data(_: click.Context, __: click.Parameter, folder: Path | None) -> Path | None:
    """Where sets of images are looked for, in this process and in those it starts."""
    if folder is not None:
        if not folder.is_dir():
            raise BadInput(
                f"There is no folder {folder}. --data names the folder that holds sets of images."
            )
        os.environ["UNLAZY_DATA"] = str(folder.resolve())
    return folder


data_option = click.option(
    "--data",
    type=click.Path(path_type=Path),
    callback=_use_data,
    expose_value=False,
    help="Folder that holds sets of images [default: $UNLAZY_DATA, and the user's data folder].",
)
out_option = click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("page.html"),
    show_default=True,
    help="Page to write.",
)
scale_option = click.option(
    "--scale", type=SCALES, default="laptop", show_default=True, help="How large to run."
)
_ENGINE_OPTIONS = (
    click.option(
        "--engine",
        default="local",
        show_default=True,
        metavar="NAME",
        help="Where to run: local (this process), processes, dask, tcp://host:port (a Dask "
        "cluster that is there), or slurm.",
    ),
    click.option(
        "--workers",
        type=click.IntRange(min=1),
        help="Worker processes, or SLURM jobs at once [default: one a core].",
    ),
    click.option(
        "--slurm",
        default="",
        metavar="NAME=VALUE,...",
        help="What SLURM jobs ask for, such as partition=cpu,time=60,mem=4G.",
    ),
    click.option(
        "--memory",
        type=click.FloatRange(min=0, min_open=True),
        help="GiB that a running program may use [default: half of what is free, at most 2].",
    ),
)


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that say where trials are run.

    The command is handed `engine`, which makes the engine for a store.
    """

    @functools.wraps(command)
    def wrapped(
        *arguments: Any,
        engine: str,
        workers: int | None,
        slurm: str,
        memory: float | None,
        **others: Any,
    ) -> Any:
        def make(store: Path) -> Any:
            from unlazy.lab.engines.choice import engine_named

            allowed = None if memory is None else int(memory * 2**30)
            return engine_named(
                engine, memory=allowed, workers=workers, slurm=slurm, store=str(store)
            )

        return command(*arguments, engine=make, **others)

    for option in reversed(_ENGINE_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


json_option = click.option(
    "--json",
    "json_path",
    type=click.Path(path_type=Path),
    help="Write what was found to this file ('-': standard output).",
)
figure_option = click.option(
    "--figure",
    "--out",
    "figure",
    type=click.Path(path_type=Path),
    help="Write the figure to this file (.png, .pdf or .svg).",
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
    help="A learner, again for each: one of 'unlazy list learners', or of your own, as "
    "file.py:Name.",
)
set_option = click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="NAME=VALUE",
    help="Change a number of the task, such as d=100.",
)
first_seed_option = click.option(
    "--first-seed",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="First seed; those below 10 were used to choose settings.",
)


def count_option(name: str, default: int, help: str) -> Callable[..., Any]:
    """Return an option that takes a positive number."""
    number = click.IntRange(min=1)
    return click.option(name, type=number, default=default, show_default=True, help=help)


def default_store() -> Path:
    """$UNLAZY_STORE, or a file in the user's data folder."""
    import platformdirs

    return Path(
        os.environ.get("UNLAZY_STORE")
        or Path(platformdirs.user_data_dir("unlazy")) / "store.sqlite"
    )


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of commands that run studies.

    The command receives `running`: a function that opens the session in which studies run.
    """

    @functools.wraps(command)
    def wrapped(
        *arguments: Any,
        store_path: Path | None,
        engine: Callable[[Path], Any],
        fresh: bool,
        reuse_older: bool,
        **others: Any,
    ) -> Any:
        if fresh and reuse_older:
            raise BadInput("--fresh runs all trials again: it goes without --reuse-older.")

        def running(*, brief: bool = False) -> Any:
            return _running(store_path, engine, fresh, reuse_older, brief)

        return command(*arguments, running=running, **others)

    return store_option(engine_options(_FRESH_OPTION(_REUSE_OPTION(wrapped))))


_FRESH_OPTION = click.option("--fresh", is_flag=True, help="Run all trials again.")
_REUSE_OPTION = click.option(
    "--reuse-older",
    is_flag=True,
    help="Also use records made by other code, libraries or data, and say so.",
)


@contextlib.contextmanager
def _running(
    store_path: Path | None,
    engine: Callable[[Path], Any],
    fresh: bool,
    reuse_older: bool,
    brief: bool,
) -> Iterator[Any]:
    """Open the store and its engine; SIGTERM ends what is done with them as Ctrl-C does."""
    from unlazy.api import RunSession
    from unlazy.lab.stopping import Terminated, stoppable
    from unlazy.lab.store import Store
    from unlazy.report.progress import RunProgress

    place = store_path or default_store()
    try:
        with stoppable(), Store(place) as store, engine(place) as runner:
            yield RunSession(store, runner, RunProgress(console(), brief=brief), fresh, reuse_older)
    except KeyboardInterrupt as stop:  # as shells number it: 128 and the signal
        number = signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT
        sys.exit(128 + number)


def heading(*parts: str) -> None:
    """Print what is run, in one line: its name first."""
    from rich.markup import escape

    first, *rest = map(escape, parts)
    console().print(" · ".join([f"[bold]{first}[/]", *rest]), highlight=False, soft_wrap=True)


def console() -> Any:
    """Where people read: standard output, or standard error while a machine reads standard
    output.
    """
    from rich.console import Console

    return Console(
        stderr=click.get_current_context().meta.get("machine_reads_output", False),
        quiet=is_set(QUIET),
    )


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
    """Refuse output files that cannot be written, before anything is run; keep standard output for
    a machine that reads it.
    """
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
    """Write the figure of an outcome, in the format that the name ends with, and beside it the
    numbers that are drawn.
    """
    if path is None:
        return
    from unlazy.report.figures import save_plot
    from unlazy.report.view import view_of

    numbers = save_plot(view_of(outcome).plots[0], path, style)
    console().print(f"Figure written to {path}, its numbers to {numbers}", soft_wrap=True)


def whole_numbers(name: str, text: str) -> tuple[int, ...]:
    """Numbers such as 1000,10000."""
    try:
        return tuple(sorted({int(part) for part in text.replace("_", "").split(",")}))
    except ValueError:
        raise BadInput(
            f"{name} takes whole numbers with commas between, such as 1000,10000, but is {text!r}."
        ) from None
