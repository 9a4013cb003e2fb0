"""`unlazy data`."""

from __future__ import annotations

from pathlib import Path

import click

from unlazy.cli.common import console, data_option, say


@click.group("data", invoke_without_command=True)
@data_option
@click.pass_context
def data(context: click.Context) -> None:
    """List or download image datasets.

    'unlazy data fetch NAME' downloads a dataset.
    """
    if context.invoked_subcommand is not None:
        return
    from unlazy.report.tables import terminal
    from unlazy.tasks.images.library import SETS, locate, missing, pictures_of

    rows = []
    for name, entry in SETS.items():
        found = locate(name)
        megabytes = sum(download.size for download in entry.downloads) / 1e6
        if found is None:
            rows.append([name, entry.title, "–", "–", f"{megabytes:.0f} MB to download"])
            continue
        images = pictures_of(name)
        rows.append(
            [
                name,
                entry.title,
                f"{len(images.y_train)} + {len(images.y_test)}",
                str(len(images.classes)),
                str(found.files[0]),
            ]
        )
    console().print(
        terminal(
            (["name", "dataset", "training + test images", "classes", "location"], rows),
            "Image datasets",
        )
    )
    for name in SETS:
        if (lacking := missing(name)) is not None:
            say(lacking)


@data.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Target folder [default: the user's data folder].",
)
def fetch(names: tuple[str, ...], folder: Path | None) -> None:
    """Download image datasets from their publishers.

    Interrupted downloads are resumed; checksums are verified.
    """
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from unlazy.core.errors import unknown
    from unlazy.tasks.images.fetching import fetch_set
    from unlazy.tasks.images.library import SETS

    for name in names:
        if name not in SETS:
            raise unknown("image dataset that can be downloaded", name, SETS)
    shown = console()
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=shown,
    ) as bar:
        bars: dict[str, object] = {}

        def progress(file: str, done: int, total: int) -> None:
            if file not in bars:
                bars[file] = bar.add_task(file, total=total)
            bar.update(bars[file], completed=done)  # type: ignore[arg-type]

        for name in names:
            files = fetch_set(name, folder, progress)
            shown.print(
                f"{SETS[name].title.partition(',')[0]} is in {files[0].parent}",
                soft_wrap=True,
                markup=False,
            )
