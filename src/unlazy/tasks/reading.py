"""Error handling for user files: any failure of a reader becomes one readable message."""

from __future__ import annotations

import contextlib
import csv
import pickle
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from unlazy.core.errors import BadInput

#: Exceptions of readers on invalid content; RuntimeError is raised by encrypted archives.
BROKEN = (
    *(
        OSError,
        EOFError,
        ValueError,
        KeyError,
        IndexError,
        TypeError,
        AttributeError,
        ImportError,
        RuntimeError,
    ),
    *(csv.Error, zlib.error, zipfile.BadZipFile, tarfile.TarError, pickle.UnpicklingError),
)


@contextlib.contextmanager
def reading(path: Path, expected: str) -> Iterator[None]:
    """Raise `BadInput` if the file cannot be read in the expected format."""
    try:
        yield
    except BadInput:
        raise
    except BROKEN as error:
        raise unreadable(path, expected, error) from error


def unreadable(path: Path, expected: str, error: Exception) -> BadInput:
    """Return the error for an unreadable file."""
    reason = " ".join(str(error).split())
    return BadInput(
        f"{path} cannot be read as {expected}; it may be truncated or another kind of file "
        f"({type(error).__name__}: {reason})."
    )
