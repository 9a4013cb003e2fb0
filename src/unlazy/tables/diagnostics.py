"""The diagnostics that explain the answer of an audit, in the order in which they are run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from unlazy.estimators.catalog import Group
from unlazy.tables.explain import (
    Explanation,
    Selected,
    learning_curves,
    permuted_labels,
    rotation,
)
from unlazy.tables.spectra import gradient_spectrum, kernel_alignment, output_scale
from unlazy.tasks.tables.problems import Problem


@dataclasses.dataclass(frozen=True)
class Diagnostic:
    """A function of the problem, or of the problem and the selected methods (`refits`), and about
    how many seconds it takes for n rows.
    """

    function: Callable[..., Explanation]
    base: float
    by_rows: float = 0.0
    refits: bool = False

    def seconds(self, rows: int) -> float:
        """Return a rough estimate."""
        return self.base + self.by_rows * rows

    def run(self, problem: Problem, selected: Mapping[Group, Selected]) -> Explanation:
        """Compute it; `selected` has the methods with fixed and with learned features at least."""
        return self.function(problem, selected) if self.refits else self.function(problem)


#: In the order in which they are run while there is time.
DIAGNOSTICS: dict[str, Diagnostic] = {
    "learning curves": Diagnostic(learning_curves, 15.0, 0.01, refits=True),
    "gradients": Diagnostic(gradient_spectrum, 15.0),
    "from lazy to rich": Diagnostic(output_scale, 20.0),
    "kernel alignment": Diagnostic(kernel_alignment, 8.0),
    "rotation": Diagnostic(rotation, 10.0, 0.01, refits=True),
    "permuted labels": Diagnostic(permuted_labels, 8.0, 0.005, refits=True),
}
