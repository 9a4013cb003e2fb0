"""Scale inputs to unit norm."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Self

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.core.metrics import Outputs
from unlazy.learners.base import Call, Keys, Learner, Trace, at_once, keys_of
from unlazy.learners.holdout import with_sample
from unlazy.networks.base import Model, Scores
from unlazy.tasks.base import Batch, Family, Sampler


class Scaled(Model):
    """f(scale·x)."""

    model: Model
    scale: Float[Array, "*s"]

    def __call__(self, x: Float[Array, "n *d"]) -> Scores:
        return self.model(x * self.scale)

    def enter(self, basis: Float[Array, "r d"]) -> Scaled:
        """Return the model for coordinates in `basis`, which commutes with scaling."""
        return Scaled(self.model.enter(basis), self.scale)


class UnitNorm(Learner):
    """`learner` on inputs divided by their root mean square norm.

    Thus learning rates are comparable between tasks.
    """

    learner: Learner

    @classmethod
    def of(cls, learner: Learner) -> Self:
        """Wrap a learner, in its own precision."""
        require(not learner.draws_fresh, "UnitNorm requires a learner on a fixed sample.")
        require(not learner.on_host, "Learners on the host scale inputs themselves.")
        return cls(learner, precision=learner.precision)

    def suited(self, family: Family) -> UnitNorm:
        return UnitNorm.of(self.learner.suited(family))

    def suits(self, outputs: Outputs) -> bool:
        return self.learner.suits(outputs)

    def recorded(self, n: int) -> tuple[int, ...]:
        return self.learner.recorded(n)

    def tuning(self, budget: int) -> tuple[Learner, ...]:
        return tuple(UnitNorm.of(learner) for learner in self.learner.tuning(budget))

    def options(self, n: int) -> dict[int, Learner]:
        return {step: UnitNorm.of(learner) for step, learner in self.learner.options(n).items()}

    @property
    def settings(self) -> Mapping[str, float | str]:
        return self.learner.settings

    def work(self, n: int, r: int) -> float:
        return self.learner.work(n, r)

    def prediction_work(self, d: int) -> float:
        return self.learner.prediction_work(d)

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        return UnitNorm.of(self.learner.suited_to_outputs(sampler.outputs)).fit_in_parts(
            sampler, n, key, at_once
        )

    def fit_in_parts(self, sampler: Sampler, n: int, key: Keys, call: Call) -> Trace:
        scaled, scale, seen = call(UnitScale(n), sampler, key)
        trace = self.learner.fit_in_parts(scaled, n, key, call)
        result: Trace = call(_Unscale(), trace, scale, seen)
        return result


class UnitScale(eqx.Module):
    """Return a sampler of scaled inputs, the scale, and the original sample."""

    n: int = eqx.field(static=True)

    def __call__(
        self, sampler: Sampler, key: PRNGKeyArray
    ) -> tuple[Sampler, Float[Array, ""], Batch]:
        sample = sampler.draw(self.n, keys_of(key)[1])
        squared = jnp.mean(jnp.sum(jnp.square(sample.x).reshape(self.n, -1), axis=1))
        scale = 1 / jnp.sqrt(jnp.maximum(squared, jnp.finfo(squared.dtype).tiny))
        return with_sample(sampler, Batch(sample.x * scale, sample.y)), scale, sample


class _Unscale(eqx.Module):
    def __call__(self, trace: Trace, scale: Float[Array, ""], sample: Batch) -> Trace:
        seen = Batch(sample.x[: len(trace.seen.y)], trace.seen.y)
        return dataclasses.replace(
            trace, models=Scaled(trace.models, jnp.full(len(trace.steps), scale)), seen=seen
        )
