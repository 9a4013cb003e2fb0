"""Output files: checked before a run, and written atomically."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from unlazy.core.errors import BadInput


def check_writable(path: Path) -> None:
    """Raise an error if an output path cannot be written."""
    if path.is_dir():
        raise BadInput(f"{path} is a folder; a file name was expected.")
    if path.exists() and not path.is_file():
        raise BadInput(f"{path} is not an ordinary file; choose another name.")
    if not path.parent.is_dir():
        raise BadInput(
            f"The folder {path.parent} does not exist; create it or choose another file."
        )
    if not os.access(path.parent, os.W_OK):
        raise BadInput(f"The folder {path.parent} cannot be written; choose another file.")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file that replaces `path` if the block succeeds, and is removed if not."""
    check_writable(path)
    path = path.resolve()  # write through a symbolic link
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        draft.chmod(0o666 & ~_umask())  # mkstemp makes files that only their owner can read
        draft.replace(path)
    except OSError as error:
        raise BadInput(
            f"{path} cannot be written: {error.strerror or error}. It was left as it was."
        ) from error
    finally:
        draft.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
