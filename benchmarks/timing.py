"""Timing in interleaved rounds, so that the load of the machine cancels in the ratio."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable
from typing import Literal

from rich.console import Console

#: Progress goes to standard error: standard output is for results.
_PROGRESS = Console(stderr=True, highlight=False)

#: Runs once and returns the seconds to count.
Candidate = Callable[[], float]


def say(text: str) -> None:
    """Print a line of progress."""
    _PROGRESS.print(text, style="dim", soft_wrap=True, markup=False)


def seconds(work: Callable[[], object]) -> float:
    """Return the wall time of one call."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def interleaved(methods: dict[str, Candidate], rounds: int, what: str) -> dict[str, list[float]]:
    """Return the seconds of each method in each round.

    Every other round runs in reverse order, so that none is always first.
    """
    times: dict[str, list[float]] = {name: [] for name in methods}
    names = list(methods)
    for index in range(rounds):
        for name in names if index % 2 == 0 else reversed(names):
            times[name].append(methods[name]())
        latest = ", ".join(f"{name} {times[name][-1]:.3f} s" for name in names)
        say(f"{what}: round {index + 1} of {rounds}: {latest}")
    return times


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Our time versus a peer's for the same work.

    `ours`, `peer`: seconds of each round, per `unit` of work. If `better` is
    "higher", the ratio is our speed over the peer's and should reach `target`; if "lower", it is
    our time over the peer's and should not exceed `target`.
    """

    what: str
    unit: str
    ours: list[float]
    peer: list[float]
    target: float
    better: Literal["higher", "lower"] = "higher"
    notes: dict[str, float | str] = dataclasses.field(default_factory=dict)

    @property
    def by_round(self) -> list[float]:
        """The ratio in each round, sorted."""
        pairs = zip(self.ours, self.peer, strict=True)
        return sorted(
            peer / ours if self.better == "higher" else ours / peer for ours, peer in pairs
        )

    @property
    def ratio(self) -> float:
        """Median ratio over rounds."""
        return statistics.median(self.by_round)

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        return self.ratio >= self.target if self.better == "higher" else self.ratio <= self.target

    def summary(self) -> dict[str, object]:
        """Return the comparison as JSON data."""
        rounds = self.by_round
        return {
            "what": self.what,
            "unit": self.unit,
            "ours_seconds": statistics.median(self.ours),
            "peer_seconds": statistics.median(self.peer),
            "ratio": round(self.ratio, 3),
            "ratio_least": round(rounds[0], 3),
            "ratio_greatest": round(rounds[-1], 3),
            "rounds": len(rounds),
            "better": self.better,
            "target": self.target,
            "met": self.met,
            "notes": self.notes,
        }
