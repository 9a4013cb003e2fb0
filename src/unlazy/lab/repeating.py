"""Compare two records of one trial, which must not depend on the other trials of a run.

A trial in another group is another compiled program, whose rounding may differ; results may differ
by `TOLERANCE`. Records of one group on one kind of machine are identical.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from unlazy.lab.trials import Record

#: Relative to the larger of two numbers, or absolute if both are below 1.
TOLERANCE = 1e-4


class Difference(NamedTuple):
    """Largest difference of two records in one measure over all steps, and the values there.

    It is relative, or absolute if both values are below 1.
    """

    measure: str
    largest: float
    equal: bool
    before: float = math.nan
    after: float = math.nan

    def __str__(self) -> str:
        if math.isnan(self.before) and math.isnan(self.after):
            return f"{self.measure} not comparable"
        return f"{self.measure} {self.before:.4g} → {self.after:.4g}"


def differences(one: Record, other: Record, tolerance: float = TOLERANCE) -> list[Difference]:
    """Return the differences of all measures; infinite if a record does not have the measure."""
    found = []
    for name in sorted(one.measurements.keys() | other.measurements.keys()):
        a, b = one.measurements.get(name), other.measurements.get(name)
        if a is None or b is None or len(a) != len(b):
            found.append(Difference(name, math.inf, False))
            continue
        apart = list(map(_apart, a, b))
        worst = max(range(len(apart)), key=apart.__getitem__, default=None)
        if worst is None:
            found.append(Difference(name, 0.0, True))
        else:
            largest = apart[worst]
            found.append(Difference(name, largest, largest <= tolerance, a[worst], b[worst]))
    if one.status != other.status or one.steps != other.steps:
        found.append(Difference("status and steps", math.inf, False))
    return found


def _apart(a: float, b: float) -> float:
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf
    return abs(a - b) / max(1.0, abs(a), abs(b))
