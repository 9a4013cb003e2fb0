"""The code, libraries, data and machine that made a record.

A stored record is used for a trial only if their *fingerprints* match. A fingerprint covers
everything on which the numbers depend besides the description of the trial. *Provenance* is for
readers: versions, device and machine.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import os
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import unlazy
from unlazy.core.naming import Ingredients
from unlazy.core.source_code import Location, is_computing
from unlazy.core.user_code import is_users, library_of, source_hash_of
from unlazy.lab.reach_cache import cached_reach

#: Libraries whose versions can change a number.
LIBRARIES = ("jax", "jaxlib", "equinox", "optax", "numpy", "scipy", "scikit-learn")
#: The definition that runs every trial.
ENGINE: Location = ("unlazy.lab.engines.local", "LocalEngine")


@dataclasses.dataclass(frozen=True)
class Fingerprint:
    """Hash of everything that the numbers of a trial depend on besides its description.

    `code`: digest of the reached definitions by module; `libraries`: versions; `data`: hashes of
    files and tables; `own`: hashes of the user's classes and functions.
    """

    code: Mapping[str, str]
    libraries: Mapping[str, str]
    data: Mapping[str, str]
    own: Mapping[str, str]

    @functools.cached_property
    def id(self) -> str:
        """The hash."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_json(self) -> dict[str, dict[str, str]]:
        """Return the components as plain data."""
        return {name: dict(part) for name, part in vars(self).items() if name != "id"}


def fingerprint_of(parts: Ingredients) -> Fingerprint:
    """Return the fingerprint of a trial with these ingredients."""
    own = {thing for thing in parts.things if is_users(thing)}
    ours = frozenset(
        (thing.__module__, thing.__qualname__.split(".")[0])
        for thing in parts.things
        if (thing.__module__ or "").split(".")[0] == "unlazy"
    )
    rest = [thing for thing in parts.things if thing not in own and not _is_ours(thing)]
    code = dict(_code(ours))
    if own:  # a user's code may call anything of the package
        code["unlazy"] = source_hash()
    return Fingerprint(
        code=code,
        libraries={**_libraries(), **{name: text for name, text in map(library_of, rest)}},
        data=dict(parts.data),
        own={f"{thing.__qualname__}#{source_hash_of(thing)}": "" for thing in own},
    )


def _is_ours(thing: Any) -> bool:
    return (thing.__module__ or "").split(".")[0] == "unlazy"


@functools.cache
def _code(places: frozenset[Location]) -> Mapping[str, str]:
    return cached_reach([ENGINE, *places])


@functools.cache
def _libraries() -> Mapping[str, str]:
    return {name: importlib.metadata.version(name) for name in LIBRARIES}


def changes(
    old: Mapping[str, Mapping[str, str]], new: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """Name the components in which two fingerprints differ."""
    found = []
    for kind in ("code", "own", "libraries", "data"):
        a, b = old.get(kind, {}), new.get(kind, {})
        for name in sorted({*a, *b}):
            if a.get(name) == b.get(name):
                continue
            if kind == "libraries":
                found.append(f"{name} {a.get(name, 'absent')} → {b.get(name, 'absent')}")
            elif kind == "own":
                found.append(name.partition("#")[0])
            else:
                found.append(name.removeprefix("unlazy.") if kind == "code" else name)
    return list(dict.fromkeys(found))


@functools.cache
def source_hash() -> str:
    """Return the hash of all modules on which measurements depend, except those of papers."""
    root = Path(unlazy.__file__).parent
    digest = hashlib.sha256()
    for path in computing(root):
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def computing(root: Path) -> list[Path]:
    """Return files of the package on which trials of any task depend."""

    def counts(path: Path) -> bool:
        parts = path.relative_to(root).with_suffix("").parts
        return parts[0] != "papers" and is_computing(".".join(["unlazy", *parts]))

    return sorted(filter(counts, root.rglob("*.py")))


@functools.cache
def provenance() -> dict[str, Any]:
    """Return versions, device and source hash of this process."""
    import jax

    device = jax.devices()[0]
    return {
        "unlazy": unlazy.__version__,
        "source": source_hash(),
        "python": platform.python_version(),
        **_libraries(),
        "device": f"{device.platform}: {device.device_kind}",
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


def summary(origins: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Collect the distinct values of each entry over provenances; usually there is one."""
    origins = list(origins)
    names = dict.fromkeys(name for origin in origins for name in origin)
    return {
        name: sorted({str(origin[name]) for origin in origins if name in origin}) for name in names
    }


def made_by(used: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """Return the provenance of an outcome, from pairs of a trial and its record.

    `older` counts records made by other code, libraries or data than the present ones.
    """
    pairs = {record.id: (trial, record) for trial, record in used}
    return {
        **summary(record.provenance for _, record in pairs.values()),
        "fingerprints": sorted({record.fingerprint for _, record in pairs.values()}),
        "records": len(pairs),
        "older": sum(record.id != trial.id for trial, record in pairs.values()),
    }
