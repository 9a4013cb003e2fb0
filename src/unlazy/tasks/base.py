"""What examples can be drawn from: data, and below a task a secret; families, from which tasks are
drawn; samplers, which learners see.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.metrics import SIGNS, Metric, Outputs, metric_of


class Batch(NamedTuple):
    """Labelled examples, one a row: inputs (images have three further axes), and labels as
    `Outputs` says.
    """

    x: Float[Array, "n *d"]
    y: Float[Array, " n"] | Float[Array, "n o"]


class WeightedBatch(NamedTuple):
    """Examples with weights ≥ 0 in the mean loss.

    A weight of 2 counts as the example twice where the weights have mean 1.
    """

    x: Float[Array, "n *d"]
    y: Float[Array, " n"] | Float[Array, "n o"]
    weight: Float[Array, " n"]


class Population(eqx.Module):
    """A law as all its points with their probabilities: what an exact gradient or a query oracle
    averages over.
    """

    x: Float[Array, "p r"]
    y: Float[Array, " p"]
    weight: Float[Array, " p"]

    def mean(self, values: Float[Array, "p q"]) -> Float[Array, " q"]:
        """Average each column."""
        return self.weight @ values

    @property
    def batch(self) -> WeightedBatch:
        """All points as one batch, whose weighted mean loss is the expected loss."""
        return WeightedBatch(self.x, self.y, self.weight * len(self.weight))


class Sampler(eqx.Module):
    """All that a learner sees of a task: a way to draw examples, never the secret.

    `draw` may give inputs by their coordinates z in an orthonormal `basis` (rows) of the space in
    which all inputs lie, x = z·basis. A learner that commutes with rotations may train on z, which
    is exactly the same algorithm at a fraction of the cost; any other learner calls `sample` and
    sees x. `basis=None` says that z is x. `population`, where the data offer it, gives the law of
    the examples without saying what made it: a `Population` by coordinates, or what such data have
    in its place.
    """

    draw: Callable[[int, PRNGKeyArray], Batch]
    dimension: int = eqx.field(static=True)
    basis: Float[Array, "r d"] | None = None
    outputs: Outputs = eqx.field(static=True, default=SIGNS)
    shape: tuple[int, ...] = eqx.field(static=True, default=())
    population: Callable[[], Any] | None = None

    def sample(self, n: int, *, key: PRNGKeyArray) -> Batch:
        """Draw `n` examples in the input space."""
        z, y = self.draw(n, key)
        return Batch(z if self.basis is None else z @ self.basis, y)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        return self.shape or (self.dimension,)

    @property
    def on_inputs(self) -> Sampler:
        """The same sampler without coordinates, for learners that do not commute with rotations."""
        population = None if self.population is None else _PopulationOnInputs(self)
        return Sampler(_OnInputs(self), self.dimension, None, self.outputs, self.shape, population)


class _OnInputs(eqx.Module):
    """A draw in the input space."""

    sampler: Sampler

    def __call__(self, n: int, key: PRNGKeyArray) -> Batch:
        return self.sampler.sample(n, key=key)


class _PopulationOnInputs(eqx.Module):
    """The exact law in the input space, where it is a list of points."""

    sampler: Sampler

    def __call__(self) -> Any:
        assert self.sampler.population is not None
        population = self.sampler.population()
        if self.sampler.basis is None or not isinstance(population, Population):
            return population
        return Population(population.x @ self.sampler.basis, population.y, population.weight)


@eqx.filter_jit
def draw(sampler: Sampler, n: int, key: PRNGKeyArray) -> Batch:
    """`sampler.draw(n, key)` as one compiled program, which samplers of one shape share: for those
    who draw outside of any program.
    """
    return sampler.draw(n, key)


class Data(eqx.Module):
    """What examples can be drawn from. A law draws fresh ones; a data set draws from its training
    part, and `test` from the rest.

    A subclass gives `dimension` (or `shape`, for inputs with several axes) and `draw`; `outputs`
    where labels are not signs.
    """

    @property
    def dimension(self) -> int:
        """Numbers in an input."""
        return math.prod(self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        return (self.dimension,)

    @property
    def outputs(self) -> Outputs:
        """What a label is."""
        return SIGNS

    @property
    def metric(self) -> Metric:
        """How scores are judged."""
        return metric_of(self.outputs)

    @property
    def basis(self) -> Float[Array, "r d"] | None:
        """Orthonormal rows that span all inputs, or None where the inputs fill the space."""
        return None

    @abstractmethod
    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        """`n` examples to learn from, inputs as coordinates in `basis`."""

    def test(self, n: int, key: PRNGKeyArray) -> Batch:
        """Up to `n` examples to be judged by, inputs as coordinates in `basis`."""
        return self.draw(n, key)

    @property
    def population(self) -> Callable[[], Any] | None:
        """A function that gives the exact law of the examples by coordinates, where it is small or
        symmetric enough; None elsewhere.
        """
        return None

    @property
    def sampler(self) -> Sampler:
        """What a learner is handed."""
        return Sampler(
            self.draw, self.dimension, self.basis, self.outputs, self.shape, self.population
        )

    def sample(self, n: int, *, key: PRNGKeyArray) -> Batch:
        """`n` independent examples in the input space."""
        return self.sampler.sample(n, key=key)


class Task(Data):
    """Data with a known secret.

    The secret is always there, in the open; learners are handed `sampler` only.
    """

    @abstractmethod
    def target(self, x: Float[Array, "n d"]) -> Float[Array, " n"] | Float[Array, "n o"]:
        """The noiseless label of each input."""

    @property
    @abstractmethod
    def features(self) -> Float[Array, "f d"]:
        """The hidden directions that matter for the label, one unit row each."""

    @property
    @abstractmethod
    def chance(self) -> Float[Array, ""]:
        """Risk of the best constant predictor, exactly: its share of wrong labels, or its squared
        error.
        """


class Family(eqx.Module):
    """A set of tasks that differ only in their secret, or of splits of one data set: checked
    parameters from which one is drawn.

    Whole numbers, strings and tuples are static (they fix shapes and programs); fields annotated
    `float` may differ between trials of one compiled program. Parameters are checked when the
    family is made, in `__check_init__`.
    """

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Numbers in an input."""

    @property
    def outputs(self) -> Outputs:
        """What a label is."""
        return SIGNS

    @property
    def metric(self) -> Metric:
        """How scores are judged."""
        return metric_of(self.outputs)

    @property
    def coordinates(self) -> int:
        """Number r of coordinates by which an input is given: less than d where all inputs lie in a
        known subspace.
        """
        return self.dimension

    @property
    def most_examples(self) -> int | None:
        """How many examples there are to learn from, where there is an end to them."""
        return None

    @property
    def missing(self) -> str | None:
        """One sentence that says which data are not there and how to get them; None where nothing
        is missing.
        """
        return None

    @abstractmethod
    def task(self, *, key: PRNGKeyArray) -> Data:
        """Draw a secret, and so a task; or a split of a data set."""

    def handed(self, task: Data) -> Sampler:
        """What a learner is handed of one of its tasks."""
        return task.sampler


def error_of_constant(positive: Float[Array, ""]) -> Float[Array, ""]:
    """Risk of the best constant label where the label +1 has probability `positive`."""
    return jnp.minimum(positive, 1 - positive)
