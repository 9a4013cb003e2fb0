"""Fixed features given by a kernel: ridge regression along a whole path of ridges, and support
vector machines. Both solve on the host.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.core.metrics import Outputs
from unlazy.kernels.base import Kernel
from unlazy.kernels.finite import Tangent
from unlazy.kernels.gram import gram
from unlazy.learners.base import Learner, Trace, keys_of
from unlazy.learners.path import PLACES, PathLearner, PathModel, drawn, path_of, positive
from unlazy.networks.base import Init
from unlazy.solvers.exact import Solution
from unlazy.solvers.policy import kernel_path
from unlazy.tasks.base import Batch, Sampler


class RandomKernel(eqx.Module):
    """A kernel that is drawn with the learner: that of a network of finite width at its
    initialisation.
    """

    @abstractmethod
    def draw(self, d: int, *, key: PRNGKeyArray) -> Kernel:
        """Draw the network for inputs of size d."""

    def neighbors(self) -> Sequence[Self]:
        """As those of a `Kernel`; by default none."""
        return ()


class TangentFeatures(RandomKernel):
    """The tangent features of a network drawn from `init`: all its derivatives at
    initialisation.
    """

    init: Init

    def draw(self, d: int, *, key: PRNGKeyArray) -> Kernel:
        return Tangent(self.init(d, key=key))


class KernelModel(PathModel):
    """f(x) = Σ_i k(s·x, s·x_i)·α_i + offset.

    A path has α and offset for each of its steps, and shares the points.
    """

    kernel: Kernel
    points: np.ndarray
    scale: float
    coefficients: np.ndarray  # steps n, or steps n o
    offset: np.ndarray  # steps, or steps o

    def at(self, index: int) -> Self:
        return dataclasses.replace(
            self, coefficients=self.coefficients[index][None], offset=self.offset[index][None]
        )

    def path_scores(self, x: Float[np.ndarray, "n d"]) -> np.ndarray:
        steps, n = self.coefficients.shape[:2]
        columns = np.moveaxis(self.coefficients, 0, 1).reshape(n, -1)
        found = Solution(self.kernel, self.points, columns, self.points.dtype.name).predict(
            x * self.scale
        )
        result: np.ndarray = (
            np.moveaxis(found.reshape(len(x), steps, *self.coefficients.shape[2:]), 1, 0)
            + self.offset[:, None]
        )
        return result


class KernelLearner(PathLearner):
    """Base of the learners with a kernel.

    Inputs are scaled as the kernel asks: by √d for those of wide networks, which divide by d.
    """

    kernel: Kernel | RandomKernel

    def prediction_work(self, d: int) -> float:
        """Not known before n is: `work` counts the predictions."""
        return 0.0

    def tuning(self, budget: int) -> tuple[Learner, ...]:
        """Kernels like this one, each with a path; where there is no other kernel, all of the
        budget goes into the path.
        """
        kernels = [self.kernel, *self.kernel.neighbors()][: max(1, budget // PLACES)]
        path = path_of(min(budget, PLACES) if len(kernels) > 1 else budget)
        return tuple(dataclasses.replace(self, kernel=kernel).along(path) for kernel in kernels)

    @property
    def settings(self) -> Mapping[str, float | str]:
        return {**numbers_of(self.kernel), **super().settings}

    def _prepared(
        self, sampler: Sampler, n: int, key: PRNGKeyArray
    ) -> tuple[Batch, Kernel, np.ndarray, float, np.ndarray]:
        """The sample as drawn, the kernel, the scaled points with their scale, and the labels."""
        sample, x, norm, y = drawn(sampler, n, key)
        if isinstance(self.kernel, RandomKernel):
            kernel = self.kernel.draw(x.shape[1], key=keys_of(key)[0])
        else:
            kernel = self.kernel.for_shape(sampler.input_shape)
        factor = kernel.input_scale(x.shape[1])
        return sample, kernel, x * x.dtype.type(factor), factor / norm, y


class KernelRidge(KernelLearner):
    """Ridge regression of the labels, at each of `ridges`: the recorded steps are places in this
    path.

    A ridge is in units of the mean of k(x, x). The mean label is not penalised. Where n² numbers do
    not fit into `memory` bytes (by default a third of the machine's), the kernel is computed anew
    for each product.
    """

    path, setting = "ridges", "ridge"
    ridges: tuple[float, ...] = eqx.field(static=True, default=(1.0,), converter=positive)
    memory: int | None = eqx.field(static=True, default=None, kw_only=True)

    def work(self, n: int, r: int) -> float:
        """Three Gram matrices and a hundred memory-bound products, which count four times."""
        return 3.0 * n * n * (r + 30) + 400.0 * n * n

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        sample, kernel, x, scale, y = self._prepared(sampler, n, key)
        offset = np.mean(y, axis=0)
        with jax.enable_x64(x.dtype == np.float64):
            diagonal = float(jnp.mean(kernel.diagonal(jnp.asarray(x))))
        coefficients = kernel_path(
            kernel, x, y - offset, [ridge * diagonal for ridge in self.ridges], memory=self.memory
        )
        models = KernelModel(kernel, x, scale, coefficients, np.stack([offset] * len(self.ridges)))
        # The residual of a ridge regression is λ·α.
        pairs = zip(self.ridges, coefficients, strict=True)
        squares = [
            0.5 * np.mean(np.square(ridge * diagonal * alpha), axis=0) for ridge, alpha in pairs
        ]
        losses = [float(np.sum(each)) for each in squares]
        return self.traced(models, losses, sample)


class KernelSVM(KernelLearner):
    """The support vector machine, hinge loss, at each of `penalties` (scikit-learn's C, for a
    kernel whose mean of k(x, x) is 1).
    """

    path, setting = "penalties", "penalty"
    penalties: tuple[float, ...] = eqx.field(static=True, default=(1.0,), converter=positive)

    def work(self, n: int, r: int) -> float:
        """Three Gram matrices, and about n passes over a part of one for each penalty."""
        return 3.0 * n * n * (r + 30) + len(self.penalties) * 200.0 * n * n

    def suits(self, outputs: Outputs) -> bool:
        return outputs.kind != "reals"

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        from sklearn.svm import SVC

        sample, kernel, x, scale, y = self._prepared(sampler, n, key)
        columns = np.where((y if y.ndim == 2 else y[:, None]) > 0, 1.0, -1.0)
        with jax.enable_x64(x.dtype == np.float64):
            K = np.asarray(gram(kernel, x), np.float64)
        unit = float(np.mean(np.diagonal(K)))
        count = len(self.penalties)
        coefficients, offsets, losses = (
            np.zeros((count, n, columns.shape[1])),
            np.zeros((count, columns.shape[1])),
            np.zeros(count),
        )
        for index, penalty in enumerate(self.penalties):
            for place, labels in enumerate(columns.T):
                if len(np.unique(labels)) < 2:
                    require(
                        columns.shape[1] > 1,
                        f"A support vector machine needs examples of both classes, but the {n} "
                        "examples are of one.",
                    )
                    offsets[index, place] = -1.0  # a class that was not seen
                    continue
                machine = SVC(C=penalty / unit, kernel="precomputed", cache_size=500).fit(K, labels)
                coefficients[index, machine.support_, place] = machine.dual_coef_[0]
                offsets[index, place] = machine.intercept_[0]
                losses[index] += np.mean(np.maximum(0, 1 - labels * machine.decision_function(K)))
        if y.ndim == 1:
            coefficients, offsets = coefficients[:, :, 0], offsets[:, 0]
        return self.traced(KernelModel(kernel, x, scale, coefficients, offsets), losses, sample)


def numbers_of(kernel: Any) -> Mapping[str, float | str]:
    """The numbers of a kernel, by name."""
    return {
        f.name: v
        for f in dataclasses.fields(kernel)
        if isinstance(v := getattr(kernel, f.name), (int, float, str))
    }
