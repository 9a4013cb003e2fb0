"""Being told to stop: by Ctrl-C, or by SIGTERM as clusters send it. A write that has begun is finished first."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Terminated(KeyboardInterrupt):
    """SIGTERM: like Ctrl-C, but from a machine."""


class _State:
    """Whether something is being written, and who asked to stop meanwhile."""

    writing = 0
    asked: type[KeyboardInterrupt] | None = None


def _stop(number: int, frame: FrameType | None) -> None:
    kind = Terminated if number == signal.SIGTERM else KeyboardInterrupt
    if _State.writing:
        _State.asked = kind
    else:
        raise kind


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Within it SIGTERM and Ctrl-C raise `Terminated` and `KeyboardInterrupt`, but not in the middle of a write."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _State.asked = None


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """What must not be cut off."""
    _State.writing += 1
    try:
        yield
    finally:
        _State.writing -= 1
    if not _State.writing and _State.asked is not None:
        asked, _State.asked = _State.asked, None
        raise asked
