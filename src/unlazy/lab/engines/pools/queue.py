"""What is still to be done, in which order, and what becomes of work whose worker was lost.

The longest work goes first, and a worker stays with trials of one shape, whose programs it has. A
piece whose worker dies is run again, since machines fail; a piece that dies again is halved, and so
on, until the trial that kills its workers stands alone. Dead three times alone, it is given up with
the reason, and all others go on.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence

from unlazy.lab.engines.local import chunks_of, groups_of
from unlazy.lab.engines.pools.messages import Reply
from unlazy.lab.provenance import provenance
from unlazy.lab.trials import Failure, Record, Runnable, now

#: Deaths of a piece after which it is halved, and of a single trial after which it is given up.
HALVED_AFTER, GIVEN_UP_AFTER = 2, 3
#: Trials that run alone go to a worker for about so many seconds at once, and so many at most.
BATCH_SECONDS, BATCH = 2.0, 64


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Trials that one worker runs at once.

    `size`: to which they are filled up, or 0 where each runs alone; `group`: of one shape.
    """

    trials: tuple[Runnable, ...]
    size: int
    group: int
    deaths: int = 0


def pieces_of(trials: Sequence[Runnable], cost: Callable[[Runnable], float]) -> list[Chunk]:
    """The chunks that the local engine would run, and batches of trials that run alone."""
    groups, alone = groups_of(trials)
    chunks = [
        Chunk(tuple(chunk), size, place)
        for place, group in enumerate(groups)
        for chunk, size in chunks_of(group, len(group))
    ]  # as if the memory were large enough; a worker says where it is not
    batch: list[Runnable] = []
    seconds, place = 0.0, len(groups)
    for trial in sorted(alone, key=cost, reverse=True):
        if batch and (seconds + cost(trial) > BATCH_SECONDS or len(batch) == BATCH):
            chunks.append(Chunk(tuple(batch), 0, place))
            batch, seconds, place = [], 0.0, place + 1
        batch.append(trial)
        seconds += cost(trial)
    return [*chunks, Chunk(tuple(batch), 0, place)] if batch else chunks


class JobQueue:
    """The pieces that wait, and what failed for good."""

    def __init__(self, trials: Sequence[Runnable], cost: Callable[[Runnable], float]) -> None:
        self._cost = cost
        self._waiting: dict[int, list[Chunk]] = {}
        self._left: dict[int, float] = {}
        self._started: set[int] = set()
        self._add(pieces_of(trials, cost))

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def take(self, known: Iterable[int] = ()) -> Chunk | None:
        """The next piece for a worker that has the programs of the groups `known`, the last
        first.
        """
        if not self._waiting:
            return None
        group = next((group for group in known if group in self._waiting), None)
        if group is None:
            # What nobody has begun, before helping others, which means to compile what they have
            # compiled.
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
        """What all that waits will take."""
        return sum(self._left.values())

    def again(self, chunk: Chunk) -> None:
        """A piece that nobody ran, through no fault of its own."""
        self._add([chunk])

    def lost(self, chunk: Chunk, reason: str) -> list[Failure]:
        """A worker died over a piece: it is run again, halved, or given up."""
        deaths = chunk.deaths + 1
        if len(chunk.trials) == 1 and deaths >= GIVEN_UP_AFTER:
            return [_failure(chunk.trials[0], f"{reason}; it did so {deaths} times, alone")]
        if len(chunk.trials) > 1 and deaths >= HALVED_AFTER:
            # One more death is enough to halve a half; alone, a trial begins anew.
            self._halve(chunk, HALVED_AFTER - 1)
        else:
            self._add([dataclasses.replace(chunk, deaths=deaths)])
        return []

    def answered(
        self, chunk: Chunk, answer: Reply, memory: int
    ) -> tuple[list[Record], list[Failure]]:
        """The records of a piece, and what failed; what is in neither is run again in smaller
        pieces, or given up.
        """
        found = {r.id for r in answer.records} | {f.id for f in answer.failures}
        failures = list(answer.failures)
        left = tuple(trial for trial in chunk.trials if trial.id not in found)
        if left and answer.too_large is not None and answer.too_large[0] > 1:
            at_once, bytes_needed = answer.too_large
            most = max(1, min(at_once - 1, int(at_once * memory / bytes_needed)))
            size = math.ceil(len(left) / math.ceil(len(left) / most))
            self._add(
                [
                    Chunk(left[start : start + size], size, chunk.group)
                    for start in range(0, len(left), size)
                ]
            )
        elif left and answer.too_large is not None:
            needed, allowed = (size / 2**30 for size in (answer.too_large[1], memory))
            reason = (
                f"it needs {needed:.1f} GiB of memory, and {allowed:.1f} GiB are allowed: allow "
                "more with --memory"
            )
            failures += [_failure(trial, reason) for trial in left]
        elif len(left) == 1:
            failures.append(_failure(left[0], answer.raised or "its worker answered without it"))
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
