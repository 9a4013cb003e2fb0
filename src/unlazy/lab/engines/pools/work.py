"""The work of a worker: run a job by the local engine, and return an answer also after errors."""

from __future__ import annotations

import dataclasses
import functools
import platform
import traceback
from typing import Any

from unlazy.core.errors import BadInput, UnlazyError
from unlazy.lab.engines.local import LocalEngine, use_compilation_cache
from unlazy.lab.engines.pools.messages import Job, Reply, unpacked, written
from unlazy.lab.engines.programs import TooLarge
from unlazy.lab.provenance import provenance
from unlazy.lab.trials import Failure, Record, Trial, now

#: Provenance that must be equal for coordinator and workers.
REQUIRED_EQUAL = (
    "unlazy",
    "source",
    "python",
    "jax",
    "jaxlib",
    "equinox",
    "optax",
    "numpy",
    "scipy",
    "scikit-learn",
)


@functools.cache
def engine_of(memory: int) -> LocalEngine:
    """Return the engine of this process, which keeps its compiled programs."""
    use_compilation_cache()
    return LocalEngine(memory)


def run_job(message: bytes) -> bytes:
    """Run a job of a coordinator."""
    try:
        job = unpacked(message)
    except UnlazyError as error:
        return written(Reply(raised=str(error)))
    except Exception as error:
        return written(Reply(raised=f"the trials cannot be read here: {_line(error)}"))
    engine = engine_of(job.memory)
    before = engine.programs, engine.compile_seconds
    answer = _alone(job, engine) if job.size == 0 else _together(job, engine)
    compiled = engine.programs - before[0], engine.compile_seconds - before[1]
    return written(dataclasses.replace(answer, compiled=compiled, host=platform.node()))


def _together(job: Job, engine: LocalEngine) -> Reply:
    try:
        found = engine.run_together(
            [trial for trial in job.trials if isinstance(trial, Trial)], job.size
        )
        return Reply(tuple(_as_sent(record, job, i) for i, record in enumerate(found)))
    except TooLarge as large:
        return Reply(too_large=(large.trials, large.needed))
    except Exception as error:
        return Reply(raised=_line(error))


def _alone(job: Job, engine: LocalEngine) -> Reply:
    records, failures = [], []
    for i, trial in enumerate(job.trials):
        try:
            records.append(_as_sent(engine.run_alone(trial), job, i))
        except Exception as error:
            failures.append(
                Failure(job.ids[i], job.descriptions[i], _line(error), provenance(), now())
            )
    return Reply(tuple(records), tuple(failures))


def _as_sent(record: Record, job: Job, i: int) -> Record:
    """Return the record under the coordinator's id and description."""
    key, _, fingerprint = job.ids[i].partition(".")
    return dataclasses.replace(record, key=key, fingerprint=fingerprint, trial=job.descriptions[i])


def _line(error: BaseException) -> str:
    """Return an error in one line, with file and line."""
    frames = traceback.extract_tb(error.__traceback__)
    where = (
        f" ({frames[-1].filename.rpartition('/')[2]}, line {frames[-1].lineno})" if frames else ""
    )
    return f"{type(error).__name__}: {error}".splitlines()[0] + where


def hello() -> dict[str, Any]:
    """Return the provenance of a worker."""
    return provenance()


def check_same(found: dict[str, Any], worker: str, expected: dict[str, Any] | None = None) -> None:
    """Raise an error if a worker's versions differ from the coordinator's."""
    expected = provenance() if expected is None else expected
    other = [
        f"{name} {found.get(name)} instead of {expected.get(name)}"
        for name in REQUIRED_EQUAL
        if found.get(name) != expected.get(name)
    ]
    if other:
        raise BadInput(
            f"The worker {worker} is rejected: it has {', '.join(other)}. Install the same "
            "versions everywhere, and restart it."
        )
