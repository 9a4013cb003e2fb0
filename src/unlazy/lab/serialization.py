"""The plain formats of the store and of files of records: JSON, and numbers as bytes.

Whatever is read is checked, and never run.
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

#: One encoder for all: `json.dumps` would make a new one at each call, which costs as much as the
#: writing.
dumps = json.JSONEncoder(
    check_circular=False, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode
#: Numbers and truth values of a fixed size; objects have no place in a store.
_NUMBERS = re.compile(r"[<>|=][biufc]\d{1,2}")


@functools.lru_cache
def text(values: tuple[Any, ...]) -> str:
    """Steps, names and shapes as JSON: the same few for all records of a study."""
    return dumps(values)


def pack(measurements: Mapping[str, Sequence[float]]) -> bytes:
    """All series, one after the other, as doubles of 8 bytes: writing them as decimals would take
    longer than storing them.
    """
    values = tuple(itertools.chain.from_iterable(measurements.values()))
    return struct.pack(f"<{len(values)}d", *values)


def plain_numbers(names: Any, data: bytes) -> dict[str, tuple[float, ...]]:
    """Undo `pack`: so many series of one length."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("the names of its measures are no list of texts")
    if not isinstance(data, bytes) or len(data) % (8 * max(len(names), 1)):
        raise ValueError(f"its numbers are not {len(names)} series of one length")
    values = struct.unpack(f"<{len(data) // 8}d", data)
    steps = len(values) // max(len(names), 1)
    return {name: values[steps * index : steps * (index + 1)] for index, name in enumerate(names)}


def plain_array(dtype: Any, shape: Any, data: bytes) -> np.ndarray:
    """Numbers of one kind from their bytes."""
    if not isinstance(dtype, str) or not _NUMBERS.fullmatch(dtype):
        raise ValueError(f"{dtype!r} is no kind of number")
    if not isinstance(shape, list) or not all(
        isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in shape
    ):
        raise ValueError(f"{shape!r} is no shape")
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise ValueError(f"{dtype!r} is no kind of number") from None
    if not isinstance(data, bytes) or math.prod(shape) * kind.itemsize != len(data):
        raise ValueError(f"an array of shape {shape} does not fit its bytes")
    return np.frombuffer(data, kind).reshape(shape)


def plain(content: Any, kind: type | tuple[type, ...], what: str) -> Any:
    """JSON text as a value of a kind."""
    value = json.loads(content)
    if not isinstance(value, kind):
        raise ValueError(f"{what} is of another kind")
    return value


def to_plain(value: Any, keys: Mapping[str, str], **given: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as JSON values; a number that is not finite is None.

    `keys`: JSON keys that differ from the names of fields; `given`: values of some fields.
    """
    found = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)} | given
    told = {keys.get(name, name): each for name, each in found.items()}
    # A number of NumPy is of no type that the encoder knows.
    return cast(dict[str, Any], msgspec.json.decode(msgspec.json.encode(told, enc_hook=float)))


def from_plain(kind: type[T], told: Mapping[str, Any], keys: Mapping[str, str], **given: Any) -> T:
    """Undo `to_plain`; every value is checked against the type of its field."""
    types = get_type_hints(kind)
    names = {name: keys.get(name, name) for name in types if name not in given}
    return kind(
        **{
            name: msgspec.convert(told[key], types[name])
            for name, key in names.items()
            if key in told
        },
        **given,
    )
