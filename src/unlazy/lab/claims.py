"""Claim definitions: a statement of a paper, the study and the criteria that test it, and its
negative control.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Literal

from unlazy.core.deprecation import renamed_parameters
from unlazy.core.errors import BadInput, require, unknown
from unlazy.lab.arms import StudyArm
from unlazy.lab.conditions import Condition
from unlazy.lab.readings import AS_WRITTEN, OpenSetting, Reading
from unlazy.lab.rules import (
    EVALUATION,
    USUAL_SCALES,
    Change,
    Check,
    Control,
    Published,
    Quantity,
    Scale,
)
from unlazy.lab.statistics import LEVEL, runs_for_share

Kind = Literal["task", "learner", "lemma", "table", "figure", "bound"]
#: Who asserts the statement: the paper, a definition of the paper, or this package.
Source = Literal["paper", "definition", "ours"]
#: Number of seeds that must agree to show that most seeds do (Clopper-Pearson).
AGREEING = runs_for_share(0.5)


@dataclasses.dataclass(frozen=True)
class PlotLine:
    """One line of a plot: a measure of an arm against its steps, or against its measure `x`.

    `theory`: thin dashed line, for a bound or a prediction. `points`: marks without a line.
    """

    arm: str
    measure: str
    name: str
    x: str | None = None
    theory: bool = False
    points: bool = False


@dataclasses.dataclass(frozen=True)
class Plot:
    """A plot of a claim, shown in reports and exported as a figure."""

    title: str
    x: str
    y: str
    series: tuple[PlotLine, ...]
    log_x: bool = False
    log_y: bool = False
    caption: str = ""


@renamed_parameters(least_seeds="min_seeds", whatever_labels="label_free_reason")
@dataclasses.dataclass(frozen=True)
class Claim:
    """A checkable statement of a paper.

    `statement`: the assertion of the paper. `study`: the arms at a scale. `seeds`: default number
    of seeds per scale. `min_seeds`: smallest number of seeds for a verdict; 1 for an exact
    computation, whose interval has width 0. `source`: whether the row is an assertion of the paper,
    checks a definition of the paper, or is ours. `asymptotic`: why the statement cannot be tested
    at a finite size, if it cannot. `conditions`: assumptions of the theorem; if one is not
    met, the outcome is "assumptions not met". `control`: negative control. `label_free_reason`: why
    the statement is true for any labels, if it is; then shuffled labels are no control.
    `corrections`: errata without which the statement does not hold. `discrepancies`: questions to
    the authors about its printed results. `deviations`: differences from the paper. `history`:
    changes made after a run. `readings`: choices of settings that the paper leaves open, as keyword
    arguments of `study` and of the control's study; `reading` names the one that is judged (empty:
    the first). `open_settings`: the same settings as a product, for a search.
    """

    id: str
    where: str
    kind: Kind
    statement: str
    study: Callable[..., Mapping[str, StudyArm]]
    checks: tuple[Check, ...]
    published: tuple[Published, ...] = ()
    deviations: tuple[str, ...] = ()
    seeds: Mapping[Scale, int] = dataclasses.field(
        default_factory=lambda: {"smoke": 1, "laptop": AGREEING, "paper": AGREEING}
    )
    min_seeds: int = 3
    plots: tuple[Plot, ...] = ()
    conditions: tuple[Condition, ...] = ()
    control: Control | None = None
    corrections: tuple[str, ...] = ()
    history: tuple[Change, ...] = ()
    label_free_reason: str = ""
    discrepancies: tuple[str, ...] = ()
    readings: tuple[Reading, ...] = ()
    reading: str = ""
    open_settings: tuple[OpenSetting, ...] = ()
    source: Source = "paper"
    asymptotic: str = ""

    def __post_init__(self) -> None:
        names = [reading.name for reading in self.readings]
        require(len(set(names)) == len(names), f"{self.id}: two readings have the same name.")
        if self.reading and self.reading not in names:
            raise unknown(f"reading of {self.id}", self.reading, names)

    @property
    def judged(self) -> Reading:
        """The reading that is judged: the chosen one, or the first."""
        named = {reading.name: reading for reading in self.readings}
        if self.reading:
            return named[self.reading]
        return self.readings[0] if self.readings else Reading(AS_WRITTEN, "the only reading")

    def under(self, name: str) -> Claim:
        """Return the claim under another of its readings."""
        return dataclasses.replace(self, reading=name)

    def checks_at(self, scale: Scale) -> tuple[Check, ...]:
        """Return the checks that apply at a scale."""
        return tuple(each for each in self.checks if each.applies(scale, exact=self.exact))

    def arms(self, scale: Scale) -> Mapping[str, StudyArm]:
        """Return the arms at a scale, under the reading that is judged."""
        return self.study(scale, **self.judged.settings)

    def control_arms(self, scale: Scale) -> Mapping[str, StudyArm]:
        """Return the arms of the negative control under the same reading."""
        if self.control is None:
            raise BadInput(f"{self.id} has no control.")
        return self.control.study(scale, **self.judged.settings)

    @property
    def exact(self) -> bool:
        """Whether the claim is an exact computation, for which one seed suffices."""
        return self.min_seeds == 1

    @property
    def first_seed(self) -> int:
        """First held-out seed; after a change, the first one that no earlier run has used."""
        return max((change.first_seed for change in self.history), default=EVALUATION)

    @property
    def quantities(self) -> list[Quantity]:
        """Distinct quantities of checks and published values."""
        return list(
            dict.fromkeys(
                [
                    *(check.quantity for check in self.checks),
                    *(number.quantity for number in self.published),
                ]
            )
        )

    @property
    def measures(self) -> list[str]:
        """Distinct names of measures in checks, published values, conditions and plots."""
        quantities = [
            *self.quantities,
            *(each.value for each in self.conditions if isinstance(each.value, Quantity)),
        ]
        lines = [line for plot in self.plots for line in plot.series]
        return list(
            dict.fromkeys(
                [
                    *(name for quantity in quantities for name in quantity.measures),
                    *(name for line in lines for name in (line.measure, line.x) if name),
                ]
            )
        )

    @property
    def rule(self) -> str:
        """The acceptance criteria as a sentence, under which stores register them."""
        interval = f"the {LEVEL:.0%} interval of the mean over at least {self.min_seeds} seeds lies"
        return (
            f"holds if {'what was computed exactly lies' if self.exact else interval} within "
            "the bounds of every check: "
            + "; ".join(
                str(check)
                + (
                    f" ({' and '.join(check.scales)})"
                    if check.scales not in ((), USUAL_SCALES)
                    else ""
                )
                + " (can only refute)" * check.only_refutes
                for check in self.checks
                if check.counts
            )
        )


@dataclasses.dataclass(frozen=True)
class NotRun:
    """A checkable statement that is not tested yet, with the reason."""

    id: str
    where: str
    kind: Kind
    statement: str
    reason: str

    def to_json(self) -> dict[str, object]:
        """Return the row as JSON data."""
        return dataclasses.asdict(self) | {
            "verdict": "not run",
            "numbers": {"reproduced": 0, "of": 0},
        }


@dataclasses.dataclass(frozen=True)
class Erratum:
    """An error in a paper: location, printed text, correction, proof, and the test of the proof."""

    id: str
    where: str
    printed: str
    correction: str
    shown: str
    test: str


@dataclasses.dataclass(frozen=True)
class Discrepancy:
    """A question to the authors about printed results that differ from computed ones.

    `observed`: the printed and the computed values. `explanation`: an assumption under which the
    printed values would be expected. `excluded`: assumptions that do not explain them. `question`:
    one sentence that ends in a question mark. `test`: the test that checks these values.
    """

    id: str
    where: str
    observed: str
    explanation: str
    excluded: str
    question: str
    test: str
