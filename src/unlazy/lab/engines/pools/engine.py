"""Engine of a pool of workers: send chunks to idle workers, and run lost chunks again."""

from __future__ import annotations

import abc
import math
from collections import Counter
from collections.abc import Generator, Sequence
from typing import NamedTuple

from unlazy.lab.costs import Costs
from unlazy.lab.engines.base import Callback, Engine, NullCallback, Plan, require_data
from unlazy.lab.engines.local import groups_of
from unlazy.lab.engines.pools.messages import packed, read
from unlazy.lab.engines.pools.queue import Chunk, JobQueue
from unlazy.lab.trials import Failure, Record, Runnable

#: Seconds to wait for events before workers are counted again.
POLL_SECONDS = 1.0


class Returned(NamedTuple):
    """A worker has finished its job."""

    worker: str
    answer: bytes


class Lost(NamedTuple):
    """A worker was lost, with the reason."""

    worker: str
    reason: str


class Pool(abc.ABC):
    """Workers that run one job at a time each; a pool checks their versions before use."""

    @abc.abstractmethod
    def open(self, memory: int) -> None:
        """Start workers or connect to them, unless that is done."""

    @property
    @abc.abstractmethod
    def workers(self) -> Sequence[str]:
        """Names of available workers."""

    @abc.abstractmethod
    def send(self, worker: str, message: bytes) -> None:
        """Send a job to an idle worker."""

    @abc.abstractmethod
    def news(self, timeout: float) -> list[Returned | Lost]:
        """Return events, none after `timeout` seconds; replace lost workers if possible."""

    @abc.abstractmethod
    def abandon(self, workers: Sequence[str]) -> None:
        """Stop the jobs of these workers."""

    @abc.abstractmethod
    def close(self) -> None:
        """Stop all workers."""


class PoolEngine(Engine):
    """Runs trials in a pool.

    `expected`: number of workers, for the estimate; `memory`: bytes per program.
    """

    def __init__(self, pool: Pool, expected: int, memory: int, costs: Costs | None = None) -> None:
        self.pool, self.expected, self.memory = pool, expected, memory
        self.costs = costs or Costs()
        self._done: Counter[str] = Counter()
        self._lost = 0

    def plan(self, trials: Sequence[Runnable]) -> Plan:
        groups, _ = groups_of(trials)
        at_once = max(1, len(self.pool.workers) or self.expected)
        seconds = sum(map(self.costs.seconds, trials))
        compiling = self.costs.compile_seconds * math.ceil(len(groups) / at_once)
        shapes, cost = len(groups), self.costs.seconds
        return Plan(len(trials), shapes, seconds, seconds / at_once, compiling, self.memory, cost)

    def run(
        self, trials: Sequence[Runnable], callback: Callback | None = None
    ) -> Generator[Record | Failure]:
        """Yield records as chunks finish.

        Closing the iterator stops running jobs, and keeps the workers.
        """
        if not trials:
            return
        require_data(trials)
        callback = callback or NullCallback()
        queue = JobQueue(trials, self.costs.seconds)
        by_id = {trial.id: trial for trial in trials}
        busy: dict[str, Chunk] = {}
        # Groups whose programs a worker has compiled, the latest last.
        groups: dict[str, dict[int, None]] = {}
        programs, seconds = 0, 0.0
        self.pool.open(self.memory)
        try:
            while queue or busy:
                idle = [worker for worker in self.pool.workers if worker not in busy]
                callback.staffed(len(idle) + len(busy))
                for worker in idle:
                    known = groups.setdefault(worker, {})
                    chunk = queue.take(reversed(known))
                    if chunk is None:
                        break
                    known.pop(chunk.group, None)
                    known[chunk.group] = None
                    busy[worker] = chunk
                    callback.running(len(chunk.trials))
                    self.pool.send(worker, packed(chunk.trials, chunk.size, self.memory))
                for news in self.pool.news(POLL_SECONDS):
                    if news.worker not in busy:
                        continue
                    chunk = busy.pop(news.worker)
                    if isinstance(news, Lost):
                        groups.pop(news.worker, None)
                        self._lost += 1
                        yield from queue.lost(chunk, news.reason)
                        continue
                    answer = read(news.answer, f"the answer of the worker {news.worker}")
                    programs, seconds = programs + answer.compiled[0], seconds + answer.compiled[1]
                    if answer.compiled[0]:
                        callback.compiled(programs, seconds)
                    records, failures = queue.answered(chunk, answer, self.memory)
                    self._done[answer.host] += len(records)
                    for record in records:
                        callback.finished(by_id[record.id], record.seconds)
                        yield record
                    yield from failures
        finally:
            self.pool.abandon(list(busy))

    @property
    def summary(self) -> str:
        return summary_of(self._done, self._lost)

    def close(self) -> None:
        self.pool.close()


def summary_of(done: Counter[str], lost: int) -> str:
    """Return a sentence on the trials per machine and on lost workers."""
    if not done:
        return ""
    where = ", ".join(
        f"{count} on {host or 'an unnamed machine'}" for host, count in done.most_common()
    )
    return f"Trials: {where}." + (
        f" Lost workers: {lost}; their trials were run again." if lost else ""
    )
