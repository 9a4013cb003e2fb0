"""Rebuild trials from the descriptions in their records.

Names in a description refer only to classes of this package, or of files that the user names; other
code is never run. The key shows whether the rebuilt trial is the same.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import equinox as eqx

from unlazy.core.errors import BadInput
from unlazy.core.naming import ContentHashed, field_defaults, field_keys, key_name
from unlazy.lab.registry import catalogs
from unlazy.lab.trials import Measurement, Runnable, Trial

#: Maximum nesting depth of a description.
MAX_DEPTH = 40


def rebuilt(key: str, description: dict[str, Any], files: Iterable[ModuleType] = ()) -> Runnable:
    """Return the trial of a description, or raise `BadInput` with the reason."""
    own = {
        name: value
        for module in files
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, eqx.Module)
    }
    try:
        _require_data(description)
        fields = {name: _value(value, own, 0) for name, value in description.items()}
        kind = Measurement if {"computation", "instrument"} & fields.keys() else Trial
        trial: Runnable = kind(**_present_names(kind, fields))
        found = trial.key
    except BadInput as error:
        raise BadInput(f"The trial {key} cannot be rebuilt from its record: {error}") from error
    except Exception as error:
        raise BadInput(
            f"The trial {key} cannot be rebuilt from its record: {type(error).__name__}: {error}."
        ) from error
    if found != key:
        raise BadInput(
            f"The trial {key} cannot be rebuilt from its record: its classes or the record "
            "have changed."
        )
    return trial


def _require_data(value: Any, depth: int = 0) -> None:
    """Raise an error for data that were in memory, of which a record has only a hash."""
    if isinstance(value, dict) and depth <= MAX_DEPTH:
        kind = _classes().get(str(value.get("type")), object)
        if issubclass(kind, ContentHashed) and kind.held:
            raise BadInput(
                f"the rows of {value.get('name', 'its table')} are not in the record, only their "
                "hash."
            )
        for entry in value.values():
            _require_data(entry, depth + 1)


def _value(value: Any, own: dict[str, type], depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise BadInput("its description is nested too deeply.")
    if isinstance(value, list):
        return tuple(_value(entry, own, depth + 1) for entry in value)
    if not isinstance(value, dict):
        return value
    if "array" in value or "function" in value:
        raise BadInput("it contains an array or a function, of which a record has only a hash.")
    fields = {
        name: _value(entry, own, depth + 1) for name, entry in value.items() if name != "type"
    }
    if "type" not in value:
        return fields
    name = str(value["type"])
    known = _classes()
    if name in known:
        return _made(known[name], fields)
    short = name.partition("#")[0]
    if "#" in name and short in own:
        return _made(own[short], fields)
    raise BadInput(
        f"there is no class {short}."
        + (" Name the file that defines it with --load." if "#" in name else "")
    )


def brief(description: Any) -> Any:
    """Return the brief description, from which keys are computed, of a full description.

    It omits hashes of source and data, and default values of classes of this package.
    """
    if isinstance(description, list):
        return [brief(entry) for entry in description]
    if not isinstance(description, dict):
        return description
    written = {name: brief(entry) for name, entry in description.items()}
    if "function" in written:
        return written | {"function": str(written["function"]).partition("#")[0]}
    if "type" not in written:
        return written
    name = str(written["type"])
    kind = _classes().get(name)
    if kind is None:
        return written | {"type": name.partition("#")[0]}
    if issubclass(kind, ContentHashed):
        written.pop("identity", None)
    defaults, keys = field_defaults(kind), field_keys(kind)
    return {
        keys.get(field, field): entry
        for field, entry in _present_names(kind, written).items()
        if field not in defaults or defaults[field] != entry
    } | {"type": key_name(kind)}


def _present_names(kind: type, fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields under their current names; a record may have those of an earlier version."""
    renamed = {key: field for field, key in field_keys(kind).items()}
    return {renamed.get(name, name): value for name, value in fields.items()}


def _made(kind: type, fields: dict[str, Any]) -> Any:
    """Build a module from its fields, without those that it computes, such as a state of data."""
    given = {field.name for field in dataclasses.fields(kind) if field.init}
    present = _present_names(kind, fields)
    return kind(**{name: value for name, value in present.items() if name in given})


@functools.cache
def _classes() -> dict[str, type]:
    catalogs()  # which imports them
    found: dict[str, type] = {}
    earlier: list[tuple[str, type]] = []
    waiting: list[type] = [eqx.Module]
    while waiting:
        for kind in list[type](waiting.pop().__subclasses__()):
            waiting.append(kind)
            if kind.__module__.split(".")[0] == "unlazy":
                found[kind.__qualname__] = kind
                earlier.append((key_name(kind), kind))
    for name, kind in earlier:
        found.setdefault(name, kind)
    return found
