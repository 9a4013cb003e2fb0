"""Learners that solve on the host for a whole path of settings at once: a path of ridges, of
penalties, of numbers of bins.
"""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.learners.base import SEEN, Learner, Trace, keys_of
from unlazy.networks.base import Model, Scores
from unlazy.tasks.base import Batch, Sampler, draw

#: Places in a path where several kernels, or laws of features, share the budget of a tuning.
PLACES = 6


def positive(values: Any) -> tuple[float, ...]:
    """A path of positive numbers, as a field holds it."""
    path = tuple(map(float, values))
    require(
        bool(path) and all(0 < value < math.inf for value in path),
        f"A path is one or more finite numbers > 0, but is {values}.",
    )
    return path


def path_of(count: int) -> tuple[float, ...]:
    """So many ridges, from next to none to far more than is good, evenly spaced in their
    logarithm.
    """
    return (
        tuple(float(f"{ridge:.3g}") for ridge in np.logspace(-3, 3, count)) if count > 1 else (1.0,)
    )


class Drawn(NamedTuple):
    """A sample on the host: as it was drawn, its inputs divided by the root of their mean squared
    norm, that divisor, and the labels.

    Inputs with several axes are laid out as vectors.
    """

    sample: Batch
    x: Float[np.ndarray, "n d"]
    norm: float
    y: Float[np.ndarray, " n"] | Float[np.ndarray, "n o"]


def drawn(sampler: Sampler, n: int, key: PRNGKeyArray) -> Drawn:
    """The sample that all learners meet under one key."""
    sample = draw(sampler, n, keys_of(key)[1])
    x = np.asarray(sample.x if sampler.basis is None else sample.x @ sampler.basis)
    x = x.reshape(len(x), -1)
    norm = max(math.sqrt(float(np.mean(np.sum(np.square(x, dtype=np.float64), axis=1)))), 1e-30)
    return Drawn(sample, x / x.dtype.type(norm), norm, np.asarray(sample.y, np.float64))


class PathModel(Model):
    """The models along a path, on the host: a subclass scores them all at once, and picks one by
    `at`.
    """

    stacked: ClassVar[bool] = False

    @abstractmethod
    def path_scores(self, x: Float[np.ndarray, "n d"]) -> np.ndarray:
        """The scores of all models of the path, steps first."""

    def scores(
        self, x: Float[Array, "n *d"], basis: Float[Array, "r d"] | None = None
    ) -> Float[Array, "s n ..."]:
        rows = np.asarray(x if basis is None else x @ basis)
        return jnp.asarray(self.path_scores(rows.reshape(len(rows), -1)))

    def __call__(self, x: Float[Array, "n *d"]) -> Scores:
        return self.scores(x)[-1]


class PathLearner(Learner):
    """Base of these learners. The field that `path` names holds the settings; the recorded steps
    are places in it.

    Inputs are divided by the root of their mean squared norm (`drawn`), so that a bandwidth means
    the same for every task.
    """

    path: ClassVar[str]
    setting: ClassVar[str]  # what one place in the path is called

    @property
    def _path(self) -> tuple[Any, ...]:
        result: tuple[Any, ...] = getattr(self, self.path)
        return result

    @property
    def on_host(self) -> bool:
        return True

    def along(self, path: tuple[Any, ...]) -> Self:
        """The same learner with another path."""
        return dataclasses.replace(self, **{self.path: path})  # type: ignore[arg-type]

    def recorded(self, n: int) -> tuple[int, ...]:
        return tuple(range(len(self._path)))

    def options(self, n: int) -> dict[int, Learner]:
        return {index: self.along((value,)) for index, value in enumerate(self._path)}

    @property
    def settings(self) -> Mapping[str, float | str]:
        return {self.setting: self._path[0]} if len(self._path) == 1 else {}

    def traced(self, models: Model, losses: Any, sample: Batch) -> Trace:
        """The trace of models along the path."""
        return Trace(
            models,
            jnp.asarray(np.asarray(losses)),
            Batch(sample.x[:SEEN], sample.y[:SEEN]),
            self.recorded(len(sample.y)),
        )
