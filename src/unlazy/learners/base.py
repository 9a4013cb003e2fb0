"""What a learner is: hyperparameters with a `fit` that is handed a sampler and a number of examples."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Literal

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.errors import require
from unlazy.networks import Model
from unlazy.tasks.base import Batch, Sampler

#: At most so many of the training examples are kept in a trace, for measuring the training error.
SEEN = 10_000


class Trace(eqx.Module):
    """What a learner leaves behind: its model at the recorded steps (stacked), and the losses between.

    `losses[i]` is the mean training loss over the steps since the previous record (NaN for a record before any step). `seen` holds up to
    `SEEN` of the examples it was trained on, by coordinates (see `Sampler`). `notes` are measurements that only the learner can make, such
    as an error on examples that it held out.
    """

    models: Model
    losses: Float[Array, " r"]
    seen: Batch
    steps: tuple[int, ...] = eqx.field(static=True)
    notes: dict[str, Float[Array, " r"]] = eqx.field(default_factory=dict)

    def at(self, index: int) -> Model:
        """The model of `steps[index]`."""
        return self.models.at(index)


def keys_of(key: PRNGKeyArray) -> tuple[PRNGKeyArray, PRNGKeyArray, PRNGKeyArray]:
    """The keys of the initial model, of the sample and of all else. Learners that split alike meet the same sample under one seed."""
    key_init, key_data, key_rest = jax.random.split(key, 3)
    return key_init, key_data, key_rest


class Learner(eqx.Module):
    """An algorithm with all its hyperparameters.

    `fit` is pure and can be traced: no globals, no mutation, no Python loop over steps; a learner that solves on the host says so by
    `on_host`. Fields annotated `float` may differ between trials of one compiled program, all others are static. `precision` is the width
    of floating point numbers: a trial with `precision=64` runs in double precision from the first draw on.
    """

    precision: Literal[32, 64] = eqx.field(static=True, default=32, kw_only=True)

    def __check_init__(self) -> None:
        """Refuse another precision than the two there are."""
        require(self.precision in (32, 64), f"precision must be 32 or 64, but is {self.precision!r}.")

    @property
    def on_host(self) -> bool:
        """Whether `fit` solves on the host, with NumPy: then it is not traced, and its trials run one by one."""
        return False

    @abstractmethod
    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        """Learn from at most `n` examples."""

    @abstractmethod
    def recorded(self, n: int) -> tuple[int, ...]:
        """The steps whose models `fit` will leave in the trace."""

    @abstractmethod
    def work(self, n: int, r: int) -> float:
        """Rough number of multiply-adds of `fit` on inputs of r coordinates, for planning."""

    @abstractmethod
    def prediction_work(self, d: int) -> float:
        """Rough number of multiply-adds of one prediction on an input of size d, for planning."""

    def tuning(self, budget: int) -> tuple[Learner, ...]:
        """Learners to choose among, with at most `budget` `options` in all; by default there is nothing to choose."""
        return (self,)

    def options(self, n: int) -> dict[int, Learner]:
        """The recorded steps that may be chosen, and the learner whose last model each of them is: a path offers all its steps."""
        return {self.recorded(n)[-1]: self}

    @property
    def settings(self) -> Mapping[str, float | str]:
        """What `tuning` varies, by name, as it is set here."""
        return {}
