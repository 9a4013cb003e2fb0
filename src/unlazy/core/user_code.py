"""Hashes of source code outside the package: user files, interactive sessions and libraries.

A user file is identified by its text and the texts of the user files that it uses. Code typed into
a session has no file and is identified by its bytecode. An installed library is identified by its
version.
"""

from __future__ import annotations

import builtins
import functools
import hashlib
import inspect
import sys
import types
import weakref
from pathlib import Path
from typing import Any

import numpy as np


def source_hash_of(thing: Any) -> str:
    """Return the hash of the source that defines a class or function.

    It covers the defining file or package and the user code that these use, or the bytecode if
    there is no file. The code of the object itself always counts, since classes and functions made
    by functions share a name and a file.
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
    """Return whether a module is part of Python or of an installed library."""
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
    """Return whether the user wrote it: it is neither ours nor installed."""
    module = getattr(thing, "__module__", None) or "builtins"
    if module == "builtins":  # the module of code executed without one
        return not hasattr(builtins, thing.__qualname__.split(".")[0])
    return module.split(".")[0] != "unlazy" and (
        module not in sys.modules or not _is_installed(sys.modules[module])
    )


def _is_written_in(thing: Any, file: Path) -> bool:
    """Return whether it comes from the text of a script, not from interactive input."""
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


#: Source hashes at first use: later edits of a file do not change the running code.
_known: weakref.WeakKeyDictionary[types.ModuleType, str] = weakref.WeakKeyDictionary()


def _modules_hash(module: types.ModuleType) -> str:
    """Return the hash of the sources of a module and of all user modules that it uses."""
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
    """Return the text of a module as it was loaded, or of all files of its package."""
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


#: Attribute of a module that holds the text it was loaded from, if known.
SOURCE = "__unlazy_source__"


def _code(thing: Any, seen: set[int]) -> bytes:
    """Return the code of a class or function, its bases, defaults, closure and used globals."""
    thing = getattr(thing, "__func__", thing)  # unwrap class and static methods
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
        used_globals = (
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
            *used_globals,
        ]
        return b"".join([_plain(inner.__code__), *(_code(value, seen) for value in made_with)])
    return _plain(thing)


#: Members added by `class` statements and dataclasses, or that differ between processes.
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
        "__slotnames__",  # added by copying and pickling
    }
)


def _is_filled(cell: types.CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _plain(value: Any) -> bytes:
    """Return a constant as bytes, equal in every process; empty for any other value."""
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
