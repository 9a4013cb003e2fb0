"""The registry: every name once, with one meaning everywhere.

A name is looked up among what the package offers to any task, what its papers offer, and what
installed packages offer through the entry point group `unlazy` (each a module with `TASKS`,
`LEARNERS`, `KERNELS`, `CLAIMS`). `file.py:Name` and `package.module:Name` lead to things that
nobody registered, and `table.csv:column` to the rows of a table as a task.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import functools
import hashlib
import importlib
import importlib.metadata
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from unlazy.core.errors import BadInput, require, unknown
from unlazy.core.naming import Entry
from unlazy.core.user_code import SOURCE
from unlazy.lab.claims import Claim, Erratum, NotRun
from unlazy.learners.base import Learner
from unlazy.tasks.base import Family
from unlazy.tasks.tables.files import names_column

#: Modules of this package that offer something by name.
CATALOGS = ("unlazy.tasks.catalog", "unlazy.kernels.catalog", "unlazy.learners.catalog")
GROUP = "unlazy"


@functools.cache
def catalogs() -> tuple[ModuleType, ...]:
    """All modules that offer something: the package's, its papers', and those of installed
    packages.
    """
    papers = importlib.import_module("unlazy.papers").PAPERS
    own = [
        importlib.import_module(name)
        for name in (*CATALOGS, *(f"unlazy.papers.{paper}" for paper in papers))
    ]
    return (*own, *map(_offered_by, importlib.metadata.entry_points(group=GROUP)))


def _offered_by(entry: importlib.metadata.EntryPoint) -> Any:
    try:
        return entry.load()
    except Exception as error:
        package = entry.dist.name if entry.dist is not None else "a package"
        raise BadInput(
            f"{package} offers {entry.name!r} to unlazy, but it cannot be loaded: "
            f"{type(error).__name__}: {error}"
        ) from error


def _collected(attribute: str) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for catalog in catalogs():
        for name, entry in getattr(catalog, attribute, {}).items():
            require(
                name not in found,
                f"{name!r} is offered twice, the second time by {catalog.__name__}.",
            )
            found[name] = entry
    return found


def claims() -> dict[str, Claim]:
    """All claims by id."""
    return {claim.id: claim for catalog in catalogs() for claim in getattr(catalog, "CLAIMS", ())}


def not_run() -> dict[str, NotRun]:
    """All statements that nothing runs yet, by id."""
    return {row.id: row for catalog in catalogs() for row in getattr(catalog, "NOT_RUN", ())}


def errata() -> dict[str, Erratum]:
    """All slips found in the papers, by id."""
    return {
        erratum.id: erratum for catalog in catalogs() for erratum in getattr(catalog, "ERRATA", ())
    }


def tasks() -> dict[str, Entry]:
    """All named families."""
    return _collected("TASKS")


def learners() -> dict[str, Entry]:
    """All named learners: those for any task, and those of the papers."""
    return _collected("LEARNERS")


def kernels() -> dict[str, Entry]:
    """All named kernels."""
    return _collected("KERNELS")


def learner_of(name: str) -> Learner:
    """The learner of that name, or at that place."""
    found: Learner = _thing("learner", name, learners(), Learner)
    return found


def family_of(name: str, changes: Iterable[str] = ()) -> Family:
    """The family of that name, or at that place, with numbers changed by texts such as "d=100"."""
    family = _rows(name) if names_column(name) else _thing("task", name, tasks(), Family)
    found: dict[str, Any] = {}
    for change in changes:
        field, sign, text = change.partition("=")
        require(
            bool(sign), f"A change is written NAME=VALUE, such as d=100, but {change!r} has no '='."
        )
        found[field] = value_of(family, field, text, name)
    return dataclasses.replace(family, **found)


def _rows(place: str) -> Family:
    from unlazy.tasks.tables.rows import table_rows  # scikit-learn takes its time to come

    return table_rows(place)


def value_of(family: Family, field: str, text: str, name: str) -> Any:
    """A text as a value of a field of a family, of the type that it has now."""
    fields = {f.name: getattr(family, f.name) for f in dataclasses.fields(family)}
    adjustable = {
        key: value for key, value in fields.items() if isinstance(value, (bool, int, float, str))
    }
    if field not in adjustable:
        raise unknown(f"number of {name}", field, adjustable)
    now = adjustable[field]
    if isinstance(now, bool):
        require(text in ("true", "false"), f"{field} is true or false, but {text!r} was given.")
        return text == "true"
    try:
        return type(now)(text)
    except ValueError:
        kind = "whole number" if isinstance(now, int) else "number"
        raise BadInput(f"{field} is a {kind}, such as {now}, but {text!r} was given.") from None


def find_not_run(patterns: Iterable[str]) -> list[NotRun]:
    """The statements that nothing runs yet whose ids match any of the patterns."""
    return [
        row
        for name, row in not_run().items()
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    ]


def find_claims(patterns: Iterable[str]) -> list[Claim]:
    """The claims whose ids match any of the patterns (`*` matches anything), each once, in the
    order of the ledger; or a user's own.

    What is not run yet may be named too, and gives nothing here.
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


def _thing(kind: str, name: str, known: dict[str, Entry], wanted: type) -> Any:
    if ":" in name:
        return _at(name, kind, wanted)
    if name not in known:
        hint = " A thing of your own is named file.py:Name." if name.endswith(".py") else ""
        raise BadInput(f"{unknown(kind, name, known)}{hint}")
    return known[name].value


def _at(place: str, kind: str, wanted: type) -> Any:
    """What `file.py:Name` or `package.module:Name` leads to; a class is called without arguments,
    so its fields need defaults.
    """
    where, _, name = place.rpartition(":")
    module = load_file(Path(where)) if where.endswith(".py") else _import(where, place)
    offered = [
        n
        for n, v in vars(module).items()
        if _is(v, wanted) and not (isinstance(v, type) and v.__module__ != module.__name__)
    ]
    if not hasattr(module, name):
        raise BadInput(f"{where}: {unknown(kind, name, offered)}")
    thing = getattr(module, name)
    require(
        _is(thing, wanted),
        f"{place} is no {kind}: a {wanted.__name__} was expected, but it is {_what(thing)}.",
    )
    if not isinstance(thing, type):
        return thing
    lacking = sorted(getattr(thing, "__abstractmethods__", ()))
    require(not lacking, f"{place} is not finished: it does not define {', '.join(lacking)}.")
    try:
        return thing()
    except TypeError as error:
        missing = str(error).split(": ", 1)[-1]
        raise BadInput(
            f"{place} cannot be made without arguments ({missing}). Give its fields defaults, "
            "or name an instance of it."
        ) from None


def _is(value: Any, wanted: type) -> bool:
    return issubclass(value, wanted) if isinstance(value, type) else isinstance(value, wanted)


def _what(thing: Any) -> str:
    return (
        f"a class, {thing.__name__}"
        if isinstance(thing, type)
        else f"of type {type(thing).__name__}"
    )


def load_file(path: Path) -> ModuleType:
    """A user's file as a module.

    Each text of a file is a module of its own: what was made of an older one keeps its code and
    keys.
    """
    require(path.is_file(), f"There is no file {path}. A thing of your own is named file.py:Name.")
    whole = path.resolve()
    source = whole.read_bytes()
    place, text = (hashlib.sha256(part).hexdigest()[:8] for part in (str(whole).encode(), source))
    return load_source(f"unlazy_file_{whole.stem}_{place}_{text}", str(whole), source)


def load_source(name: str, file: str, source: bytes) -> ModuleType:
    """The text of a user's file as a module of that name."""
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
