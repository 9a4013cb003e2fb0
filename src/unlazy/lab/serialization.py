"""Serialization for stores and record files: JSON, and numbers as bytes.

Input is validated, and never executed.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast, get_type_hints

import msgspec
import numpy as np

T = TypeVar("T")

#: A shared encoder: `json.dumps` creates one at each call, which costs as much as the encoding.
dumps = json.JSONEncoder(
    check_circular=False, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode
#: Allowed dtypes: numbers and booleans of fixed size, no objects.
_NUMBERS = re.compile(r"[<>|=][biufc]\d{1,2}")


@functools.lru_cache
def text(values: tuple[Any, ...]) -> str:
    """Return steps, names or shapes as JSON; records of a study share them, so they are cached."""
    return dumps(values)


def pack(measurements: Mapping[str, Sequence[float]]) -> bytes:
    """Return the concatenated series as doubles of 8 bytes; decimals would be slower."""
    values = tuple(itertools.chain.from_iterable(measurements.values()))
    return struct.pack(f"<{len(values)}d", *values)


def plain_numbers(names: Any, data: bytes) -> dict[str, tuple[float, ...]]:
    """Return the series from `pack` output; all have one length."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("the names of its measures are not a list of strings")
    if not isinstance(data, bytes) or len(data) % (8 * max(len(names), 1)):
        raise ValueError(f"its numbers are not {len(names)} series of equal length")
    values = struct.unpack(f"<{len(data) // 8}d", data)
    steps = len(values) // max(len(names), 1)
    return {name: values[steps * index : steps * (index + 1)] for index, name in enumerate(names)}


def plain_array(dtype: Any, shape: Any, data: bytes) -> np.ndarray:
    """Return an array from its bytes."""
    if not isinstance(dtype, str) or not _NUMBERS.fullmatch(dtype):
        raise ValueError(f"{dtype!r} is not a numeric dtype")
    if not isinstance(shape, list) or not all(
        isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in shape
    ):
        raise ValueError(f"{shape!r} is not a shape")
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise ValueError(f"{dtype!r} is not a numeric dtype") from None
    if not isinstance(data, bytes) or math.prod(shape) * kind.itemsize != len(data):
        raise ValueError(f"the size of an array of shape {shape} does not match its bytes")
    return np.frombuffer(data, kind).reshape(shape)


def plain(content: Any, kind: type | tuple[type, ...], what: str) -> Any:
    """Parse JSON and check the type of the value."""
    value = json.loads(content)
    if not isinstance(value, kind):
        raise ValueError(f"{what} has the wrong type")
    return value


def to_plain(value: Any, keys: Mapping[str, str], **given: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as JSON values; a number that is not finite is None.

    `keys`: JSON keys that differ from the names of fields; `given`: values of some fields.
    """
    fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)} | given
    data = {keys.get(name, name): each for name, each in fields.items()}
    # The encoder does not support NumPy numbers.
    return cast(dict[str, Any], msgspec.json.decode(msgspec.json.encode(data, enc_hook=float)))


def from_plain(kind: type[T], data: Mapping[str, Any], keys: Mapping[str, str], **given: Any) -> T:
    """Build from `to_plain` output; the type of every field is checked."""
    types = get_type_hints(kind)
    names = {name: keys.get(name, name) for name in types if name not in given}
    return kind(
        **{
            name: msgspec.convert(data[key], types[name])
            for name, key in names.items()
            if key in data
        },
        **given,
    )
