"""Kernel ridge regression along a path of ridges, and kernel support vector machines."""

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
from unlazy.learners.path import PATH_LENGTH, PathLearner, PathModel, drawn, path_of, positive
from unlazy.networks.base import Init
from unlazy.solvers.exact import Solution
from unlazy.solvers.policy import kernel_path
from unlazy.tasks.base import Batch, Sampler


class RandomKernel(eqx.Module):
    """A random kernel, drawn per trial."""

    @abstractmethod
    def draw(self, d: int, *, key: PRNGKeyArray) -> Kernel:
        """Draw the kernel for inputs of size d."""

    def neighbors(self) -> Sequence[Self]:
        """Return other candidates for tuning, as `Kernel.neighbors`."""
        return ()


class TangentFeatures(RandomKernel):
    """The tangent kernel of a network drawn from `init`."""

    init: Init

    def draw(self, d: int, *, key: PRNGKeyArray) -> Kernel:
        return Tangent(self.init(d, key=key))


class KernelModel(PathModel):
    """f(x) = Σ_i k(s·x, s·x_i)·α_i + offset.

    The models of a path differ in α and offset.
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
        products = Solution(self.kernel, self.points, columns, self.points.dtype.name).predict(
            x * self.scale
        )
        result: np.ndarray = (
            np.moveaxis(products.reshape(len(x), steps, *self.coefficients.shape[2:]), 1, 0)
            + self.offset[:, None]
        )
        return result


class KernelLearner(PathLearner):
    """Base class of kernel learners; inputs are multiplied by `kernel.input_scale`."""

    kernel: Kernel | RandomKernel

    def prediction_work(self, d: int) -> float:
        """Return 0, because `work` includes predictions, whose cost depends on n."""
        return 0.0

    def tuning(self, budget: int) -> tuple[Learner, ...]:
        """Return this kernel and its neighbors, each with a path of ridges or penalties."""
        kernels = [self.kernel, *self.kernel.neighbors()][: max(1, budget // PATH_LENGTH)]
        path = path_of(min(budget, PATH_LENGTH) if len(kernels) > 1 else budget)
        return tuple(dataclasses.replace(self, kernel=kernel).along(path) for kernel in kernels)

    @property
    def settings(self) -> Mapping[str, float | str]:
        return {**parameters_of(self.kernel), **super().settings}

    def _prepared(
        self, sampler: Sampler, n: int, key: PRNGKeyArray
    ) -> tuple[Batch, Kernel, np.ndarray, float, np.ndarray]:
        """Return the drawn sample, the kernel, the scaled points, their scale, and the labels."""
        sample, x, norm, y = drawn(sampler, n, key)
        if isinstance(self.kernel, RandomKernel):
            kernel = self.kernel.draw(x.shape[1], key=keys_of(key)[0])
        else:
            kernel = self.kernel.for_shape(sampler.input_shape)
        factor = kernel.input_scale(x.shape[1])
        return sample, kernel, x * x.dtype.type(factor), factor / norm, y


class KernelRidge(KernelLearner):
    """Kernel ridge regression of the labels for each of `ridges`; recorded steps are indices.

    Ridges are multiples of the mean of k(x, x). The mean label is not penalized. If the Gram matrix
    does not fit into `memory` bytes (by default a third of the machine's memory), it is computed
    again for each product.
    """

    path, setting = "ridges", "ridge"
    ridges: tuple[float, ...] = eqx.field(static=True, default=(1.0,), converter=positive)
    memory: int | None = eqx.field(static=True, default=None, kw_only=True)

    def work(self, n: int, r: int) -> float:
        """Estimate three Gram matrices and a hundred memory-bound products, counted four times."""
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
    """The support vector machine for each of `penalties`.

    A penalty is scikit-learn's C for a kernel scaled to mean k(x, x) = 1.
    """

    path, setting = "penalties", "penalty"
    penalties: tuple[float, ...] = eqx.field(static=True, default=(1.0,), converter=positive)

    def work(self, n: int, r: int) -> float:
        """Estimate three Gram matrices, and about n passes over a part of one per penalty."""
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
            for column, labels in enumerate(columns.T):
                if len(np.unique(labels)) < 2:
                    require(
                        columns.shape[1] > 1,
                        f"KernelSVM needs examples of both classes, got {n} examples of one.",
                    )
                    offsets[index, column] = -1.0  # a class without examples
                    continue
                machine = SVC(C=penalty / unit, kernel="precomputed", cache_size=500).fit(K, labels)
                coefficients[index, machine.support_, column] = machine.dual_coef_[0]
                offsets[index, column] = machine.intercept_[0]
                losses[index] += np.mean(np.maximum(0, 1 - labels * machine.decision_function(K)))
        if y.ndim == 1:
            coefficients, offsets = coefficients[:, :, 0], offsets[:, 0]
        return self.traced(KernelModel(kernel, x, scale, coefficients, offsets), losses, sample)


def parameters_of(kernel: Any) -> Mapping[str, float | str]:
    """Return the parameters of a kernel by name."""
    return {
        f.name: v
        for f in dataclasses.fields(kernel)
        if isinstance(v := getattr(kernel, f.name), (int, float, str))
    }
