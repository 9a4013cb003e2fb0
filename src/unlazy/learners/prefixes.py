"""Learners on growing prefixes of one sample: the recorded steps are the numbers of examples, so that one trial is a learning curve."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.core.metrics import Outputs
from unlazy.learners.base import Call, Learner, Trace, at_once, keys_of
from unlazy.networks.base import Model, Scores
from unlazy.tasks.base import Batch, Family, Sampler, draw


def _sizes(values: Any) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


def _require_sizes(sizes: tuple[int, ...]) -> None:
    require(all(size > 0 for size in sizes) and list(sizes) == sorted(set(sizes)), f"sizes must be positive and increase, but are {sizes}.")


class OnPrefixes(Learner):
    """Any learner on the first examples of one sample, as many as each of `sizes` says: what is kept is the last model of each fit."""

    learner: Learner
    sizes: tuple[int, ...] = eqx.field(static=True, converter=_sizes)

    @classmethod
    def of(cls, learner: Learner, sizes: Any) -> Self:
        """With the learner's own precision."""
        return cls(learner, sizes, precision=learner.precision)

    def __check_init__(self) -> None:
        """Refuse streams, which have no prefixes but their steps."""
        _require_sizes(self.sizes)
        require(bool(self.sizes), "There must be at least one size.")
        require(not self.learner.draws_fresh, "A learner on fresh examples has a model for every number of them: record its steps instead.")
        require(self.precision == self.learner.precision, "Make it with `OnPrefixes.of`, which takes over the learner's precision.")

    @property
    def on_host(self) -> bool:
        return self.learner.on_host

    def suited(self, family: Family) -> Self:
        return dataclasses.replace(self, learner=self.learner.suited(family))

    def suited_to_outputs(self, outputs: Outputs) -> Self:
        return dataclasses.replace(self, learner=self.learner.suited_to_outputs(outputs))

    def suits(self, outputs: Outputs) -> bool:
        return self.learner.suits(outputs)

    def recorded(self, n: int) -> tuple[int, ...]:
        """The sizes up to n."""
        return tuple(size for size in self.sizes if size <= n)

    def examples_at(self, step: int, n: int) -> int:
        return step

    def work(self, n: int, r: int) -> float:
        return sum(self.learner.work(size, r) for size in self.recorded(n))

    def prediction_work(self, d: int) -> float:
        return self.learner.prediction_work(d)

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        return self.suited_to_outputs(sampler.outputs).fit_in_parts(sampler, n, key, at_once)

    def fit_in_parts(self, sampler: Sampler, n: int, key: PRNGKeyArray, call: Call) -> Trace:
        """One fit after the other, each in the learner's own parts: all meet the same sample, cut off at their size."""
        sizes = self.recorded(n)
        require(bool(sizes), f"Of the sizes {self.sizes} none is at most n={n}.")
        # On the host nobody else compiles the draw.
        whole = draw(sampler, sizes[-1], keys_of(key)[1]) if self.on_host else call(_Whole(sizes[-1]), sampler, key)
        cut = dataclasses.replace(sampler, draw=_First(whole), exact_law=None)
        traces = [self.learner.fit_in_parts(cut, size, key, call) for size in sizes]
        return call(_Curve(sizes), tuple(traces))


class _Whole(eqx.Module):
    """Draw the sample that learners meet under a key."""

    n: int = eqx.field(static=True)

    def __call__(self, sampler: Sampler, key: PRNGKeyArray) -> Batch:
        return sampler.draw(self.n, keys_of(key)[1])


class _First(eqx.Module):
    """A draw from a sample that is there already: the first examples of it, whatever the key."""

    sample: Batch

    def __call__(self, n: int, key: PRNGKeyArray) -> Batch:
        require(n <= len(self.sample.y), f"{n} examples were asked for, but the sample has {len(self.sample.y)}.")
        return Batch(self.sample.x[:n], self.sample.y[:n])


class _Curve(eqx.Module):
    """The last models of several traces as one trace."""

    sizes: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, traces: tuple[Trace, ...]) -> Trace:
        last = [trace.at(len(trace.steps) - 1) for trace in traces]
        stacked = all(model.stacked for model in last)
        models = jax.tree.map(lambda *leaves: jnp.stack(leaves), *last) if stacked else Several(tuple(last))
        notes = {name: jnp.stack([trace.notes[name][-1] for trace in traces]) for name in traces[0].notes}
        return Trace(models, jnp.stack([jnp.asarray(trace.losses[-1]) for trace in traces]), traces[-1].seen, self.sizes, notes)


class Several(Model):
    """Models that cannot be stacked, one beside the other."""

    stacked: ClassVar[bool] = False
    models: tuple[Model, ...]

    def at(self, index: int) -> Any:
        return self.models[index]

    def scores(self, x: Float[Array, "n *d"], basis: Float[Array, "r d"] | None = None) -> Float[Array, "s n ..."]:
        return jnp.stack([(model if basis is None else model.enter(basis))(x) for model in self.models])

    def __call__(self, x: Float[Array, "n *d"]) -> Scores:
        """Scores of the last."""
        return self.models[-1](x)
