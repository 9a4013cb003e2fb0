"""Learners on fixed features of the inputs, such as a kernel on random filters."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Self

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.core.metrics import Outputs
from unlazy.kernels.feature_maps import FeatureMap, Features, featured
from unlazy.learners.base import Learner, Trace, keys_of
from unlazy.learners.holdout import FixedSample
from unlazy.learners.path import PathModel, drawn
from unlazy.networks.base import Model
from unlazy.tasks.base import Batch, Sampler


class FeaturedPath(PathModel):
    """The models of a path on standardized features of the inputs."""

    model: Model
    features: FeatureMap
    scale: float
    mean: np.ndarray
    spread: np.ndarray

    def at(self, index: int) -> Self:
        return dataclasses.replace(self, model=self.model.at(index))

    def path_scores(self, x: Float[np.ndarray, "n d"]) -> np.ndarray:
        phi = (featured(self.features, x * x.dtype.type(self.scale)) - self.mean) / self.spread
        return np.asarray(self.model.scores(jnp.asarray(phi.astype(x.dtype))))


class OnFeatures(Learner):
    """`learner` on standardized `features` of the inputs, on the host.

    Inputs are divided by their root mean square norm. Features are drawn per trial.
    """

    learner: Learner
    features: Features

    @classmethod
    def of(cls, learner: Learner, features: Features) -> Self:
        """Wrap a learner, in its own precision."""
        require(learner.on_host, "OnFeatures requires a learner that runs on the host.")
        return cls(learner, features, precision=learner.precision)

    @property
    def on_host(self) -> bool:
        return True

    def suits(self, outputs: Outputs) -> bool:
        return self.learner.suits(outputs)

    def recorded(self, n: int) -> tuple[int, ...]:
        return self.learner.recorded(n)

    def tuning(self, budget: int) -> tuple[Learner, ...]:
        return tuple(
            OnFeatures.of(learner, self.features) for learner in self.learner.tuning(budget)
        )

    def options(self, n: int) -> dict[int, Learner]:
        return {
            step: OnFeatures.of(learner, self.features)
            for step, learner in self.learner.options(n).items()
        }

    @property
    def settings(self) -> Mapping[str, float | str]:
        return {**self.features.settings, **self.learner.settings}

    def work(self, n: int, r: int) -> float:
        count = self.features.count(r)
        return 4.0 * n * count * r + self.learner.work(n, count)

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        sample, x, norm, _ = drawn(sampler, n, key)
        features = self.features.for_shape(sampler.input_shape).draw(
            x.shape[1], key=keys_of(key)[0]
        )
        phi = featured(features, x)
        mean, spread = (
            phi.mean(axis=0),
            np.maximum(phi.std(axis=0), 1e-6 * max(1e-30, float(np.abs(phi).max()))),
        )
        rows: Array = jnp.asarray(((phi - mean) / spread).astype(x.dtype))
        inner = Sampler(FixedSample(Batch(rows, sample.y)), phi.shape[1], None, sampler.outputs)
        trace = self.learner.fit(inner, n, key=key)
        models = FeaturedPath(trace.models, features, 1 / norm, mean, spread)
        return dataclasses.replace(
            trace, models=models, seen=Batch(sample.x[: len(trace.seen.y)], trace.seen.y)
        )
