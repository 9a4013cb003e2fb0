"""Readings of a claim: named choices of the settings that a paper leaves open.

A reading gives keyword arguments of the claim's study, and details of the evaluation. The first
reading of a claim, by convention "as written", is what the text states. Others fill in what it
leaves open, or depart from it; every departure is listed.

    Reading("larger step", "the text gives no step size", {"rate": 1.0})
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from unlazy.core.errors import require
from unlazy.lab.draws import Evaluation

AS_WRITTEN = "as written"


@dataclasses.dataclass(frozen=True)
class Reading:
    """A named choice of open settings.

    `why`: why the text allows it. `settings`: keyword arguments of the study. `departs`: statements
    of the text that it contradicts. `runs`, `examples`: see `draws.Evaluation`. `choices`: the
    choice of each open setting, if the reading is a member of a product.
    """

    name: str
    why: str
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    departs: tuple[str, ...] = ()
    runs: int | None = None
    examples: int | None = None
    choices: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        require(bool(self.name), "A reading needs a name.")
        require(bool(self.why), f"The reading {self.name!r} needs a reason (`why`).")

    @property
    def evaluation(self) -> Evaluation:
        """Details of the evaluation."""
        return Evaluation(self.runs, self.examples)

    def to_json(self) -> dict[str, Any]:
        """Return the reading as JSON data."""
        return {
            "name": self.name,
            "why": self.why,
            "settings": {name: _plain(value) for name, value in self.settings.items()},
            "departs": list(self.departs),
            "runs": self.runs,
            "examples": self.examples,
            "choices": dict(self.choices),
        }


def _plain(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


@dataclasses.dataclass(frozen=True)
class OpenSetting:
    """A setting that a paper leaves open: its name and the choices, the text's own first."""

    name: str
    choices: tuple[Reading, ...]

    def __post_init__(self) -> None:
        require(len(self.choices) > 1, f"{self.name}: an open setting has at least two choices.")


def combined(name: str, choices: Sequence[Reading], why: str) -> Reading:
    """Return the reading that makes several choices; later settings replace earlier ones."""
    return Reading(
        name,
        why,
        {key: value for choice in choices for key, value in choice.settings.items()},
        tuple(text for choice in choices for text in choice.departs),
        next((c.runs for c in choices if c.runs is not None), None),
        next((c.examples for c in choices if c.examples is not None), None),
    )


def product(settings: Sequence[OpenSetting]) -> tuple[Reading, ...]:
    """Return all combinations of choices as readings, named by the choices that are not first."""
    found = []
    for chosen in itertools.product(*(each.choices for each in settings)):
        pairs = list(zip(settings, chosen, strict=True))
        other = [choice for setting, choice in pairs if choice is not setting.choices[0]]
        name = " + ".join(choice.name for choice in other) or AS_WRITTEN
        why = "; ".join(f"{choice.name}: {choice.why}" for choice in other) or chosen[0].why
        choices = {setting.name: choice.name for setting, choice in pairs}
        found.append(dataclasses.replace(combined(name, chosen, why), choices=choices))
    return tuple(found)


def halving(count: int, seeds: int) -> list[tuple[int, int]]:
    """Return the rounds of successive halving: numbers of readings kept and of seeds of each.

    Each round has half of the readings and twice the seeds of the one before; the last has at most
    eight readings and all seeds. Up to eight readings run in one round.

    Reference: K. Jamieson, A. Talwalkar, Non-stochastic best arm identification and hyperparameter
    optimization, 2016.
    """
    rounds = max(0, math.ceil(math.log2(count / 8))) if count > 8 else 0
    return [
        (math.ceil(count / 2**index), max(2, math.ceil(seeds / 2 ** (rounds - index))))
        if index < rounds
        else (min(count, max(8, math.ceil(count / 2**rounds))), seeds)
        for index in range(rounds + 1)
    ]
