"""Look up tasks, learners, kernels and claims by name.

Names are defined by the catalogs of this package, by its papers, and by installed packages through
the entry point group `unlazy` (modules with `TASKS`, `LEARNERS`, `KERNELS`, `CLAIMS`).
`file.py:Name` and `package.module:Name` refer to unregistered objects, and `table.csv:column` to
the rows of a table as a task.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import functools
import hashlib
import importlib
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from unlazy.core.errors import BadInput, require, unknown
from unlazy.core.naming import Entry
from unlazy.core.user_code import SOURCE
from unlazy.lab.claims import Claim, Discrepancy, Erratum, NotRun
from unlazy.lab.plugins import Plugin, plugins
from unlazy.learners.base import Learner
from unlazy.tasks.base import Family
from unlazy.tasks.tables.files import names_column

#: Catalogs of this package.
CATALOGS = ("unlazy.tasks.catalog", "unlazy.kernels.catalog", "unlazy.learners.catalog")


@functools.cache
def _own_catalogs() -> tuple[ModuleType, ...]:
    papers = importlib.import_module("unlazy.papers").PAPERS
    names = (*CATALOGS, *(f"unlazy.papers.{paper}" for paper in papers))
    return tuple(map(importlib.import_module, names))


@functools.cache
def installed() -> tuple[Plugin, ...]:
    """Return all plug-ins, also those that are left out."""
    return tuple(plugins(_own_catalogs()))


def catalogs() -> tuple[ModuleType, ...]:
    """Return all catalogs: of the package, its papers, and installed packages."""
    return (*_own_catalogs(), *(each.module for each in installed() if each.module is not None))


def _collected(attribute: str) -> dict[str, Entry]:
    return {
        name: entry
        for catalog in catalogs()
        for name, entry in getattr(catalog, attribute, {}).items()
    }


def claims() -> dict[str, Claim]:
    """Return all claims by id."""
    return {claim.id: claim for catalog in catalogs() for claim in getattr(catalog, "CLAIMS", ())}


def not_run() -> dict[str, NotRun]:
    """Return all statements that are not tested yet, by id."""
    return {row.id: row for catalog in catalogs() for row in getattr(catalog, "NOT_RUN", ())}


def errata() -> dict[str, Erratum]:
    """Return all errors found in the papers, by id."""
    return {
        erratum.id: erratum for catalog in catalogs() for erratum in getattr(catalog, "ERRATA", ())
    }


def discrepancies() -> dict[str, Discrepancy]:
    """Return all questions about printed results of the papers, by id."""
    return {
        each.id: each for catalog in catalogs() for each in getattr(catalog, "DISCREPANCIES", ())
    }


def editions() -> dict[str, str]:
    """Return which text of each paper was read, by the paper's name."""
    return {
        catalog.__name__.rpartition(".")[2]: catalog.EDITION
        for catalog in catalogs()
        if hasattr(catalog, "EDITION")
    }


def tasks() -> dict[str, Entry]:
    """Return all named families."""
    return _collected("TASKS")


def learners() -> dict[str, Entry]:
    """Return all named learners: those for any task, and those of the papers."""
    return _collected("LEARNERS")


def kernels() -> dict[str, Entry]:
    """Return all named kernels."""
    return _collected("KERNELS")


def learner_of(name: str) -> Learner:
    """Return the learner of a name or `file.py:Name`."""
    found: Learner = _named("learner", name, learners(), Learner)
    return found


def family_of(name: str, changes: Iterable[str] = ()) -> Family:
    """Return the family of a name or `file.py:Name`, with changes such as "d=100"."""
    family = _rows(name) if names_column(name) else _named("task", name, tasks(), Family)
    found: dict[str, Any] = {}
    for change in changes:
        field, sign, text = change.partition("=")
        require(bool(sign), f"A change must be NAME=VALUE, such as d=100, got {change!r}.")
        found[field] = value_of(family, field, text, name)
    return dataclasses.replace(family, **found)


def _rows(place: str) -> Family:
    from unlazy.tasks.tables.rows import table_rows  # importing scikit-learn is slow

    return table_rows(place)


def value_of(family: Family, field: str, text: str, name: str) -> Any:
    """Parse a value of a field of a family; its type is that of the current value."""
    fields = {f.name: getattr(family, f.name) for f in dataclasses.fields(family)}
    adjustable = {
        key: value for key, value in fields.items() if isinstance(value, (bool, int, float, str))
    }
    if field not in adjustable:
        raise unknown(f"parameter of {name}", field, adjustable)
    now = adjustable[field]
    if isinstance(now, bool):
        require(text in ("true", "false"), f"`{field}` must be true or false, got {text!r}.")
        return text == "true"
    try:
        return type(now)(text)
    except ValueError:
        kind = "an integer" if isinstance(now, int) else "a number"
        raise BadInput(f"`{field}` must be {kind}, such as {now}, got {text!r}.") from None


