"""Trials from their descriptions: what a record says is enough to run it again, where it is made of
things of this package.

Nothing is run that a description names by itself: names lead to classes of this package, or of
files that the user names. Whether it is the same trial is decided by its key.
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

#: Descriptions are a few modules deep; what is deeper is none.
DEEPEST = 40


def rebuilt(key: str, description: dict[str, Any], files: Iterable[ModuleType] = ()) -> Runnable:
    """The trial of a description, or an error that says why it cannot be made again."""
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
        raise BadInput(f"The trial {key} cannot be made from its record: {error}") from error
    except Exception as error:
        raise BadInput(
            f"The trial {key} cannot be made from its record: {type(error).__name__}: {error}."
        ) from error
    if found != key:
        raise BadInput(
            f"The trial {key} cannot be made from its record: its classes are no longer what "
            "they were, or the record was changed."
        )
    return trial


def _require_data(value: Any, depth: int = 0) -> None:
    """Refuse a description of data that were held in memory, of which a record keeps a hash."""
    if isinstance(value, dict) and depth <= DEEPEST:
        kind = _classes().get(str(value.get("type")), object)
        if issubclass(kind, ContentHashed) and kind.held:
            raise BadInput(
                f"the rows of {value.get('name', 'its table')} are not in the record, only their "
                "hash."
            )
        for entry in value.values():
            _require_data(entry, depth + 1)


def _value(value: Any, own: dict[str, type], depth: int) -> Any:
    if depth > DEEPEST:
        raise BadInput("its description is nested too deeply.")
    if isinstance(value, list):
        return tuple(_value(entry, own, depth + 1) for entry in value)
    if not isinstance(value, dict):
        return value
    if "array" in value or "function" in value:
        raise BadInput("it holds an array or a function, of which a record keeps only a hash.")
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
    """Return the content of a trial from its full description, as keys are made of it.

    Defaults of classes of this package are left out, and hashes of source and data are; classes
    from elsewhere keep all their fields.
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
    """Return fields under their present names; a record may have those of an earlier version."""
    renamed = {key: field for field, key in field_keys(kind).items()}
    return {renamed.get(name, name): value for name, value in fields.items()}


def _made(kind: type, fields: dict[str, Any]) -> Any:
    """A module from its fields.

    What it finds out by itself, such as the state of its data, is left out: its key says if it is
    the same.
    """
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
