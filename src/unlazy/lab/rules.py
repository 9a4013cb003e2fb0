"""Acceptance criteria of claims: checks, published values, assumptions, controls and history.

Seeds have three ranges. Settings are selected on tuning seeds and examined on development seeds.
Verdicts use held-out seeds, on which nothing was selected. Criteria that were changed after a run
are tested on held-out seeds that no earlier run has used.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from unlazy.core.errors import require
from unlazy.lab.arms import StudyArm, shuffled_labels
from unlazy.lab.statistics import range_of
from unlazy.lab.trials import Record

Scale = Literal["smoke", "laptop", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "laptop", "paper")
#: Scales of checks of random quantities; the smoke scale only tests that everything runs.
USUAL_SCALES: tuple[Scale, ...] = ("laptop", "paper")
#: First seed of each range.
TUNING, DEVELOPMENT, EVALUATION = 0, 10, 1000
#: Origin of a bound: the paper, this package (to make a statement checkable), or an identity of
#: the construction, which does not count in the verdict.
Origin = Literal["paper", "ours", "identity"]
A = TypeVar("A", bound=StudyArm)


@dataclasses.dataclass(frozen=True)
class Quantity:
    """A measurement of an arm at a step (None: the last), or its paired difference to another one.

    Comparisons with numbers are checks: `q >= 99`, `q <= 0.1`, `q.between(47, 53)`,
    `q.near(1, 1e-9)`. `q[2]` is the same at step 2, and `p - q` the paired difference.
    """

    arm: str
    measure: str
    step: int | None = None
    minus: Quantity | None = None

    __iter__ = None  # indexing selects a step, so that iteration would not end

    def __getitem__(self, step: int | None) -> Quantity:
        require(self.minus is None, f"{self}: give each term of a difference its own step.")
        return dataclasses.replace(self, step=step)

    def __sub__(self, other: Quantity) -> Quantity:
        require(self.minus is None, f"{self} is already a difference.")
        return dataclasses.replace(self, minus=other)

    def __ge__(self, lower: float) -> Check:
        return Check(self, lower=lower)

    def __le__(self, upper: float) -> Check:
        return Check(self, upper=upper)

    def between(self, lower: float, upper: float) -> Check:
        """Check that the mean lies in [lower, upper]."""
        return Check(self, lower, upper)

    def near(self, value: float, tolerance: float) -> Check:
        """Check that the mean is within `tolerance` of `value`."""
        return Check(self, value - tolerance, value + tolerance)

    def __str__(self) -> str:
        own = f"{self.arm} {self.measure}" + ("" if self.step is None else f" at step {self.step}")
        return own if self.minus is None else f"{own} − {self.minus}"

    def values(self, records: Mapping[str, Sequence[Record]]) -> list[float]:
        """Return one value per seed."""
        own = [record.value(self.measure, self.step) for record in records[self.arm]]
        if self.minus is None:
            return own
        return [mine - other for mine, other in zip(own, self.minus.values(records), strict=True)]

    def measured(self, records: Mapping[str, Sequence[Record]]) -> bool:
        """Return whether the records have it; a smaller scale may lack an arm or a step."""
        recorded = all(
            self.measure in record.measurements and (self.step is None or self.step in record.steps)
            for record in records.get(self.arm, ())
        )
        return (
            self.arm in records
            and recorded
            and (self.minus is None or self.minus.measured(records))
        )

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest possible value."""
        low, high = range_of(self.measure)
        if self.minus is None:
            return low, high
        other_low, other_high = self.minus.range
        return low - other_high, high - other_low

    @property
    def arms(self) -> tuple[str, ...]:
        """Names of its arms."""
        return (self.arm, *(self.minus.arms if self.minus else ()))

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of its measures."""
        return (self.measure, *(self.minus.measures if self.minus else ()))


class ArmName:
    """The name of an arm, whose attributes are its quantities: `net.test_accuracy`.

    `net["loss, B=1"]` is a quantity whose name is no identifier.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __str__(self) -> str:
        return self._name

    def __getattr__(self, measure: str) -> Quantity:
        if measure.startswith("_"):
            raise AttributeError(measure)
        return Quantity(self._name, measure)

    def __getitem__(self, measure: str) -> Quantity:
        require(isinstance(measure, str), f"{self._name}: a measure is a name, got {measure!r}.")
        return Quantity(self._name, measure)


def arms(*names: str, variant: str = "") -> tuple[ArmName, ...]:
    """Return the arms of these names, in a variant of a study if one is named."""
    return tuple(ArmName(variant_name(name, variant)) for name in names)


def arm(name: str) -> ArmName:
    """Return the arm of this name."""
    return ArmName(name)


def variant_name(name: str, variant: str) -> str:
    """Return the name of an arm in a variant of a study."""
    return f"{name}, {variant}" if variant else name


