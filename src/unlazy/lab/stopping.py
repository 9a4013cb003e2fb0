"""Handling of Ctrl-C, of SIGTERM (sent by clusters) and of SIGHUP (sent by a closed terminal).

A write in progress is completed first. A second signal ends the process at once; what was written
is kept.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(KeyboardInterrupt):
    """Interrupt by a signal; `status` is the exit status of shells."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = 128 + number


class _Asked:
    """Number of writes in progress, and the interrupt received."""

    writing = 0
    asked: Stopped | None = None
    raised = False


def _stop(number: int, frame: FrameType | None) -> None:
    if _Asked.raised:
        os._exit(128 + number)
    asked = _Asked.asked = Stopped(number)
    if not _Asked.writing:
        _Asked.raised = True
        raise asked


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Raise `Stopped` on a signal, but not during a write; ignored signals stay ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, _stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _Asked.asked, _Asked.raised = None, False


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """Delay interrupts until the end of a write."""
    _Asked.writing += 1
    try:
        yield
    finally:
        _Asked.writing -= 1
    if not _Asked.writing and _Asked.asked is not None and not _Asked.raised:
        _Asked.raised = True
        raise _Asked.asked
