"""Parameters of the live page with their ranges, and the scenario that they define."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Mapping
from typing import Any, Literal

from unlazy.core.errors import BadInput, UnlazyError, require
from unlazy.learners.base import Learner
from unlazy.tasks.base import Family

Values = Mapping[str, Any]
#: Largest number of seeds that are trained at once.
MAX_SEEDS = 6


class InvalidValue(BadInput):
    """Invalid value of a parameter; `field` is the name of its slider."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclasses.dataclass(frozen=True)
class Slider:
    """Parameter of a preset.

    `live`: a change applies to the running training; other changes restart it. `choices`: allowed
    strings of a parameter that is not a number. `why`: explanation below the slider.
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
    def kind(self) -> Literal["choice", "switch", "integer", "number"]:
        """Type of the values."""
        if self.choices:
            return "choice"
        if isinstance(self.default, bool):
            return "switch"
        return "integer" if isinstance(self.default, int) else "number"

    @property
    def _called(self) -> str:
        """The name in messages: a symbol at the start of the label, or the name."""
        symbol = self.label.partition(",")[0]
        return symbol if symbol and symbol == self.name.removeprefix("task.") else f"“{self.label}”"

    def read(self, given: Any) -> Any:
        """Return a text or a number as a value; raise `InvalidValue` if it is not allowed."""
        if self.kind == "choice":
            if given not in self.choices:
                raise InvalidValue(
                    self.name,
                    f"{self._called} must be one of {', '.join(self.choices)}, got {given!r}.",
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
                raise InvalidValue(
                    self.name, f"{self._called} must be true or false, got {given!r}."
                )
            return known[given]
        try:
            number = float(given)
        except (TypeError, ValueError):
            raise InvalidValue(
                self.name,
                f"{self._called} must be a number, such as {self.default}, got {given!r}.",
            ) from None
        if not self.low <= number <= self.high:
            raise InvalidValue(
                self.name,
                f"{self._called} must be between {self.low:g} and {self.high:g}, got {given}.",
            )
        if self.kind == "integer" and number != int(number):
            raise InvalidValue(self.name, f"{self._called} must be an integer, got {given!r}.")
        return int(number) if self.kind == "integer" else number

    def to_json(self) -> dict[str, Any]:
        """Return the slider as JSON for the page."""
        return dataclasses.asdict(self) | {"kind": self.kind}


SEEDS = Slider(
    "seeds",
    "number of seeds",
    3,
    1,
    MAX_SEEDS,
    why="each seed draws its own ground truth, examples and initialization",
)
FIRST_SEED = Slider(
    "seed",
    "first seed",
    10,
    0,
    100_000,
    why="the same seed gives the same data and initialization in all commands",
)


@dataclasses.dataclass(frozen=True)
class GrowingGap:
    """Parameter and values at which the watched learner is compared with the baselines."""

    field: str
    label: str
    values: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Scenario:
    """Learners of one run.

    `watched` learners are trained step by step, and the first one is drawn. `baselines` use fixed
    features and are fitted in the background. `fixed` names the watched learners whose features
    are fixed. `commands` are shell commands for this run and related ones, by title.
    """

    family: Family
    watched: Mapping[str, Learner]
    baselines: Mapping[str, Learner]
    n: int
    baseline_n: int
    seeds: tuple[int, ...]
    fixed: tuple[str, ...] = ()
    commands: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def main(self) -> Learner:
        """Learner whose neurons are drawn."""
        return next(iter(self.watched.values()))


@dataclasses.dataclass(frozen=True)
class Preset:
    """Entry of the live page: its parameters and the function that builds a scenario from them.

    `walkthrough`: sentences, each with the fraction of the steps at which it is first shown.
    `view`: the view shown first. `claims`: related claim ids. `benchmark` and `learners`: task and
    learners of the related `unlazy compare`; `changes` maps sliders to fields of that task.
    """

    id: str
    title: str
    about: str
    sliders: tuple[Slider, ...]
    build: Callable[[Values], Scenario]
    walkthrough: tuple[tuple[float, str], ...]
    view: str
    claims: tuple[str, ...] = ()
    benchmark: str = ""
    learners: tuple[str, ...] = ()
    changes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    gap: GrowingGap | None = None

    @property
    def all_sliders(self) -> tuple[Slider, ...]:
        """Sliders of the preset, and those of the seeds."""
        return (*self.sliders, SEEDS, FIRST_SEED)

    def full_names(self, given: Values) -> dict[str, Any]:
        """Return the values by names of sliders; `d` means `task.d` if no slider is named `d`."""
        known, found = {slider.name for slider in self.all_sliders}, dict[str, Any]()
        for name, value in given.items():
            full = name if name in known or f"task.{name}" not in known else f"task.{name}"
            require(full not in found, f"`{full}` is given twice.")
            found[full] = value
        return found

    def read(self, given: Values) -> dict[str, Any]:
        """Return all values; defaults replace those that are not given."""
        known = {slider.name: slider for slider in self.all_sliders}
        given = self.full_names(given)
        for name in given:
            require(
                name in known,
                f"{self.id} has no parameter {name!r}. Parameters: {', '.join(known)}.",
            )
        return {
            name: slider.read(given.get(name, slider.default)) for name, slider in known.items()
        }

    def scenario(self, given: Values, changed: str | None = None) -> Scenario:
        """Build the scenario; an invalid combination is reported at the slider `changed`."""
        values = self.read(given)
        try:
            scenario = self.build(values)
        except InvalidValue:
            raise
        except UnlazyError as error:
            raise InvalidValue(changed or self.sliders[0].name, str(error)) from error
        return dataclasses.replace(scenario, commands=self.commands(values, scenario))

    def commands(self, values: Values, scenario: Scenario) -> dict[str, str]:
        """Return shell commands for this run and related ones, by title."""
        defaults = {slider.name: slider.default for slider in self.all_sliders}
        changes = [
            f"{name}={_word(value)}" for name, value in values.items() if value != defaults[name]
        ]
        found = {
            "this run": shlex.join(
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
            words += [word for name in self.learners for word in ("--learner", name)]
            sizes = [
                "--n",
                str(scenario.baseline_n),
                "--seeds",
                str(len(scenario.seeds)),
                "--first-seed",
                str(scenario.seeds[0]),
            ]
            title = f"comparison of tuned learners on {self.benchmark}, n = {scenario.baseline_n:,}"
            if scenario.baseline_n != scenario.n:
                title += " (that of the baselines)"
            found[title] = shlex.join([*words, *sizes])
        if self.claims:
            found["related claims of the paper"] = shlex.join(["unlazy", "reproduce", *self.claims])
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the preset as JSON for the page."""
        return {
            "id": self.id,
            "title": self.title,
            "about": self.about,
            "view": self.view,
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
