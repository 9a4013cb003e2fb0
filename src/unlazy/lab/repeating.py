"""Running one record again, alone, and comparing: numbers must not depend on what else was run,
where, or in which order.

A trial that runs in another group is another compiled program, which may round otherwise; what that
leads to in the end is allowed to differ by a ten-thousandth of its size, or of 1 where it is
smaller. Records of one group on one kind of machine are equal bit by bit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from unlazy.lab.trials import Record

#: Relative to the larger of two numbers, or to 1.
TOLERANCE = 1e-4


class Difference(NamedTuple):
    """How far two records are apart in one measure: the largest difference over all steps, relative
    to the numbers or to 1, and the numbers there.
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
    """Measure by measure; one that only one of them has is infinitely far."""
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
