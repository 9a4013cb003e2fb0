"""Base classes `Data`, `Task`, `Family` and `Sampler`."""

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
    """Labeled examples, one per row: inputs (images have three further axes) and labels.

    The labels are of the type given by `Outputs`.
    """

    x: Float[Array, "n *d"]
    y: Float[Array, " n"] | Float[Array, "n o"]


class WeightedBatch(NamedTuple):
    """Examples with weights ≥ 0 in the mean loss.

    If the weights have mean 1, a weight of 2 counts as the example twice.
    """

    x: Float[Array, "n *d"]
    y: Float[Array, " n"] | Float[Array, "n o"]
    weight: Float[Array, " n"]


class Population(eqx.Module):
    """Distribution given by all its points with their probabilities.

    Exact gradients and query oracles average over it.
    """

    x: Float[Array, "p r"]
    y: Float[Array, " p"]
    weight: Float[Array, " p"]

    def mean(self, values: Float[Array, "p q"]) -> Float[Array, " q"]:
        """Return the expectation of each column."""
        return self.weight @ values

    @property
    def batch(self) -> WeightedBatch:
        """All points as one batch, whose weighted mean loss is the expected loss."""
        return WeightedBatch(self.x, self.y, self.weight * len(self.weight))


class Sampler(eqx.Module):
    """View of a task for learners: draws examples without access to the ground truth.

    `draw` may give inputs by their coordinates z in an orthonormal `basis` (rows) of the space that
    contains all inputs, x = z·basis. A learner that commutes with rotations may train on z, which
    is the same algorithm at lower cost. Any other learner calls `sample`, which returns x. If
    `basis` is None, z is x. `population`, if available, returns the distribution of the examples: a
    `Population` by coordinates, or an equivalent specific to the data.
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
    """Draw in the input space."""

    sampler: Sampler

    def __call__(self, n: int, key: PRNGKeyArray) -> Batch:
        return self.sampler.sample(n, key=key)


class _PopulationOnInputs(eqx.Module):
    """Exact distribution in the input space, if it is a list of points."""

    sampler: Sampler

    def __call__(self) -> Any:
        assert self.sampler.population is not None
        population = self.sampler.population()
        if self.sampler.basis is None or not isinstance(population, Population):
            return population
        return Population(population.x @ self.sampler.basis, population.y, population.weight)


@eqx.filter_jit
def draw(sampler: Sampler, n: int, key: PRNGKeyArray) -> Batch:
    """Return `sampler.draw(n, key)` by a compiled program, shared by samplers of one shape."""
    return sampler.draw(n, key)


class Data(eqx.Module):
    """Source of examples: a distribution, or a dataset with a training and a test part.

    A distribution draws fresh examples. A dataset draws from its training part, and `test` from its
    test part. A subclass defines `dimension` (or `shape`, for inputs with several axes) and `draw`,
    and `outputs` if labels are not signs.
    """

    @property
    def dimension(self) -> int:
        """Number of entries of an input."""
        return math.prod(self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        return (self.dimension,)

    @property
    def outputs(self) -> Outputs:
        """Type of the labels."""
        return SIGNS

    @property
    def metric(self) -> Metric:
        """Evaluation metric."""
        return metric_of(self.outputs)

    @property
    def basis(self) -> Float[Array, "r d"] | None:
        """Orthonormal rows that span all inputs, or None if the inputs span the whole space."""
        return None

    @abstractmethod
    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        """Draw `n` training examples, inputs as coordinates in `basis`."""

    def test(self, n: int, key: PRNGKeyArray) -> Batch:
        """Draw up to `n` test examples, inputs as coordinates in `basis`."""
        return self.draw(n, key)

    @property
    def population(self) -> Callable[[], Any] | None:
        """Function that returns the exact distribution by coordinates, or None.

        It is None unless the distribution is small or symmetric enough.
        """
        return None

    @property
    def sampler(self) -> Sampler:
        """Sampler that a learner receives."""
        return Sampler(
            self.draw, self.dimension, self.basis, self.outputs, self.shape, self.population
        )

    def sample(self, n: int, *, key: PRNGKeyArray) -> Batch:
        """Draw `n` independent examples in the input space."""
        return self.sampler.sample(n, key=key)


class Task(Data):
    """Distribution with known ground truth.

    The ground truth is accessible to probes; learners only receive `sampler`.
    """

    @abstractmethod
    def target(self, x: Float[Array, "n d"]) -> Float[Array, " n"] | Float[Array, "n o"]:
        """Return the noiseless label of each input."""

    @property
    @abstractmethod
    def features(self) -> Float[Array, "f d"]:
        """Hidden directions that determine the label, as unit rows."""

    @property
    @abstractmethod
    def chance(self) -> Float[Array, ""]:
        """Exact risk of the best constant predictor: error rate, or squared error."""


class Family(eqx.Module):
    """Set of tasks that differ only in their ground truth, or of splits of one dataset.

    Integers, strings and tuples are static (they determine shapes and programs). Fields annotated
    `float` may differ between trials of one compiled program. Parameters are checked on
    construction, in `__check_init__`.
    """

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Number of entries of an input."""

    @property
    def outputs(self) -> Outputs:
        """Type of the labels."""
        return SIGNS

    @property
    def metric(self) -> Metric:
        """Evaluation metric."""
        return metric_of(self.outputs)

    @property
    def coordinates(self) -> int:
        """Number r of coordinates of an input, below d if all inputs lie in a known subspace."""
        return self.dimension

    @property
    def most_examples(self) -> int | None:
        """Maximum number of training examples, or None if unlimited."""
        return None

    @property
    def missing(self) -> str | None:
        """Message on missing data and how to get them, or None if nothing is missing."""
        return None

    @abstractmethod
    def task(self, *, key: PRNGKeyArray) -> Data:
        """Draw a task with random ground truth, or a split of a dataset."""

    def handed(self, task: Data) -> Sampler:
        """Return the sampler that a learner receives for one of its tasks."""
        return task.sampler


def error_of_constant(positive: Float[Array, ""]) -> Float[Array, ""]:
    """Return the risk of the best constant label if P(y = +1) is `positive`."""
    return jnp.minimum(positive, 1 - positive)
