"""Fetching sets of images from where they are published: checked by their sums, and going on where
a download was cut off.
"""

from __future__ import annotations

import contextlib
import shutil
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pooch

from unlazy.core.errors import BadInput, unknown
from unlazy.tasks.images.library import SETS, VARIABLE, Download, own_folder

#: It tells what it loads by itself; people see a bar instead.
pooch.get_logger().setLevel("ERROR")
#: Bytes that are read at a time, and seconds to wait for an answer.
BYTES, PATIENCE = 1 << 16, 30
#: Is told how many bytes of a file are there, and how many there will be.
Told = Callable[[str, int, int], None]


def fetch_set(name: str, folder: Path | None = None, told: Told | None = None) -> list[Path]:
    """The public files of a set, in `folder` or where fetched data are put.

    What is there and has the right sum is not fetched again.
    """
    if name not in SETS:
        raise unknown("set of images that can be fetched", name, SETS)
    place = folder or own_folder()
    files = [
        _fetch(download, place, told or (lambda *_: None)) for download in SETS[name].downloads
    ]
    for path in files:
        if path.suffix == ".zip":
            _unpack(path)
    return files


def _fetch(download: Download, folder: Path, told: Told) -> Path:
    try:
        return Path(
            pooch.retrieve(
                download.url,
                download.checksum,
                fname=download.name,
                path=folder,
                downloader=_Resuming(download, folder, told),
            )
        )
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise BadInput(
            f"{download.url} cannot be reached ({reason}): fetch it elsewhere, put it into a "
            f"folder and name that by --data or ${VARIABLE}."
        ) from None
    except ValueError:
        raise BadInput(
            f"{download.url} gave a file whose sum is not {download.checksum}; it was thrown "
            "away. Fetch it again later, or from elsewhere."
        ) from None
    except OSError as error:
        raise BadInput(f"{download.name} cannot be written to {folder} ({error}).") from None


class _Resuming:
    """What pooch calls to load a file: it resumes an earlier attempt, kept beside the file."""

    def __init__(self, download: Download, folder: Path, told: Told) -> None:
        self.download, self.told = download, told
        self.part = folder / f"{download.name}.part"

    def __call__(self, url: str, output_file: Any, _: Any) -> None:
        there = self.part.stat().st_size if self.part.is_file() else 0
        if there < self.download.size:
            self._load(url, there)
        with contextlib.suppress(FileNotFoundError):
            # Whether its sum is right or not, the next attempt begins anew.
            shutil.move(self.part, str(output_file))

    def _load(self, url: str, there: int) -> None:
        request = urllib.request.Request(url, headers={"Range": f"bytes={there}-"} if there else {})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            # A server that knows no ranges sends all of it, with status 200.
            goes_on = there > 0 and answer.status == 206
            done = there if goes_on else 0
            with self.part.open("ab" if goes_on else "wb") as file:
                while block := answer.read(BYTES):
                    file.write(block)
                    done += len(block)
                    self.told(self.download.name, done, self.download.size)
        if done < self.download.size:
            raise ConnectionError(
                f"the connection ended after {done} of {self.download.size} bytes; the same "
                "command goes on from there"
            )


def _unpack(path: Path) -> None:
    """The content of an archive beside it: whole or not at all."""
    with zipfile.ZipFile(path) as archive:
        top = archive.namelist()[0].split("/")[0]
        target = path.parent / top
        if target.is_dir():
            return
        draft = path.parent / f".{top}.draft"
        shutil.rmtree(draft, ignore_errors=True)
        archive.extractall(draft)
    (draft / top).rename(target)
    draft.rmdir()
