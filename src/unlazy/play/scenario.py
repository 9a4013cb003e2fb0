"""What the live page is asked for: numbers with their limits, and the scene that is made of
them.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Mapping
from typing import Any, Literal

from unlazy.core.errors import BadInput, UnlazyError, require
from unlazy.learners.base import Learner
from unlazy.tasks.base import Family

Values = Mapping[str, Any]
#: More seeds are not watched at once.
MAX_SEEDS = 6


class WrongNumber(BadInput):
    """A number that cannot be used, and the slider to which it belongs."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclasses.dataclass(frozen=True)
class Slider:
    """A number that a person may choose. `live`: a run goes on with it; otherwise it begins anew.

    `choices`: words instead of numbers. `why`: a line below it.
    """

    name: str
    label: str
    default: Any
    low: float = 0.0
    high: float = 1.0
    step: float = 1.0
    live: bool = False
    choices: tuple[str, ...] = ()
    why: str = ""

    @property
    def kind(self) -> Literal["choice", "switch", "whole", "number"]:
        """What a value is."""
        if self.choices:
            return "choice"
        if isinstance(self.default, bool):
            return "switch"
        return "whole" if isinstance(self.default, int) else "number"

    def read(self, given: Any) -> Any:
        """A value, of a text or a number; refused where it is none."""
        if self.kind == "choice":
            if given not in self.choices:
                raise WrongNumber(
                    self.name,
                    f"{self.label} is one of {', '.join(self.choices)}, but {given!r} was given.",
                )
            return given
        if self.kind == "switch":
            known = {
                "true": True,
                "false": False,
                "True": True,
                "False": False,
                True: True,
                False: False,
            }
            if given not in known:
                raise WrongNumber(
                    self.name, f"{self.label} is true or false, but {given!r} was given."
                )
            return known[given]
        try:
            number = float(given)
        except (TypeError, ValueError):
            raise WrongNumber(
                self.name,
                f"{self.label} is a number, such as {self.default}, but {given!r} was given.",
            ) from None
        if self.kind == "whole" and number != int(number):
            raise WrongNumber(
                self.name, f"{self.label} is a whole number, but {given!r} was given."
            )
        if not self.low <= number <= self.high:
            raise WrongNumber(
                self.name,
                f"{self.label} lies between {self.low:g} and {self.high:g} here, but {number:g} "
                "was given.",
            )
        return int(number) if self.kind == "whole" else number

    def to_json(self) -> dict[str, Any]:
        """For the page."""
        return dataclasses.asdict(self) | {"kind": self.kind}


SEEDS = Slider(
    "seeds",
    "seeds at once",
    3,
    1,
    MAX_SEEDS,
    why="each has its own secret, examples and initial network",
)
FIRST_SEED = Slider(
    "seed",
    "first seed",
    10,
    0,
    100_000,
    why="the same seed gives the same run, here and in every command",
)


@dataclasses.dataclass(frozen=True)
class GrowingGap:
    """How the distance to the rivals grows: the number that grows, its values, and the scene at
    each of them.
    """

    field: str
    label: str
    values: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Scenario:
    """All that is run: learners that are watched, the first of them in full, and rivals that are
    solved at once beside them.

    `commands`: what does the same in a terminal, by what it is.
    """

    family: Family
    watched: Mapping[str, Learner]
    baselines: Mapping[str, Learner]
    n: int
    baseline_n: int
    seeds: tuple[int, ...]
    commands: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def main(self) -> Learner:
        """The learner whose neurons are drawn."""
        return next(iter(self.watched.values()))


@dataclasses.dataclass(frozen=True)
class Preset:
    """A story: what is seen, the numbers that may be changed, and how a scene is made of them.

    `story`: sentences, each with the share of the run from which on it is told. `look`: the view
    that is shown first. `claims` of the ledger belong to it; `contest` is the task and `entrants`
    the learners of a contest that shows the same, `changes` the fields of that task by slider.
    """

    id: str
    title: str
    about: str
    sliders: tuple[Slider, ...]
    build: Callable[[Values], Scenario]
    walkthrough: tuple[tuple[float, str], ...]
    look: str
    claims: tuple[str, ...] = ()
    benchmark: str = ""
    entrants: tuple[str, ...] = ()
    changes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    gap: GrowingGap | None = None

    @property
    def all_sliders(self) -> tuple[Slider, ...]:
        """Those of the story, and the seeds."""
        return (*self.sliders, SEEDS, FIRST_SEED)

    def read(self, given: Values) -> dict[str, Any]:
        """All values, those not given by default."""
        known = {slider.name: slider for slider in self.all_sliders}
        for name in given:
            require(
                name in known,
                f"There is no number {name!r} in {self.id}. Known: {', '.join(known)}.",
            )
        return {
            name: slider.read(given.get(name, slider.default)) for name, slider in known.items()
        }

    def scenario(self, given: Values, changed: str | None = None) -> Scenario:
        """The scene; numbers that do not go together are refused beside the one that was changed
        last.
        """
        values = self.read(given)
        try:
            scenario = self.build(values)
        except WrongNumber:
            raise
        except UnlazyError as error:
            raise WrongNumber(changed or self.sliders[0].name, str(error)) from error
        return dataclasses.replace(scenario, commands=self.commands(values, scenario))

    def commands(self, values: Values, scenario: Scenario) -> dict[str, str]:
        """The same in a terminal."""
        defaults = {slider.name: slider.default for slider in self.all_sliders}
        changes = [
            f"{name}={_word(value)}" for name, value in values.items() if value != defaults[name]
        ]
        found = {
            "this view": shlex.join(
                [
                    "unlazy",
                    "play",
                    self.id,
                    *(word for change in changes for word in ("--set", change)),
                ]
            )
        }
        if self.benchmark:
            of_task = [f"{field}={_word(values[name])}" for name, field in self.changes.items()]
            words = [
                "unlazy",
                "compare",
                self.benchmark,
                *(word for change in of_task for word in ("--set", change)),
            ]
            words += [word for name in self.entrants for word in ("--learner", name)]
            sizes = [
                "--n",
                str(scenario.baseline_n),
                "--seeds",
                str(len(scenario.seeds)),
                "--first-seed",
                str(scenario.seeds[0]),
            ]
            found["a fair contest on this task"] = shlex.join([*words, *sizes])
        if self.claims:
            found["the claims of the paper"] = shlex.join(["unlazy", "reproduce", *self.claims])
        return found

    def to_json(self) -> dict[str, Any]:
        """For the page."""
        return {
            "id": self.id,
            "title": self.title,
            "about": self.about,
            "look": self.look,
            "sliders": [slider.to_json() for slider in self.all_sliders],
            "gap": None
            if self.gap is None
            else {"label": self.gap.label, "values": [str(value) for value in self.gap.values]},
        }


def _word(value: Any) -> str:
    return (
        str(value).lower()
        if isinstance(value, bool)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )
