"""Fixed features given by a kernel: ridge regression along a whole path of ridges, and support vector machines. Both solve on the host."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.errors import require
from unlazy.finite_width import Tangent
from unlazy.infinite_width import WideNetwork
from unlazy.iterative import product
from unlazy.kernels import Kernel, Polynomial, Stationary, gram
from unlazy.krylov import FEW, TOLERANCE, krylov_path, matrix_path
from unlazy.learners.base import Learner, Trace, keys_of
from unlazy.learners.path import PLACES, PathLearner, drawn, path_of, positive
from unlazy.networks import Init, Model
from unlazy.solvers import Solution, machine_memory
from unlazy.tasks.base import Batch, Sampler

#: A ridge this small, as a multiple of eps·√n, is below the rounding errors of a kernel in single precision.
COARSE = 16.0


class RandomKernel(eqx.Module):
    """A kernel that is drawn with the learner: that of a network of finite width at its initialisation."""

    @abstractmethod
    def draw(self, d: int, *, key: PRNGKeyArray) -> Kernel:
        """Draw the network for inputs of size d."""


class TangentFeatures(RandomKernel):
    """The tangent features of a network drawn from `init`: all its derivatives at initialisation."""

    init: Init

    def draw(self, d: int, *, key: PRNGKeyArray) -> Kernel:
        """Draw the network."""
        return Tangent(self.init(d, key=key))


class KernelModel(Model):
    """f(x) = Σ_i k(s·x, s·x_i)·α_i + offset. A path has α and offset for each of its steps, and shares the points."""

    kernel: Kernel
    points: np.ndarray
    scale: float
    coefficients: np.ndarray
    offset: np.ndarray

    def at(self, index: int) -> Self:
        """One model of a path."""
        return dataclasses.replace(self, coefficients=self.coefficients[index], offset=self.offset[index])

    def scores(self, x: Float[Array, "n d"]) -> Float[Array, "s n"]:
        """The scores of all models of a path, from one Gram matrix."""
        found = Solution(self.kernel, self.points, self.coefficients.T, self.points.dtype.name)
        return jnp.asarray(found.predict(np.asarray(x) * self.scale).T + self.offset[:, None])

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """Scores of a batch."""
        return dataclasses.replace(self, coefficients=self.coefficients[None], offset=self.offset[None]).scores(x)[0]


class KernelLearner(PathLearner):
    """Base of the learners with a kernel. Kernels of wide networks, which divide by d, see the inputs times √d."""

    kernel: Kernel | RandomKernel

    def prediction_work(self, d: int) -> float:
        """Not known before n is: `work` counts the predictions."""
        return 0.0

    def tuning(self, budget: int) -> tuple[Learner, ...]:
        """Kernels like this one, each with a path; where there is no other kernel, all of the budget goes into the path."""
        kernels = [self.kernel, *neighbours(self.kernel)][: max(1, budget // PLACES)]
        path = path_of(min(budget, PLACES) if len(kernels) > 1 else budget)
        return tuple(dataclasses.replace(self, kernel=kernel).along(path) for kernel in kernels)

    @property
    def settings(self) -> Mapping[str, float | str]:
        """The kernel's numbers and the place in the path."""
        return {**numbers_of(self.kernel), **super().settings}

    def _prepared(self, sampler: Sampler, n: int, key: PRNGKeyArray) -> tuple[Batch, Kernel, np.ndarray, float, np.ndarray]:
        """The sample as drawn, the kernel, the scaled points with their scale, and the labels."""
        sample, x, norm, y = drawn(sampler, n, key)
        kernel = self.kernel.draw(x.shape[1], key=keys_of(key)[0]) if isinstance(self.kernel, RandomKernel) else self.kernel
        factor = math.sqrt(x.shape[1]) if isinstance(kernel, WideNetwork) else 1.0
        return sample, kernel, x * x.dtype.type(factor), factor / norm, y


class KernelRidge(KernelLearner):
    """Ridge regression of the labels, at each of `ridges`: the recorded steps are places in this path.

    A ridge is in units of the mean of k(x, x). The mean label is not penalised. Where n² numbers do not fit into `memory` bytes (by default
    a third of the machine's), the kernel is computed anew for each product.
    """

    path, setting = "ridges", "ridge"
    ridges: tuple[float, ...] = eqx.field(static=True, default=(1.0,), converter=positive)
    memory: int | None = eqx.field(static=True, default=None, kw_only=True)

    def work(self, n: int, r: int) -> float:
        """Three Gram matrices, and a hundred products, which wait for the memory and so count four times."""
        return 3.0 * n * n * (r + 30) + 400.0 * n * n

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        """Solve the whole path."""
        sample, kernel, x, scale, y = self._prepared(sampler, n, key)
        offset = float(np.mean(y))
        with jax.enable_x64(x.dtype == np.float64):
            diagonal = float(jnp.mean(kernel.diagonal(jnp.asarray(x))))
        coefficients = _path(kernel, x, y - offset, [ridge * diagonal for ridge in self.ridges], self.memory)
        models = KernelModel(kernel, x, scale, coefficients, np.full(len(self.ridges), offset))
        # The residual of a ridge regression is λ·α.
        residuals = np.array(self.ridges)[:, None] * diagonal * coefficients
        losses = 0.5 * np.mean(np.square(residuals), axis=1)
        return self.traced(models, losses, sample)


class KernelSVM(KernelLearner):
    """The support vector machine, hinge loss, at each of `penalties` (scikit-learn's C, for a kernel whose mean of k(x, x) is 1)."""

    path, setting = "penalties", "penalty"
    penalties: tuple[float, ...] = eqx.field(static=True, default=(1.0,), converter=positive)

    def work(self, n: int, r: int) -> float:
        """Three Gram matrices, and about n passes over a part of one for each penalty."""
        return 3.0 * n * n * (r + 30) + len(self.penalties) * 200.0 * n * n

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        """Solve for each penalty."""
        from sklearn.svm import SVC

        sample, kernel, x, scale, y = self._prepared(sampler, n, key)
        require(len(np.unique(y)) == 2, f"A support vector machine needs examples of both classes, but the {n} examples are of one.")
        with jax.enable_x64(x.dtype == np.float64):
            K = np.asarray(gram(kernel, x), np.float64)
        unit = float(np.mean(np.diagonal(K)))
        coefficients, offsets, losses = np.zeros((len(self.penalties), n)), np.zeros(len(self.penalties)), []
        for index, penalty in enumerate(self.penalties):
            machine = SVC(C=penalty / unit, kernel="precomputed", cache_size=500).fit(K, y)
            coefficients[index, machine.support_] = machine.dual_coef_[0]
            offsets[index] = machine.intercept_[0]
            losses.append(np.mean(np.maximum(0, 1 - y * machine.decision_function(K))))
        return self.traced(KernelModel(kernel, x, scale, coefficients, offsets), losses, sample)


def _path(kernel: Kernel, x: np.ndarray, y: np.ndarray, ridges: Sequence[float], memory: int | None) -> np.ndarray:
    """α for each ridge, with a stored kernel where it fits into the memory, or with one that is computed anew for each product."""
    n = len(x)
    with jax.enable_x64(x.dtype == np.float64):
        top = float(jnp.max(kernel.diagonal(jnp.asarray(x))))
    coarse = COARSE * float(np.finfo(np.float32).eps) * math.sqrt(n) * top
    points = x.astype(np.float64) if n <= FEW or min(ridges) < coarse else x
    allowed = machine_memory() // 3 if memory is None else memory
    if n * n * points.dtype.itemsize <= allowed:
        with jax.enable_x64(points.dtype == np.float64):
            return matrix_path(np.asarray(gram(kernel, points)), y, ridges)
    found = krylov_path(lambda v: product(kernel, points, v[:, None])[:, 0], y, ridges, tolerance=TOLERANCE)
    worst = float(np.max(found.residuals))
    require(
        worst <= 10 * TOLERANCE,
        f"The ridge {min(ridges):.2g} is too small to be solved without storing the kernel of {n:,} points, for which {allowed / 1e9:.1f} "
        f"GB are too few: after {found.products} products the residual is {worst:.1e}. Take greater ridges, or allow more memory.",
    )
    return found.coefficients


def neighbours(kernel: Kernel | RandomKernel) -> list[Kernel | RandomKernel]:
    """Kernels of the same kind with other numbers, the most different first after the nearest."""
    change = dataclasses.replace
    if isinstance(kernel, Stationary):
        return [change(kernel, gamma=kernel.gamma * factor) for factor in (1 / 4, 4, 1 / 16, 16, 1 / 2, 2)]
    if isinstance(kernel, Polynomial):
        return [change(kernel, degree=degree) for degree in (2, 3, 5, 4, 7, 6) if degree != kernel.degree]
    if isinstance(kernel, WideNetwork):
        others = [(1, 0.0), (2, 0.1), (3, 0.1), (1, 1.0), (2, 1.0), (1, 0.1)]
        return [change(kernel, depth=depth, b_variance=b) for depth, b in others if (depth, b) != (kernel.depth, kernel.b_variance)]
    return []


def numbers_of(kernel: Any) -> Mapping[str, float | str]:
    """The numbers of a kernel, by name."""
    return {f.name: v for f in dataclasses.fields(kernel) if isinstance(v := getattr(kernel, f.name), (int, float, str))}
