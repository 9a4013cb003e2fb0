"""Files that people bring: what libraries say of a broken one becomes one sentence, and no other
error comes out.
"""

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

#: What readers raise where bytes are not what they should be; a RuntimeError is an archive that
#: asks for a password.
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
def reading(path: Path, what: str) -> Iterator[None]:
    """Raise `BadInput` where the file cannot be read as what it should be."""
    try:
        yield
    except BadInput:
        raise
    except BROKEN as error:
        raise unreadable(path, what, error) from error


def unreadable(path: Path, what: str, error: Exception) -> BadInput:
    """The sentence."""
    told = " ".join(str(error).split())
    return BadInput(
        f"{path} cannot be read as {what}; it may be truncated or another kind of file "
        f"({type(error).__name__}: {told})."
    )
