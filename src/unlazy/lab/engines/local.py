"""The local engine: trials of one shape run together, in compiled programs that learners share.

A trial consists of parts: draw the task, initialize training, each training stage, its end, and the
probes. Each part is one compiled program for all trials of a chunk. Parts that differ only in
numbers are compiled once, for all learners and claims. While one group of trials runs, the programs
of the next group are compiled. Small networks use one core each, so chunks run in parallel: as many
as there are cores (at most `PARALLEL_CHUNKS`), if their programs fit into memory together.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import platformdirs
from jaxtyping import PRNGKeyArray

from unlazy.core.errors import BadInput, require
from unlazy.core.threads import cores
from unlazy.core.threefry import new_key
from unlazy.lab.costs import Costs
from unlazy.lab.engines.base import Callback, Engine, NullCallback, Plan, require_data
from unlazy.lab.engines.programs import Programs, TooLarge
from unlazy.lab.provenance import provenance
from unlazy.lab.trials import DETAILS, Measurement, Record, Runnable, Trial, now
from unlazy.learners.base import Trace
from unlazy.probes.base import Probe
from unlazy.tasks.base import Data, Family, Sampler

#: A chunk of trials is one call of each of its programs; its records are stored when it ends. A
#: group of at most this work (in multiply-adds, a few seconds on two cores) is one chunk.
CHUNK_WORK = 6e10
#: Trials that differ only in their seeds are one chunk up to this work, so that learners of one
#: study share programs of one size.
SEEDS_WORK = 3e11
#: Maximum number of parallel chunks; a group of more work than this is divided into as many.
PARALLEL_CHUNKS, SPLIT_WORK = 2, 1e10


def default_memory(workers: int = 1) -> int:
    """Return the default bytes per program: half of the available memory per worker, ≤ 2 GiB."""
    available = 4 << 30  # assumed if /proc/meminfo does not exist
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = 1024 * int(
            next(line for line in lines if line.startswith("MemAvailable")).split()[1]
        )
    return min(2 << 30, available // 2 // workers)


def use_compilation_cache(folder: Path | None = None) -> None:
    """Keep compiled programs in the user's cache folder, unless JAX has another one configured."""
    if getattr(jax.config, "jax_compilation_cache_dir", None) is None:
        jax.config.update(
            "jax_compilation_cache_dir",
            str(folder or Path(platformdirs.user_cache_dir("unlazy")) / "programs"),
        )
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)


def program_cache() -> Path | None:
    """Return the folder of compiled programs."""
    use_compilation_cache()
    folder = getattr(jax.config, "jax_compilation_cache_dir", None)
    return None if folder is None else Path(folder)


def groups_of(trials: Sequence[Runnable]) -> tuple[list[list[Trial]], list[Runnable]]:
    """Return groups of trials that differ only in numbers (seed, learning rate, …), and the trials
    that run on the host.
    """
    groups: dict[Any, list[Trial]] = {}
    alone = [trial for trial in trials if trial.on_host]
    for trial in trials:
        if trial.on_host or isinstance(trial, Measurement):
            continue
        whole = (trial.family, trial.learner, trial.probes)
        # Everything except floats is equal for all trials of a group.
        rest = jax.tree.leaves(eqx.filter(whole, _is_number, inverse=True))
        groups.setdefault((jax.tree.structure(whole), tuple(map(repr, rest)), trial.n), []).append(
            trial
        )
    return list(groups.values()), alone


