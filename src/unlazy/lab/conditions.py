"""Assumptions of theorems, as numbers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from unlazy.lab.rules import Quantity, Scale
from unlazy.lab.trials import Record


@dataclasses.dataclass(frozen=True)
class Condition:
    """An assumption of a theorem: `value` at the sizes of a scale, and the required `needed`.

    `value` may be a measured quantity. `constant`: name of the constant that the paper leaves open,
    if there is one. It is taken as 1, and the verdict states for which constants the condition
    holds: value ≥ C · needed, or value ≤ C · needed.
    """

    text: str
    value: Callable[[Scale], float] | Quantity
    needed: Callable[[Scale], float]
    sense: Literal["≥", "≤"] = "≥"
    constant: str = ""

    def at(self, scale: Scale, records: Mapping[str, Sequence[Record]]) -> Met:
        """Return the condition with its numbers at a scale."""
        if isinstance(self.value, Quantity):
            found = self.value.values(records)
            value = min(found) if self.sense == "≥" else max(found)  # the worst seed
        else:
            value = self.value(scale)
        return Met(self, float(value), float(self.needed(scale)))


@dataclasses.dataclass(frozen=True)
class Met:
    """A condition with its numbers."""

    condition: Condition
    value: float
    needed: float

    @property
    def met(self) -> bool:
        """Whether it is met."""
        return (
            self.value >= self.needed if self.condition.sense == "≥" else self.value <= self.needed
        )

    @property
    def factor(self) -> float:
        """Factor by which it is missed; at most 1 if it is met."""
        above, below = (
            (self.needed, self.value) if self.condition.sense == "≥" else (self.value, self.needed)
        )
        return math.inf if below <= 0 < above else above / below if below else 0.0

    @property
    def constants(self) -> str:
        """The values of the open constant for which it holds, such as "C ≤ 0.03"."""
        if not self.condition.constant or self.needed <= 0:
            return ""
        sense = "≤" if self.condition.sense == "≥" else "≥"
        return f"{self.condition.constant} {sense} {self.value / self.needed:.3g}"

    def __str__(self) -> str:
        required = f"{self.condition.text}: {self.value:.3g}, required {self.condition.sense} "
        missed = "" if self.met else f" (missed by a factor of {self.factor:.3g})"
        if self.constants:
            missed = f" with {self.condition.constant} = 1; holds for {self.constants}"
        return f"{required}{self.needed:.3g}{missed}"
