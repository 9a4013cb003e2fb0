"""What a worker does: it runs an errand by the local engine, and answers in plain bytes whatever
happens.
"""

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

#: What must be the same for coordinator and workers; machines may differ.
SAME = (
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
    """The engine of this process, which keeps its compiled programs."""
    use_compilation_cache()
    return LocalEngine(memory)


def run_job(parcel: bytes) -> bytes:
    """Run what a coordinator sent."""
    try:
        job = unpacked(parcel)
    except UnlazyError as error:
        return written(Reply(raised=str(error)))
    except Exception as error:
        return written(Reply(raised=f"the trials cannot be read here: {_said(error)}"))
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
        return Reply(tuple(_as_told(record, job, place) for place, record in enumerate(found)))
    except TooLarge as large:
        return Reply(too_large=(large.trials, large.needed))
    except Exception as error:
        return Reply(raised=_said(error))


def _alone(job: Job, engine: LocalEngine) -> Reply:
    records, failures = [], []
    for place, trial in enumerate(job.trials):
        try:
            records.append(_as_told(engine.run_alone(trial), job, place))
        except Exception as error:
            failures.append(
                Failure(job.ids[place], job.told[place], _said(error), provenance(), now())
            )
    return Reply(tuple(records), tuple(failures))


def _as_told(record: Record, job: Job, place: int) -> Record:
    """Return the record under the coordinator's id and description."""
    key, _, fingerprint = job.ids[place].partition(".")
    return dataclasses.replace(record, key=key, fingerprint=fingerprint, trial=job.told[place])


def _said(error: BaseException) -> str:
    """An error in one line: what it is and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    where = (
        f" ({frames[-1].filename.rpartition('/')[2]}, line {frames[-1].lineno})" if frames else ""
    )
    return f"{type(error).__name__}: {error}".splitlines()[0] + where


def hello() -> dict[str, Any]:
    """What a worker is."""
    return provenance()


def check_same(found: dict[str, Any], worker: str, expected: dict[str, Any] | None = None) -> None:
    """Refuse a worker whose numbers could be others than the coordinator's."""
    expected = provenance() if expected is None else expected
    other = [
        f"{name} {found.get(name)} and not {expected.get(name)}"
        for name in SAME
        if found.get(name) != expected.get(name)
    ]
    if other:
        raise BadInput(
            f"The worker {worker} is refused: it has {', '.join(other)}. Install the same "
            "versions everywhere, and restart it."
        )
