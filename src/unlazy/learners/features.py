"""Linear models on fixed features: the inputs themselves, or random features. Ridge regression along a path, and logistic regression."""

from __future__ import annotations

import dataclasses
import math
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Literal, Self, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.activations import activation_of
from unlazy.core.errors import require
from unlazy.core.metrics import Outputs
from unlazy.core.random import normal
from unlazy.learners.base import Learner, Trace, keys_of
from unlazy.learners.path import PLACES, PathLearner, PathModel, drawn, path_of, positive
from unlazy.solvers.krylov import matrix_path
from unlazy.tasks.base import Sampler

Kind = Literal["relu", "truncated_relu", "fourier"]
#: Rows for which features are made at a time.
ROWS = 4096


class FeatureMap(eqx.Module):
    """Features φ(x) of inputs whose mean squared norm is 1."""

    @abstractmethod
    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n f"]:
        """The features of a batch."""


class Inputs(FeatureMap):
    """φ(x) = x."""

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The inputs."""
        return x


class RandomMap(FeatureMap):
    """φ_i(x) = σ(⟨w_i, x⟩ + b_i), for σ a ReLU, a truncated ReLU or √2·cos."""

    w: Float[Array, "f d"]
    b: Float[Array, " f"]
    kind: Kind = eqx.field(static=True)

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n f"]:
        """The features of a batch."""
        before = x @ self.w.T + self.b
        return math.sqrt(2) * jnp.cos(before) if self.kind == "fourier" else activation_of(self.kind)(before)


class Features(eqx.Module):
    """A law of feature maps."""

    @abstractmethod
    def draw(self, d: int, *, key: PRNGKeyArray) -> FeatureMap:
        """Draw a map for inputs of size d."""

    @abstractmethod
    def count(self, d: int) -> int:
        """Number of features."""

    @property
    def settings(self) -> Mapping[str, float | str]:
        """Its numbers by name."""
        return {}

    def others(self) -> list[Features]:
        """Laws of the same kind with other numbers, to choose among."""
        return []


class RawFeatures(Features):
    """The inputs themselves: what is left is a linear model."""

    def draw(self, d: int, *, key: PRNGKeyArray) -> Inputs:
        """Nothing is random."""
        return Inputs()

    def count(self, d: int) -> int:
        """d."""
        return d


class RandomFeatures(Features):
    """`width` features with w ~ N(0, bandwidth²·I) and b ~ N(0, bandwidth²), or b uniform on the circle for Fourier features.

    Fourier features approach the kernel exp(−bandwidth²·‖x − z‖²/2) as their number grows, the others an arc-cosine kernel.

    Reference: Rahimi and Recht, Random features for large-scale kernel machines, 2007.
    """

    kind: Kind = eqx.field(static=True, default="relu")
    width: int = eqx.field(static=True, default=2000)
    bandwidth: float = eqx.field(converter=float, default=1.0)

    def __check_init__(self) -> None:
        """Refuse what makes no features."""
        require(self.kind in get_args(Kind), f"kind must be one of {', '.join(get_args(Kind))}, but is {self.kind!r}.")
        require(isinstance(self.width, int) and self.width > 0, f"width must be a positive number of features, but is {self.width!r}.")
        require(0 < self.bandwidth < math.inf, f"bandwidth must be a finite number > 0, but is {self.bandwidth}.")

    def draw(self, d: int, *, key: PRNGKeyArray) -> RandomMap:
        """Draw weights and biases."""
        key_w, key_b = jax.random.split(key)
        w = self.bandwidth * normal(key_w, (self.width, d))
        if self.kind == "fourier":
            b = 2 * math.pi * jax.random.uniform(key_b, (self.width,), jnp.float32).astype(w.dtype)
        else:
            b = self.bandwidth * normal(key_b, (self.width,))
        return RandomMap(w, b, self.kind)

    def count(self, d: int) -> int:
        """The width."""
        return self.width

    @property
    def settings(self) -> Mapping[str, float | str]:
        """The bandwidth."""
        return {"bandwidth": self.bandwidth}

    def others(self) -> list[Features]:
        """Other bandwidths."""
        return [dataclasses.replace(self, bandwidth=self.bandwidth * factor) for factor in (1 / 2, 2, 1 / 4, 4, 1 / 8, 8)]


class FeatureModel(PathModel):
    """f(x) = ⟨weights, φ(scale·x)⟩ + offset. A path has weights and offset for each of its steps, and shares the features."""

    features: FeatureMap
    scale: float
    weights: np.ndarray  # steps f, or steps f o
    offset: np.ndarray  # steps, or steps o

    def at(self, index: int) -> Self:
        return dataclasses.replace(self, weights=self.weights[index][None], offset=self.offset[index][None])

    def path_scores(self, x: Float[np.ndarray, "n d"]) -> np.ndarray:
        """From one set of features for all steps."""
        parts = [_products(_features(self.features, x[i : i + ROWS], self.scale), self.weights) for i in range(0, len(x), ROWS)]
        return np.concatenate(parts, axis=1) + self.offset[:, None]


def _products(phi: Float[np.ndarray, "n f"], weights: np.ndarray) -> np.ndarray:
    """φ times the weights of each step: steps first, then points, then outputs where there are several."""
    return np.moveaxis(np.tensordot(phi, weights, axes=(1, 1)), 1, 0)


_compiled = eqx.filter_jit(lambda features, x: features(x))


def _features(features: FeatureMap, x: np.ndarray, scale: float) -> np.ndarray:
    """φ in double precision, computed in that of x."""
    with jax.enable_x64(x.dtype == np.float64):
        return np.asarray(_compiled(features, x * x.dtype.type(scale)), np.float64)


class FeatureLearner(PathLearner):
    """Base of the linear models on features, which are standardised on the sample before they are penalised; the offset is not."""

    path, setting = "penalties", "penalty"
    features: Features
    penalties: tuple[float, ...] = eqx.field(static=True, default=(1.0,), converter=positive)

    def tuning(self, budget: int) -> tuple[Learner, ...]:
        """Laws of features like this one, each with a path; where there is no other law, all of the budget goes into the path."""
        laws = [self.features, *self.features.others()][: max(1, budget // PLACES)]
        penalties = path_of(min(budget, PLACES) if len(laws) > 1 else budget)
        return tuple(dataclasses.replace(self, features=law, penalties=penalties) for law in laws)

    @property
    def settings(self) -> Mapping[str, float | str]:
        """The numbers of the features, and the place in the path."""
        return {**self.features.settings, **super().settings}

    def work(self, n: int, r: int) -> float:
        """The features, their second moment and its decomposition."""
        count = self.features.count(r)
        return 3.0 * n * count * r + float(n) * count**2 + 9.0 * count**3

    def prediction_work(self, d: int) -> float:
        """The features of one input."""
        return float(d) * self.features.count(d)

    @abstractmethod
    def _solve(self, phi: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights and offset for standardised features and labels, for each penalty."""

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        """Solve the whole path."""
        sample, x, norm, y = drawn(sampler, n, key)
        features = self.features.draw(x.shape[1], key=keys_of(key)[0])
        phi = np.concatenate([_features(features, x[i : i + ROWS], 1.0) for i in range(0, n, ROWS)])
        mean, spread = phi.mean(axis=0), phi.std(axis=0)
        # A feature that is constant on the sample gets no weight; its spread need not come out as zero.
        alive = spread > 1e-6 * np.maximum(np.abs(mean), spread.max(initial=0.0))
        phi = np.where(alive, (phi - mean) / np.where(alive, spread, 1), 0)
        weights, offset = self._solve(phi, y)
        residuals = _products(phi, weights) + offset[:, None] - y
        losses = 0.5 * np.mean(np.square(residuals).reshape(*residuals.shape[:2], -1).sum(axis=2), axis=1)
        scales = np.where(alive, 1 / np.where(alive, spread, 1), 0)
        weights = weights * (scales if weights.ndim == 2 else scales[:, None])
        model = FeatureModel(features, 1 / norm, weights, offset - np.tensordot(weights, mean, axes=(1, 0)))
        return self.traced(model, losses, sample)


