"""Learner interface: hyperparameters with a `fit` on examples from a sampler."""

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

#: Maximum number of training examples kept in a trace, for measuring the training error.
SEEN = 10_000
#: A function that calls a part of a fit, immediately or by an engine that compiles parts separately
#: and shares them between learners.
Call = Callable[..., Any]
#: The key of one trial, or of all trials of a program, as arrays or shapes.
Keys = Any


def at_once(part: Callable[..., Any], *arguments: Any) -> Any:
    """Call a part of a fit immediately."""
    return part(*arguments)


class Trace(eqx.Module):
    """The result of a fit: models at the recorded steps, and training losses.

    `losses[i]` is the mean training loss over the steps since the previous record (NaN before the
    first step). `seen` contains up to `SEEN` training examples, by coordinates (see `Sampler`).
    `notes` are measurements by the learner, such as a validation error.
    """

    models: Model
    losses: Float[Array | np.ndarray, " r"]
    seen: Batch
    steps: tuple[int, ...] = eqx.field(static=True)
    notes: Mapping[str, Float[Array | np.ndarray, " r"]] = eqx.field(default_factory=dict)

    @classmethod
    def of(cls, model: Model, seen: Batch, loss: Any = jnp.nan) -> Trace:
        """Return the trace of a single model; `seen` is the sample returned by `sampler.draw`."""
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
        """Return the model of `steps[index]`."""
        return self.models.at(index)

    def each(self, function: Callable[[Model], Any]) -> Any:
        """Return the stacked values of a function of each recorded model."""
        return self.models.each(function, len(self.steps))

    @property
    def finite(self) -> Bool[Array | np.ndarray, " r"]:
        """Whether all parameters of each model are finite."""
        if not self.models.stacked:
            if _all_finite(self.models):  # usual case; splitting a long path is slow
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
    """Return the keys of the initial model, of the sample and of everything else.

    All learners split keys this way, so they get the same sample for the same seed.
    """
    key_init, key_data, key_rest = jax.random.split(key, 3)
    return key_init, key_data, key_rest


class Learner(eqx.Module):
    """An algorithm with its hyperparameters.

    `fit` must be pure and traceable by JAX, unless `on_host` is True. Fields annotated `float` may
    differ between trials of one compiled program; all others are static. `precision` is 32 or 64,
    the floating-point precision of all computations, including the random draws.
    """

    precision: Literal[32, 64] = eqx.field(static=True, default=32, kw_only=True)

    def __check_init__(self) -> None:
        require(self.precision in (32, 64), f"precision must be 32 or 64, got {self.precision!r}.")

    @property
    def on_host(self) -> bool:
        """Whether `fit` runs on the host with NumPy, untraced and one trial at a time."""
        return False

    @property
    def draws_fresh(self) -> bool:
        """Whether every step draws new examples, so that the examples used depend on the steps."""
        return False

    def suited(self, family: Family) -> Learner:
        """Return this learner with settings that depend on the family, such as its dimension."""
        return self

    def suited_to_outputs(self, outputs: Outputs) -> Learner:
        """Return this learner for these outputs, if no family is known."""
        return self

    def suits(self, outputs: Outputs) -> bool:
        """Return whether these outputs are supported, by default True."""
        return True

    @abstractmethod
    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        """Fit to at most `n` examples."""

    def fit_in_parts(self, sampler: Sampler, n: int, key: Keys, call: Call) -> Trace:
        """Fit in parts that `call` may compile separately, by default one part."""
        result: Trace = call(Fit(self, n), sampler, key)
        return result

    def fit_prefixes(
        self, sampler: Sampler, sizes: tuple[int, ...], key: Keys, call: Call
    ) -> list[Trace]:
        """Fit to each of several numbers of examples; override to share work between the fits."""
        return [self.fit_in_parts(sampler, size, key, call) for size in sizes]

    def recorded(self, n: int) -> tuple[int, ...]:
        """Return the steps whose models are in the trace of `fit`, by default only the last."""
        return (1,)

    def examples_at(self, step: int, n: int) -> int:
        """Return how many of n examples were used up to a recorded step."""
        return n

    def work(self, n: int, r: int) -> float:
        """Estimate the multiply-adds of `fit` on inputs of r coordinates."""
        return 100.0 * n * r

    def prediction_work(self, d: int) -> float:
        """Estimate the multiply-adds of one prediction on an input of size d."""
        return float(d)

    def tuning(self, budget: int) -> tuple[Learner, ...]:
        """Return the candidate learners for tuning, with at most `budget` `options` in total."""
        return (self,)

    def options(self, n: int) -> dict[int, Learner]:
        """Return the recorded steps that tuning may select, each with the equivalent learner."""
        return {self.recorded(n)[-1]: self}

    @property
    def settings(self) -> Mapping[str, float | str]:
        """The tuned hyperparameters by name."""
        return {}


class Fit(eqx.Module):
    """A fit as one part."""

    learner: Learner
    n: int = eqx.field(static=True)

    def __call__(self, sampler: Sampler, key: PRNGKeyArray) -> Trace:
        return self.learner.fit(sampler, self.n, key=key)


class PlainLearner(Learner):
    """A learner defined by `learn(x, y, key=key)`, which returns a model."""

    @abstractmethod
    def learn(self, x: Any, y: Any, *, key: PRNGKeyArray) -> Model:
        """Return a model, such as `Predictor(function, parameters)`.

        With `on_host`, examples are NumPy arrays, and the model is a `HostModel`.
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
            f"{name}.learn must return a Model, such as Predictor(function, parameters), got "
            f"{type(model).__name__}.",
        )
        return Trace.of(model, sample)
