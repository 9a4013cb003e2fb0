"""Stable descriptions of trials, used as keys and fingerprints of records.

A class of this package is described by its name, which is unique in the package. Anything from
outside is described by its name and a hash of its source. Keys are made of the brief description,
without hashes; the hashes are part of the fingerprint.
"""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import functools
import hashlib
import inspect
import sys
import types
import weakref
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np


class Named(NamedTuple):
    """Something that is offered under a name, and what it is in a few words."""

    thing: Any
    what: str


class Identified(eqx.Module):
    """Something whose fields do not determine its content, such as the name of a file.

    `identity` is a hash of the content, and part of the fingerprint of every trial that uses it.
    Fields named in `held` are the content itself, and are not described.
    """

    held: ClassVar[tuple[str, ...]] = ()

    @property
    def origin(self) -> str:
        """Where the data come from, for people."""
        return next(
            (
                value
                for field in dataclasses.fields(self)
                if isinstance(value := getattr(self, field.name), str)
            ),
            "",
        )

    @property
    @abstractmethod
    def identity(self) -> str:
        """A text that is another one where the thing is another one."""


def type_name(thing: Any) -> str:
    """The name of a class or function in the description of a trial."""
    module = getattr(thing, "__module__", None) or ""
    if module.split(".")[0] == "unlazy":
        return str(thing.__qualname__)
    return f"{thing.__qualname__}#{source_hash_of(thing)}"


def source_hash_of(thing: Any) -> str:
    """Of the file or package that defines it and of what these use from outside; of what has no
    file, of its code.

    The code of the thing itself always counts: functions and classes that are made by functions
    share a name and a file.
    """
    if not is_users(thing):
        return _digest(library_of(thing)[1].encode())
    module = sys.modules.get(thing.__module__ or "")
    file = _file_of(module)
    if (
        module is None
        or file is None
        or (module.__name__ == "__main__" and not _is_written_in(thing, file))
    ):
        return _digest(_code(thing, set()))
    return _digest(_modules_hash(module).encode(), _code(thing, set()))


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


def _file_of(module: types.ModuleType | None) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file) if file is not None and file.endswith(".py") and Path(file).exists() else None


def _is_installed(module: types.ModuleType) -> bool:
    """Whether it belongs to Python or to an installed library, of which the version says what
    source it is.
    """
    root = module.__name__.split(".")[0]
    if root == "__main__":
        return False
    file = getattr(sys.modules.get(root, module), "__file__", None) or getattr(
        module, "__file__", None
    )
    return root in sys.stdlib_module_names or (
        file is not None and bool({"site-packages", "dist-packages"} & set(Path(file).parts))
    )


def is_users(thing: Any) -> bool:
    """Whether the user wrote it: it is neither ours nor installed."""
    module = getattr(thing, "__module__", None) or "builtins"
    if module == "builtins":  # so is called what was executed without a module
        return not hasattr(builtins, thing.__qualname__.split(".")[0])
    return module.split(".")[0] != "unlazy" and (
        module not in sys.modules or not _is_installed(sys.modules[module])
    )


def _is_written_in(thing: Any, file: Path) -> bool:
    """Whether it comes from the text of a script, and was not typed in while the script ran."""
    functions = vars(thing).values() if isinstance(thing, type) else [thing]
    names = {
        code.co_filename for f in functions if (code := getattr(f, "__code__", None)) is not None
    }
    return any(name == str(file) or Path(name).resolve() == file.resolve() for name in names)


def library_of(thing: Any) -> tuple[str, str]:
    """Return the name and version of the installed library that a class or function is from."""
    root = (getattr(thing, "__module__", None) or "builtins").split(".")[0]
    return root, _version(root)


@functools.cache
def _version(root: str) -> str:
    import importlib.metadata

    if root in sys.stdlib_module_names:
        return "Python"
    try:  # most libraries are distributed under the name by which they are imported
        known = {"sklearn": "scikit-learn"}.get(root, root)
        return f"{known} {importlib.metadata.version(known)}"
    except importlib.metadata.PackageNotFoundError:
        names = importlib.metadata.packages_distributions().get(root, [])
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names) or root