def find_not_run(patterns: Iterable[str]) -> list[NotRun]:
    """Return statements that are not tested yet whose ids match any of the patterns."""
    return [
        row
        for name, row in not_run().items()
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    ]


def find_claims(patterns: Iterable[str]) -> list[Claim]:
    """Return the distinct claims that match any of the patterns (`*` matches anything).

    A pattern may be `file.py:Name`. Statements that are not tested yet match without a claim.
    """
    known, chosen, own = claims(), set(), []
    for pattern in patterns:
        if ":" in pattern:
            own.append(_at(pattern, "claim", Claim))
            continue
        matched = fnmatch.filter(known, pattern)
        if not matched and not find_not_run([pattern]):
            if any(mark in pattern for mark in "*?["):
                raise BadInput(
                    f"No claim matches the pattern {pattern!r}. Known: {', '.join(known)}."
                )
            raise unknown("claim", pattern, known)
        chosen.update(matched)
    return [claim for name, claim in known.items() if name in chosen] + own


def _named(kind: str, name: str, known: dict[str, Entry], wanted: type) -> Any:
    if ":" in name:
        return _at(name, kind, wanted)
    if name not in known:
        hint = " An object of your own is named file.py:Name." if name.endswith(".py") else ""
        raise BadInput(f"{unknown(kind, name, known)}{hint}")
    return known[name].value


def _at(place: str, kind: str, wanted: type) -> Any:
    """Return the object `file.py:Name` or `package.module:Name`.

    A class is called without arguments, so its fields need defaults.
    """
    where, _, name = place.rpartition(":")
    module = load_file(Path(where)) if where.endswith(".py") else _import(where, place)
    defined = [
        n
        for n, v in vars(module).items()
        if _is(v, wanted) and not (isinstance(v, type) and v.__module__ != module.__name__)
    ]
    if not hasattr(module, name):
        raise BadInput(f"{where}: {unknown(kind, name, defined)}")
    value = getattr(module, name)
    require(
        _is(value, wanted),
        f"{place} must be a {kind} ({wanted.__name__}), got {described(value)}.",
    )
    if not isinstance(value, type):
        return value
    lacking = sorted(getattr(value, "__abstractmethods__", ()))
    require(not lacking, f"{place} is incomplete: it does not define {', '.join(lacking)}.")
    try:
        return value()
    except TypeError as error:
        missing = str(error).split(": ", 1)[-1]
        raise BadInput(
            f"{place} cannot be called without arguments ({missing}). Give its fields defaults, "
            "or name an instance."
        ) from None


def _is(value: Any, wanted: type) -> bool:
    return issubclass(value, wanted) if isinstance(value, type) else isinstance(value, wanted)


def described(value: Any) -> str:
    """Return what a value is, for an error message."""
    return (
        f"the class {value.__name__}"
        if isinstance(value, type)
        else f"an object of type {type(value).__name__}"
    )


def load_file(path: Path) -> ModuleType:
    """Load a user's file as a module.

    Each version of a file is a separate module, so that objects of an older version keep their code
    and keys.
    """
    require(
        path.is_file(), f"There is no file {path}. An object of your own is named file.py:Name."
    )
    whole = path.resolve()
    source = whole.read_bytes()
    place, text = (hashlib.sha256(part).hexdigest()[:8] for part in (str(whole).encode(), source))
    return load_source(f"unlazy_file_{whole.stem}_{place}_{text}", str(whole), source)


def load_source(name: str, file: str, source: bytes) -> ModuleType:
    """Load the source of a user's file as a module of this name."""
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = file
    setattr(module, SOURCE, source)
    sys.modules[name] = module  # where classes are looked up by name
    try:
        exec(compile(source, file, "exec"), vars(module))
    except Exception as error:
        del sys.modules[name]
        where = f" in line {error.lineno}" if isinstance(error, SyntaxError) else ""
        raise BadInput(
            f"{file} cannot be loaded: {type(error).__name__}{where}: "
            f"{getattr(error, 'msg', error)}"
        ) from error
    return module


def _import(where: str, place: str) -> ModuleType:
    try:
        return importlib.import_module(where)
    except ImportError as error:
        raise BadInput(
            f"{place}: the module {where} cannot be imported ({error}). A file is named "
            "file.py:Name."
        ) from None
    except Exception as error:
        raise BadInput(
            f"{place}: the module {where} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
