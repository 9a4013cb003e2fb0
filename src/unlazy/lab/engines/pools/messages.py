"""Messages between coordinator and workers.

Jobs are pickled objects, sent from a coordinator to its own processes. Answers are plain data: a
JSON header, numbers as bytes, and a checksum of both. A truncated or modified answer is rejected,
and reading one never runs code.
"""

from __future__ import annotations

import builtins
import dataclasses
import hashlib
import json
import pickle
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import cloudpickle
import numpy as np

from unlazy.core.errors import BadInput, UnlazyError
from unlazy.core.user_code import SOURCE
from unlazy.lab.registry import load_source
from unlazy.lab.serialization import plain_array, plain_numbers
from unlazy.lab.trials import Failure, Record, Runnable

MAGIC = b"unlazy-1"
_HEAD = len(MAGIC) + 32 + 8


@dataclasses.dataclass(frozen=True)
class Job:
    """Trials for one worker: a chunk padded to `size`, or host trials (`size` 0).

    `memory`: bytes per program. `ids`, `descriptions`: those of the trials in the coordinator.
    """

    trials: tuple[Runnable, ...]
    size: int
    memory: int
    ids: tuple[str, ...]
    descriptions: tuple[dict[str, Any], ...]


@dataclasses.dataclass(frozen=True)
class Reply:
    """The result of a job: records and failures, an error of the whole job, or too little memory.

    `compiled`: number of programs and seconds. `too_large`: number of trials and bytes they need.
    `host`: the machine that ran the job.
    """

    records: tuple[Record, ...] = ()
    failures: tuple[Failure, ...] = ()
    raised: str = ""
    too_large: tuple[int, int] | None = None
    compiled: tuple[int, float] = (0, 0.0)
    host: str = ""


def packed(trials: Sequence[Runnable], size: int, memory: int) -> bytes:
    """Return a job as bytes, with the sources of user files."""
    job = Job(
        tuple(trials),
        size,
        memory,
        tuple(t.id for t in trials),
        tuple(t.describe() for t in trials),
    )
    sources = [
        (name, module.__file__, vars(module)[SOURCE])
        for name, module in list(sys.modules.items())
        if SOURCE in _names(module)
    ]
    try:
        inner = cloudpickle.dumps(job)
    except Exception as error:
        raise BadInput(
            f"A trial cannot be sent to another process ({type(error).__name__}: {error}). Put "
            "its classes and functions into a file, or "
            "run it with --engine local."
        ) from error
    return pickle.dumps((sources, inner))


def _names(module: Any) -> Any:
    return getattr(module, "__dict__", ())


def unpacked(message: bytes) -> Job:
    """Return a job from its bytes; reject trials whose ids differ from the coordinator's."""
    sources, inner = pickle.loads(message)
    for name, file, source in sources:
        load_source(name, file, source)
    job: Job = pickle.loads(inner)
    for trial, known in zip(job.trials, job.ids, strict=True):
        for name in ("key", "fingerprint", "id"):  # cached by the coordinator; computed again here
            trial.__dict__.pop(name, None)
        if trial.id == known:
            continue
        if not _of_session(trial):
            raise BadInput(
                f"The trial {known} differs on this worker: its code or its data are not those of "
                "the coordinator. Install the same versions and use the same files."
            )
        # A class of a session or script has no module here: its code was sent.
        trial.__dict__["id"] = known
    return job