#: Source hashes as they were when a module was first asked for: a file that is edited later is not
#: what runs.
_known: weakref.WeakKeyDictionary[types.ModuleType, str] = weakref.WeakKeyDictionary()


def _modules_hash(module: types.ModuleType) -> str:
    """Of the sources of a module and of all others of the user's that it uses; each counts by its
    text, not by its place.
    """
    if module not in _known:
        reached: dict[str, types.ModuleType] = {}
        _reach(module, reached)
        sources = {source for each in reached.values() for source in _sources(each)}
        _known[module] = _digest(*sorted(sources))
    return _known[module]


def _reach(module: types.ModuleType, reached: dict[str, types.ModuleType]) -> None:
    if module.__name__ in reached:
        return
    reached[module.__name__] = module
    for value in list(vars(module).values()):
        other = (
            value
            if isinstance(value, types.ModuleType)
            else sys.modules.get(getattr(value, "__module__", None) or "")
        )
        own = (
            other is not None
            and other.__name__.split(".")[0] != "unlazy"
            and _file_of(other) is not None
            and not _is_installed(other)
        )
        if own:
            _reach(other, reached)  # type: ignore[arg-type]


def _sources(module: types.ModuleType) -> list[bytes]:
    """The text of a module as it was loaded, or of all files of its package."""
    loaded = getattr(module, SOURCE, None)
    if loaded is not None:
        return [loaded]
    top = (
        _file_of(sys.modules.get(module.__name__.split(".")[0])) if "." in module.__name__ else None
    )
    files = (
        top.parent.rglob("*.py")
        if top is not None
        else [file for file in [_file_of(module)] if file is not None]
    )
    return [path.read_bytes() for path in files]


#: Under this name a module holds the text that it was loaded from, where that is known.
SOURCE = "__unlazy_source__"


def _code(thing: Any, seen: set[int]) -> bytes:
    """The code of a class or function, and of what it was made with: its bases, defaults and
    closure, and functions beside it.
    """
    thing = getattr(thing, "__func__", thing)  # of a class method or a static one
    if id(thing) in seen:
        return b""
    seen.add(id(thing))
    if isinstance(thing, type):
        if not is_users(thing):
            return thing.__qualname__.encode()
        members = [
            (name, value) for name, value in sorted(vars(thing).items()) if name not in _GENERATED
        ]
        parts = [name.encode() + _code(value, seen) for name, value in members]
        fields = repr(list(vars(thing).get("__annotations__", {}).items())).encode()
        return b"".join([fields, *parts, *(_code(base, seen) for base in thing.__bases__)])
    if isinstance(thing, property):
        return b"".join(_code(part, seen) for part in (thing.fget, thing.fset) if part is not None)
    if isinstance(thing, types.FunctionType):
        inner = inspect.unwrap(thing)
        cells = [cell.cell_contents for cell in inner.__closure__ or () if _is_filled(cell)]
        beside = (
            [
                inner.__globals__[name]
                for name in inner.__code__.co_names
                if name in inner.__globals__
            ]
            if is_users(inner)
            else []
        )
        made_with = [
            *(inner.__defaults__ or ()),
            *(inner.__kwdefaults__ or {}).values(),
            *cells,
            *beside,
        ]
        return b"".join([_plain(inner.__code__), *(_code(value, seen) for value in made_with)])
    return _plain(thing)


#: What `class` statements and dataclasses add, and what says nothing or another thing in each
#: process.
_GENERATED = frozenset(
    {
        *(
            "__module__",
            "__doc__",
            "__dict__",
            "__weakref__",
            "__annotations__",
            "__firstlineno__",
            "__static_attributes__",
        ),
        "__slotnames__",  # which copying and pickling leave behind
    }
)


def _is_filled(cell: types.CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _plain(value: Any) -> bytes:
    """A constant as bytes that are the same in every process; nothing for what has no value that
    can be written down.
    """
    if isinstance(value, types.CodeType):
        return b"".join(
            [value.co_code, repr(value.co_names).encode(), *map(_plain, value.co_consts)]
        )
    if isinstance(value, (tuple, list)):
        return b"(" + b",".join(map(_plain, value)) + b")"
    if isinstance(value, (set, frozenset)):
        return b"{" + b",".join(sorted(map(_plain, value))) + b"}"
    if isinstance(value, dict):
        return (
            b"{" + b",".join(sorted(_plain(k) + b":" + _plain(v) for k, v in value.items())) + b"}"
        )
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, type(...))):
        return repr(value).encode()
    return str(getattr(value, "__qualname__", "")).encode()


