"""The engine: runs trials, those of one shape together as one compiled program."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import platformdirs
from jaxtyping import PRNGKeyArray

from unlazy.errors import BadInput, require
from unlazy.lab.provenance import provenance
from unlazy.lab.trials import Measurement, Record, Runnable, Trial, now
from unlazy.learners.base import Trace
from unlazy.networks import Model
from unlazy.probes import Probe
from unlazy.tasks.base import Task
from unlazy.threefry import new_key

#: A chunk of trials is one call of a compiled program; its records are safe when it ends. Chunks aim at this many multiply-adds, a few
#: seconds on two cores: large nets run one by one, which costs no speed, small ones many at once, which is where vmap pays.
CHUNK_WORK = 6e10
#: Multiply-adds a second assumed for the estimate before a run; training runs near half the speed of a plain matrix product.
SPEED = 2.5e10
#: Seconds assumed for compiling one program that is not in the cache.
COMPILE_SECONDS = 7.0


class Watcher(Protocol):
    """Is told how a run goes on."""

    def compiling(self, programs: int) -> None:
        """The `programs`-th program is being compiled."""

    def running(self, trials: int) -> None:
        """A chunk of so many trials has started."""

    def finished(self, trial: Runnable, seconds: float) -> None:
        """A trial is done."""


class Silent:
    """A watcher that says nothing."""

    def compiling(self, programs: int) -> None:
        """Nothing."""

    def running(self, trials: int) -> None:
        """Nothing."""

    def finished(self, trial: Runnable, seconds: float) -> None:
        """Nothing."""


@dataclasses.dataclass
class Plan:
    """What a run will take: groups of trials of one shape, those that run alone, and the work of all in multiply-adds."""

    groups: list[list[Trial]]
    alone: list[Runnable]
    work: float

    @property
    def trials(self) -> int:
        """Number of trials."""
        return sum(map(len, self.groups)) + len(self.alone)

    @property
    def seconds(self) -> tuple[float, float]:
        """Estimated seconds: with all programs in the cache, and with none."""
        return self.work / SPEED, self.work / SPEED + COMPILE_SECONDS * len(self.groups)


def plan(trials: Sequence[Runnable]) -> Plan:
    """Group trials that differ only in numbers (seed, step size, decay, …), in the order of their first appearance."""
    groups: dict[Any, list[Trial]] = {}
    alone = [trial for trial in trials if trial.on_host]
    for trial in trials:
        if trial.on_host or isinstance(trial, Measurement):
            continue
        whole = (trial.family, trial.learner, trial.probes)
        # Whatever is not a float is the same for all trials of a program, so it belongs to the shape.
        rest = jax.tree.leaves(eqx.filter(whole, _is_number, inverse=True))
        groups.setdefault((jax.tree.structure(whole), tuple(map(repr, rest)), trial.n), []).append(trial)
    return Plan(list(groups.values()), alone, sum(trial.work for trial in trials))


def default_memory() -> int:
    """Bytes a program may use by default: half of what is available now, at most 2 GiB."""
    available = 4 << 30  # assumed where the system does not say
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = 1024 * int(next(line for line in lines if line.startswith("MemAvailable")).split()[1])
    return min(2 << 30, available // 2)


def use_compilation_cache(folder: Path | None = None) -> None:
    """Keep compiled programs in the user's cache folder, unless another place was configured for JAX."""
    if getattr(jax.config, "jax_compilation_cache_dir", None) is None:
        jax.config.update("jax_compilation_cache_dir", str(folder or Path(platformdirs.user_cache_dir("unlazy")) / "programs"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


@dataclasses.dataclass
class LocalEngine:
    """Runs trials in this process. `memory`: bytes that one program may use. `compile_seconds`, `compiled`: what compiling took."""

    memory: int = dataclasses.field(default_factory=default_memory)
    watcher: Watcher = dataclasses.field(default_factory=Silent)
    compile_seconds: float = 0.0
    compiled: int = 0

    def run(self, trials: Sequence[Runnable]) -> Iterator[Record]:
        """Records as they finish. While a program runs, the next one is compiled; while one is waited for, trials run that run alone."""
        use_compilation_cache()
        planned = plan(trials)
        alone = iter(planned.alone)
        with ThreadPoolExecutor(1) as ahead:  # compiling keeps one core busy, and lets go of Python
            waiting = [ahead.submit(self._compile_group, group) for group in planned.groups[:1]]
            for place, group in enumerate(planned.groups):
                while not waiting[place].done() and (trial := next(alone, None)) is not None:
                    yield self._run_alone(trial)
                if not waiting[place].done():
                    self.watcher.compiling(place + 1)
                size, program = waiting[place].result()
                waiting += [ahead.submit(self._compile_group, following) for following in planned.groups[place + 1 : place + 2]]
                with jax.enable_x64(group[0].precision == 64):
                    yield from self._run_group(group, size, program)
        for trial in alone:
            yield self._run_alone(trial)

    def _run_alone(self, trial: Runnable) -> Record:
        self.watcher.running(1)
        begin = time.perf_counter()
        with jax.enable_x64(trial.precision == 64):
            found = _measured(trial) if isinstance(trial, Measurement) else _run_on_host(trial)
        seconds = time.perf_counter() - begin
        self.watcher.finished(trial, seconds)
        return _record(trial, jax.device_get(found), seconds)

    def _run_group(self, group: list[Trial], size: int, program: Callable[..., Any]) -> Iterator[Record]:
        for start in range(0, len(group), size):
            chunk = group[start : start + size]
            self.watcher.running(len(chunk))
            begin = time.perf_counter()
            # The last chunk is filled up with copies of its last trial: cheaper than compiling for another size.
            found = jax.device_get(program(*_stack(chunk + chunk[-1:] * (size - len(chunk)))))
            seconds = (time.perf_counter() - begin) / len(chunk)
            for index, trial in enumerate(chunk):
                self.watcher.finished(trial, seconds)
                yield _record(trial, jax.tree.map(lambda leaf, i=index: leaf[i], found), seconds)

    def _compile_group(self, group: list[Trial]) -> tuple[int, Callable[..., Any]]:
        """A program for a group, and how many trials it runs at once."""
        wanted = max(1, min(len(group), round(CHUNK_WORK / group[0].work)))
        with jax.enable_x64(group[0].precision == 64):  # which is a setting of each thread
            return self._compile(group, wanted)

    def _compile(self, group: list[Trial], wanted: int) -> tuple[int, Callable[..., Any]]:
        """Compile for as many trials at once as fit the memory, in chunks of nearly equal size."""
        size = math.ceil(len(group) / math.ceil(len(group) / wanted))
        begin = time.perf_counter()
        inputs = _stack((group * size)[:size])
        program = jax.jit(jax.vmap(_program(group[0]))).lower(*inputs).compile()
        self.compile_seconds += time.perf_counter() - begin
        self.compiled += 1
        needed = _memory(program)
        if needed <= self.memory:
            return size, program
        if size == 1:
            raise BadInput(
                f"One trial of this study needs {needed / 2**30:.1f} GiB of memory, and {self.memory / 2**30:.1f} GiB are allowed. "
                "Allow more with --memory, or take a smaller scale or n."
            )
        return self._compile(group, max(1, min(size - 1, int(size * self.memory / needed))))


def _memory(program: Any) -> int:
    """Bytes that a compiled program needs while it runs."""
    sizes = program.memory_analysis()
    return sizes.temp_size_in_bytes + sizes.argument_size_in_bytes + sizes.output_size_in_bytes if sizes is not None else 0


def _stack(chunk: Sequence[Trial]) -> tuple[Any, Any]:
    """The numbers in which the trials of a chunk may differ, stacked: all floats of family, learner and probes; and the seeds."""
    numbers = [eqx.filter((trial.family, trial.learner, trial.probes), _is_number) for trial in chunk]
    return jax.tree.map(lambda *leaves: jnp.array(leaves), *numbers), jnp.array([t.seed for t in chunk], jnp.uint32)


def _is_number(leaf: Any) -> bool:
    return isinstance(leaf, float)


def _program(pattern: Trial) -> Callable[[Any, Any], dict[str, Any]]:
    """One trial as a pure function of its numbers and its seed."""
    rest = eqx.filter((pattern.family, pattern.learner, pattern.probes), _is_number, inverse=True)

    def run(numbers: Any, seed: Any) -> dict[str, Any]:
        family, learner, probes = eqx.combine(numbers, rest)
        key_task, key_learner, key_probe = jax.random.split(new_key(seed), 3)
        task = family.task(key=key_task)
        trace = learner.fit(task.sampler, pattern.n, key=key_learner)
        # One model after the other: the examples looked at need far more memory than the models.
        looks = jax.lax.map(lambda model: _look(task, model, trace, probes, key_probe), trace.models)
        return {"notes": {"loss": trace.losses} | trace.notes, **looks}

    return run


_draw_task = eqx.filter_jit(lambda family, key: family.task(key=key))


def _run_on_host(trial: Trial) -> dict[str, Any]:
    """The same for a learner that cannot be traced: only the task is compiled."""
    key_task, key_learner, key_probe = jax.random.split(new_key(trial.seed), 3)
    task = _draw_task(trial.family, key_task)
    trace = trial.learner.fit(task.sampler, trial.n, key=key_learner)
    looks = [_look(task, trace.at(index), trace, trial.probes, key_probe) for index in range(len(trace.steps))]
    return {"notes": {"loss": trace.losses} | trace.notes, **jax.tree.map(lambda *leaves: np.stack(leaves), *looks)}


def _look(task: Task, model: Model, trace: Trace, probes: Sequence[Probe], key: PRNGKeyArray) -> dict[str, Any]:
    """What the probes find in one model, and whether it is finite."""
    found: dict[str, Any] = {}
    for index, probe in enumerate(probes):
        new = probe(task, model, seen=trace.seen, key=jax.random.fold_in(key, index))
        require(not found.keys() & new.keys(), f"Two probes measure the same names: {sorted(found.keys() & new.keys())}.")
        found |= new
    finite = jnp.array([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(model)])
    return {"found": found, "finite": jnp.all(finite)}


def _measured(trial: Measurement) -> dict[str, Any]:
    """An experiment's findings in the form of a trial's."""
    found = {name: np.asarray(value) for name, value in trial.experiment.measure(key=new_key(trial.seed)).items()}
    if trial.steps == (0,):
        found = {name: value[None] for name, value in found.items()}
    for name, value in found.items():
        expected = len(trial.steps)
        require(
            value.ndim > 0 and len(value) == expected, f"{name} must have one entry for each of {expected} steps, but has {value.shape}."
        )
    numbers = [value for value in found.values() if value.dtype.kind == "f"]
    return {"found": found, "finite": np.array([np.all(np.isfinite(value)) for value in numbers])}


def _record(trial: Runnable, found: dict[str, Any], seconds: float) -> Record:
    numbers = found.get("notes", {}) | {name: value for name, value in found["found"].items() if np.ndim(value) == 1}
    return Record(
        key=trial.key,
        trial=trial.describe(),
        status="ok" if np.all(found["finite"]) else "diverged",
        steps=trial.steps,
        measurements={name: tuple(float(v) for v in series) for name, series in sorted(numbers.items())},
        arrays={name: np.asarray(value) for name, value in sorted(found["found"].items()) if np.ndim(value) > 1},
        seconds=seconds,
        provenance=provenance(),
        created=now(),
    )
