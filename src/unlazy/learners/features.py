"""Ridge and logistic regression on raw inputs or random features."""

from __future__ import annotations

import dataclasses
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Self

import equinox as eqx
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.core.metrics import Outputs
from unlazy.kernels.feature_maps import ROWS, FeatureMap, Features, featured
from unlazy.learners.base import Learner, Trace, keys_of
from unlazy.learners.path import PATH_LENGTH, PathLearner, PathModel, drawn, path_of, positive
from unlazy.solvers.policy import feature_path
from unlazy.tasks.base import Sampler


class FeatureModel(PathModel):
    """f(x) = ⟨weights, φ(scale·x)⟩ + offset.

    The models of a path differ in weights and offset.
    """

    features: FeatureMap
    scale: float
    weights: np.ndarray  # steps f, or steps f o
    offset: np.ndarray  # steps, or steps o

    def at(self, index: int) -> Self:
        return dataclasses.replace(
            self, weights=self.weights[index][None], offset=self.offset[index][None]
        )

    def path_scores(self, x: Float[np.ndarray, "n d"]) -> np.ndarray:
        scaled = x * x.dtype.type(self.scale)
        parts = [
            _products(featured(self.features, scaled[i : i + ROWS]), self.weights)
            for i in range(0, len(x), ROWS)
        ]
        result: np.ndarray = np.concatenate(parts, axis=1) + self.offset[:, None]
        return result


def _products(phi: Float[np.ndarray, "n f"], weights: np.ndarray) -> np.ndarray:
    """Return φ·weights with axes steps, points and, if there are several, outputs."""
    return np.moveaxis(np.tensordot(phi, weights, axes=(1, 1)), 1, 0)


class FeatureLearner(PathLearner):
    """Base class of linear models on features.

    Features are standardized on the sample. The offset is not penalized.
    """

    path, setting = "penalties", "penalty"
    features: Features
    penalties: tuple[float, ...] = eqx.field(static=True, default=(1.0,), converter=positive)

    def tuning(self, budget: int) -> tuple[Learner, ...]:
        """Return these features and similar ones, each with a path of penalties."""
        distributions = [self.features, *self.features.others()][: max(1, budget // PATH_LENGTH)]
        penalties = path_of(min(budget, PATH_LENGTH) if len(distributions) > 1 else budget)
        return tuple(
            dataclasses.replace(self, features=distribution, penalties=penalties)
            for distribution in distributions
        )

    @property
    def settings(self) -> Mapping[str, float | str]:
        return {**self.features.settings, **super().settings}

    def work(self, n: int, r: int) -> float:
        """Estimate the features, their second moment and its decomposition."""
        count = self.features.count(r)
        return 3.0 * n * count * r + float(n) * count**2 + 9.0 * count**3

    def prediction_work(self, d: int) -> float:
        return float(d) * self.features.count(d)

    @abstractmethod
    def _solve(self, phi: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return weights and offset on standardized features for each penalty."""

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        sample, x, norm, y = drawn(sampler, n, key)
        features = self.features.for_shape(sampler.input_shape).draw(
            x.shape[1], key=keys_of(key)[0]
        )
        phi = featured(features, x)
        mean, spread = phi.mean(axis=0), phi.std(axis=0)
        # Features that are constant up to rounding get no weight.
        alive = spread > 1e-6 * np.maximum(np.abs(mean), spread.max(initial=0.0))
        phi = np.where(alive, (phi - mean) / np.where(alive, spread, 1), 0)
        weights, offset = self._solve(phi, y)
        residuals = _products(phi, weights) + offset[:, None] - y
        losses = 0.5 * np.mean(
            np.square(residuals).reshape(*residuals.shape[:2], -1).sum(axis=2), axis=1
        )
        scales = np.where(alive, 1 / np.where(alive, spread, 1), 0)
        weights = weights * (scales if weights.ndim == 2 else scales[:, None])
        model = FeatureModel(
            features, 1 / norm, weights, offset - np.tensordot(weights, mean, axes=(1, 0))
        )
        return self.traced(model, losses, sample)


class FeatureRidge(FeatureLearner):
    """Ridge regression of the labels, min ‖Φw + c − y‖² + penalty·f·‖w‖² for f features."""

    def _solve(self, phi: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        offset = np.mean(y, axis=0)
        ridges = [penalty * phi.shape[1] for penalty in self.penalties]
        return feature_path(phi, y - offset, ridges), np.stack([offset] * len(ridges))


class LogisticRegression(FeatureLearner):
    """Logistic regression by scikit-learn, min mean logistic loss + penalty·f·‖w‖²/(2n).

    Each penalty starts from the solution for the previous one.
    """

    def suits(self, outputs: Outputs) -> bool:
        return outputs.kind != "reals"

    def _solve(self, phi: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression as Peer

        labels = y if y.ndim == 1 else np.argmax(y, axis=1)
        seen = np.unique(labels)
        require(
            len(seen) > 1,
            f"LogisticRegression needs examples of both classes, got {len(y)} examples of one.",
        )
        machine = Peer(warm_start=True, max_iter=300, tol=1e-5)
        weights, offsets = [], []
        # From the largest penalty to the smallest, which converges slowest.
        for penalty in sorted(self.penalties, reverse=True):
            with warnings.catch_warnings():
                # Separable classes have no optimum; the result is that of 300 iterations.
                warnings.simplefilter("ignore", ConvergenceWarning)
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
    """Return columns of all classes from those with examples; two classes share one column."""
    if len(seen) == 2:
        columns = np.column_stack([-columns[:, 0] / 2, columns[:, 0] / 2])
    result = np.full((len(columns), count), absent if np.isfinite(absent) else -1e6)
    result[:, seen.astype(int)] = columns
    return result
