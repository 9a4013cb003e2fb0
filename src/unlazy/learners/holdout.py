"""Hold-out validation, used for tuning."""

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
    """A draw that always returns the first examples of one sample."""

    sample: Batch

    def __call__(self, n: int, key: PRNGKeyArray) -> Batch:
        """Return the first n examples."""
        size = len(self.sample.y)
        require(n <= size, f"n must be at most the sample size {size}, got {n}.")
        return Batch(self.sample.x[:n], self.sample.y[:n])


def with_sample(sampler: Sampler, sample: Batch) -> Sampler:
    """Return the sampler with a fixed sample."""
    return Sampler(
        FixedSample(sample), sampler.dimension, sampler.basis, sampler.outputs, sampler.shape
    )


@renamed_parameters(share="validation_fraction")
class HoldOut(Learner):
    """Fit `learner` to a part of n examples and validate its models on the others.

    `validation_fraction` of the examples is held out. The notes of the trace are, for each recorded
    model, `validation_accuracy` in percent or `validation_squared_error`, and `validation_loss`
    (hinge, softmax or squared). The sample is the one that the learner gets for the same key, so
    selection and final fit together use n examples. Learners on fresh data get fresh data.
    """

    learner: Learner
    validation_fraction: float = eqx.field(static=True, default=0.2, metadata={"key": "share"})

    @classmethod
    def of(cls, learner: Learner, validation_fraction: float = 0.2) -> Self:
        """Wrap a learner, in its own precision."""
        return cls(learner, validation_fraction, precision=learner.precision)

    def __check_init__(self) -> None:
        require(
            0 < self.validation_fraction < 1,
            f"validation_fraction must be between 0 and 1, got {self.validation_fraction}.",
        )
        require(
            self.precision == self.learner.precision,
            "HoldOut must have the precision of its learner; use `HoldOut.of`.",
        )

    def _given(self, n: int) -> int:
        given = n - max(1, round(self.validation_fraction * n))
        require(given > 0, f"n is too small: no training examples remain, got {n}.")
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
    """Split a sample; return a sampler of the training part, and the held-out part."""

    n: int = eqx.field(static=True)
    given: int = eqx.field(static=True)
    fresh: bool = eqx.field(static=True)

    def __call__(self, sampler: Sampler, key: PRNGKeyArray) -> tuple[Sampler, Batch]:
        sample = sampler.draw(self.n, keys_of(key)[1])
        # Fresh draws are independent of this sample.
        source = sampler if self.fresh else with_sample(sampler, sample)
        return source, Batch(sample.x[self.given :], sample.y[self.given :])


class _Score(eqx.Module):
    outputs: Outputs = eqx.field(static=True)

    def __call__(self, trace: Trace, rest: Batch, basis: Float[Array, "r d"] | None) -> Trace:
        return scored(trace, rest, basis, self.outputs)


def scored(trace: Trace, rest: Batch, basis: Float[Array, "r d"] | None, outputs: Outputs) -> Trace:
    """Return the trace with the metric and loss of its models on other examples."""
    metric = metric_of(outputs)
    loss = {"signs": "hinge", "classes": "softmax", "reals": "squared"}[outputs.kind]
    scores = trace.models.scores(rest.x, basis)
    values = jnp.stack([metric(score, rest.y) for score in scores])
    losses = jnp.stack([jnp.mean(example_losses(loss, score, rest.y)) for score in scores])
    return dataclasses.replace(
        trace, notes={f"validation_{metric.name}": values, "validation_loss": losses}
    )
