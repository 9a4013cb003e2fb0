"""Ridge regression on random features."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Literal

import jax
import numpy as np

from unlazy.core.errors import require, unknown
from unlazy.estimators.base import Classifier, Regressor, Scoring, random_key
from unlazy.kernels.feature_maps import FOURIER, Features, RandomFeatures, RandomGradients, featured
from unlazy.kernels.products import require_variances
from unlazy.solvers.exact import machine_memory
from unlazy.solvers.ridge import fit_features


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class _RandomFeatures(Scoring):
    """Ridge regression on random features that are not trained.

    Parameters
    ----------
    features : str
        A name in `unlazy.core.activations.ACTIVATIONS` for one neuron per feature, "fourier" for
        random cosines, or "tangent" for the gradients of a random ReLU network. As the width
        grows, inner products of features converge to kernels: `NNGP` for neurons and `NTK` for
        "tangent", both of depth 1 without the last bias, and `RBF(gamma)` for "fourier".
        See `unlazy.kernels.feature_maps`.
    width : int
        Number of neurons. "tangent" has d + 2 features per neuron.
    w_variance, b_variance : float
        Variances of weights and biases.
    gamma : float, optional
        Parameter of the limit exp(−gamma·‖x − z‖²) of "fourier", by default 1/d.
    ridge, ridges, fit_intercept, memory
        As in the kernel estimators.
    random_state : int, RandomState instance or None
        Random state for drawing the features.

    `map_` is the drawn feature map. Its features are multiplied by √(w_variance/width), or by
    √(1/width) for "fourier".
    """

    features: str = "relu"
    width: int = 500
    w_variance: float = 2.0
    b_variance: float = 0.1
    gamma: float | None = None
    ridge: float | Literal["loo"] = "loo"
    ridges: Sequence[float] | None = None
    fit_intercept: bool = True
    memory: float | None = None
    random_state: Any = None

    def _fit_scores(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> None:
        n, d = X.shape
        distribution = self._distribution(n, d)
        with jax.enable_x64(True):
            self.map_ = jax.tree.map(
                np.asarray, distribution.draw(d, key=random_key(self.random_state))
            )
        self._scale = math.sqrt((1.0 if self.features == FOURIER else self.w_variance) / self.width)
        ridges = self.ridges if isinstance(self.ridge, str) else float(self.ridge)
        fit = fit_features(
            self._transform(X), Y, ridges, weight=weight, intercept=self.fit_intercept
        )
        self.coef_, self.intercept_, self.ridge_ = fit.coefficients, fit.intercept, fit.ridge

    def _distribution(self, n: int, d: int) -> Features:
        kinds = (*RandomFeatures.kinds(), "tangent")
        if self.features not in kinds:
            raise unknown("kind of random features", str(self.features), kinds)
        require(
            isinstance(self.width, int | np.integer) and self.width > 0,
            f"width must be a positive integer, got {self.width!r}.",
        )
        if isinstance(self.ridge, str) and self.ridge != "loo":
            raise unknown("ridge", self.ridge, ["loo"])
        require_variances(self.w_variance, self.b_variance)
        gamma = 1 / d if self.gamma is None else self.gamma
        require(bool(0 < gamma < math.inf), f"gamma must be finite and > 0, got {gamma}.")
        distribution: Features
        if self.features == FOURIER:
            distribution = RandomFeatures(FOURIER, int(self.width), math.sqrt(2 * gamma))
        else:
            scales = math.sqrt(self.w_variance / d), math.sqrt(self.b_variance)
            distribution = (
                RandomGradients("relu", int(self.width), *scales)
                if self.features == "tangent"
                else RandomFeatures(self.features, int(self.width), *scales)
            )
        p = distribution.count(d)
        required, available = (
            8 * (3 * n * p + 3 * min(n, p) ** 2),
            machine_memory() if self.memory is None else self.memory,
        )
        require(
            required <= available,
            f"{p:,} features of {n:,} samples need {required / 1e9:.3g} GB of memory; the limit is "
            f"{available / 1e9:.3g} GB. Lower the width.",
        )
        return distribution

    def _transform(self, X: np.ndarray) -> np.ndarray:
        return self._scale * featured(self.map_, X.astype(np.float64))

    def _scores(self, X: np.ndarray) -> np.ndarray:
        rows = max(1, 2**23 // len(self.coef_))
        parts = [self._transform(X[i : i + rows]) @ self.coef_ for i in range(0, len(X), rows)]
        result: np.ndarray = np.concatenate(parts) + self.intercept_
        return result


class RandomFeatureRegressor(Regressor, _RandomFeatures):
    """Ridge regression on random features."""


class RandomFeatureClassifier(Classifier, _RandomFeatures):
    """One-vs-rest classification by ridge regression of labels ±1 on random features."""
