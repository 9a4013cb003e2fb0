"""Holding out: a learner is given a part of the sample, and its models are scored on the rest.

This is how learners are tuned.
"""

from __future__ import annotations

import dataclasses
from typing import Self

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.deprecation import renamed_parameters
from unlazy.core.errors import require
from unlazy.core.losses import example_losses
from unlazy.core.metrics import Outputs, metric_of
from unlazy.learners.base import Call, Keys, Learner, Trace, at_once, keys_of
from unlazy.tasks.base import Batch, Family, Sampler, draw


class FixedSample(eqx.Module):
    """A draw that always hands out the first examples of one sample."""

    sample: Batch

    def __call__(self, n: int, key: PRNGKeyArray) -> Batch:
        """The first n."""
        held = len(self.sample.y)
        require(n <= held, f"Only {held} examples are there, but {n} were asked for.")
        return Batch(self.sample.x[:n], self.sample.y[:n])


def with_sample(sampler: Sampler, sample: Batch) -> Sampler:
    """The sampler that hands out this sample."""
    return Sampler(
        FixedSample(sample), sampler.dimension, sampler.basis, sampler.outputs, sampler.shape
    )


@renamed_parameters(share="validation_fraction")
class HoldOut(Learner):
    """Fit `learner` on part of a sample of n; score its models on the held-out rest.

    `validation_fraction`: the fraction of the n examples that is held out.

    The notes of the trace are the metric of such outputs (`validation_accuracy` in percent, or
    `validation_squared_error`) and `validation_loss` (hinge, softmax or squared) of each recorded
    model. The sample is that which the learner itself would draw under the same key, so that a
    choice made here and the learner chosen see n examples altogether. A learner on fresh draws gets
    fresh draws.
    """

    learner: Learner
    validation_fraction: float = eqx.field(static=True, default=0.2, metadata={"key": "share"})

    @classmethod
    def of(cls, learner: Learner, validation_fraction: float = 0.2) -> Self:
        """Wrap a learner, in its own precision."""
        return cls(learner, validation_fraction, precision=learner.precision)

    def __check_init__(self) -> None:
        """Check the fraction, and that the precision is the learner's."""
        require(
            0 < self.validation_fraction < 1,
            f"validation_fraction must be between 0 and 1, got {self.validation_fraction}.",
        )
        require(
            self.precision == self.learner.precision,
            "HoldOut runs in the precision of its learner: make it with `HoldOut.of`.",
        )

    def _given(self, n: int) -> int:
        given = n - max(1, round(self.validation_fraction * n))
        require(given > 0, f"Of n={n} examples none would be left to learn from.")
        return given

    @property
    def on_host(self) -> bool:
        return self.learner.on_host

    def suited(self, family: Family) -> HoldOut:
        return HoldOut.of(self.learner.suited(family), self.validation_fraction)

    def suits(self, outputs: Outputs) -> bool:
        return self.learner.suits(outputs)

    def recorded(self, n: int) -> tuple[int, ...]:
        return self.learner.recorded(self._given(n))

    def options(self, n: int) -> dict[int, Learner]:
        return self.learner.options(self._given(n))

    def work(self, n: int, r: int) -> float:
        return self.learner.work(self._given(n), r)

    def prediction_work(self, d: int) -> float:
        return self.learner.prediction_work(d)

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        if not self.on_host:
            return self.fit_in_parts(sampler, n, key, at_once)
        sample = draw(sampler, n, keys_of(key)[1])
        given = self._given(n)
        trace = self.learner.fit(with_sample(sampler, sample), given, key=key)
        return scored(
            trace, Batch(sample.x[given:], sample.y[given:]), sampler.basis, sampler.outputs
        )

    def fit_in_parts(self, sampler: Sampler, n: int, key: Keys, call: Call) -> Trace:
        given = self._given(n)
        source, rest = call(_Split(n, given, self.learner.draws_fresh), sampler, key)
        trace = self.learner.fit_in_parts(source, given, key, call)
        result: Trace = call(_Score(sampler.outputs), trace, rest, sampler.basis)
        return result


class _Split(eqx.Module):
    """A sampler for the part that is given, and the part that is held out."""

    n: int = eqx.field(static=True)
    given: int = eqx.field(static=True)
    fresh: bool = eqx.field(static=True)

    def __call__(self, sampler: Sampler, key: PRNGKeyArray) -> tuple[Sampler, Batch]:
        sample = sampler.draw(self.n, keys_of(key)[1])
        # Fresh draws are independent of this sample, of which such a learner sees nothing.
        source = sampler if self.fresh else with_sample(sampler, sample)
        return source, Batch(sample.x[self.given :], sample.y[self.given :])


class _Score(eqx.Module):
    outputs: Outputs = eqx.field(static=True)

    def __call__(self, trace: Trace, rest: Batch, basis: Float[Array, "r d"] | None) -> Trace:
        return scored(trace, rest, basis, self.outputs)


def scored(trace: Trace, rest: Batch, basis: Float[Array, "r d"] | None, outputs: Outputs) -> Trace:
    """The trace with notes on how its models do on other examples."""
    metric = metric_of(outputs)
    loss = {"signs": "hinge", "classes": "softmax", "reals": "squared"}[outputs.kind]
    scores = trace.models.scores(rest.x, basis)
    good = jnp.stack([metric(score, rest.y) for score in scores])
    lost = jnp.stack([jnp.mean(example_losses(loss, score, rest.y)) for score in scores])
    return dataclasses.replace(
        trace, notes={f"validation_{metric.name}": good, "validation_loss": lost}
    )
