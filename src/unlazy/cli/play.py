"""`unlazy play`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from unlazy.cli.common import default_store, store_option
from unlazy.core.errors import BadInput, unknown
from unlazy.report.files import check_writable


@click.command()
@click.argument("what", required=False, metavar="[WALKTHROUGH | TASK | TABLE:COLUMN]")
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a parameter of the walkthrough or task, such as d=40.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port on this machine [default: any free port].",
)
@click.option("--no-browser", is_flag=True, help="Do not open a browser; print the address.")
@click.option(
    "--record",
    "record_path",
    type=click.Path(path_type=Path),
    help="Train without a browser and write a recording (one HTML file).",
)
@click.option(
    "--check",
    is_flag=True,
    help="Test the live page: serve it, train briefly, print the time and exit.",
)
@store_option
def play(
    what: str | None,
    changes: tuple[str, ...],
    port: int,
    no_browser: bool,
    record_path: Path | None,
    check: bool,
    store_path: Path | None,
) -> None:
    """Watch training live in the browser.

    Without a name, the page shows walkthroughs of the papers. A name is a walkthrough ('shi2022'),
    a task ('unlazy list tasks'), your own task as file.py:Name, or a column of a table as
    table.csv:column. The page is served to this machine only; training stops when it is closed.
    The test errors of the baselines are kept in the store.
    """
    if check:
        return click.echo(checked())
    if not record_path:
        click.echo("Starting …", err=True)
    presets = presets_with(what)
    chosen = what or next(iter(presets))
    values, store = values_of(changes), store_path or default_store()
    values = presets[chosen].full_names(values)
    presets[chosen].scenario(values)  # invalid values fail before a browser opens
    if record_path is not None:
        return _record(presets[chosen], values, record_path, store)
    _serve(presets, {"preset": chosen, "values": values}, port, no_browser, store)
    return None


def presets_with(what: str | None) -> dict[str, Any]:
    """Return walkthroughs, built-in tasks and the named preset, by name."""
    from unlazy.lab.registry import tasks
    from unlazy.play.own import task_preset
    from unlazy.play.presets import PRESETS

    names = [*PRESETS, *tasks()]
    found = {**PRESETS, **{name: task_preset(name) for name in tasks()}}
    if what is not None and what not in found:
        if ":" not in what:
            raise unknown("walkthrough or task", what, names)
        found[what] = task_preset(what)
    return found


def values_of(changes: tuple[str, ...]) -> dict[str, str]:
    """Return the values of texts such as d=40 by name."""
    found = {}
    for change in changes:
        name, sign, text = change.partition("=")
        if not sign:
            raise BadInput(f"--set takes NAME=VALUE, such as d=40, got {change!r}.")
        found[name] = text
    return found


def _serve(
    presets: dict[str, Any], opening: dict[str, Any], port: int, no_browser: bool, store: Path
) -> None:
    import secrets
    import webbrowser

    from unlazy.play.server import application, free_port, serve

    token, sock = secrets.token_urlsafe(24), free_port(port)
    address = f"http://127.0.0.1:{sock.getsockname()[1]}/?token={token}"
    click.echo(
        f"Open {address}\nOnly this machine has access. Close the tab to stop training; press "
        "Ctrl-C to exit."
    )
    sock.listen(64)  # a browser that connects before the server waits
    if not no_browser:
        webbrowser.open(address)
    serve(application(presets, token, opening, store), sock)


def _record(preset: Any, values: dict[str, Any], path: Path, store: Path) -> None:
    from unlazy.play.recording import record, write_recording

    check_writable(path)
    with click.progressbar(length=100, label=f"Recording {preset.id}", show_eta=True) as bar:
        shown = 0

        def watch(message: dict[str, Any]) -> None:
            nonlocal shown
            if message["type"] == "frame":
                now = round(100 * (message["index"] + 1) / message["count"])
                bar.update(now - shown)
                shown = max(shown, now)

        found = record(preset, values, store=store, watch=watch)
    write_recording(found, path)
    click.echo(f"Recording written to {path.resolve()} (one file, works offline).")


#: Parameters of the run of `--check`: the same programs at small sizes.
SMALL = {"d": "12", "D": "6", "m": "8", "T": "20", "n": "300", "seeds": "1"}


def checked() -> str:
    """Run a server in a thread, request the page, follow one training run, and return a report."""
    import json
    import secrets
    import urllib.request

    from websockets.sync.client import connect

    from unlazy.play.presets import PRESETS
    from unlazy.play.server import application, served

    begin, token = time.perf_counter(), secrets.token_urlsafe(24)
    frames, first = 0, 0.0
    with served(application(PRESETS, token)) as host:
        with urllib.request.urlopen(f"http://{host}/?token={token}") as answer:
            size = len(answer.read())
        with connect(f"ws://{host}/live?token={token}") as ws:
            ws.send(json.dumps({"do": "start", "preset": "shi2022", "values": SMALL}))
            for text in ws:
                message = json.loads(text)
                if message["type"] in ("broken", "refused"):
                    raise BadInput(f"The check failed: {message['message']}")
                if message["type"] == "frame":
                    frames, first = frames + 1, first or time.perf_counter() - begin
                    ws.send(json.dumps({"do": "seen", "index": message["index"]}))
                if message["type"] == "done":
                    break
    took = time.perf_counter() - begin
    return (
        f"The page works: {size:,} bytes of HTML, {frames} frames, the first after {first:.1f} s, "
        f"the last after {took:.1f} s."
    )
