"""A committee of kernel machines: each chooses its own ridge, and the mean of their scores
counts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from unlazy.core.errors import require
from unlazy.estimators.base import Classifier, Regressor
from unlazy.estimators.kernel import KernelMachine, NamedKernel
from unlazy.kernels.base import Kernel
from unlazy.kernels.wide import NTK

#: The kernels of a committee where none are named: two tangent kernels, without and with much bias,
#: and one that is rough at every point.
COMMITTEE: tuple[str | Kernel, ...] = (
    NTK(1, "relu", 2.0, 0.1),
    NTK(1, "relu", 2.0, 1.0),
    "laplace",
)


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class _Committee(KernelMachine):
    """Several kernel machines on the same samples.

    Parameters
    ----------
    kernels : sequence of str or Kernel, optional
        Names of `unlazy.kernels.catalog.KERNELS`, or kernels; by default tangent kernels of one
        hidden layer with little and with much bias, and "laplace".

    `members_` are the fitted machines. The other parameters are those of each.
    """

    kernels: Sequence[str | Kernel] | None = None

    def _kernel(self, d: int) -> Kernel:
        raise NotImplementedError("A committee has several kernels: see its members.")

    def _fit_scores(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> None:
        kernels = COMMITTEE if self.kernels is None else tuple(self.kernels)
        require(len(kernels) > 0, "A committee needs at least one kernel.")
        given = {
            name: getattr(self, name)
            for name in ("ridge", "ridges", "fit_intercept", "solver", "memory")
        }
        self.members_ = [NamedKernel(kernel=kernel, **given) for kernel in kernels]
        for member in self.members_:
            member._fit_scores(X, Y, weight)

    def _scores(self, X: np.ndarray) -> np.ndarray:
        result: np.ndarray = np.mean([member._scores(X) for member in self.members_], axis=0)
        return result


class KernelCommitteeRegressor(Regressor, _Committee):
    """Regression by the mean of several kernel machines."""


class KernelCommitteeClassifier(Classifier, _Committee):
    """Classification by the mean score of several kernel machines, each class against the rest."""
