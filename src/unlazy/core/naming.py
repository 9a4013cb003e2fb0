"""Names by which trials are known: what a family, learner or probe is, as plain data that survive a move of its file.

A class of this package is written by its own name, which is unique in the house. Anything from outside is written by its name and a hash of
the source it comes from: an edited file makes other keys, and so never answers from old records.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np


class Named(NamedTuple):
    """Something that is offered under a name, and what it is in a few words."""

    thing: Any
    what: str


def type_name(thing: type | types.FunctionType) -> str:
    """The name of a class or function in the description of a trial."""
    module = thing.__module__ or ""
    if module.split(".")[0] == "unlazy":
        return thing.__qualname__
    return f"{thing.__qualname__}#{_source_hash(thing)}"


def _source_hash(thing: type | types.FunctionType) -> str:
    """Of the whole package or file that defines it; of a class typed into a notebook, its own code."""
    module = sys.modules.get(thing.__module__)
    file = getattr(module, "__file__", None)
    if module is None or file is None or not Path(file).exists() or thing.__module__ == "__main__" and not file.endswith(".py"):
        return hashlib.sha256(_code(thing)).hexdigest()[:12]
    root = thing.__module__.split(".")[0]
    top = getattr(sys.modules.get(root), "__file__", None)
    # Of a library that is installed, the version says which source it is.
    if top is not None and "site-packages" in Path(top).parts:
        return hashlib.sha256(_version(root).encode()).hexdigest()[:12]
    return _files_hash(tuple(sorted(Path(top).parent.rglob("*.py"))) if "." in thing.__module__ and top else (Path(file),))


def _version(root: str) -> str:
    import importlib.metadata

    names = importlib.metadata.packages_distributions().get(root, [])
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names) or root


def _files_hash(files: tuple[Path, ...]) -> str:
    return _hashed(tuple((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files))


@functools.lru_cache
def _hashed(stamped: tuple[tuple[str, int, int], ...]) -> str:
    """Read once for each state of the files."""
    digest = hashlib.sha256()
    for path, _, _ in stamped:
        digest.update(Path(path).read_bytes())
    return digest.hexdigest()[:12]


def _code(thing: Any) -> bytes:
    """The code of a class or function that has no file."""
    if isinstance(thing, type):
        parts = [_code(value) for _, value in sorted(vars(thing).items()) if callable(value) or isinstance(value, property)]
        return b"".join([repr(getattr(thing, "__annotations__", {})).encode(), *parts])
    if isinstance(thing, property):
        return b"".join(_code(part) for part in (thing.fget, thing.fset) if part is not None)
    inner = inspect.unwrap(thing) if callable(thing) else thing
    code = getattr(inner, "__code__", None)
    return b"" if code is None else code.co_code + repr(_constants(code)).encode()


def _constants(code: types.CodeType) -> list[Any]:
    return [_constants(c) if isinstance(c, types.CodeType) else c for c in code.co_consts] + list(code.co_names)


def describe(value: Any) -> Any:
    """Plain JSON data that say all there is to say of a family, learner or probe; equal exactly where the values are equal."""
    if isinstance(value, eqx.Module):
        fields = {field.name: describe(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"type": type_name(type(value)), **fields}
    if isinstance(value, Mapping):
        return {str(name): describe(entry) for name, entry in sorted(value.items())}
    if isinstance(value, (tuple, list)):
        return [describe(entry) for entry in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.ndarray):
        return {"array": hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16], "shape": list(value.shape)}
    if isinstance(value, (type, types.FunctionType)):
        return {"function": type_name(value)}
    if callable(getattr(value, "get_params", None)):  # an estimator in the manner of scikit-learn
        parameters = {name: describe(entry) for name, entry in sorted(value.get_params(deep=False).items())}
        return {"type": type_name(type(value)), **parameters}
    raise TypeError(f"a trial is described by plain numbers, strings, tuples and modules of these, not by {type(value).__name__}")
