"""Circuit data with labels that say nothing, by their exact law."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from unlazy.tasks.base import WeightedBatch
from unlazy.tasks.circuits.statistics import Statistics


class UnlabeledCircuitPopulation(eqx.Module, Statistics):
    """The law of a circuit's inputs, where labels keep their shares but are independent of them.

    `law`: a `CircuitPopulation`.
    """

    distribution: Any

    @property
    def n(self) -> int:
        return int(self.distribution.n)

    def table(self, learned: Sequence[np.ndarray]) -> np.ndarray:
        """Probabilities of patterns times those of labels. On the host alone."""
        found = self.distribution.table(learned)
        result: np.ndarray = found.sum(axis=2, keepdims=True) * found[:1].sum(axis=1, keepdims=True)
        return result

    @property
    def batch(self) -> WeightedBatch:
        """Every input with both labels."""
        x, y, weight = self.distribution.batch
        positive = jnp.mean(jnp.where(y > 0, weight, 0))
        labels = jnp.concatenate([jnp.ones_like(y), -jnp.ones_like(y)])
        return WeightedBatch(
            jnp.concatenate([x, x]),
            labels,
            2 * jnp.concatenate([weight * positive, weight * (1 - positive)]),
        )
