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


def require_whole(name: str, value: object, of: str = "") -> None:
    """Raise `BadInput` unless the value is a positive whole number `of` something."""
    what = f"a positive whole number{of and f' of {of}'}"
    require(isinstance(value, int) and value > 0, f"{name} must be {what}, but is {value!r}.")


def require_one_of(name: str, value: object, known: Iterable[str]) -> None:
    """Raise `BadInput` unless the value is among the known ones."""
    known = tuple(known)
    require(value in known, f"{name} must be one of {', '.join(known)}, but is {value!r}.")


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
