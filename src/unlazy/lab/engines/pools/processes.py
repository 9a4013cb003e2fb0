"""`--engine processes`: worker processes on this machine, one a core, each with one thread of its
own.

They are started anew and not forked. One that dies is replaced.
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

#: So many workers in a row that die before they say a word mean that none will live.
MAX_FAILED_STARTS = 3
#: One thread a worker: what else would use all cores in each of them.
ONE_THREAD = {
    name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC")
}


def one_thread_environment() -> dict[str, str]:
    """What makes a new Python process compute in one thread, with the modules that this one
    finds.
    """
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false".strip()
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return {**ONE_THREAD, "XLA_FLAGS": flags, "PYTHONPATH": path}


class _Process:
    def __init__(self, name: str, told: queue.SimpleQueue[tuple[str, bytes | None]]) -> None:
        self.name, self.ready, self.reason = name, False, ""
        reading, theirs = os.pipe()
        theirs_too, writing = os.pipe()
        command = [
            sys.executable,
            "-m",
            "unlazy.lab.engines.pools.worker",
            str(theirs_too),
            str(theirs),
        ]
        environment = os.environ | one_thread_environment()
        self.process = subprocess.Popen(
            command, pass_fds=(theirs, theirs_too), env=environment, stdin=subprocess.DEVNULL
        )
        os.close(theirs)
        os.close(theirs_too)
        self._outgoing: BinaryIO = os.fdopen(writing, "wb")
        self._incoming: BinaryIO = os.fdopen(reading, "rb")
        threading.Thread(target=self._listen, args=(told,), daemon=True).start()

    def _listen(self, told: queue.SimpleQueue[tuple[str, bytes | None]]) -> None:
        while (message := receive(self._incoming)) is not None:
            told.put((self.name, message))
        self._incoming.close()
        self.reason = _death(self.process.wait())
        told.put((self.name, None))

    def send(self, parcel: bytes) -> None:
        """Errors are those of a dead worker, of which the listener tells."""
        with contextlib.suppress(OSError):
            post(self._outgoing, parcel)

    def kill(self) -> None:
        """At once."""
        self.process.kill()
        with contextlib.suppress(OSError):
            self._outgoing.close()


def _death(status: int) -> str:
    if status == -signal.SIGKILL:
        return "it killed its worker (signal 9: out of memory, or by hand)"
    if status < 0:
        return f"it killed its worker (signal {-status}: {signal.strsignal(-status)})"
    return f"its worker ended with status {status}"


class ProcessPool(Pool):
    """So many worker processes of this machine."""

    def __init__(self, count: int | None = None) -> None:
        self.count = cores() if count is None else count
        require(
            self.count >= 1, f"There must be at least one worker, but {self.count} were asked for."
        )
        self._told: queue.SimpleQueue[tuple[str, bytes | None]] = queue.SimpleQueue()
        self._processes: dict[str, _Process] = {}
        self._started = self._failed_starts = 0

    def open(self, memory: int) -> None:
        while len(self._processes) < self.count:
            self._start()

    def _start(self) -> None:
        self._started += 1
        name = f"worker {self._started}"
        self._processes[name] = _Process(name, self._told)

    @property
    def workers(self) -> Sequence[str]:
        return [name for name, process in self._processes.items() if process.ready]

    @property
    def processes(self) -> list[int]:
        """The ids of the worker processes."""
        return [process.process.pid for process in self._processes.values()]

    def send(self, worker: str, parcel: bytes) -> None:
        self._processes[worker].send(parcel)

    def news(self, timeout: float) -> list[Returned | Lost]:
        found: list[Returned | Lost] = []
        try:
            name, message = self._told.get(timeout=timeout)
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
            elif not self._processes:  # otherwise the others go on alone
                raise BadInput(
                    f"Worker processes cannot be started: {process.reason}. What they said "
                    "stands above."
                )
            found.append(Lost(name, process.reason))
        elif process.ready:
            found.append(Returned(name, message))
        else:
            check_same(json.loads(message), name)
            process.ready, self._failed_starts = True, 0
            while len(self._processes) < self.count:  # those that were given up may live now
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
    """An engine of worker processes on this machine."""
    pool = ProcessPool(workers)
    return PoolEngine(pool, pool.count, default_memory(pool.count) if memory is None else memory)
