"""Digests of reached code, kept between processes.

Which definitions a trial reaches depends only on the source of the package. Parsing that source
takes most of a second, reading and hashing it a few hundredths, so digests are kept in a file under
the hash of the whole source.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

import platformdirs

from unlazy.core import source_code
from unlazy.core.source_code import Location, is_computing, reached

#: Versions of the source whose digests are kept.
KEPT = 4


def cached_reach(roots: Iterable[Location]) -> dict[str, str]:
    """Return what `reached` returns, from the file of the present source if it is there."""
    roots = sorted(roots)
    name = " ".join(f"{module}:{definition}" for module, definition in roots)
    known = _known()
    if name not in known:
        known[name] = reached(roots)
        with contextlib.suppress(OSError):  # without a writable cache it only takes longer
            _write(known)
    return known[name]


@functools.cache
def _known() -> dict[str, dict[str, str]]:
    with contextlib.suppress(OSError, ValueError):
        stored = json.loads(_file().read_text(encoding="utf-8"))
        if isinstance(stored, dict):
            return {name: code for name, code in stored.items() if isinstance(code, dict)}
    return {}


@functools.cache
def _file() -> Path:
    digest = hashlib.sha256()
    for path in sorted(source_code.ROOT.rglob("*.py")):
        inner = path.relative_to(source_code.ROOT).with_suffix("")
        if is_computing(".".join([source_code.PACKAGE, *inner.parts])):
            content = path.read_bytes()
            digest.update(f"{inner.as_posix()} {len(content)} ".encode() + content)
    return Path(platformdirs.user_cache_dir("unlazy")) / "reach" / f"{digest.hexdigest()}.json"


def _write(known: dict[str, dict[str, str]]) -> None:
    """Replace the file in one step, and delete files of older versions of the source."""
    file = _file()
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(known), encoding="utf-8")
    temporary.replace(file)
    others = sorted(file.parent.glob("*.json"), key=lambda path: path.stat().st_mtime)
    for path in others[:-KEPT]:
        path.unlink(missing_ok=True)
