"""Published numbers as draws of the paper's experiment.

A printed number is a mean over the paper's runs, measured on its test examples and rounded. From
s values of our own, one per seed, with mean v̄ and standard deviation σ, the 95 % prediction
interval of such a mean over r runs, each evaluated on N examples, is

    v̄ ± (t·√(σ²(1/s + 1/r) + p(1 − p)/(rN)) + half a unit of the last printed digit)

The second term under the root is the binomial variance of an accuracy p (as a percentage, times
100²) and is omitted for other measures and if N is unknown. t is Student's quantile with the
degrees of freedom of Welch and Satterthwaite: s − 1 for the first term, infinitely many for the
second.

Reference: G. J. Hahn, W. Q. Meeker, Statistical Intervals, 1991, Section 4.7.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Literal

import scipy.stats

from unlazy.lab.rules import Published, Quantity
from unlazy.lab.statistics import LEVEL, Estimate, estimate, range_of
from unlazy.lab.trials import Record

#: A printed number may lie outside of its interval, inside, or inside of an interval so wide that
#: it contains the mean of another method, too.
Consistency = Literal["consistent", "inconsistent", "not informative"]


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Unstated details of an evaluation: number of averaged runs, test examples per run.

    None: `runs` as the table states it, or one; `examples` unknown.
    """

    runs: int | None = None
    examples: int | None = None


@dataclasses.dataclass(frozen=True)
class Draw:
    """A printed number with the prediction interval of our runs.

    `trivial`: the printed number is an end of the measure's range, such as 100.0 %, which any
    successful run reproduces. `other`: a method whose mean lies in the interval, too.
    """

    arm: str
    measure: str
    step: int | None
    printed: str
    mean: float | None
    low: float | None
    high: float | None
    outcome: Consistency
    trivial: bool
    other: str = ""

    @property
    def quantity(self) -> Quantity:
        """The measured quantity."""
        return Quantity(self.arm, self.measure, self.step)


def prediction(
    values: Sequence[float],
    measure: str,
    *,
    runs: int = 1,
    examples: int | None = None,
    half_digit: float = 0.0,
    level: float = LEVEL,
    exact: bool = False,
) -> tuple[float, float]:
    """Return the prediction interval of a printed mean over `runs` runs (see the module).

    It is infinite for a single value, unless that is `exact`.
    """
    e, count = estimate(values, exact=exact), len(values)
    if not math.isfinite(e.mean) or math.isnan(e.deviation):
        return -math.inf, math.inf
    between = e.deviation**2 * (1 / count + 1 / runs)
    sampling = 0.0
    if examples is not None and range_of(measure) == (0.0, 100.0):
        # Two successes and two failures more, so that 0 and 100 % have a variance, too.
        share = min(max(e.mean / 100, 0.0), 1.0)
        p = (share * examples * runs + 2) / (examples * runs + 4)
        sampling = 100.0**2 * p * (1 - p) / (examples * runs)
    total = between + sampling
    freedom = (count - 1) * (total / between) ** 2 if between > 0 else math.inf
    t = float(scipy.stats.t.ppf((1 + level) / 2, min(freedom, 1e9)))
    half = t * math.sqrt(total) + half_digit
    low, high = range_of(measure)
    return max(e.mean - half, low), min(e.mean + half, high)


def draws(
    published: Sequence[Published],
    records: Mapping[str, Sequence[Record]],
    evaluation: Evaluation | None = None,
    *,
    exact: bool = False,
) -> tuple[Draw, ...]:
    """Compare printed numbers with records; numbers that were not measured are left out.

    `exact`: values are computed without randomness. A number is not informative if its interval is
    infinite (one seed), or also contains the mean of another method of the same row from which it
    differs in our runs: the paired difference is significant and larger than a unit of the last
    printed digit.
    """
    measured = [each for each in published if each.quantity.measured(records)]
    values = {each.quantity: each.quantity.values(records) for each in measured}
    return tuple(
        _draw(each, measured, values, evaluation or Evaluation(), exact) for each in measured
    )


def _draw(
    number: Published,
    row: Sequence[Published],
    values: Mapping[Quantity, Sequence[float]],
    evaluation: Evaluation,
    exact: bool,
) -> Draw:
    own = values[number.quantity]
    low, high = prediction(
        own,
        number.quantity.measure,
        runs=evaluation.runs or number.runs,
        examples=evaluation.examples,
        half_digit=number.unit / 2,
        exact=exact,
    )
    e = estimate(own)
    ends = range_of(number.quantity.measure)
    # Rounding errors of the sum must not decide.
    slack = 1e-9 * max(1.0, abs(number.value))
    inside = low - slack <= number.value <= high + slack
    other = next(
        (
            each.quantity.arm
            for each in row
            if each.row == number.row
            and each != number
            and low <= estimate(values[each.quantity]).mean <= high
            and _apart(own, values[each.quantity], number.unit)
        ),
        "",
    )
    outcome: Consistency = (
        "inconsistent"
        if not inside
        else "not informative"
        if other or math.isinf(high - low)
        else "consistent"
    )
    q = number.quantity
    return Draw(
        q.arm,
        q.measure,
        q.step,
        number.printed,
        _rounded(e.mean),
        _rounded(low),
        _rounded(high),
        outcome,
        number.value in ends,
        other,
    )


def _rounded(value: float) -> float | None:
    """Round to six digits; JSON has no NaN and no infinity."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _apart(first: Sequence[float], second: Sequence[float], unit: float) -> bool:
    """Return whether two methods differ in our runs, by more than a unit of the last digit."""
    difference: Estimate = estimate([a - b for a, b in zip(first, second, strict=True)])
    significant = difference.low > 0 or difference.high < 0
    return significant and abs(difference.mean) > unit


@dataclasses.dataclass(frozen=True)
class Tally:
    """Numbers of consistent and of all printed numbers, trivial ones apart."""

    consistent: int = 0
    of: int = 0
    trivial: int = 0
    of_trivial: int = 0
    not_informative: int = 0

    @classmethod
    def of_draws(cls, found: Sequence[Draw]) -> Tally:
        """Count draws."""
        right = [draw for draw in found if draw.outcome == "consistent"]
        return cls(
            len(right),
            len(found),
            sum(draw.trivial for draw in right),
            sum(draw.trivial for draw in found),
            sum(draw.outcome == "not informative" for draw in found),
        )

    def __str__(self) -> str:
        if not self.of:
            return "–"
        text = f"{self.consistent} of {self.of} consistent"
        if self.of_trivial:
            text += f" ({self.trivial} of {self.of_trivial} trivial ones)"
        if self.not_informative:
            text += f", {self.not_informative} not informative"
        return text
