"""What a scaling study found: examples needed at each place, their exponents, and where learners
cross. Plain data that a store keeps.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
from jaxtyping import Float

from unlazy.core.metrics import METRICS, Metric
from unlazy.lab.power_laws import PowerLaw, crossing, fit
from unlazy.lab.serialization import from_plain, to_plain
from unlazy.lab.showing import Shown

#: How the sample complexity was measured: along one pass over fresh examples, or by a search over
#: n with tuning at each n.
How = Literal["one pass", "search"]
_KEYS = {
    "field": "vary",
    "rows": "learners",
    "target": "target_error",
    "max_n": "most_examples",
    "test": "test_examples",
}


#: Number of seeds below which a bootstrap interval is marked as too narrow.
FEW_SEEDS = 5


@dataclasses.dataclass(frozen=True)
class SampleComplexity:
    """Number of examples that a learner needs at one value of the varied parameter, `place`.

    `examples`: one number per seed, None if the target was not reached. `errors[i][j]`: test error
    with `sizes[i]` examples and the j-th seed.
    """

    place: float
    examples: tuple[float | None, ...]
    sizes: tuple[int, ...]
    errors: tuple[tuple[float, ...], ...]

    @property
    def reached(self) -> int:
        """Number of seeds for which the target was reached."""
        return sum(n is not None for n in self.examples)

    @property
    def whole(self) -> bool:
        """Whether the target was reached for every seed."""
        return self.reached == len(self.examples)

    @property
    def last_error(self) -> float:
        """Mean error over seeds at the largest number of examples."""
        return float(np.mean(self.errors[-1]))

    def to_json(self) -> dict[str, Any]:
        """Return JSON data."""
        examples = [None if n is None else round(n, 3) for n in self.examples]
        errors = [[round(e, 6) for e in row] for row in self.errors]
        return to_plain(self, {}, examples=examples, errors=errors)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Self:
        """Build from `to_json` output."""
        errors = tuple(tuple(math.inf if e is None else e for e in row) for row in told["errors"])
        return from_plain(cls, told, {}, errors=errors)


@dataclasses.dataclass(frozen=True)
class ScalingRow:
    """Sample complexities of one learner; `predicted`: those predicted by theory, if any."""

    learner: str
    how: How
    cells: tuple[SampleComplexity, ...]
    predicted: Mapping[float, float]

    @property
    def places(self) -> Float[np.ndarray, " p"]:
        """Values at which every seed reached the target; the exponent is fitted to these."""
        return np.array([cell.place for cell in self.cells if cell.whole], float)

    @property
    def samples(self) -> Float[np.ndarray, "s p"]:
        """Numbers of examples at `places`, one row per seed."""
        return np.array([cell.examples for cell in self.cells if cell.whole], float).T

    @property
    def means(self) -> Float[np.ndarray, " p"]:
        """Geometric means of `samples` over seeds."""
        return np.exp(np.mean(np.log(self.samples), axis=0)) if len(self.places) else np.zeros(0)

    @functools.cached_property
    def power_law(self) -> PowerLaw | None:
        """The fitted power law; None if the target was reached at fewer than two values."""
        return fit(self.places, self.samples) if len(self.places) > 1 else None

    def shared(self, other: ScalingRow) -> list[float]:
        """Return the values at which both learners reached the target for every seed."""
        return sorted(set(self.places) & set(other.places))

    def below(self, other: ScalingRow, place: float) -> bool:
        """Return whether all seeds of this learner need fewer examples than any of the other."""
        mine, theirs = (row.samples[:, list(row.places).index(place)] for row in (self, other))
        return bool(np.max(mine) < np.min(theirs))

    def to_json(self) -> dict[str, Any]:
        """Return JSON data."""
        cells = [cell.to_json() for cell in self.cells]
        predicted = [[place, round(n, 3)] for place, n in self.predicted.items()]
        power_law = {} if self.power_law is None else to_plain(self.power_law, {})
        return to_plain(self, {}, cells=cells, predicted=predicted) | power_law

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Self:
        """Build from `to_json` output; the power law is fitted again."""
        cells = tuple(map(SampleComplexity.from_json, told["cells"]))
        return from_plain(cls, told, {}, cells=cells, predicted=dict(told["predicted"]))


@dataclasses.dataclass(frozen=True)
class ScalingOutcome(Shown):
    """Result of a scaling study.

    `field`: the varied task parameter. `command`: the command that reproduces it, if there is one.
    `note`: why the target is not the default.
    """

    task: str
    field: str
    rows: tuple[ScalingRow, ...]
    target: float
    metric: Metric
    seeds: tuple[int, ...]
    budget: int
    max_n: int
    test: int
    command: str = ""
    note: str = ""
    provenance: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def settings(self) -> str:
        """Description that distinguishes this study from others on the same task."""
        places = ", ".join(f"{cell.place:g}" for cell in self.rows[0].cells)
        learners = ", ".join(row.learner for row in self.rows)
        return (
            self.command
            or f"{self.field} = {places}; {learners}; error {self.target:g}; {self.budget} "
            f"settings; at most {self.max_n}"
        )

    @property
    def crossings(self) -> dict[tuple[str, str], float]:
        """Value above which the first learner of a pair needs fewer examples than the second.

        Only pairs whose order is the same for all seeds at the smallest and largest common value.
        """
        found = {}
        for one, other in itertools.permutations(self.rows, 2):
            shared = one.shared(other)
            if len(shared) > 1 and other.below(one, shared[0]) and one.below(other, shared[-1]):
                place = crossing(one.places, one.means, other.places, other.means)
                if place is not None:
                    found[one.learner, other.learner] = place
        return found

    @property
    def sentences(self) -> list[str]:
        """Sentences on exponents, targets that were not reached, and the order of learners."""
        return [
            *([self.note] if self.note else []),
            *self._exponents,
            *self._not_reached,
            *self._order,
        ]

    @property
    def _exponents(self) -> list[str]:
        sentences = []
        for row in self.rows:
            if row.power_law is not None:
                low, high = row.power_law.interval
                few = f", too narrow for {len(self.seeds)} seeds"
                few *= len(self.seeds) < FEW_SEEDS
                interval = (
                    f" (95 % CI {low:.2f} to {high:.2f}{few})"
                    if math.isfinite(low)
                    else " (1 seed, no interval)"
                )
                over = (
                    ""
                    if len(row.places) == len(row.cells)
                    else f", fitted at {self.field} = {_list(row.places)}"
                )
                sentences.append(
                    f"For {row.learner}, the number of examples needed grows as "
                    f"{self.field}^{row.power_law.exponent:.2f}{interval}{over}."
                )
        return sentences

    @property
    def _not_reached(self) -> list[str]:
        return [
            f"{row.learner} at {self.field} = {cell.place:g}: target {not_reached(cell)}; excluded "
            "from the fit."
            for row in self.rows
            for cell in row.cells
            if not cell.whole
        ]

    @property
    def _order(self) -> list[str]:
        sentences = [
            f"{a} needs fewer examples than {b} above {self.field} ≈ {place:.2g} (interpolated)."
            for (a, b), place in self.crossings.items()
        ]
        crossed = {frozenset(pair) for pair in self.crossings}
        for one, other in itertools.permutations(self.rows, 2):
            shared = one.shared(other)
            if (
                shared
                and frozenset((one.learner, other.learner)) not in crossed
                and all(one.below(other, place) for place in shared)
            ):
                here, there = (
                    dict(zip(row.places, row.means, strict=True)) for row in (one, other)
                )
                ratios = [there[place] / here[place] for place in shared]
                times = (
                    f"{min(ratios):.2g} to {max(ratios):.2g}"
                    if len(ratios) > 1
                    else f"{ratios[0]:.2g}"
                )
                sentences.append(
                    f"{one.learner} needs {times} times fewer examples than {other.learner} at "
                    f"{self.field} = {_list(shared)}."
                )
        return sentences

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as JSON data."""
        rows = [row.to_json() for row in self.rows]
        return to_plain(self, _KEYS, rows=rows, metric=self.metric.name) | {
            "places": [cell.place for cell in self.rows[0].cells],
            "sentences": self.sentences,
            "crossings": [
                {"first": one, "second": other, "place": place}
                for (one, other), place in self.crossings.items()
            ],
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Self:
        """Build from `to_json` output."""
        rows = tuple(map(ScalingRow.from_json, told["learners"]))
        return from_plain(cls, told, _KEYS, rows=rows, metric=METRICS[told["metric"]])


def not_reached(cell: SampleComplexity) -> str:
    """Return the error at the largest n, if the target was not reached for every seed."""
    some = f"reached for {cell.reached} of {len(cell.examples)} seeds"
    return (
        f"{some if cell.reached else 'not reached'} (error {cell.last_error:.3f} at n = "
        f"{cell.sizes[-1]:,})"
    )


def _list(places: Any) -> str:
    return ", ".join(f"{place:g}" for place in places)
