"""Dask engines: `--engine dask` starts a cluster on this machine, `--engine tls://host:port` uses a
running one.

Each job is sent to one worker, and no other may take it, so that a lost worker identifies its job.
A local cluster listens on loopback only, and its workers have one thread each.

Who can connect to a scheduler can run any code on its workers and in the process of its client. So
all connections are authenticated by certificates: those of a local cluster are made for it and kept
in a folder that only its user can read; those of a running one are in Dask's configuration
(`distributed.comm.tls`). A cluster without certificates must be named explicitly as such.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import queue
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

from unlazy.core.errors import BadInput, require
from unlazy.core.threads import cores
from unlazy.lab.engines.local import default_memory
from unlazy.lab.engines.pools.engine import Lost, Pool, PoolEngine, Returned
from unlazy.lab.engines.pools.processes import one_thread_environment
from unlazy.lab.engines.pools.work import check_same, hello, run_job

#: Seconds between two counts of the workers, timeout for the first worker, and timeout for the
#: scheduler.
COUNTED_EVERY, FIRST_WITHIN, CONNECTED_WITHIN = 0.5, 60.0, 20.0
#: Number of workers that a local cluster replaces before it gives up.
MAX_DEATHS = 1000
INSTALL = "Dask is not installed: pip install 'unlazy[dask]'."
#: Prefix of the address of a cluster without authentication.
INSECURE = "insecure+"


class DaskPool(Pool):
    """Workers of the Dask cluster at `address`, or of a local one with `count` processes.

    An address begins with `tls://`, or with `insecure+tcp://` if the cluster has no certificates.
    """

    def __init__(self, address: str | None = None, count: int | None = None) -> None:
        self.address, self.count = address, cores() if count is None else count
        require(self.count >= 1, f"The number of workers must be positive, got {self.count}.")
        require(
            not (address or "").startswith("tcp://"),
            f"The cluster {address} has no authentication: everybody who can reach it can run code "
            "as you. Start it with certificates and name it tls://host:port (docs/howto/cluster), "
            f"or name it {INSECURE}{address} if nobody else can reach it.",
        )
        try:
            import distributed
        except ImportError:
            raise BadInput(INSTALL) from None
        self._distributed = distributed
        self._client: Any = None
        self._cluster: Any = None
        self._certificates: tempfile.TemporaryDirectory[str] | None = None
        self._hosts: dict[str, str] = {}  # of checked workers
        self._sent: dict[str, Any] = {}
        self._answers: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._numbers = itertools.count()
        self._counted, self._started = 0.0, 0
        self._processes: list[subprocess.Popen[bytes]] = []

    def open(self, memory: int) -> None:
        if self._client is not None:
            return
        with _explained(self.address or "of this machine"), _quiet():
            if self.address is None:
                self._cluster = self._own_cluster()
                self._start_missing()
            self._client = self._distributed.Client(
                self._cluster or (self.address or "").removeprefix(INSECURE),
                timeout=CONNECTED_WITHIN,
                set_as_default=False,
                name="unlazy",
            )
            self._client.wait_for_workers(1, timeout=FIRST_WITHIN)
            self._count()

    def _own_cluster(self) -> Any:
        import dask

        try:
            security = self._distributed.Security.temporary()
        except ImportError:
            raise BadInput(INSTALL) from None
        self._certificates = _written(security)
        # Without the time limit, a worker that compiles for long would count as dead.
        with dask.config.set({"distributed.scheduler.worker-ttl": None}):
            return self._distributed.LocalCluster(
                n_workers=0,
                host="tls://127.0.0.1",
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
                security=security,
            )

    def _start_missing(self) -> None:
        """Start missing workers of a local cluster, as commands since a script cannot be forked."""
        self._processes = [process for process in self._processes if process.poll() is None]
        while self._cluster is not None and len(self._processes) < self.count:
            self._started += 1
            require(
                self._started <= self.count + MAX_DEATHS,
                f"{MAX_DEATHS} workers have died; no more are started.",
            )
            options = (
                "--no-nanny",
                "--nthreads",
                "1",
                "--memory-limit",
                "0",
                "--no-dashboard",
                "--host",
                "127.0.0.1",
                "--death-timeout",
                "20",
            )
            command = [
                sys.executable,
                "-m",
                "distributed.cli.dask_worker",
                self._cluster.scheduler_address,
                *options,
                *_certificate_options(self._certificates),
            ]
            environment = (
                os.environ | one_thread_environment() | {"DASK_LOGGING__DISTRIBUTED": "critical"}
            )
            self._processes.append(
                subprocess.Popen(
                    command, env=environment, stdin=subprocess.DEVNULL, start_new_session=True
                )
            )

    @property
    def processes(self) -> list[int]:
        """Ids of the worker processes of a local cluster."""
        return [process.pid for process in self._processes]

    def _count(self) -> list[Lost]:
        """Check new workers, and return lost ones."""
        self._counted = time.monotonic()
        self._start_missing()
        if self._client.status != "running":  # it would try to reconnect for half a minute
            raise _gone(self.address or "of this machine", f"it is {self._client.status}")
        with _explained(self.address or "of this machine"):
            present = {
                address: worker["host"]
                for address, worker in self._client.scheduler_info(n_workers=-1)["workers"].items()
            }
            new = [address for address in present if address not in self._hosts]
            facts = self._client.run(hello, workers=new, on_error="return") if new else {}
        for address, fact in facts.items():
            if isinstance(fact, OSError):
                continue  # lost before it answered
            if isinstance(fact, BaseException):
                raise BadInput(
                    f"The worker {address} is rejected: {type(fact).__name__}: {fact}. Is the "
                    "same version of unlazy installed there?"
                ) from None
            check_same(fact, address)
            self._hosts[address] = present[address]
        gone = [address for address in self._hosts if address not in present]
        return [self._lost(address) for address in gone]

    def _lost(self, address: str) -> Lost:
        del self._hosts[address]
        future = self._sent.pop(address, None)
        if future is not None:
            future.cancel()
        return Lost(address, "its worker was lost")

    @property
    def workers(self) -> Sequence[str]:
        return list(self._hosts)

    def send(self, worker: str, message: bytes) -> None:
        name = f"unlazy-{id(self)}-{next(self._numbers)}"
        with _explained(self.address or "of this machine"):
            future = self._client.submit(
                run_job,
                message,
                workers=[worker],
                allow_other_workers=False,
                pure=False,
                key=name,
                retries=0,
            )
        self._sent[worker] = future
        future.add_done_callback(lambda done: self._answers.put((worker, done)))

    def news(self, timeout: float) -> list[Returned | Lost]:
        found: list[Returned | Lost] = []
        try:
            worker, future = self._answers.get(timeout=min(timeout, COUNTED_EVERY))
        except queue.Empty:
            pass
        else:
            if self._sent.get(worker) is future:
                found.append(self._outcome(worker, future))
        if time.monotonic() - self._counted > COUNTED_EVERY:
            found += self._count()
        return found

    def _outcome(self, worker: str, future: Any) -> Returned | Lost:
        del self._sent[worker]
        if future.status == "finished":
            with _explained(self.address or "of this machine"):
                return Returned(worker, future.result(timeout=CONNECTED_WITHIN))
        error = future.exception() if future.status == "error" else None
        if error is not None and type(error).__name__ not in ("KilledWorker", "CommClosedError"):
            raise BadInput(
                f"The worker {worker} cannot run trials: {type(error).__name__}: {error}. Is the "
                "same version of unlazy installed there?"
            )
        return Lost(worker, "its worker was lost")

    def abandon(self, workers: Sequence[str]) -> None:
        for worker in workers:
            future = self._sent.pop(worker, None)
            if future is not None:
                with contextlib.suppress(Exception):  # the scheduler may be lost
                    future.cancel()

    def close(self) -> None:
        with _quiet(), contextlib.suppress(Exception):
            if self._client is not None:
                self._client.close(timeout=2)
        with _quiet(), contextlib.suppress(Exception):
            if self._cluster is not None:
                self._cluster.close(timeout=5)
        for process in self._processes:
            process.kill()
            process.wait()
        self._processes.clear()
        if self._certificates is not None:
            self._certificates.cleanup()
        self._client = self._cluster = self._certificates = None
        self._hosts.clear()
        self._sent.clear()


def _written(security: Any) -> tempfile.TemporaryDirectory[str]:
    """Write the certificates of a local cluster, for its workers; only this user can read them."""
    folder = tempfile.TemporaryDirectory(prefix="unlazy-tls-")
    for name, text in (
        ("ca.pem", security.tls_ca_file),
        ("cert.pem", security.tls_worker_cert),
        ("key.pem", security.tls_worker_key),
    ):
        path = os.path.join(folder.name, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
    return folder


def _certificate_options(folder: tempfile.TemporaryDirectory[str] | None) -> list[str]:
    assert folder is not None
    names = {"--tls-ca-file": "ca.pem", "--tls-cert": "cert.pem", "--tls-key": "key.pem"}
    return [
        text for option, name in names.items() for text in (option, os.path.join(folder.name, name))
    ]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress messages of Dask on every new or lost worker."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextlib.contextmanager
def _explained(where: str) -> Iterator[None]:
    """Raise errors of a cluster that does not answer as `BadInput`."""
    try:
        yield
    except (OSError, TimeoutError, RuntimeError, ValueError) as error:
        if isinstance(error, BadInput):
            raise
        raise _gone(where, f"{type(error).__name__}: {error}") from error


def _gone(where: str, why: str) -> BadInput:
    return BadInput(
        f"The Dask cluster {where} does not answer ({why}). Finished trials are saved: restart "
        "it and run the same command again."
    )


def dask_engine(
    address: str | None = None, workers: int | None = None, memory: int | None = None
) -> PoolEngine:
    """Return an engine on a Dask cluster, by default a local one."""
    pool = DaskPool(address, workers)
    count = 1 if address is not None else pool.count
    return PoolEngine(pool, count, default_memory(pool.count) if memory is None else memory)
