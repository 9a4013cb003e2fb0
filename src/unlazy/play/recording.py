"""Recordings: the messages of a run, and an HTML page that replays them without a server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from unlazy.core.errors import UnlazyError
from unlazy.play.scenario import Preset
from unlazy.play.server import page
from unlazy.play.session import Session
from unlazy.report.files import replacing

#: Types of the messages in a recording.
KEPT = ("begun", "frame", "baseline")


def record(
    preset: Preset,
    values: dict[str, Any],
    *,
    baselines: bool = True,
    store: Path | None = None,
    watch: Callable[[dict[str, Any]], None] = lambda message: None,
) -> dict[str, Any]:
    """Run a preset to its end and return its messages.

    `store` caches the errors of the baselines. `watch` receives each message.
    """
    messages: list[dict[str, Any]] = []
    finished = threading.Event()
    failed: list[str] = []
    waiting: set[str] = set()

    def send(message: dict[str, Any]) -> None:
        watch(message)
        if message["type"] in KEPT:
            messages.append(message)
        if message["type"] == "begun":
            waiting.update(message["baselines"] if baselines else ())
        if message["type"] == "frame":
            session.submit({"do": "seen", "index": message["index"]})
        if message["type"] == "baseline":
            waiting.discard(message["name"])
        if message["type"] in ("refused", "broken", "background-error"):
            failed.append(message["message"])
            finished.set()
        if message["type"] == "done":
            waiting.discard("run")
        if not waiting:
            finished.set()

    waiting.add("run")
    session = Session({preset.id: preset}, send, store)
    session.start()
    session.submit({"do": "start", "preset": preset.id, "values": values})
    try:
        finished.wait()
    finally:
        session.stop()
    if failed:
        raise UnlazyError(failed[0])
    frames = {message["index"]: message for message in messages if message["type"] == "frame"}
    begun = next(message for message in messages if message["type"] == "begun")
    solved = [message for message in messages if message["type"] == "baseline"]
    return {
        "preset": preset.to_json(),
        "values": preset.read(values),
        "messages": [begun, *frames.values(), *solved],
    }


def write_recording(found: dict[str, Any], path: Path) -> None:
    """Write a page that replays a recording offline, as a single HTML file."""
    with replacing(path) as draft:
        draft.write_text(page(found), encoding="utf-8")
