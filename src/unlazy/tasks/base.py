"""What a task is: a distribution with a known secret, and the family it is drawn from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray


class Batch(NamedTuple):
    """Labelled examples: one input a row, one label of ±1 (or one real target) each; with several outputs, one row of targets each."""

    x: Float[Array, "n d"]
    y: Float[Array, " n"] | Float[Array, "n o"]


class WeightedBatch(NamedTuple):
    """Examples with weights ≥ 0 in the mean loss. A weight of 2 counts as the example twice where the weights have mean 1."""

    x: Float[Array, "n d"]
    y: Float[Array, " n"] | Float[Array, "n o"]
    weight: Float[Array, " n"]


class Sampler(eqx.Module):
    """All that a learner sees of a task: a way to draw examples, never the secret.

    `draw` may give inputs by their coordinates z in an orthonormal `basis` (rows) of the space in which all inputs lie,
    x = z·basis. A learner that commutes with rotations may train on z, which is exactly the same algorithm at a fraction of
    the cost; any other learner calls `sample` and sees x. `basis=None` says that z is x.
    """

    draw: Callable[[int, PRNGKeyArray], Batch]
    dimension: int = eqx.field(static=True)
    basis: Float[Array, "r d"] | None = None

    def sample(self, n: int, *, key: PRNGKeyArray) -> Batch:
        """Draw `n` examples in the input space."""
        z, y = self.draw(n, key)
        return Batch(z if self.basis is None else z @ self.basis, y)

    @property
    def on_inputs(self) -> Sampler:
        """The same sampler without coordinates, for learners that do not commute with rotations."""
        return Sampler(lambda n, key: self.sample(n, key=key), self.dimension)


@eqx.filter_jit
def draw(sampler: Sampler, n: int, key: PRNGKeyArray) -> Batch:
    """`sampler.draw(n, key)` as one compiled program, which samplers of one shape share: for those who draw outside of any program."""
    return sampler.draw(n, key)


class Task(eqx.Module):
    """A distribution with a known secret. The secret is always there, in the open; learners are handed `sampler` only.

    A subclass gives `draw` (examples by coordinates, see `Sampler`), `target`, `features` and `chance`.
    """

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Size d of an input."""

    @property
    def basis(self) -> Float[Array, "r d"] | None:
        """Orthonormal rows that span all inputs, or None where the inputs fill the space."""
        return None

    @abstractmethod
    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        """`n` independent examples, inputs as coordinates in `basis`."""

    @abstractmethod
    def target(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """The noiseless label of each input."""

    @property
    @abstractmethod
    def features(self) -> Float[Array, "f d"]:
        """The hidden directions that matter for the label, one unit row each."""

    @property
    @abstractmethod
    def chance(self) -> Float[Array, ""]:
        """Risk (0-1 error) of the best constant predictor, exactly."""

    @property
    def sampler(self) -> Sampler:
        """What a learner is handed."""
        return Sampler(self.draw, self.dimension, self.basis)

    def sample(self, n: int, *, key: PRNGKeyArray) -> Batch:
        """`n` independent examples in the input space."""
        return self.sampler.sample(n, key=key)


class Family(eqx.Module):
    """A set of tasks that differ only in their secret: the checked parameters from which a task is drawn.

    Whole numbers, strings and tuples are static (they fix shapes and programs); fields annotated `float` may differ between
    trials of one compiled program. Parameters are checked when the family is made, in `__check_init__`.
    """

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Size d of an input."""

    @property
    def coordinates(self) -> int:
        """Number r of coordinates by which an input is given: less than d where all inputs lie in a known subspace."""
        return self.dimension

    @abstractmethod
    def task(self, *, key: PRNGKeyArray) -> Task:
        """Draw a secret, and so a task."""


def error_of_constant(positive: Float[Array, ""]) -> Float[Array, ""]:
    """Risk of the best constant label where the label +1 has probability `positive`."""
    return jnp.minimum(positive, 1 - positive)
