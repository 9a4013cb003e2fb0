"""Base classes of learners that solve for a path of settings, such as ridges, on the host."""

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

#: Length of a path if several kernels or features share a tuning budget.
PATH_LENGTH = 6


def positive(values: Any) -> tuple[float, ...]:
    """Return a path of positive numbers as a tuple of floats."""
    path = tuple(map(float, values))
    require(
        bool(path) and all(0 < value < math.inf for value in path),
        f"A path must be one or more finite values > 0, got {values}.",
    )
    return path


def path_of(count: int) -> tuple[float, ...]:
    """Return `count` ridges from 1e-3 to 1e3, evenly spaced on a log scale."""
    return (
        tuple(float(f"{ridge:.3g}") for ridge in np.logspace(-3, 3, count)) if count > 1 else (1.0,)
    )


class Drawn(NamedTuple):
    """A sample on the host: as drawn, its flattened inputs divided by `norm`, and its labels.

    `norm` is the root mean square of ‖x‖.
    """

    sample: Batch
    x: Float[np.ndarray, "n d"]
    norm: float
    y: Float[np.ndarray, " n"] | Float[np.ndarray, "n o"]


def drawn(sampler: Sampler, n: int, key: PRNGKeyArray) -> Drawn:
    """Draw the sample that all learners get for the same key."""
    sample = draw(sampler, n, keys_of(key)[1])
    x = np.asarray(sample.x if sampler.basis is None else sample.x @ sampler.basis)
    x = x.reshape(len(x), -1)
    norm = max(math.sqrt(float(np.mean(np.sum(np.square(x, dtype=np.float64), axis=1)))), 1e-30)
    return Drawn(sample, x / x.dtype.type(norm), norm, np.asarray(sample.y, np.float64))


class PathModel(Model):
    """The models along a path, on the host."""

    stacked: ClassVar[bool] = False

    @abstractmethod
    def path_scores(self, x: Float[np.ndarray, "n d"]) -> np.ndarray:
        """Return the scores of all models of the path, which is the first axis."""

    def scores(
        self, x: Float[Array, "n *d"], basis: Float[Array, "r d"] | None = None
    ) -> Float[Array, "s n ..."]:
        rows = np.asarray(x if basis is None else x @ basis)
        return jnp.asarray(self.path_scores(rows.reshape(len(rows), -1)))

    def __call__(self, x: Float[Array, "n *d"]) -> Scores:
        return self.scores(x)[-1]


class PathLearner(Learner):
    """Base class of path learners.

    `path` is the name of the field with the settings, and recorded steps are indices into it.
    Inputs are divided by their root mean square norm (`drawn`), so that bandwidths are comparable
    between tasks.
    """

    path: ClassVar[str]
    setting: ClassVar[str]  # name of one setting

    @property
    def _path(self) -> tuple[Any, ...]:
        result: tuple[Any, ...] = getattr(self, self.path)
        return result

    @property
    def on_host(self) -> bool:
        return True

    def along(self, path: tuple[Any, ...]) -> Self:
        """Return the learner with another path."""
        return dataclasses.replace(self, **{self.path: path})  # type: ignore[arg-type]

    def recorded(self, n: int) -> tuple[int, ...]:
        return tuple(range(len(self._path)))

    def options(self, n: int) -> dict[int, Learner]:
        return {index: self.along((value,)) for index, value in enumerate(self._path)}

    @property
    def settings(self) -> Mapping[str, float | str]:
        return {self.setting: self._path[0]} if len(self._path) == 1 else {}

    def traced(self, models: Model, losses: Any, sample: Batch) -> Trace:
        """Return the trace of models along the path."""
        return Trace(
            models,
            jnp.asarray(np.asarray(losses)),
            Batch(sample.x[:SEEN], sample.y[:SEEN]),
            self.recorded(len(sample.y)),
        )
