"""`--engine processes`: worker processes on this machine, one per core, with one thread each.

They are started as new processes, not forked. A worker that dies is replaced.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import BinaryIO

from unlazy.core.errors import BadInput, require
from unlazy.core.threads import cores
from unlazy.lab.engines.local import default_memory
from unlazy.lab.engines.pools.engine import Lost, Pool, PoolEngine, Returned
from unlazy.lab.engines.pools.work import check_same
from unlazy.lab.engines.pools.worker import post, receive

#: Number of consecutive workers that die at start before the pool gives up.
MAX_FAILED_STARTS = 3
#: Variables that limit a worker to one thread; otherwise each would use all cores.
ONE_THREAD = {
    name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC")
}


def one_thread_environment() -> dict[str, str]:
    """Return variables for a Python process with one thread and the module path of this one."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false".strip()
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return {**ONE_THREAD, "XLA_FLAGS": flags, "PYTHONPATH": path}


class _Process:
    def __init__(self, name: str, inbox: queue.SimpleQueue[tuple[str, bytes | None]]) -> None:
        self.name, self.ready, self.reason = name, False, ""
        reading, child_writing = os.pipe()
        child_reading, writing = os.pipe()
        command = [
            sys.executable,
            "-m",
            "unlazy.lab.engines.pools.worker",
            str(child_reading),
            str(child_writing),
        ]
        environment = os.environ | one_thread_environment()
        self.process = subprocess.Popen(
            command,
            pass_fds=(child_writing, child_reading),
            env=environment,
            stdin=subprocess.DEVNULL,
        )
        os.close(child_writing)
        os.close(child_reading)
        self._outgoing: BinaryIO = os.fdopen(writing, "wb")
        self._incoming: BinaryIO = os.fdopen(reading, "rb")
        threading.Thread(target=self._listen, args=(inbox,), daemon=True).start()

    def _listen(self, inbox: queue.SimpleQueue[tuple[str, bytes | None]]) -> None:
        while (message := receive(self._incoming)) is not None:
            inbox.put((self.name, message))
        self._incoming.close()
        self.reason = _death(self.process.wait())
        inbox.put((self.name, None))

    def send(self, message: bytes) -> None:
        """Send a message; an error means a dead worker, which the listener reports."""
        with contextlib.suppress(OSError):
            post(self._outgoing, message)

    def kill(self) -> None:
        """Kill the process."""
        self.process.kill()
        with contextlib.suppress(OSError):
            self._outgoing.close()


def _death(status: int) -> str:
    if status == -signal.SIGKILL:
        return "its worker was killed (signal 9: out of memory, or manually)"
    if status < 0:
        return f"its worker was killed (signal {-status}: {signal.strsignal(-status)})"
    return f"its worker ended with status {status}"


class ProcessPool(Pool):
    """Worker processes on this machine."""

    def __init__(self, count: int | None = None) -> None:
        self.count = cores() if count is None else count
        require(self.count >= 1, f"The number of workers must be positive, got {self.count}.")
        self._inbox: queue.SimpleQueue[tuple[str, bytes | None]] = queue.SimpleQueue()
        self._processes: dict[str, _Process] = {}
        self._started = self._failed_starts = 0

    def open(self, memory: int) -> None:
        while len(self._processes) < self.count:
            self._start()

    def _start(self) -> None:
        self._started += 1
        name = f"worker {self._started}"
        self._processes[name] = _Process(name, self._inbox)

    @property
    def workers(self) -> Sequence[str]:
        return [name for name, process in self._processes.items() if process.ready]

    @property
    def processes(self) -> list[int]:
        """Ids of the worker processes."""
        return [process.process.pid for process in self._processes.values()]

    def send(self, worker: str, message: bytes) -> None:
        self._processes[worker].send(message)

    def news(self, timeout: float) -> list[Returned | Lost]:
        found: list[Returned | Lost] = []
        try:
            name, message = self._inbox.get(timeout=timeout)
        except queue.Empty:
            return found
        process = self._processes.get(name)
        if process is None:  # abandoned
            return found
        if message is None:
            self._failed_starts = 0 if process.ready else self._failed_starts + 1
            del self._processes[name]
            process.kill()
            if self._failed_starts < MAX_FAILED_STARTS:
                self._start()
            elif not self._processes:  # otherwise the other workers continue
                raise BadInput(
                    f"Worker processes cannot be started: {process.reason}. Their output is shown "
                    "above."
                )
            found.append(Lost(name, process.reason))
        elif process.ready:
            found.append(Returned(name, message))
        else:
            check_same(json.loads(message), name)
            process.ready, self._failed_starts = True, 0
            while len(self._processes) < self.count:  # retry failed starts
                self._start()
        return found

    def abandon(self, workers: Sequence[str]) -> None:
        for name in workers:
            self._processes.pop(name).kill()

    def close(self) -> None:
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.process.wait()
        self._processes.clear()


def process_engine(workers: int | None = None, memory: int | None = None) -> PoolEngine:
    """Return an engine with worker processes on this machine."""
    pool = ProcessPool(workers)
    return PoolEngine(pool, pool.count, default_memory(pool.count) if memory is None else memory)