@dataclasses.dataclass
class Ingredients:
    """Classes and functions that a description names, and contents of data that it refers to."""

    things: set[Any] = dataclasses.field(default_factory=set)
    data: dict[str, str] = dataclasses.field(default_factory=dict)


def describe(value: Any, *, brief: bool = False, parts: Ingredients | None = None) -> Any:
    """Return plain JSON data that describe a family, learner or probe completely.

    `brief` gives the content from which keys are made: fields equal to their defaults are left out,
    so that a new option changes no key, and so are hashes of source code and of data files, which
    belong to the fingerprint. `parts` collects what the fingerprint is made of.
    """

    def inner(entry: Any) -> Any:
        return describe(entry, brief=brief, parts=parts)

    def name(thing: Any) -> str:
        if parts is not None:
            parts.things.add(thing)
        return key_name(thing) if brief else type_name(thing)

    if isinstance(value, eqx.Module):
        own: dict[str, Any] = {}
        if isinstance(value, Identified):
            if parts is not None:
                parts.data[f"{type(value).__name__} {value.origin}"] = value.identity
                parts.things |= {type(getattr(value, field)) for field in value.held}
            if not brief:
                own = {"identity": value.identity}
        held = value.held if isinstance(value, Identified) else ()
        names = [field.name for field in dataclasses.fields(value) if field.name not in held]
        fields = {name: getattr(value, name) for name in names}
        written = {field: inner(entry) for field, entry in fields.items()}
        if brief:
            defaults = field_defaults(type(value))
            written = {f: w for f, w in written.items() if f not in defaults or defaults[f] != w}
        return {"type": name(type(value)), **written, **own}
    if isinstance(value, Mapping):
        return {str(entry): inner(value[entry]) for entry in sorted(value)}
    if isinstance(value, (tuple, list)):
        return [inner(entry) for entry in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.ndarray):
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]
        return {"array": content, "shape": list(value.shape)}
    if isinstance(value, functools.partial):
        return {
            **inner(value.func),
            "arguments": inner(value.args),
            "options": inner(value.keywords),
        }
    if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        return {"function": name(value)}
    if callable(getattr(value, "get_params", None)):  # an estimator as in scikit-learn
        given = {key: inner(entry) for key, entry in sorted(value.get_params(deep=False).items())}
        if brief:
            kind: Any = type(value)
            usual = _parameter_defaults(kind)
            given = {key: w for key, w in given.items() if key not in usual or usual[key] != w}
        return {"type": name(type(value)), **given}
    raise TypeError(
        "a trial is described by plain numbers, strings, tuples and modules of these, not by "
        f"{type(value).__name__}"
    )


def key_name(thing: Any) -> str:
    """Return the name of a class or function in keys: its own, or its `KEY` if it was renamed."""
    return (
        str(vars(thing).get("KEY", thing.__qualname__))
        if isinstance(thing, type)
        else str(thing.__qualname__)
    )


@functools.lru_cache(maxsize=4096)
def field_defaults(kind: type) -> dict[str, Any]:
    """Descriptions of the defaults of a module's fields."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.default is not dataclasses.MISSING:
            found[field.name] = describe(field.default, brief=True)
        elif field.default_factory is not dataclasses.MISSING:
            found[field.name] = describe(field.default_factory(), brief=True)
    return found


@functools.lru_cache(maxsize=4096)
def _parameter_defaults(kind: type) -> dict[str, Any]:
    """Descriptions of the defaults of an estimator's parameters, those that can be described."""
    found: dict[str, Any] = {}
    for parameter in inspect.signature(kind).parameters.values():
        if parameter.default is not inspect.Parameter.empty:
            with contextlib.suppress(TypeError):
                found[parameter.name] = describe(parameter.default, brief=True)
    return found