@dataclasses.dataclass(frozen=True)
class Check:
    """lower ≤ mean of the quantity over seeds ≤ upper.

    `share`: instead of the mean, more than this fraction of seeds must lie within the bounds.
    `scales`: scales at which the check is applied (empty: laptop and paper, and all scales if the
    computation is exact). `origin`: source of the bounds. `exact`: the quantity is not random, so
    that equal values over seeds are conclusive. `only_refutes`: it also holds in the negative
    control, so that it can refute the statement, but not support it.
    """

    quantity: Quantity
    lower: float = -math.inf
    upper: float = math.inf
    scales: tuple[Scale, ...] = ()
    origin: Origin = "ours"
    share: float | None = None
    exact: bool = False
    only_refutes: bool = False

    def __post_init__(self) -> None:
        low, high = self.quantity.range
        require(
            self.lower <= self.upper,
            f"{self.quantity}: the lower bound {self.lower:g} is above the upper bound "
            f"{self.upper:g}.",
        )
        require(
            self.lower > low or self.upper < high,
            f"{self.quantity} always lies in [{low:g}, {high:g}]: this check cannot fail.",
        )
        require(
            self.share is None or 0 < self.share < 1,
            f"{self.quantity}: `share` must lie between 0 and 1, got {self.share}.",
        )

    def __bool__(self) -> bool:
        raise TypeError("A check has no truth value; write q.between(a, b), not a <= q <= b.")

    def by_paper(self) -> Check:
        """Return the same check, with bounds that the paper states."""
        return dataclasses.replace(self, origin="paper")

    def by_construction(self) -> Check:
        """Return the same check as an identity of the construction, which decides nothing."""
        return dataclasses.replace(self, origin="identity")

    def exactly(self) -> Check:
        """Return the same check of a quantity that is computed without randomness."""
        return dataclasses.replace(self, exact=True)

    def refuting(self) -> Check:
        """Return the same check as one that also holds in the control: it can only refute."""
        return dataclasses.replace(self, only_refutes=True)

    def at(self, *scales: Scale) -> Check:
        """Return the same check, required at these scales only."""
        return dataclasses.replace(self, scales=scales)

    def for_share(self, share: float) -> Check:
        """Return the same check, required of more than this fraction of seeds."""
        return dataclasses.replace(self, share=share)

    @property
    def counts(self) -> bool:
        """Whether it counts in the verdict."""
        return self.origin != "identity"

    @property
    def supports(self) -> bool:
        """Whether the statement can rest on it."""
        return self.counts and not self.only_refutes

    def applies(self, scale: Scale, *, exact: bool) -> bool:
        """Return whether it is applied at a scale; `exact`: all of its claim is exact."""
        every = exact or self.exact
        return scale in (self.scales or (SCALES if every else USUAL_SCALES))

    def allows(self, value: float) -> bool:
        """Return whether one value lies within the bounds."""
        return self.lower <= value <= self.upper

    def slack(self, value: float) -> float:
        """Return the factor by which a value satisfies a one-sided bound; 1 if there is none."""
        if math.isinf(self.lower) and self.upper > 0 and value > 0:
            return self.upper / value
        if math.isinf(self.upper) and self.lower > 0:
            return value / self.lower
        return math.inf if math.isinf(self.lower) and self.upper > 0 == value else 1.0

    @property
    def bounds(self) -> str:
        """The bounds as text, such as "≥ 99"."""
        if math.isinf(self.upper):
            return f"≥ {self.lower:g}"
        return (
            f"≤ {self.upper:g}"
            if math.isinf(self.lower)
            else f"in [{self.lower:g}, {self.upper:g}]"
        )

    def __str__(self) -> str:
        often = "" if self.share is None else f" for more than {self.share:.0%} of seeds"
        return f"{self.quantity} {self.bounds}{often}"


@dataclasses.dataclass(frozen=True)
class Published:
    """A number as printed in the paper, with the standard deviation that the paper states.

    It is reproduced if the whole interval of the measured mean lies within half a unit of the last
    printed digit plus two standard deviations. `runs`: number of runs that the paper averages.
    `row`: numbers of one row are the same measure of different methods (see `draws`).
    """

    quantity: Quantity
    printed: str
    spread: float = 0.0
    runs: int = 1
    row: str = ""

    @property
    def value(self) -> float:
        """The printed number."""
        return float(self.printed)

    @property
    def unit(self) -> float:
        """A unit of the last printed digit."""
        return 10.0 ** -len(self.printed.partition(".")[2])

    @property
    def margin(self) -> float:
        """Accepted distance of the mean from the printed number."""
        return 0.5 * self.unit + 2 * self.spread


@dataclasses.dataclass(frozen=True)
class Control:
    """A negative control: arms of the same names that violate the statement.

    The acceptance criteria must not hold on them.
    """

    what: str
    study: Callable[..., Mapping[str, StudyArm]]


def variants(
    study: Callable[..., Mapping[str, A]], settings: Mapping[str, Mapping[str, Any]]
) -> Callable[..., dict[str, A]]:
    """Return a study that runs another one with several settings, given by the variant's name.

    Arms are named "ARM, VARIANT". A setting that differs between scales is a mapping from them.
    Keyword arguments of the study, such as the settings of a reading, apply to all variants.
    """

    def together(scale: Scale, **others: Any) -> dict[str, A]:
        found: dict[str, A] = {}
        for variant, values in settings.items():
            own = {k: v[scale] if isinstance(v, Mapping) else v for k, v in values.items()}
            arms = study(scale, **others | own)
            found |= {variant_name(name, variant): arm for name, arm in arms.items()}
        return found

    return together


def shuffled(
    study: Callable[..., Mapping[str, StudyArm]],
    what: str = "learners get shuffled labels",
) -> Control:
    """Return the negative control in which every learner of a study gets shuffled labels."""

    def null(scale: Scale, **settings: Any) -> Mapping[str, StudyArm]:
        arms = study(scale, **settings)
        return {name: shuffled_labels(arm) or arm for name, arm in arms.items()}

    return Control(what, null)


def shuffled_arms(
    study: Callable[[Scale], Mapping[str, StudyArm]], names: Sequence[str]
) -> Control:
    """Return the negative control with these arms only, and shuffled labels."""

    def null(scale: Scale) -> Mapping[str, StudyArm]:
        return {
            name: shuffled_labels(arm) or arm for name, arm in study(scale).items() if name in names
        }

    return Control("learners get shuffled labels", null)


@dataclasses.dataclass(frozen=True)
class Change:
    """A change of a bound, size or arm after a run; later verdicts use seeds ≥ `first_seed`."""

    date: str
    what: str
    why: str
    first_seed: int = EVALUATION
