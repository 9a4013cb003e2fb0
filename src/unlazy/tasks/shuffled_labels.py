"""Any family with labels that say nothing: the world in which nothing can be learned."""

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
    """A family of which learners see inputs with the labels of other inputs. Probes see the task as
    it is.

    Labels keep their shares, and are independent of the inputs. In a law of listed points, each
    point has both labels.
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
        """A sampler whose labels belong to other inputs."""
        sampler = self.family.handed(task)
        population, null = sampler.population, None
        if population is not None:
            found = eqx.filter_eval_shape(population)
            null = (
                _ShuffledPopulation(population)
                if isinstance(found, Population)
                else _Unlabeled(population)
                if hasattr(found, "unlabelled")
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
    """A law of signs in which each point has both labels, with the shares that they have in all."""

    population: Callable[[], Any]

    def __call__(self) -> Population:
        found = self.population()
        positive = jnp.sum(jnp.where(found.y > 0, found.weight, 0))
        y = jnp.concatenate([jnp.ones_like(found.y), -jnp.ones_like(found.y)])
        weight = jnp.concatenate([found.weight * positive, found.weight * (1 - positive)])
        return Population(jnp.concatenate([found.x, found.x]), y, weight)


class _Unlabeled(eqx.Module):
    """A law that knows itself what it is where labels say nothing."""

    population: Callable[[], Any]

    def __call__(self) -> Any:
        return self.population().unlabelled
