"""Downloads of image datasets, verified by checksum and resumable."""

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

#: Silenced, since the command line shows a progress bar.
pooch.get_logger().setLevel("ERROR")
#: Bytes per read, and timeout in seconds.
BYTES, TIMEOUT = 1 << 16, 30
#: Callback with the name of a file, its bytes so far and its total bytes.
Progress = Callable[[str, int, int], None]


def fetch_set(
    name: str, folder: Path | None = None, progress: Progress | None = None
) -> list[Path]:
    """Download the public files of a dataset to `folder` or the user's data folder.

    Existing files with the right checksum are not downloaded again.
    """
    if name not in SETS:
        raise unknown("image dataset", name, SETS)
    target = folder or own_folder()
    files = [
        _fetch(download, target, progress or (lambda *_: None)) for download in SETS[name].downloads
    ]
    for path in files:
        if path.suffix == ".zip":
            _unpack(path)
    return files


def _fetch(download: Download, folder: Path, progress: Progress) -> Path:
    try:
        return Path(
            pooch.retrieve(
                download.url,
                download.checksum,
                fname=download.name,
                path=folder,
                downloader=_Resuming(download, folder, progress),
            )
        )
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise BadInput(
            f"{download.url} cannot be reached ({reason}). Download it elsewhere, and pass its "
            f"folder with --data or ${VARIABLE}."
        ) from None
    except ValueError:
        raise BadInput(
            f"The file from {download.url} does not have the checksum {download.checksum} and was "
            "deleted. Try again later, or download it elsewhere."
        ) from None
    except OSError as error:
        raise BadInput(f"{download.name} cannot be written to {folder} ({error}).") from None


class _Resuming:
    """Downloader for pooch that resumes an earlier attempt, stored next to the file."""

    def __init__(self, download: Download, folder: Path, progress: Progress) -> None:
        self.download, self.progress = download, progress
        self.part = folder / f"{download.name}.part"

    def __call__(self, url: str, output_file: Any, _: Any) -> None:
        present = self.part.stat().st_size if self.part.is_file() else 0
        if present < self.download.size:
            self._load(url, present)
        with contextlib.suppress(FileNotFoundError):
            # If the checksum is wrong, the next attempt starts from scratch.
            shutil.move(self.part, str(output_file))

    def _load(self, url: str, present: int) -> None:
        request = urllib.request.Request(
            url, headers={"Range": f"bytes={present}-"} if present else {}
        )
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            # A server without support for ranges sends the whole file, with status 200.
            resumed = present > 0 and answer.status == 206
            done = present if resumed else 0
            with self.part.open("ab" if resumed else "wb") as file:
                while block := answer.read(BYTES):
                    file.write(block)
                    done += len(block)
                    self.progress(self.download.name, done, self.download.size)
        if done < self.download.size:
            raise ConnectionError(
                f"connection lost after {done} of {self.download.size} bytes; rerun to resume"
            )


def _unpack(path: Path) -> None:
    """Unpack an archive next to it, atomically."""
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
