"""What a learner is: hyperparameters with a `fit` that is handed a sampler and a number of
examples.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.core.metrics import Outputs
from unlazy.networks.base import Model
from unlazy.tasks.base import Batch, Family, Sampler, draw

#: At most so many of the training examples are kept in a trace, for measuring the training error.
SEEN = 10_000
#: How the parts of a fit are called: at once, or by an engine that compiles each part by itself and
#: shares it between learners.
Call = Callable[..., Any]
#: The key of a trial, or those of all trials of a program, as arrays or as their shapes.
Keys = Any


def at_once(part: Callable[..., Any], *arguments: Any) -> Any:
    """Call a part of a fit here and now."""
    return part(*arguments)


class Trace(eqx.Module):
    """What a learner leaves behind: its model at the recorded steps, and the losses between.

    `losses[i]` is the mean training loss over the steps since the previous record (NaN for a record
    before any step). `seen` holds up to `SEEN` of the examples it was trained on, by coordinates
    (see `Sampler`). `notes` are measurements that only the learner can make, such as an error on
    examples that it held out.
    """

    models: Model
    losses: Float[Array | np.ndarray, " r"]
    seen: Batch
    steps: tuple[int, ...] = eqx.field(static=True)
    notes: Mapping[str, Float[Array | np.ndarray, " r"]] = eqx.field(default_factory=dict)

    @classmethod
    def of(cls, model: Model, seen: Batch, loss: Any = jnp.nan) -> Trace:
        """The trace of a learner that leaves its last model alone.

        `seen`: its sample as `sampler.draw` gave it, by coordinates.
        """
        arrays, rest = eqx.partition(model, eqx.is_array)
        models = (
            eqx.combine(jax.tree.map(lambda leaf: leaf[None], arrays), rest)
            if model.stacked
            else model
        )
        return cls(
            models,
            jnp.reshape(jnp.asarray(loss, jnp.result_type(float)), 1),
            Batch(seen.x[:SEEN], seen.y[:SEEN]),
            (1,),
        )

    def at(self, index: int) -> Model:
        """The model of `steps[index]`."""
        return self.models.at(index)

    def each(self, function: Callable[[Model], Any]) -> Any:
        """What a function gives for each recorded model, stacked."""
        return self.models.each(function, len(self.steps))

    @property
    def finite(self) -> Bool[Array | np.ndarray, " r"]:
        """Whether each model is made of finite numbers."""
        if not self.models.stacked:
            if _all_finite(self.models):  # as is usual; a long path is slow to take apart
                return np.ones(len(self.steps), bool)
            return np.array([_all_finite(self.at(index)) for index in range(len(self.steps))])
        leaves = jax.tree.leaves(eqx.filter(self.models, eqx.is_inexact_array))
        flags = [
            jnp.all(jnp.isfinite(leaf).reshape(len(self.steps), -1), axis=1) for leaf in leaves
        ]
        return jnp.all(jnp.stack(flags), axis=0) if flags else jnp.ones(len(self.steps), bool)


def _all_finite(model: Model) -> bool:
    leaves = jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))
    return all(bool(np.all(np.isfinite(leaf))) for leaf in leaves)


def keys_of(key: PRNGKeyArray) -> tuple[PRNGKeyArray, PRNGKeyArray, PRNGKeyArray]:
    """The keys of the initial model, of the sample and of all else.

    Learners that split alike meet the same sample under one seed.
    """
    key_init, key_data, key_rest = jax.random.split(key, 3)
    return key_init, key_data, key_rest


class Learner(eqx.Module):
    """An algorithm with all its hyperparameters.

    `fit` is pure and can be traced: no globals, no mutation, no Python loop over steps; a learner
    that solves on the host says so by `on_host`. Fields annotated `float` may differ between trials
    of one compiled program, all others are static. `precision` is the width of floating point
    numbers: a trial with `precision=64` runs in double precision from the first draw on.
    """

    precision: Literal[32, 64] = eqx.field(static=True, default=32, kw_only=True)

    def __check_init__(self) -> None:
        require(
            self.precision in (32, 64), f"precision must be 32 or 64, but is {self.precision!r}."
        )

    @property
    def on_host(self) -> bool:
        """Whether `fit` solves on the host, with NumPy: then it is not traced, and its trials run
        one by one.
        """
        return False

    @property
    def draws_fresh(self) -> bool:
        """Whether every step takes examples that were never seen before, so that examples are
        counted by steps.
        """
        return False

    def suited(self, family: Family) -> Learner:
        """This learner on a family: one whose settings follow the dimension sets them here."""
        return self

    def suited_to_outputs(self, outputs: Outputs) -> Learner:
        """This learner for such outputs, where no family is known."""
        return self

    def suits(self, outputs: Outputs) -> bool:
        """Whether it can learn such outputs; by default all of them."""
        return True

    @abstractmethod
    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        """Learn from at most `n` examples."""

    def fit_in_parts(self, sampler: Sampler, n: int, key: Keys, call: Call) -> Trace:
        """The same as `fit`, with every computation a part that `call` may compile by itself; by
        default it is one part.
        """
        result: Trace = call(Fit(self, n), sampler, key)
        return result

    def fit_prefixes(
        self, sampler: Sampler, sizes: tuple[int, ...], key: Keys, call: Call
    ) -> list[Trace]:
        """A fit for each of several numbers of examples; a learner that can share work between them
        says how.
        """
        return [self.fit_in_parts(sampler, size, key, call) for size in sizes]

    def recorded(self, n: int) -> tuple[int, ...]:
        """The steps whose models `fit` will leave in the trace; by default the end alone."""
        return (1,)

    def examples_at(self, step: int, n: int) -> int:
        """How many of n examples the model of a recorded step has seen."""
        return n

    def work(self, n: int, r: int) -> float:
        """Rough number of multiply-adds of `fit` on inputs of r coordinates, for planning."""
        return 100.0 * n * r

    def prediction_work(self, d: int) -> float:
        """Rough number of multiply-adds of one prediction on an input of size d, for planning."""
        return float(d)

    def tuning(self, budget: int) -> tuple[Learner, ...]:
        """Learners to choose among, with at most `budget` `options` in all; by default there is
        nothing to choose.
        """
        return (self,)

    def options(self, n: int) -> dict[int, Learner]:
        """The recorded steps that may be chosen, and the learner whose last model each of them is:
        a path offers all its steps.
        """
        return {self.recorded(n)[-1]: self}

    @property
    def settings(self) -> Mapping[str, float | str]:
        """What `tuning` varies, by name, as it is set here."""
        return {}


class Fit(eqx.Module):
    """All of a learner's fit as one part."""

    learner: Learner
    n: int = eqx.field(static=True)

    def __call__(self, sampler: Sampler, key: PRNGKeyArray) -> Trace:
        return self.learner.fit(sampler, self.n, key=key)


class PlainLearner(Learner):
    """A learner written plainly: `learn` makes a model of a sample.

    It meets the sample that all learners meet under one key.
    """

    @abstractmethod
    def learn(self, x: Any, y: Any, *, key: PRNGKeyArray) -> Model:
        """A model of examples, such as `Predictor(function, parameters)`; on the host, where
        examples are NumPy's, a `HostModel`.
        """

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        key_init, key_data, _ = keys_of(key)
        sample = draw(sampler, n, key_data) if self.on_host else sampler.draw(n, key_data)
        x = sample.x if sampler.basis is None else sample.x @ sampler.basis
        model = (
            self.learn(np.asarray(x), np.asarray(sample.y), key=key_init)
            if self.on_host
            else self.learn(x, sample.y, key=key_init)
        )
        name = type(self).__name__
        require(
            isinstance(model, Model),
            f"{name}.learn gave {type(model).__name__}, which is no Model: return "
            "Predictor(function, parameters).",
        )
        return Trace.of(model, sample)
