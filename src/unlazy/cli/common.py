"""Shared parts of commands: options, store, console, JSON output."""

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
from unlazy.core.errors import BadInput, printable
from unlazy.report.files import check_writable, replacing

SCALES = click.Choice(["smoke", "laptop", "paper"])

store_option = click.option(
    "--store",
    "store_path",
    type=click.Path(path_type=Path),
    help="Store file [default: $UNLAZY_STORE or the user's data folder].",
)


def _use_data(_: click.Context, __: click.Parameter, folder: Path | None) -> Path | None:
    """Set the folder of image datasets for this process and its children."""
    if folder is not None:
        if not folder.is_dir():
            raise BadInput(
                f"--data must be a folder with image datasets, but {folder} does not exist."
            )
        os.environ["UNLAZY_DATA"] = str(folder.resolve())
    return folder


data_option = click.option(
    "--data",
    type=click.Path(path_type=Path),
    callback=_use_data,
    expose_value=False,
    help="Folder of image datasets [default: $UNLAZY_DATA and the user's data folder].",
)
out_option = click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("page.html"),
    show_default=True,
    help="Page to write.",
)
scale_option = click.option(
    "--scale", type=SCALES, default="laptop", show_default=True, help="Size of the experiments."
)
_ENGINE_OPTIONS = (
    click.option(
        "--engine",
        default="local",
        show_default=True,
        metavar="NAME",
        help="Execution engine: local (this process), processes, dask, tls://host:port (running "
        "Dask cluster) or slurm.",
    ),
    click.option(
        "--workers",
        type=click.IntRange(min=1),
        help="Worker processes or simultaneous SLURM jobs [default: one per core].",
    ),
    click.option(
        "--slurm",
        default="",
        metavar="NAME=VALUE,...",
        help="Resources per SLURM job, such as partition=cpu,time=60,mem=4G.",
    ),
    click.option(
        "--memory",
        type=click.FloatRange(min=0, min_open=True),
        help="GiB that a compiled program may use [default: half of the free memory, at most 2].",
    ),
)


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add options that select the execution engine.

    The command receives `engine`, a function from the path of a store to an engine.
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
    help="Write results as JSON to this file ('-': standard output).",
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
    help="Figure size: page, one column of a paper, both columns (wide), or slide.",
)
learner_option = click.option(
    "--learner",
    "names",
    multiple=True,
    metavar="NAME",
    help="Learner (required, repeatable): see 'unlazy list learners'; your own as file.py:Name.",
)
set_option = click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a task parameter, such as d=100 (repeatable).",
)
first_seed_option = click.option(
    "--first-seed",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="First seed. Seeds below 10 were used for tuning.",
)


def count_option(name: str, default: int, help: str) -> Callable[..., Any]:
    """Return an option that takes a positive number."""
    number = click.IntRange(min=1)
    return click.option(name, type=number, default=default, show_default=True, help=help)


def default_store() -> Path:
    """Return $UNLAZY_STORE, or a file in the user's data folder."""
    import platformdirs

    return Path(
        os.environ.get("UNLAZY_STORE")
        or Path(platformdirs.user_data_dir("unlazy")) / "store.sqlite"
    )


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add options of commands that run studies.

    The command receives `running`, a function that opens a session.
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
            raise BadInput("--fresh runs all trials again; it excludes --reuse-older.")

        def running(*, brief: bool = False) -> Any:
            return _running(store_path, engine, fresh, reuse_older, brief)

        return command(*arguments, running=running, **others)

    return store_option(engine_options(_FRESH_OPTION(_REUSE_OPTION(wrapped))))


_FRESH_OPTION = click.option(
    "--fresh", is_flag=True, help="Run all trials again and replace their records."
)
_REUSE_OPTION = click.option(
    "--reuse-older",
    is_flag=True,
    help="Also use outdated records (made by other code, libraries or data), with a note.",
)


@contextlib.contextmanager
def _running(
    store_path: Path | None,
    engine: Callable[[Path], Any],
    fresh: bool,
    reuse_older: bool,
    brief: bool,
) -> Iterator[Any]:
    """Open the store and its engine; SIGTERM interrupts like Ctrl-C."""
    from unlazy.api import RunSession
    from unlazy.lab.stopping import Terminated, stoppable
    from unlazy.lab.store import Store
    from unlazy.report.progress import RunProgress

    path = store_path or default_store()
    try:
        with stoppable(), Store(path) as store, engine(path) as runner:
            yield RunSession(store, runner, RunProgress(console(), brief=brief), fresh, reuse_older)
    except KeyboardInterrupt as stop:  # exit status of shells: 128 + signal
        number = signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT
        sys.exit(128 + number)


def heading(*parts: str) -> None:
    """Print the title of a run in one line."""
    from rich.markup import escape

    first, *rest = map(escape, parts)
    console().print(" · ".join([f"[bold]{first}[/]", *rest]), highlight=False, soft_wrap=True)


def console() -> Any:
    """Return a console on standard output, or on standard error if JSON goes to standard output."""
    from rich.console import Console

    return Console(
        stderr=click.get_current_context().meta.get("machine_reads_output", False),
        quiet=is_set(QUIET),
    )


def say(text: str) -> None:
    """Print a line unless --quiet is set."""
    if not is_set(QUIET):
        click.echo(
            printable(text), err=click.get_current_context().meta.get("machine_reads_output", False)
        )


def open_in_browser(path: Path) -> None:
    """Open a file in the browser."""
    import webbrowser

    if not webbrowser.open(path.resolve().as_uri()):
        say(f"No browser found; open {path.resolve()}.")


def prepare_outputs(json_path: Path | None, figure: Path | None = None) -> None:
    """Check before a run that output files can be written; reserve standard output for JSON."""
    if figure is not None and figure.suffix not in (".png", ".pdf", ".svg"):
        raise BadInput(
            f"The name of a figure must end with .png, .pdf or .svg, got {figure.name!r}."
        )
    for path in (json_path if str(json_path) != "-" else None, figure):
        if path is not None:
            check_writable(path)
    click.get_current_context().meta["machine_reads_output"] = str(json_path) == "-"


def write_json(data: Any, path: Path | None) -> None:
    """Write JSON to a file, to standard output if the path is '-', or nowhere."""
    if path is None:
        return
    text = json.dumps(data, indent=2, ensure_ascii=False)
    if str(path) == "-":
        click.echo(text)
        return
    with replacing(path) as draft:
        draft.write_text(text + "\n", encoding="utf-8")


def write_figure(outcome: Any, path: Path | None, style: str = "page") -> None:
    """Write the figure of an outcome, and its data as CSV next to it."""
    if path is None:
        return
    from unlazy.report.figures import save_plot
    from unlazy.report.view import view_of

    numbers = save_plot(view_of(outcome).plots[0], path, style)
    say(f"Figure written to {path}, data to {numbers}")


def integers(name: str, text: str) -> tuple[int, ...]:
    """Return the integers of a text such as 1000,10000."""
    try:
        return tuple(sorted({int(part) for part in text.replace("_", "").split(",")}))
    except ValueError:
        raise BadInput(
            f"{name} takes comma-separated integers such as 1000,10000, got {text!r}."
        ) from None