class FeatureRidge(FeatureLearner):
    """Ridge regression of the labels: min ‖Φw + c − y‖² + penalty·f·‖w‖² with f features, so that a penalty is in units of φᵀφ."""

    def _solve(self, phi: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n, f = phi.shape
        offset = np.mean(y, axis=0)
        ridges = [penalty * f for penalty in self.penalties]
        offsets = np.stack([offset] * len(ridges))
        if f <= n:
            return matrix_path(phi.T @ phi, phi.T @ (y - offset), ridges), offsets
        return np.moveaxis(np.tensordot(phi, matrix_path(phi @ phi.T, y - offset, ridges), axes=(0, 1)), 1, 0), offsets


class LogisticRegression(FeatureLearner):
    """Logistic regression by scikit-learn: the mean logistic loss plus penalty·‖w‖²/(2n)·f, each from where the last one ended."""

    def suits(self, outputs: Outputs) -> bool:
        return outputs.kind != "reals"

    def _solve(self, phi: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression as Peer

        labels = y if y.ndim == 1 else np.argmax(y, axis=1)
        seen = np.unique(labels)
        require(len(seen) > 1, f"Logistic regression needs examples of both classes, but the {len(y)} examples are of one.")
        machine = Peer(warm_start=True, max_iter=300, tol=1e-5)
        weights, offsets = [], []
        # From the strongest penalty to the weakest, which is the hardest.
        for penalty in sorted(self.penalties, reverse=True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # separable classes have no optimum; 300 iterations are then the answer
                machine.set_params(C=1 / (penalty * phi.shape[1])).fit(phi, labels)
            if y.ndim == 1:
                weights.append(machine.coef_[0].copy())
                offsets.append(machine.intercept_[0])
            else:
                weights.append(_by_class(machine.coef_.T, seen, y.shape[1], 0.0))
                offsets.append(_by_class(machine.intercept_[None], seen, y.shape[1], -np.inf)[0])
        order = np.argsort(np.argsort([-penalty for penalty in self.penalties]))
        return np.stack(weights)[order], np.array(offsets)[order]


def _by_class(columns: np.ndarray, seen: np.ndarray, count: int, absent: float) -> np.ndarray:
    """Columns of the classes that were seen among all classes; two classes have one column, positive for the second."""
    if len(seen) == 2:
        columns = np.column_stack([-columns[:, 0] / 2, columns[:, 0] / 2])
    found = np.full((len(columns), count), absent if np.isfinite(absent) else -1e6)
    found[:, seen.astype(int)] = columns
    return found
