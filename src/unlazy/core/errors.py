"""Errors that a user can act on: the problem, the expected input and the nearest valid choice."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable


class UnlazyError(Exception):
    """Base class of errors that the command line prints as one sentence, with exit status 2."""


class BadInput(UnlazyError, ValueError):
    """Invalid parameter, name or file; the message states what was expected."""


class StoreError(UnlazyError):
    """Store that cannot be opened, read or written; its content is unchanged."""


def require(condition: bool, message: str) -> None:
    """Raise `BadInput(message)` unless `condition` holds."""
    if not condition:
        raise BadInput(message)


def require_whole(name: str, value: object, of: str = "") -> None:
    """Raise `BadInput` unless the value is a positive integer `of` something."""
    expected = f"a positive integer{of and f' of {of}'}"
    require(isinstance(value, int) and value > 0, f"{name} must be {expected}, got {value!r}.")


def require_one_of(name: str, value: object, known: Iterable[str]) -> None:
    """Raise `BadInput` unless the value is one of the known ones."""
    known = tuple(known)
    require(value in known, f"{name} must be one of {', '.join(known)}, got {value!r}.")


def unknown(kind: str, name: str, known: Iterable[str]) -> BadInput:
    """Return the error for a name that does not exist, with the nearest known names."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    hint = (
        f"Did you mean {' or '.join(repr(n) for n in near)}?"
        if near
        else f"Known: {', '.join(known) or 'none'}."
    )
    return BadInput(f"There is no {kind} named {name!r}. {hint}")


def printable(text: str) -> str:
    """Return a text with control characters spelled out, which a terminal would obey."""
    return "".join(
        repr(each)[1:-1] if unicodedata.category(each) == "Cc" and each not in "\n\t" else each
        for each in text
    )