class LocalEngine(Engine):
    """Runs trials in this process. `memory`: bytes per program."""

    def __init__(self, memory: int | None = None) -> None:
        self.memory = default_memory() if memory is None else memory
        self.costs = Costs()
        self._programs = Programs(self.memory)

    @property
    def compile_seconds(self) -> float:
        """Seconds of compilation so far."""
        return self._programs.seconds

    def plan(self, trials: Sequence[Runnable]) -> Plan:
        groups, _ = groups_of(trials)
        seconds = alone = sum(map(self.costs.seconds, trials))
        if self.costs.known:  # measured seconds are those of parallel chunks
            seconds -= sum(
                map(self.costs.seconds, (trial for trial in trials if not trial.on_host))
            ) * (1 - 1 / self._parallel)
        compiling = self.costs.compile_seconds * len(groups)
        shapes, cost = len(groups), self.costs.seconds
        return Plan(len(trials), shapes, alone, seconds, compiling, self.memory, cost)

    def run(
        self, trials: Sequence[Runnable], callback: Callback | None = None
    ) -> Generator[Record]:
        """Yield records as chunks finish, in the order of the chunks.

        While a group runs, the programs of the next are compiled. During compilation, host trials
        run. Chunks run in their own threads.
        """
        require_data(trials)
        use_compilation_cache()
        callback = callback or NullCallback()
        groups, waiting = groups_of(trials)
        alone = iter(waiting)
        counted = self._programs.count, self._programs.seconds
        running: deque[_Running] = deque()
        # Compiling and running a program both use one core and release the GIL.
        with ThreadPoolExecutor(1) as ahead, ThreadPoolExecutor(PARALLEL_CHUNKS) as runners:
            try:
                prepared = [ahead.submit(self._prepare, group) for group in groups[:1]]
                for i in range(len(groups)):
                    while not prepared[i].done() and running:
                        yield from _collected(running.popleft(), callback)
                    while not prepared[i].done() and (trial := next(alone, None)) is not None:
                        yield self._run_alone(trial, callback)
                    if not prepared[i].done():
                        callback.compiling(self._programs.count - counted[0])
                    chunks = prepared[i].result()
                    prepared += [
                        ahead.submit(self._prepare, following)
                        for following in groups[i + 1 : i + 2]
                    ]
                    for chunk, size in chunks:
                        while len(running) >= self._parallel:
                            yield from _collected(running.popleft(), callback)
                        callback.running(len(chunk))
                        running.append((chunk, runners.submit(self._run_chunk, chunk, size)))
                    callback.compiled(
                        self._programs.count - counted[0], self._programs.seconds - counted[1]
                    )
                while running:
                    yield from _collected(running.popleft(), callback)
            finally:
                self._programs.stop.set()
                ahead.shutdown(wait=True, cancel_futures=True)
                runners.shutdown(wait=True, cancel_futures=True)
                self._programs.stop.clear()
        for trial in alone:
            yield self._run_alone(trial, callback)

    def run_together(self, chunk: list[Trial], size: int) -> list[Record]:
        """Run one chunk, padded to a size; raise `TooLarge` if it exceeds the memory."""
        with jax.enable_x64(chunk[0].precision == 64):
            _drive((chunk * size)[:size], self._programs.prepare)
        return list(_records(chunk, *self._run_chunk(chunk, size)))

    def run_alone(self, trial: Runnable) -> Record:
        """Run one trial on the host."""
        return self._run_alone(trial, NullCallback())

    @property
    def programs(self) -> int:
        """Number of programs compiled so far."""
        return self._programs.count

    def _run_alone(self, trial: Runnable, callback: Callback) -> Record:
        callback.running(1)
        began = time.perf_counter()
        with jax.enable_x64(trial.precision == 64):
            found = _measured(trial) if isinstance(trial, Measurement) else _run_on_host(trial)
        seconds = time.perf_counter() - began
        callback.finished(trial, seconds)
        details = found.pop(DETAILS, None)
        return _record(trial, jax.device_get(found), seconds, details)

    @property
    def _parallel(self) -> int:
        """Number of chunks that may run in parallel, limited by cores and memory."""
        fitting = self.memory // max(self._programs.largest, 1)
        return max(1, min(PARALLEL_CHUNKS, cores(), fitting))

    def _run_chunk(self, chunk: list[Trial], size: int) -> tuple[Any, float]:
        """Return the results of all trials of a chunk, and the seconds per trial."""
        began = time.perf_counter()
        with jax.enable_x64(chunk[0].precision == 64):  # a setting per thread
            # The last chunk is padded with copies of its last trial: cheaper than compiling for
            # another size.
            found = jax.device_get(
                _drive(chunk + chunk[-1:] * (size - len(chunk)), self._programs.run)
            )
        return found, (time.perf_counter() - began) / len(chunk)

    def _prepare(self, group: list[Trial]) -> list[tuple[list[Trial], int]]:
        """Divide a group into chunks that fit into memory, and compile their programs."""
        max_trials = len(group)
        while True:
            chunks = chunks_of(group, max_trials)
            try:
                with jax.enable_x64(group[0].precision == 64):  # a setting per thread
                    for size in dict.fromkeys(size for _, size in chunks):
                        _drive((group * size)[:size], self._programs.prepare)
                return chunks
            except TooLarge as large:
                if large.trials == 1:
                    raise BadInput(
                        f"One trial of this study needs {large.needed / 2**30:.1f} GiB of memory; "
                        f"the limit is {self.memory / 2**30:.1f} GiB. Increase --memory, or choose "
                        "a smaller scale or n."
                    ) from None
                max_trials = max(
                    1, min(large.trials - 1, int(large.trials * self.memory / large.needed))
                )


#: A running chunk and its future results.
_Running = tuple[list[Trial], "Future[tuple[Any, float]]"]


def _collected(running: _Running, callback: Callback) -> Iterator[Record]:
    chunk, future = running
    found, seconds = future.result()
    for trial, record in zip(chunk, _records(chunk, found, seconds), strict=True):
        callback.finished(trial, seconds)
        yield record


def _records(chunk: list[Trial], found: Any, seconds: float) -> Iterator[Record]:
    """Yield the records of a chunk from the results of all its trials."""
    for index, trial in enumerate(chunk):
        yield _record(trial, jax.tree.map(lambda leaf, i=index: leaf[i], found), seconds)


