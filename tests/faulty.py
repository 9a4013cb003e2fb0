"""Trials and coordinators for the fault suite, and comparison of stores."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import equinox as eqx
import numpy as np

from toys import keep, toy_trial
from unlazy.core.random import normal
from unlazy.lab.engines.choice import engine_named
from unlazy.lab.maintenance import check
from unlazy.lab.repeating import differences
from unlazy.lab.stopping import Terminated, stoppable
from unlazy.lab.store import Store
from unlazy.lab.trials import ExactComputation, Measurement

HERE = Path(__file__).parent


class Job(ExactComputation):
    """A number that depends on the seed, after a delay.

    The seed `deadly` kills its process, `wrong` raises an error, `greedy` uses all memory.
    `claimed`: reported seconds.
    """

    wait: float = eqx.field(static=True, default=0.0)
    deadly: int = eqx.field(static=True, default=-1)
    greedy: int = eqx.field(static=True, default=-1)
    wrong: int = eqx.field(static=True, default=-1)
    claimed: float = eqx.field(static=True, default=0.0)

    def measure(self, *, key):
        drawn = np.asarray(normal(key, (4,)))
        seed = int(np.asarray(key_data(key))[-1])
        time.sleep(self.wait)
        if seed == self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        if seed == self.greedy:
            hoard()
        if seed == self.wrong:
            raise RuntimeError("this seed is wrong")
        return {"value": float(drawn[0]), "drawn": drawn}


def key_data(key):
    import jax

    return jax.random.key_data(key)


def hoard():
    """Use all memory, under a limit for this process."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    kept = []
    while True:
        kept.append(np.ones(1 << 26))


def jobs(count=24, wait=0.1, **options):
    """Return `count` trials, and a few compiled ones."""
    return [Measurement(Job(wait, **options), seed) for seed in range(count)] + [
        toy_trial(seed) for seed in range(3)
    ]


def coordinate(engine: str, path: str, count: int, wait: float, workers: int = 2) -> None:
    """Run all jobs into a store."""
    with stoppable(), Store(path) as store:
        try:
            with engine_named(
                engine,
                workers=None if "://" in engine or engine == "local" else workers,
                store=path,
            ) as runner:
                keep(jobs(count, wait), store, runner)
        except Terminated:
            sys.exit(143)


def start(
    engine: str, path: Path, count: int = 24, wait: float = 0.1, workers: int = 2
) -> subprocess.Popen:
    """Start a coordinator in a separate process."""
    code = (
        f"import faulty; faulty.coordinate({engine!r}, {str(path)!r}, {count}, {wait}, {workers})"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, sys.path)])}
    return subprocess.Popen([sys.executable, "-c", code], env=environment, stdin=subprocess.DEVNULL)


def stored(path: Path) -> int:
    """Return the number of records in a store; 0 if it does not exist."""
    with contextlib.suppress(sqlite3.Error):
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5)
        try:
            return db.execute("SELECT count(*) FROM records").fetchone()[0]
        finally:
            db.close()
    return 0


def workers_of(pid: int) -> list[int]:
    """Return the ids of the worker processes of a coordinator."""
    found = []
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{child}/cmdline").read_bytes()
                if b"pools.worker" in words or b"dask_worker" in words:
                    found.append(int(child))
    return found


def wait_until(condition, seconds: float = 120.0, pause: float = 0.02):
    """Poll until a condition is true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened for too long"
        time.sleep(pause)


def kill_at(
    process: subprocess.Popen, path: Path, records: int, choose, rng: random.Random
) -> bool:
    """Kill the process that `choose` returns, at a random time after a number of records.

    Return False if the run was finished before.
    """
    wait_until(lambda: stored(path) >= records or process.poll() is not None)
    time.sleep(rng.random() * 0.2)
    victims = choose()
    if process.poll() is not None or not victims:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(rng.choice(victims), signal.SIGKILL)
    return True


def expected(folder: Path, count: int = 24, wait: float = 0.0) -> Path:
    """Return the store of an undisturbed run, by the local engine."""
    path = folder / f"undisturbed-{count}.sqlite"
    if not path.exists():
        with Store(path) as store:
            keep(jobs(count, wait), store, engine_named("local"))
    return path


def compare(path: Path, undisturbed: Path) -> None:
    """Check that no record is missing or duplicate, numbers are equal, and the store is intact."""
    checked = check(path)
    assert checked.problems == (), checked
    with Store(path, read_only=True) as store:
        assert checked.failures == 0, store.failures()
    with Store(path, read_only=True) as found, Store(undisturbed, read_only=True) as wanted:
        assert found.all_ids() == wanted.all_ids()
        for name in wanted.all_ids():
            there, here = found.get(name), wanted.get(name)
            assert [each for each in differences(there, here) if not each.equal] == [], name


class Cluster:
    """A manually started Dask cluster: a scheduler and workers, each a process."""

    def __init__(self, port: int) -> None:
        self.scheduler_address = f"tcp://127.0.0.1:{port}"
        self.address = f"insecure+{self.scheduler_address}"
        self.scheduler = self._start(
            "distributed.cli.dask_scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--no-dashboard",
        )
        self.workers: list[subprocess.Popen] = []

    def _start(self, module: str, *options: str) -> subprocess.Popen:
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, sys.path)]),
            "DASK_LOGGING__DISTRIBUTED": "critical",
        }
        return subprocess.Popen(
            [sys.executable, "-m", module, *options], env=environment, stdin=subprocess.DEVNULL
        )

    def hire(self) -> None:
        """Start one more worker."""
        options = (
            "--no-nanny",
            "--nthreads",
            "1",
            "--no-dashboard",
            "--host",
            "127.0.0.1",
            "--death-timeout",
            "20",
            "--memory-limit",
            "0",
        )
        self.workers.append(
            self._start("distributed.cli.dask_worker", self.scheduler_address, *options)
        )


@contextlib.contextmanager
def cluster(workers: int):
    """Start a cluster on a free port of loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    found = Cluster(port)
    try:
        for _ in range(workers):
            found.hire()
        yield found
    finally:
        for process in [found.scheduler, *found.workers]:
            process.kill()
            process.wait()


def job_names(path: Path) -> str:
    """Return the names of SLURM jobs of a store, comma-separated."""
    folder = path.with_name(f"{path.name}.slurm")
    return ",".join(
        f"unlazy-{entry.name}" for entry in folder.iterdir() if entry.name not in ("logs", "lock")
    )
