"""Installed packages that offer tasks, learners, kernels and claims, through entry points."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any

from unlazy.core.errors import BadInput, PluginWarning, require
from unlazy.core.naming import Deferred, Entry
from unlazy.kernels.base import Kernel
from unlazy.lab.claims import Claim, Discrepancy, Erratum, NotRun
from unlazy.learners.base import Learner
from unlazy.tasks.base import Family

GROUP = "unlazy"
#: Attributes of a catalog: dictionaries of entries by name, and sequences of objects with an id.
NAMED: Mapping[str, type] = {"TASKS": Family, "LEARNERS": Learner, "KERNELS": Kernel}
LISTED: Mapping[str, type] = {
    **{"CLAIMS": Claim, "NOT_RUN": NotRun, "ERRATA": Erratum, "DISCREPANCIES": Discrepancy}
}


@dataclasses.dataclass(frozen=True)
class Plugin:
    """An entry point of an installed package: its module, or why it is left out."""

    name: str
    package: str
    module: ModuleType | None = None
    problem: str = ""


def plugins(own: Iterable[ModuleType]) -> list[Plugin]:
    """Load all plug-ins; those that are broken or repeat a name are left out with a warning."""
    taken = {(kind, name): module for module in own for kind, name in _offered(module)}
    found = []
    for entry in importlib.metadata.entry_points(group=GROUP):
        package = f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "?"
        try:
            module = entry.load()
            _check(module, taken)
        except Exception as error:
            kind = "" if isinstance(error, BadInput) else f"{type(error).__name__}: "
            problem = f"{kind}{error}"
            found.append(Plugin(entry.name, package, problem=problem))
            warnings.warn(
                f"The plug-in {entry.name!r} of {package} is left out: {problem}",
                PluginWarning,
                stacklevel=2,
            )
        else:
            taken |= {each: module for each in _offered(module)}
            found.append(Plugin(entry.name, package, module))
    return found


def prefixes(catalog: ModuleType) -> Collection[str]:
    """Return the parts before the "/" of the names that a catalog offers; its own if none has."""
    names = {name.partition("/")[0] for _, name in _offered(catalog) if "/" in name}
    return names or {catalog.__name__.rpartition(".")[2]}


def _offered(catalog: Any) -> Iterator[tuple[str, str]]:
    """Yield the attribute and the name of everything that a catalog offers."""
    for kind in NAMED:
        yield from ((kind, name) for name in getattr(catalog, kind, {}))
    for kind in LISTED:
        yield from ((kind, each.id) for each in getattr(catalog, kind, ()))


def _check(catalog: Any, taken: Mapping[tuple[str, str], ModuleType]) -> None:
    """Raise `BadInput` unless everything offered has the right type and a new name."""
    for kind, wanted in NAMED.items():
        entries = getattr(catalog, kind, {})
        require(isinstance(entries, Mapping), f"{kind} must be a dictionary of entries by name.")
        for name, entry in entries.items():
            require(
                isinstance(entry, Entry) and isinstance(entry.given, (Deferred, wanted)),
                f"{kind}[{name!r}] must be Entry({wanted.__name__.lower()}, summary), got "
                f"{type(entry).__name__}.",
            )
    for kind, wanted in LISTED.items():
        for each in getattr(catalog, kind, ()):
            require(
                isinstance(each, wanted),
                f"{kind} must contain objects of type {wanted.__name__}, got "
                f"{type(each).__name__}.",
            )
    for kind, name in _offered(catalog):
        if (kind, name) in taken:
            other = taken[kind, name].__name__
            raise BadInput(f"{name!r} in {kind} is already defined by {other}.")
