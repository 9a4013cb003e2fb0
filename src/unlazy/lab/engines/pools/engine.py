"""The engine of a pool: it hands pieces to idle workers, takes answers as they come, and does again
what was lost.
"""

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

#: Seconds to wait for news before workers are counted anew.
PATIENCE = 1.0


class Returned(NamedTuple):
    """A worker is done with its errand."""

    worker: str
    answer: bytes


class Lost(NamedTuple):
    """A worker is gone, and why."""

    worker: str
    reason: str


class Pool(abc.ABC):
    """Workers that run one errand at a time each.

    A pool checks that they are what they must be before they count.
    """

    @abc.abstractmethod
    def open(self, memory: int) -> None:
        """Start workers or connect to them, where that is not done yet."""

    @property
    @abc.abstractmethod
    def workers(self) -> Sequence[str]:
        """Those that can work now, by name."""

    @abc.abstractmethod
    def send(self, worker: str, parcel: bytes) -> None:
        """Give a worker that has nothing to do an errand."""

    @abc.abstractmethod
    def news(self, timeout: float) -> list[Returned | Lost]:
        """What has happened; after so many seconds, nothing.

        Workers that died are replaced where that can be done.
        """

    @abc.abstractmethod
    def abandon(self, workers: Sequence[str]) -> None:
        """Stop what these are at."""

    @abc.abstractmethod
    def close(self) -> None:
        """Let go of all."""


class PoolEngine(Engine):
    """Runs trials in a pool.

    `expected` is how many workers there will be, for the estimate; `memory`: bytes that one program
    may use.
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
        """Records come as pieces finish.

        Closing the iterator stops what runs, and keeps the workers.
        """
        if not trials:
            return
        require_data(trials)
        callback = callback or NullCallback()
        queue = JobQueue(trials, self.costs.seconds)
        by_id = {trial.id: trial for trial in trials}
        busy: dict[str, Chunk] = {}
        groups: dict[
            str, dict[int, None]
        ] = {}  # of which a worker has the programs, the latest last
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
                for news in self.pool.news(PATIENCE):
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
        return told_summary(self._done, self._lost)

    def close(self) -> None:
        self.pool.close()


def told_summary(done: Counter[str], lost: int) -> str:
    """How many trials ran on which machine, and how many workers were lost."""
    if not done:
        return ""
    where = ", ".join(
        f"{count} on {host or 'a machine without a name'}" for host, count in done.most_common()
    )
    return f"Trials: {where}." + (
        f" Workers lost: {lost}; what they had was run again." if lost else ""
    )