def _of_session(value: Any) -> bool:
    """Return whether a trial uses classes or functions that are not in a module."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return False
    kind = (
        value
        if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__"))
        else type(value)
    )
    if kind.__module__ in ("__main__", "builtins") and not hasattr(
        builtins, kind.__qualname__.split(".")[0]
    ):
        return True
    if dataclasses.is_dataclass(value):
        return any(_of_session(getattr(value, field.name)) for field in dataclasses.fields(value))
    if isinstance(value, Mapping):
        return any(map(_of_session, value.values()))
    return isinstance(value, (tuple, list)) and any(map(_of_session, value))


def written(answer: Reply) -> bytes:
    """Return an answer as bytes."""
    chunks: list[bytes] = []
    position = 0

    def put(array: np.ndarray) -> list[Any]:
        nonlocal position
        data = np.ascontiguousarray(array).tobytes()
        chunks.append(data)
        position += len(data)
        return [array.dtype.str, list(array.shape), position - len(data), len(data)]

    origins: list[dict[str, Any]] = []

    def origin(of: dict[str, Any]) -> int:
        if of not in origins:
            origins.append(of)
        return origins.index(of)

    records = [
        {
            "key": record.key,
            "fingerprint": record.fingerprint,
            "details": record.details,
            "trial": record.trial,
            "status": record.status,
            "steps": list(record.steps),
            "names": list(record.measurements),
            "values": put(np.array([*record.measurements.values()], "<f8").ravel()),
            "arrays": {name: put(array) for name, array in record.arrays.items()},
            "seconds": record.seconds,
            "origin": origin(record.provenance),
            "created": record.created,
        }
        for record in answer.records
    ]
    header = {
        "records": records,
        "failures": [dataclasses.asdict(failure) for failure in answer.failures],
        "raised": answer.raised,
        "too_large": answer.too_large,
        "compiled": list(answer.compiled),
        "origins": origins,
        "host": answer.host,
    }
    text = json.dumps(header, ensure_ascii=False, allow_nan=False).encode()
    body = len(text).to_bytes(8, "little") + text + b"".join(chunks)
    return MAGIC + hashlib.sha256(body).digest() + body


def read(data: bytes, what: str = "an answer of a worker") -> Reply:
    """Return the reply from its bytes, or raise an error if it is damaged."""
    try:
        if len(data) < _HEAD or data[: len(MAGIC)] != MAGIC:
            raise ValueError("its first bytes are wrong")
        if hashlib.sha256(data[len(MAGIC) + 32 :]).digest() != data[len(MAGIC) : len(MAGIC) + 32]:
            raise ValueError("its checksum does not match")
        end = _HEAD + int.from_bytes(data[_HEAD - 8 : _HEAD], "little")
        return _reply(json.loads(data[_HEAD:end]), memoryview(data)[end:])
    except UnlazyError:
        raise
    except Exception as error:  # the content is arbitrary
        raise BadInput(f"{what} is damaged: {error}.") from error


def _reply(header: dict[str, Any], data: memoryview) -> Reply:
    def get(location: list[Any]) -> np.ndarray:
        dtype, shape, start, size = location
        if not 0 <= start <= start + size <= len(data):
            raise ValueError("it is too short")
        return plain_array(dtype, shape, bytes(data[start : start + size]))

    def record(entry: dict[str, Any]) -> Record:
        if entry["status"] not in ("ok", "diverged"):
            raise ValueError(f"{entry['status']!r} is not a status")
        steps = tuple(map(int, entry["steps"]))
        values = plain_numbers(entry["names"], get(entry["values"]).tobytes())
        arrays = {str(name): get(location) for name, location in entry["arrays"].items()}
        return Record(
            key=str(entry["key"]),
            fingerprint=str(entry["fingerprint"]),
            trial=dict(entry["trial"]),
            status=entry["status"],
            steps=steps,
            measurements=values,
            arrays=arrays,
            seconds=float(entry["seconds"]),
            provenance=dict(header["origins"][entry["origin"]]),
            created=str(entry["created"]),
            details=None if entry["details"] is None else dict(entry["details"]),
        )

    large = header["too_large"]
    return Reply(
        tuple(map(record, header["records"])),
        tuple(Failure(**failure) for failure in header["failures"]),
        str(header["raised"]),
        None if large is None else (int(large[0]), int(large[1])),
        (int(header["compiled"][0]), float(header["compiled"][1])),
        str(header["host"]),
    )
