"""Averages of kernel machines, each with its own ridge."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from unlazy.core.errors import require
from unlazy.estimators.base import Classifier, Regressor
from unlazy.estimators.kernel import KernelMachine, NamedKernel
from unlazy.kernels.base import Kernel
from unlazy.kernels.wide import NTK

#: Default kernels: two NTKs, with small and large bias variance, and the nonsmooth Laplace kernel.
COMMITTEE: tuple[str | Kernel, ...] = (
    NTK(1, "relu", 2.0, 0.1),
    NTK(1, "relu", 2.0, 1.0),
    "laplace",
)


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class _Committee(KernelMachine):
    """The mean score of several kernel machines.

    Parameters
    ----------
    kernels : sequence of str or Kernel, optional
        Names in `unlazy.kernels.catalog.KERNELS`, or kernels. By default the NTKs of one hidden
        layer with bias variances 0.1 and 1, and "laplace".

    The other parameters apply to every machine. `members_` are the fitted machines.
    """

    kernels: Sequence[str | Kernel] | None = None

    def _kernel(self, d: int) -> Kernel:
        raise NotImplementedError("A committee has several kernels; see members_.")

    def _fit_scores(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> None:
        kernels = COMMITTEE if self.kernels is None else tuple(self.kernels)
        require(len(kernels) > 0, "kernels must contain at least one kernel.")
        parameters = {
            name: getattr(self, name)
            for name in ("ridge", "ridges", "fit_intercept", "solver", "memory")
        }
        self.members_ = [NamedKernel(kernel=kernel, **parameters) for kernel in kernels]
        for member in self.members_:
            member._fit_scores(X, Y, weight)

    def _scores(self, X: np.ndarray) -> np.ndarray:
        result: np.ndarray = np.mean([member._scores(X) for member in self.members_], axis=0)
        return result


class KernelCommitteeRegressor(Regressor, _Committee):
    """Regression by the mean prediction of several kernel machines."""


class KernelCommitteeClassifier(Classifier, _Committee):
    """One-vs-rest classification by the mean score of several kernel machines."""
