"""Holding out: a learner is given a part of the sample, and its models are scored on the rest. This is how learners are tuned."""

from __future__ import annotations

import dataclasses
from typing import Self

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from unlazy.errors import require
from unlazy.learners.base import Learner, Trace, keys_of
from unlazy.losses import hinge
from unlazy.probes import accuracy
from unlazy.tasks.base import Batch, Sampler, draw


class FixedSample(eqx.Module):
    """A draw that always hands out the first examples of one sample."""

    sample: Batch

    def __call__(self, n: int, key: PRNGKeyArray) -> Batch:
        """The first n."""
        held = len(self.sample.y)
        require(n <= held, f"Only {held} examples are there, but {n} were asked for.")
        return Batch(self.sample.x[:n], self.sample.y[:n])


class HoldOut(Learner):
    """`learner` on the first examples of a sample of n; `share` of them are held out, and score its models.

    The notes of the trace are `validation_accuracy` (percent) and `validation_loss` (hinge) of each recorded model. The sample is that
    which the learner itself would draw under the same key, so that a choice made here and the learner chosen see n examples altogether. A
    learner on fresh draws gets fresh draws.
    """

    learner: Learner
    share: float = eqx.field(static=True, default=0.2)

    @classmethod
    def of(cls, learner: Learner, share: float = 0.2) -> Self:
        """Wrap a learner, in its own precision."""
        return cls(learner, share, precision=learner.precision)

    def __check_init__(self) -> None:
        """Refuse a share that leaves nothing on one side, and a precision that is not the learner's."""
        require(0 < self.share < 1, f"share is the part that is held out, between 0 and 1, but is {self.share}.")
        require(self.precision == self.learner.precision, "HoldOut runs in the precision of its learner: make it with `HoldOut.of`.")

    def _given(self, n: int) -> int:
        given = n - max(1, round(self.share * n))
        require(given > 0, f"Of n={n} examples none would be left to learn from.")
        return given

    @property
    def on_host(self) -> bool:
        """As the learner."""
        return self.learner.on_host

    def recorded(self, n: int) -> tuple[int, ...]:
        """The learner's steps on the examples that it is given."""
        return self.learner.recorded(self._given(n))

    def options(self, n: int) -> dict[int, Learner]:
        """The learner's."""
        return self.learner.options(self._given(n))

    def work(self, n: int, r: int) -> float:
        """The learner's."""
        return self.learner.work(self._given(n), r)

    def prediction_work(self, d: int) -> float:
        """The learner's."""
        return self.learner.prediction_work(d)

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        """Learn and score."""
        given = self._given(n)
        sample = draw(sampler, n, keys_of(key)[1])
        # Fresh draws are independent of this sample, of which such a learner sees nothing.
        fresh = getattr(self.learner, "fresh", False)
        source = sampler if fresh else Sampler(FixedSample(sample), sampler.dimension, sampler.basis)
        trace = self.learner.fit(source, given, key=key)
        z, y = sample.x[given:], sample.y[given:]
        scores = trace.models.scores(z if sampler.basis is None else z @ sampler.basis)
        right = jnp.stack([accuracy(score, y) for score in scores])
        lost = jnp.stack([jnp.mean(hinge(score, y)) for score in scores])
        return dataclasses.replace(trace, notes={"validation_accuracy": right, "validation_loss": lost})
