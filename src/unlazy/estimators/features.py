"""Random features with a ridge regression on them."""

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
    """Features that are drawn and never learned, and a ridge regression on them.

    Parameters
    ----------
    features : str
        A name of `unlazy.core.activations.ACTIVATIONS` for one such neuron a feature, "fourier" for
        random cosines, or "tangent" for the gradients of a random ReLU network. Inner products of
        features approach the kernels `NNGP` and `NTK` of depth 1 without their last bias, and
        `RBF(gamma)` for "fourier": see `unlazy.kernels.feature_maps`.
    width : int
        Number of neurons. "tangent" makes d + 2 features of each.
    w_variance, b_variance : float
        Variances of weights and biases.
    gamma : float, optional
        Of the "fourier" features, which approach the kernel exp(−gamma·‖x − z‖²): by default 1/d.
    ridge, ridges, fit_intercept, memory
        As for the kernels.
    random_state : int, RandomState instance or None
        Draws the features.

    `map_` is the feature map that was drawn, whose features are times √(w_variance/width), or
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
            f"width must be a positive whole number, but is {self.width!r}.",
        )
        if isinstance(self.ridge, str) and self.ridge != "loo":
            raise unknown("ridge", self.ridge, ["loo"])
        require_variances(self.w_variance, self.b_variance)
        gamma = 1 / d if self.gamma is None else self.gamma
        require(bool(0 < gamma < math.inf), f"gamma must be a finite number > 0, but is {gamma}.")
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
        need, have = (
            8 * (3 * n * p + 3 * min(n, p) ** 2),
            machine_memory() if self.memory is None else self.memory,
        )
        require(
            need <= have,
            f"{p:,} features of {n:,} samples need {need / 1e9:.3g} GB of memory, but "
            f"{have / 1e9:.3g} GB may be used. Lower the width.",
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
    """Ridge regression of labels of ±1 on random features, each class against the rest."""
