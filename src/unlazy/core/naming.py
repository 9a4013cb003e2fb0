"""Stable descriptions of trials, used as cache keys and fingerprints.

A class of this package is described by its name, which is unique in the package. Any other class or
function is described by its name and a hash of its source. Keys use the brief description, without
hashes; the hashes are part of the fingerprint.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import inspect
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from unlazy.core.user_code import source_hash_of


@dataclasses.dataclass(frozen=True)
class Deferred:
    """Value that is computed at first use."""

    make: Callable[[], Any]


@dataclasses.dataclass(frozen=True)
class Entry:
    """Object offered under a name, with a short summary."""

    given: Any
    summary: str

    @functools.cached_property
    def value(self) -> Any:
        """The object, built now if it is `Deferred`."""
        return self.given.make() if isinstance(self.given, Deferred) else self.given


class ContentHashed(eqx.Module):
    """Module whose content is not determined by its fields, such as the name of a file.

    `digest` is a hash of the content and part of the fingerprint of every trial that uses it.
    Fields named in `held` are the content itself and are not described.
    """

    held: ClassVar[tuple[str, ...]] = ()

    @property
    def origin(self) -> str:
        """Origin of the data, for display."""
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
    def digest(self) -> str:
        """String that changes whenever the content changes."""


def type_name(thing: Any) -> str:
    """Return the name of a class or function in the description of a trial."""
    module = getattr(thing, "__module__", None) or ""
    if module.split(".")[0] == "unlazy":
        return str(thing.__qualname__)
    return f"{thing.__qualname__}#{source_hash_of(thing)}"


@dataclasses.dataclass
class Ingredients:
    """Classes and functions named in a description, and digests of the data it refers to."""

    things: set[Any] = dataclasses.field(default_factory=set)
    data: dict[str, str] = dataclasses.field(default_factory=dict)

    def add(self, other: Ingredients) -> None:
        """Add the ingredients of a part."""
        self.things |= other.things
        self.data |= other.data


def describe(value: Any, *, brief: bool = False, parts: Ingredients | None = None) -> Any:
    """Return JSON data that completely describe a family, learner or probe.

    `brief` gives the content of keys. It omits fields equal to their defaults, so that a new option
    changes no key. It also omits hashes of source code and of data files, which belong to the
    fingerprint. `parts` collects the ingredients of the fingerprint.
    """

    def inner(entry: Any) -> Any:
        return describe(entry, brief=brief, parts=parts)

    def name(thing: Any) -> str:
        if parts is not None:
            parts.things.add(thing)
        return key_name(thing) if brief else type_name(thing)

    if isinstance(value, eqx.Module):
        own: dict[str, Any] = {}
        if isinstance(value, ContentHashed):
            if parts is not None:
                parts.data[f"{type(value).__name__} {value.origin}"] = value.digest
                parts.things |= {type(getattr(value, field)) for field in value.held}
            if not brief:
                own = {"identity": value.digest}
        held = value.held if isinstance(value, ContentHashed) else ()
        names = [field.name for field in dataclasses.fields(value) if field.name not in held]
        fields = {name: getattr(value, name) for name in names}
        written = {field: inner(entry) for field, entry in fields.items()}
        if brief:
            usual, keys = field_defaults(type(value)), field_keys(type(value))
            written = {
                keys.get(f, f): w for f, w in written.items() if f not in usual or usual[f] != w
            }
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
        "A trial is described by numbers, strings, tuples and modules of these, got "
        f"{type(value).__name__}."
    )


def key_name(thing: Any) -> str:
    """Return the name of a class or function in keys: its own, or its `KEY` if renamed."""
    return (
        str(vars(thing).get("KEY", thing.__qualname__))
        if isinstance(thing, type)
        else str(thing.__qualname__)
    )


@functools.lru_cache(maxsize=4096)
def field_keys(kind: Any) -> dict[str, str]:
    """Return the key names of renamed fields, given by `metadata={"key": "old"}`."""
    return {
        field.name: field.metadata["key"]
        for field in dataclasses.fields(kind)
        if "key" in field.metadata
    }


@functools.lru_cache(maxsize=4096)
def field_defaults(kind: type) -> dict[str, Any]:
    """Return descriptions of the defaults of a module's fields."""
    defaults: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.default is not dataclasses.MISSING:
            defaults[field.name] = describe(field.default, brief=True)
        elif field.default_factory is not dataclasses.MISSING:
            defaults[field.name] = describe(field.default_factory(), brief=True)
    return defaults


@functools.lru_cache(maxsize=4096)
def _parameter_defaults(kind: type) -> dict[str, Any]:
    """Return descriptions of the defaults of an estimator's parameters, if possible."""
    defaults: dict[str, Any] = {}
    for parameter in inspect.signature(kind).parameters.values():
        if parameter.default is not inspect.Parameter.empty:
            with contextlib.suppress(TypeError):
                defaults[parameter.name] = describe(parameter.default, brief=True)
    return defaults
