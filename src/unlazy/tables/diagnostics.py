"""Diagnostics that explain the result of an audit, as trials."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
from jaxtyping import PRNGKeyArray

from unlazy.estimators.catalog import Group
from unlazy.lab.trials import DETAILS, ExactComputation
from unlazy.tables.explain import (
    Explanation,
    Selected,
    learning_curves,
    permuted_labels,
    rotation,
)
from unlazy.tables.folds import TableData
from unlazy.tables.spectra import gradient_spectrum, kernel_alignment, output_scale


class Diagnostic(ExactComputation):
    """A computation that explains the result of an audit.

    `function` takes the problem, and the selected methods by group if there are any.
    """

    data: TableData
    function: Callable[..., Explanation] = eqx.field(static=True)
    selected: dict[Group, Selected] = eqx.field(default_factory=dict)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        arguments = (self.selected,) if self.selected else ()
        found = self.function(self.data.problem, *arguments)
        return {DETAILS: {"name": found.name, "says": found.says, "data": _finite(found.data)}}


def _finite(value: Any) -> Any:
    """Return plain data without NaN and infinity, which JSON does not have."""
    if isinstance(value, Mapping):
        return {str(name): _finite(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclasses.dataclass(frozen=True)
class Planned:
    """A diagnostic, its estimated seconds, and whether it refits the selected methods."""

    function: Callable[..., Explanation]
    base: float
    by_rows: float = 0.0
    refits: bool = False

    def seconds(self, rows: int) -> float:
        """Return the estimated seconds."""
        return self.base + self.by_rows * rows

    def of(self, data: TableData, selected: dict[Group, Selected]) -> Diagnostic:
        """Return the diagnostic of a table."""
        return Diagnostic(data, self.function, selected if self.refits else {})


#: In the order in which they are run.
DIAGNOSTICS: dict[str, Planned] = {
    "learning curves": Planned(learning_curves, 15.0, 0.01, refits=True),
    "gradients": Planned(gradient_spectrum, 15.0),
    "from lazy to rich": Planned(output_scale, 20.0),
    "kernel alignment": Planned(kernel_alignment, 8.0),
    "rotation": Planned(rotation, 10.0, 0.01, refits=True),
    "permuted labels": Planned(permuted_labels, 8.0, 0.005, refits=True),
}
