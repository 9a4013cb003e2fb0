"""Queue of chunks, and handling of chunks whose worker was lost.

Long chunks are run first. A worker prefers groups whose programs it has compiled. A chunk whose
worker dies is run again, since machines fail. If its worker dies again, it is halved, until the
trial that kills its workers is alone. A single trial is given up after three deaths; all other
trials continue.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence

from unlazy.lab.engines.local import chunks_of, groups_of
from unlazy.lab.engines.pools.messages import Reply
from unlazy.lab.provenance import provenance
from unlazy.lab.trials import Failure, Record, Runnable, now

#: Deaths after which a chunk is halved, and after which a single trial is given up.
HALVED_AFTER, GIVEN_UP_AFTER = 2, 3
#: Seconds and number of host trials per chunk, at most.
BATCH_SECONDS, MAX_BATCH = 2.0, 64


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Trials that one worker runs together.

    `size`: padded size, or 0 for host trials; `group`: index of the shape group.
    """

    trials: tuple[Runnable, ...]
    size: int
    group: int
    deaths: int = 0


def chunks_in(trials: Sequence[Runnable], cost: Callable[[Runnable], float]) -> list[Chunk]:
    """Return the chunks that the local engine would run, and batches of host trials."""
    groups, alone = groups_of(trials)
    chunks = [
        Chunk(tuple(chunk), size, i)
        for i, group in enumerate(groups)
        for chunk, size in chunks_of(group, len(group))
    ]  # a worker reports if its memory is too small
    batch: list[Runnable] = []
    seconds, i = 0.0, len(groups)
    for trial in sorted(alone, key=cost, reverse=True):
        if batch and (seconds + cost(trial) > BATCH_SECONDS or len(batch) == MAX_BATCH):
            chunks.append(Chunk(tuple(batch), 0, i))
            batch, seconds, i = [], 0.0, i + 1
        batch.append(trial)
        seconds += cost(trial)
    return [*chunks, Chunk(tuple(batch), 0, i)] if batch else chunks


class JobQueue:
    """Queue of chunks."""

    def __init__(self, trials: Sequence[Runnable], cost: Callable[[Runnable], float]) -> None:
        self._cost = cost
        self._waiting: dict[int, list[Chunk]] = {}
        self._left: dict[int, float] = {}
        self._started: set[int] = set()
        self._add(chunks_in(trials, cost))

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def take(self, known: Iterable[int] = ()) -> Chunk | None:
        """Return the next chunk for a worker that has the programs of the groups `known`."""
        if not self._waiting:
            return None
        group = next((group for group in known if group in self._waiting), None)
        if group is None:
            # Groups that are not started come first: others would be compiled a second time.
            group = max(
                self._waiting, key=lambda each: (each not in self._started, self._left[each])
            )
        self._started.add(group)
        chunk = self._waiting[group].pop(0)
        self._left[group] -= self._seconds(chunk)
        if not self._waiting[group]:
            del self._waiting[group], self._left[group]
        return chunk

    @property
    def seconds(self) -> float:
        """Estimated seconds of all waiting chunks."""
        return sum(self._left.values())

    def again(self, chunk: Chunk) -> None:
        """Return a chunk to the queue that was not run."""
        self._add([chunk])

    def lost(self, chunk: Chunk, reason: str) -> list[Failure]:
        """Run the chunk of a lost worker again, halve it, or return it as failed."""
        deaths = chunk.deaths + 1
        if len(chunk.trials) == 1 and deaths >= GIVEN_UP_AFTER:
            return [_failure(chunk.trials[0], f"{reason} ({deaths} times, run alone)")]
        if len(chunk.trials) > 1 and deaths >= HALVED_AFTER:
            # One more death halves a half again; a single trial starts at zero deaths.
            self._halve(chunk, HALVED_AFTER - 1)
        else:
            self._add([dataclasses.replace(chunk, deaths=deaths)])
        return []

    def answered(
        self, chunk: Chunk, answer: Reply, memory: int
    ) -> tuple[list[Record], list[Failure]]:
        """Return the records and failures of a chunk.

        Other trials are run again in smaller chunks, or given up.
        """
        found = {r.id for r in answer.records} | {f.id for f in answer.failures}
        failures = list(answer.failures)
        left = tuple(trial for trial in chunk.trials if trial.id not in found)
        if left and answer.too_large is not None and answer.too_large[0] > 1:
            at_once, bytes_needed = answer.too_large
            fitting = max(1, min(at_once - 1, int(at_once * memory / bytes_needed)))
            size = math.ceil(len(left) / math.ceil(len(left) / fitting))
            self._add(
                [
                    Chunk(left[start : start + size], size, chunk.group)
                    for start in range(0, len(left), size)
                ]
            )
        elif left and answer.too_large is not None:
            needed, allowed = (size / 2**30 for size in (answer.too_large[1], memory))
            reason = (
                f"it needs {needed:.1f} GiB of memory; the limit is {allowed:.1f} GiB (increase "
                "--memory)"
            )
            failures += [_failure(trial, reason) for trial in left]
        elif len(left) == 1:
            failures.append(_failure(left[0], answer.raised or "its worker did not return it"))
        elif left:
            self._halve(dataclasses.replace(chunk, trials=left), 0)
        return list(answer.records), failures

    def _halve(self, chunk: Chunk, deaths: int) -> None:
        middle = (len(chunk.trials) + 1) // 2
        halves = [half for half in (chunk.trials[:middle], chunk.trials[middle:]) if half]
        self._add(
            [
                Chunk(half, min(chunk.size, len(half)), chunk.group, deaths if len(half) > 1 else 0)
                for half in halves
            ]
        )

    def _add(self, chunks: Iterable[Chunk]) -> None:
        for chunk in chunks:
            self._waiting.setdefault(chunk.group, []).append(chunk)
            self._left[chunk.group] = self._left.get(chunk.group, 0.0) + self._seconds(chunk)

    def _seconds(self, chunk: Chunk) -> float:
        return sum(map(self._cost, chunk.trials))


def _failure(trial: Runnable, reason: str) -> Failure:
    return Failure(trial.id, trial.describe(), reason, provenance(), now())
