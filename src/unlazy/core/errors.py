"""Errors that a user can act on: what is wrong, what was expected, and the nearest valid choice."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UnlazyError(Exception):
    """Base of the errors that the command line shows as one sentence, with exit status 2."""


class BadInput(UnlazyError, ValueError):
    """A parameter, name or file that cannot be used, with a sentence that says what was
    expected.
    """


class StoreError(UnlazyError):
    """A store that cannot be opened, read or written; nothing in it was changed."""


def require(condition: bool, message: str) -> None:
    """Raise `BadInput(message)` unless `condition` holds."""
    if not condition:
        raise BadInput(message)


def unknown(kind: str, name: str, known: Iterable[str]) -> BadInput:
    """The error for a name that does not exist, with the nearest names that do."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    hint = (
        f"Did you mean {' or '.join(repr(n) for n in near)}?"
        if near
        else f"Known: {', '.join(known) or 'none'}."
    )
    return BadInput(f"There is no {kind} named {name!r}. {hint}")
