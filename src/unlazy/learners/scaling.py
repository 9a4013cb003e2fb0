"""Inputs of unit norm for learners whose numbers are made for them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Self

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.errors import require
from unlazy.learners.base import Learner, Trace, keys_of
from unlazy.learners.holdout import FixedSample
from unlazy.networks import Model
from unlazy.tasks.base import Batch, Sampler


class Scaled(Model):
    """f(scale·x)."""

    model: Model
    scale: Float[Array, ""]

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """Scores of a batch."""
        return self.model(x * self.scale)

    def enter(self, basis: Float[Array, "r d"]) -> Scaled:
        """Scaling commutes with coordinates."""
        return Scaled(self.model.enter(basis), self.scale)


class UnitNorm(Learner):
    """`learner` on inputs divided by the root of their mean squared norm in the sample, so that its step sizes suit any task."""

    learner: Learner

    @classmethod
    def of(cls, learner: Learner) -> Self:
        """Wrap a learner, in its own precision."""
        require(not getattr(learner, "fresh", False), "A learner on fresh draws has no sample to take the norm from.")
        return cls(learner, precision=learner.precision)

    @property
    def on_host(self) -> bool:
        """As the learner."""
        return self.learner.on_host

    def recorded(self, n: int) -> tuple[int, ...]:
        """The learner's."""
        return self.learner.recorded(n)

    def tuning(self, budget: int) -> tuple[Learner, ...]:
        """The learner's."""
        return tuple(UnitNorm.of(learner) for learner in self.learner.tuning(budget))

    def options(self, n: int) -> dict[int, Learner]:
        """The learner's."""
        return {step: UnitNorm.of(learner) for step, learner in self.learner.options(n).items()}

    @property
    def settings(self) -> Mapping[str, float | str]:
        """The learner's."""
        return self.learner.settings

    def work(self, n: int, r: int) -> float:
        """The learner's."""
        return self.learner.work(n, r)

    def prediction_work(self, d: int) -> float:
        """The learner's."""
        return self.learner.prediction_work(d)

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        """Scale and learn."""
        sample = sampler.draw(n, keys_of(key)[1])
        squared = jnp.mean(jnp.sum(jnp.square(sample.x), axis=1))
        scale = 1 / jnp.sqrt(jnp.maximum(squared, jnp.finfo(squared.dtype).tiny))
        scaled = Sampler(FixedSample(Batch(sample.x * scale, sample.y)), sampler.dimension, sampler.basis)
        trace = self.learner.fit(scaled, n, key=key)
        seen = Batch(sample.x[: len(trace.seen.y)], trace.seen.y)
        return dataclasses.replace(trace, models=Scaled(trace.models, jnp.full(len(trace.steps), scale)), seen=seen)
