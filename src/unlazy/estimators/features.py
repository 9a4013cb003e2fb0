"""Random features with a ridge regression on them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Literal

import jax
import numpy as np

from unlazy.core.errors import require, unknown
from unlazy.core.random import normal
from unlazy.estimators.base import Classifier, Regressor, Scoring, random_key
from unlazy.solvers.exact import machine_memory
from unlazy.solvers.ridge import fit_features

KINDS = ("relu", "truncated_relu", "fourier", "tangent")


def random_features(kind: str, X: np.ndarray, w: np.ndarray, b: np.ndarray, w_variance: float, b_variance: float) -> np.ndarray:
    """Features of inputs by m neurons, of which `w` (m d) and `b` (m) are standard normal; their inner products approach a kernel.

    With z = √(w_variance/d)·w·x + √b_variance·b: "relu" and "truncated_relu" are √(w_variance/m)·σ(z), for `NNGP` without its last bias;
    "tangent" adds to "relu" the gradients √(w_variance/m)·σ'(z)·(√(w_variance/d)·x, √b_variance), for `NTK` of depth 1 without its last
    bias. "fourier" is √(2/m)·cos(√w_variance·⟨w, x⟩ + b), for `RBF(w_variance/2)`; there b is uniform on [0, 2π].
    """
    m, d = w.shape
    if kind == "fourier":
        return math.sqrt(2 / m) * np.cos(math.sqrt(w_variance) * (X @ w.T) + b)
    z = math.sqrt(w_variance / d) * (X @ w.T) + math.sqrt(b_variance) * b
    scale = math.sqrt(w_variance / m)
    if kind == "truncated_relu":
        return scale * np.clip(z, 0, 1)
    hidden = scale * np.maximum(z, 0)
    if kind == "relu":
        return hidden
    inputs = np.column_stack([math.sqrt(w_variance / d) * X, np.full(len(X), math.sqrt(b_variance))])
    slopes = scale * (z > 0)[:, :, None] * inputs[:, None, :]
    return np.column_stack([hidden, slopes.reshape(len(X), -1)])


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class _RandomFeatures(Scoring):
    """Features that are drawn and never learned, and a ridge regression on them.

    Parameters
    ----------
    features : "relu", "truncated_relu", "fourier" or "tangent"
        See `random_features`.
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
    """

    features: Literal["relu", "truncated_relu", "fourier", "tangent"] = "relu"
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
        self._check(n, d)
        key_w, key_b = jax.random.split(random_key(self.random_state))
        with jax.enable_x64(True):
            self.w_ = np.asarray(normal(key_w, (self.width, d)))
            uniform = np.asarray(jax.random.uniform(key_b, (self.width,), np.float32), np.float64)
            self.b_ = 2 * math.pi * uniform if self.features == "fourier" else np.asarray(normal(key_b, (self.width,)))
        ridges = self.ridges if isinstance(self.ridge, str) else float(self.ridge)
        fit = fit_features(self._transform(X), Y, ridges, weight=weight, intercept=self.fit_intercept)
        self.coef_, self.intercept_, self.ridge_ = fit.coefficients, fit.intercept, fit.ridge

    def _check(self, n: int, d: int) -> None:
        if self.features not in KINDS:
            raise unknown("kind of random features", str(self.features), KINDS)
        require(
            isinstance(self.width, int | np.integer) and self.width > 0, f"width must be a positive whole number, but is {self.width!r}."
        )
        if isinstance(self.ridge, str) and self.ridge != "loo":
            raise unknown("ridge", self.ridge, ["loo"])
        variances = {"w_variance": self.w_variance, "b_variance": self.b_variance}
        if self.gamma is not None:
            variances["gamma"] = self.gamma
        for name, value in variances.items():
            require(bool(0 <= value < math.inf), f"{name} must be a finite number ≥ 0, but is {value}.")
        p = self.width * (d + 2 if self.features == "tangent" else 1)
        need, have = 8 * (3 * n * p + 3 * min(n, p) ** 2), machine_memory() if self.memory is None else self.memory
        require(
            need <= have,
            f"{p:,} features of {n:,} samples need {need / 1e9:.3g} GB of memory, but {have / 1e9:.3g} GB may be used. Lower the width.",
        )

    def _transform(self, X: np.ndarray) -> np.ndarray:
        w_variance = self.w_variance
        if self.features == "fourier":
            w_variance = 2 * (1 / X.shape[1] if self.gamma is None else self.gamma)
        return random_features(self.features, X.astype(np.float64), self.w_, self.b_, w_variance, self.b_variance)

    def _scores(self, X: np.ndarray) -> np.ndarray:
        rows = max(1, 2**23 // len(self.coef_))
        parts = [self._transform(X[i : i + rows]) @ self.coef_ for i in range(0, len(X), rows)]
        return np.concatenate(parts) + self.intercept_


class RandomFeatureRegressor(Regressor, _RandomFeatures):
    """Ridge regression on random features."""


class RandomFeatureClassifier(Classifier, _RandomFeatures):
    """Ridge regression of labels of ±1 on random features, each class against the rest."""
