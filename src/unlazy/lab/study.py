"""The study protocol: rounds of trials that end in an outcome.

Claims, controls, benchmarks, scaling studies, audits and rankings are studies. `rounds` is a
generator: it yields trials, receives their records, and returns an outcome. `unlazy.lab.run` looks
trials up in the store, runs the others, and stores their records.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Mapping, Sequence
from typing import Protocol, TypeVar

from unlazy.lab.store import Store
from unlazy.lab.trials import Record, Runnable

O_co = TypeVar("O_co", covariant=True)
#: Records by the ids of their trials.
Records = Mapping[str, Record]
#: What `Study.rounds` returns.
Rounds = Generator[Sequence[Runnable], Records, O_co]


class Say(Protocol):
    """Receives progress messages of a study; `passing` ones are only a status."""

    def __call__(self, sentence: str, *, passing: bool = False) -> None:
        """Receive a message."""


def silent(sentence: str, *, passing: bool = False) -> None:
    """Ignore a message."""


def each_once(say: Say) -> Say:
    """Return a receiver that passes on every message once."""
    said: set[str] = set()

    def say_once(sentence: str, *, passing: bool = False) -> None:
        if passing or sentence not in said:
            said.add(sentence)
            say(sentence, passing=passing)

    return say_once


class Study(Protocol[O_co]):
    """Rounds of trials that end in an outcome."""

    @property
    def title(self) -> str:
        """The study in one line."""

    @property
    def arrays(self) -> bool:
        """Whether the outcome needs the arrays of records, not only their measurements."""

    def rounds(self, store: Store, say: Say = silent) -> Rounds[O_co]:
        """Yield trials, receive their records, return the outcome.

        The store is used to read earlier runs and to add this one, not to look up records. `say`
        receives intermediate results.
        """


O = TypeVar("O")  # noqa: E741
K = TypeVar("K", bound=Hashable)


def parallel(rounds: Mapping[K, Rounds[O]]) -> Rounds[dict[K, O]]:
    """Run several generators of rounds in parallel: each round joins one round of each."""
    outcomes: dict[K, O] = {}
    asked: dict[K, Sequence[Runnable]] = {}
    for name, each in rounds.items():
        advance(each, None, name, asked, outcomes)
    while asked:
        found = yield [trial for trials in asked.values() for trial in trials]
        for name, trials in list(asked.items()):
            sent = {trial.id: found[trial.id] for trial in trials}
            advance(rounds[name], sent, name, asked, outcomes)
    return {name: outcomes[name] for name in rounds}


def advance(
    rounds: Rounds[O],
    sent: Records | None,
    name: K,
    asked: dict[K, Sequence[Runnable]],
    outcomes: dict[K, O],
) -> None:
    """Send records to a generator of rounds; store its next trials, or its outcome."""
    try:
        asked[name] = next(rounds) if sent is None else rounds.send(sent)
    except StopIteration as end:
        outcomes[name] = end.value
        asked.pop(name, None)
