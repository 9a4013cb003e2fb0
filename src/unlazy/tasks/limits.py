"""Limits of the sizes of files, so that a small compressed file cannot fill the memory.

A limit is raised by its environment variable, which the error names.
"""

from __future__ import annotations

import gzip
import os
import zipfile
from pathlib import Path
from typing import IO, Any

from unlazy.core.errors import require

#: Environment variables, with their defaults and what they count.
LIMITS = {
    "UNLAZY_MAX_BYTES": (2**30, "bytes after decompression"),
    "UNLAZY_MAX_PIXELS": (2**28, "pixels"),
    "UNLAZY_MAX_COLUMNS": (10_000, "columns"),
}


def limit(name: str) -> int:
    """Return a limit, from its environment variable if that is set."""
    text = os.environ.get(name, "")
    if not text:
        return LIMITS[name][0]
    require(text.isdecimal() and int(text) > 0, f"{name} must be a positive integer, got {text!r}.")
    return int(text)


def require_within(name: str, size: int, where: str) -> None:
    """Raise `BadInput` if a size is above a limit."""
    allowed, unit = limit(name), LIMITS[name][1]
    require(size <= allowed, f"{where} has more than {allowed:,} {unit}. To read it, raise {name}.")


def archived(path: Path) -> Path:
    """Return the path of a zip archive such as an `.npz` file, if its content is within limits."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            size = sum(each.file_size for each in archive.infolist())
        require_within("UNLAZY_MAX_BYTES", size, str(path))
    return path


def decompressed(path: Path) -> bytes:
    """Return the content of a file, decompressed if its name ends with `.gz`."""
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        content: bytes = file.read(limit("UNLAZY_MAX_BYTES") + 1)
    require_within("UNLAZY_MAX_BYTES", len(content), str(path))
    return content


class Limited:
    """A binary file that can be read up to the limit of bytes, as a stream."""

    def __init__(self, file: IO[bytes] | gzip.GzipFile, where: str) -> None:
        self._file, self._where, self._count = file, where, 0

    def read(self, size: int = -1) -> bytes:
        """Read as the file does."""
        return self._counted(self._file.read(size))

    def read1(self, size: int = -1) -> bytes:
        """Read as the file does, with at most one call of the system."""
        return self._counted(self._file.read1(size))  # type: ignore[union-attr]

    def seek(self, place: int) -> None:
        """Continue at a place, from which bytes are counted."""
        self._file.seek(place)
        self._count = place

    def _counted(self, found: bytes) -> bytes:
        self._count += len(found)
        require_within("UNLAZY_MAX_BYTES", self._count, self._where)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
