"""Exact distribution of circuit inputs with independent labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from unlazy.tasks.base import WeightedBatch
from unlazy.tasks.circuits.statistics import Statistics


class UnlabeledCircuitPopulation(eqx.Module, Statistics):
    """Distribution of a circuit's inputs with labels that are independent of them.

    Labels keep their probabilities. `distribution` is a `CircuitPopulation`.
    """

    distribution: Any

    @property
    def n(self) -> int:
        return int(self.distribution.n)

    def table(self, learned: Sequence[np.ndarray]) -> np.ndarray:
        """Return probabilities of patterns times those of labels. Runs on the host only."""
        joint = self.distribution.table(learned)
        result: np.ndarray = joint.sum(axis=2, keepdims=True) * joint[:1].sum(axis=1, keepdims=True)
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
