"""Claims: what a paper asserts, the study that tests it, the rule that decides, and the world in
which it must not hold.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Literal

from unlazy.core.deprecation import renamed_parameters
from unlazy.lab.arms import StudyArm
from unlazy.lab.rules import (
    EVALUATION,
    Change,
    Check,
    Condition,
    Control,
    Published,
    Quantity,
    Scale,
)
from unlazy.lab.statistics import LEVEL, runs_for_share

Kind = Literal["task", "learner", "lemma", "table", "figure", "bound"]
#: Of seeds that all agree, so many show that most do: what has no spread is decided by their
#: number.
AGREEING = runs_for_share(0.5)


@dataclasses.dataclass(frozen=True)
class PlotLine:
    """One line of a plot: a measure of an arm against its steps, or against another measure `x` of
    the same arm.

    `theory` draws it as a thin dashed line without marks, as is fit for a bound or a prediction;
    `points` as marks without a line.
    """

    arm: str
    measure: str
    name: str
    x: str | None = None
    theory: bool = False
    points: bool = False


@dataclasses.dataclass(frozen=True)
class Plot:
    """A chart that a claim wants on the page and among its figures."""

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

    `statement` says what the paper asserts, and nothing that was found here. `study` gives the arms
    at a scale. `seeds` is the number of seeds a scale takes by default, `min_seeds` the number
    below which nothing is decided; an exact computation may ask for one, whose interval then has no
    width. `conditions` are those of the theorem: where a run misses one, the statement is not
    judged. `control` is a world in which the statement is false. `label_free_reason`: why the
    statement is true even of labels that say nothing, where it is; then showing learners such
    labels cannot make it false. `corrections` names errata without which it would not hold.
    `deviations` says what had to differ from the paper, `history` what was changed after a run.
    """

    id: str
    where: str
    kind: Kind
    statement: str
    study: Callable[[Scale], Mapping[str, StudyArm]]
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

    @property
    def exact(self) -> bool:
        """Whether the claim is a computation without chance, for which one run is enough."""
        return self.min_seeds == 1

    @property
    def first_seed(self) -> int:
        """The first of the seeds on which it is judged: after a change, of those that no run had
        before.
        """
        return max((change.first_seed for change in self.history), default=EVALUATION)

    @property
    def quantities(self) -> list[Quantity]:
        """All that is compared with something, each once."""
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
        """The names of all quantities in checks, published values, conditions and plots, each
        once.
        """
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
        """The rule as a sentence."""
        interval = f"the {LEVEL:.0%} interval of the mean over at least {self.min_seeds} seeds lies"
        return (
            f"holds if {'what was computed exactly lies' if self.exact else interval} within "
            "the bounds of every check: "
            + "; ".join(
                f"{check} ({' and '.join(check.scales)})"
                if check.scales != ("laptop", "paper")
                else str(check)
                for check in self.checks
                if check.counts
            )
        )


@dataclasses.dataclass(frozen=True)
class NotRun:
    """A checkable statement that nothing here runs yet: it stands in the ledger, with the
    reason.
    """

    id: str
    where: str
    kind: Kind
    statement: str
    reason: str

    def to_json(self) -> dict[str, object]:
        """The row as plain data."""
        return dataclasses.asdict(self) | {
            "verdict": "not run",
            "numbers": {"reproduced": 0, "of": 0},
        }


@dataclasses.dataclass(frozen=True)
class Erratum:
    """A slip in a paper: where, what is printed, what is meant, what shows it, and the test that
    keeps the proof.
    """

    id: str
    where: str
    printed: str
    correction: str
    shown: str
    test: str
