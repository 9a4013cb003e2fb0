"""Handling of Ctrl-C and of SIGTERM, which clusters send.

A write in progress is completed first.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Terminated(KeyboardInterrupt):
    """Interrupt by SIGTERM."""


class _Asked:
    """Number of writes in progress, and the interrupt received meanwhile."""

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
    """Raise `Terminated` on SIGTERM and `KeyboardInterrupt` on Ctrl-C, but not during a write."""
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
    """Delay interrupts until the end of a write."""
    _Asked.writing += 1
    try:
        yield
    finally:
        _Asked.writing -= 1
    if not _Asked.writing and _Asked.asked is not None:
        asked, _Asked.asked = _Asked.asked, None
        raise asked
