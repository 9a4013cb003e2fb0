"""Being told to stop: by Ctrl-C, or by SIGTERM as clusters send it.

A write that has begun is finished first.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Terminated(KeyboardInterrupt):
    """SIGTERM: like Ctrl-C, but from a machine."""


class _Asked:
    """Whether something is being written, and how one was asked to stop meanwhile."""

    writing = 0
    asked: type[KeyboardInterrupt] | None = None


def _stop(number: int, frame: FrameType | None) -> None:
    kind = Terminated if number == signal.SIGTERM else KeyboardInterrupt
    if _Asked.writing:
        _Asked.asked = kind
    else:
        raise kind


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Within it SIGTERM and Ctrl-C raise `Terminated` and `KeyboardInterrupt`, but not in the
    middle of a write.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _Asked.asked = None


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """What must not be cut off."""
    _Asked.writing += 1
    try:
        yield
    finally:
        _Asked.writing -= 1
    if not _Asked.writing and _Asked.asked is not None:
        asked, _Asked.asked = _Asked.asked, None
        raise asked
