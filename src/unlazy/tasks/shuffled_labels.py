"""Tasks with shuffled labels, on which nothing can be learned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from unlazy.core.metrics import Metric, Outputs
from unlazy.tasks.base import Batch, Data, Family, Population, Sampler


class ShuffledLabels(Family):
    """Family whose samplers return shuffled labels; probes use the original task.

    Labels keep their frequencies and are independent of the inputs. In a population of listed
    points, each point has both labels.
    """

    KEY = "Relabelled"

    family: Family

    @property
    def dimension(self) -> int:
        return self.family.dimension

    @property
    def outputs(self) -> Outputs:
        return self.family.outputs

    @property
    def metric(self) -> Metric:
        return self.family.metric

    @property
    def coordinates(self) -> int:
        return self.family.coordinates

    @property
    def most_examples(self) -> int | None:
        return self.family.most_examples

    @property
    def missing(self) -> str | None:
        return self.family.missing

    def task(self, *, key: PRNGKeyArray) -> Data:
        return self.family.task(key=key)

    def handed(self, task: Data) -> Sampler:
        """Return a sampler with shuffled labels."""
        sampler = self.family.handed(task)
        population, null = sampler.population, None
        if population is not None:
            original = eqx.filter_eval_shape(population)
            null = (
                _ShuffledPopulation(population)
                if isinstance(original, Population)
                else _Unlabeled(population)
                if hasattr(original, "unlabeled")
                else None
            )
        return Sampler(
            _ShuffledDraw(sampler),
            sampler.dimension,
            sampler.basis,
            sampler.outputs,
            sampler.shape,
            null,
        )


class _ShuffledDraw(eqx.Module):
    """Inputs of one draw with the labels of another."""

    sampler: Sampler

    def __call__(self, n: int, key: PRNGKeyArray) -> Batch:
        key_inputs, key_labels = jax.random.split(key)
        return Batch(self.sampler.draw(n, key_inputs).x, self.sampler.draw(n, key_labels).y)


class _ShuffledPopulation(eqx.Module):
    """Population in which each point has both labels with their marginal probabilities."""

    population: Callable[[], Any]

    def __call__(self) -> Population:
        original = self.population()
        positive = jnp.sum(jnp.where(original.y > 0, original.weight, 0))
        y = jnp.concatenate([jnp.ones_like(original.y), -jnp.ones_like(original.y)])
        weight = jnp.concatenate([original.weight * positive, original.weight * (1 - positive)])
        return Population(jnp.concatenate([original.x, original.x]), y, weight)


class _Unlabeled(eqx.Module):
    """Population that defines its own version with independent labels."""

    population: Callable[[], Any]

    def __call__(self) -> Any:
        return self.population().unlabeled