def chunks_of(group: list[Trial], max_trials: int) -> list[tuple[list[Trial], int]]:
    """Return the trials of each chunk and its padded size.

    A group of little work is one chunk; otherwise trials that differ only in seeds are.
    """
    work = group[0].work

    def cut(trials: list[Trial], allowed: float) -> list[tuple[list[Trial], int]]:
        wanted = max(1, min(len(trials), max_trials, round(allowed / work)))
        size = math.ceil(len(trials) / math.ceil(len(trials) / wanted))
        return [(trials[start : start + size], size) for start in range(0, len(trials), size)]

    if work * len(group) <= CHUNK_WORK and len(group) <= max_trials:
        # Independent of the machine, so that rounding is.
        size = math.ceil(len(group) / (PARALLEL_CHUNKS if work * len(group) > SPLIT_WORK else 1))
        return [(group[start : start + size], size) for start in range(0, len(group), size)]
    alike: dict[Any, list[Trial]] = {}
    for trial in group:
        alike.setdefault(repr((trial.family, trial.learner, trial.probes)), []).append(trial)
    return [chunk for trials in alike.values() for chunk in cut(trials, SEEDS_WORK)]


def _is_number(leaf: Any) -> bool:
    return isinstance(leaf, float)


class _Draw(eqx.Module):
    """Draw the task of a seed, the learner's sampler, and the keys of learner and probes."""

    family: Family

    def __call__(self, seed: Any) -> tuple[Data, Sampler, PRNGKeyArray, PRNGKeyArray]:
        key_task, key_learner, key_probe = jax.random.split(new_key(seed), 3)
        task = self.family.task(key=key_task)
        return task, self.family.handed(task), key_learner, key_probe


class _Probe(eqx.Module):
    probes: tuple[Probe, ...]

    def __call__(self, task: Data, trace: Trace, key: PRNGKeyArray) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for index, probe in enumerate(self.probes):
            new = probe(task, trace, found=found, key=jax.random.fold_in(key, index))
            require(
                not found.keys() & new.keys(),
                f"Two probes measure the same names: {sorted(found.keys() & new.keys())}.",
            )
            found |= new
        return {
            "notes": {"loss": trace.losses, **trace.notes},
            "found": found,
            "finite": trace.finite,
        }


def _drive(trials: Sequence[Trial], call: Callable[..., Any]) -> Any:
    """Run trials of one shape, part by part."""
    pattern = trials[0]
    wholes = [(trial.family, trial.learner, trial.probes) for trial in trials]
    numbers = [eqx.filter(whole, _is_number) for whole in wholes]
    rest = eqx.filter(wholes[0], _is_number, inverse=True)
    stacked = jax.tree.map(lambda *leaves: jnp.array(leaves), *numbers)
    family, learner, probes = eqx.combine(stacked, rest)
    seeds = jnp.array([trial.seed for trial in trials], jnp.uint32)
    task, sampler, key_learner, key_probe = call(_Draw(family), seeds)
    trace = learner.fit_in_parts(sampler, pattern.n, key_learner, call)
    return call(_Probe(probes), task, trace, key_probe)


_draw_task = eqx.filter_jit(lambda family, key: family.task(key=key))


def _run_on_host(trial: Trial) -> dict[str, Any]:
    """Run a learner that cannot be traced; only the task is compiled."""
    key_task, key_learner, key_probe = jax.random.split(new_key(trial.seed), 3)
    task = _draw_task(trial.family, key_task)
    trace = trial.learner.fit(trial.family.handed(task), trial.n, key=key_learner)
    return _Probe(trial.probes)(task, trace, key_probe)


def _measured(trial: Measurement) -> dict[str, Any]:
    """Return the results of an exact computation in the form of a trial's."""
    measured = dict(trial.computation.measure(key=new_key(trial.seed)))
    details = measured.pop(DETAILS, None)
    found = {name: np.asarray(value) for name, value in measured.items()}
    if trial.steps == (0,):
        found = {name: value[None] for name, value in found.items()}
    for name, value in found.items():
        expected = len(trial.steps)
        require(
            value.ndim > 0 and len(value) == expected,
            f"{name} must have {expected} entries (one per step), got shape {value.shape}.",
        )
    numbers = [value for value in found.values() if value.dtype.kind == "f"]
    finite = np.array([np.all(np.isfinite(value)) for value in numbers])
    return {"found": found, "finite": finite, DETAILS: details}


def _record(
    trial: Runnable,
    found: dict[str, Any],
    seconds: float,
    details: dict[str, Any] | None = None,
) -> Record:
    numbers = found.get("notes", {}) | {
        name: value for name, value in found["found"].items() if np.ndim(value) == 1
    }
    return Record(
        key=trial.key,
        fingerprint=trial.fingerprint.id,
        trial=trial.describe(),
        status="ok" if np.all(found["finite"]) else "diverged",
        steps=trial.steps,
        measurements={
            name: tuple(float(v) for v in series) for name, series in sorted(numbers.items())
        },
        arrays={
            name: np.asarray(value)
            for name, value in sorted(found["found"].items())
            if np.ndim(value) > 1
        },
        seconds=seconds,
        provenance=provenance(),
        created=now(),
        details=details,
    )
