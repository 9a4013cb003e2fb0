"""Distribution of the paper, compared with the task family of this package.

Reference: daniely2020, Section 2.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.core.errors import require
from unlazy.lab.trials import ExactComputation
from unlazy.tasks.equal_bits import LISTED, EqualBits
from unlazy.theory.walsh import points


class Mixture(ExactComputation):
    """Distribution of the paper on all inputs of d bits, compared with `EqualBits`.

    Measure "law": maximum difference of probabilities. `label`: fraction of labels that differ from
    the product of the bits in A. `balance`: |E y|. `inside`, `outside`: minimum of |E y z_j| for j
    in A, maximum for j outside A. `drawn`: maximum deviation of the sample mean of y z_j over
    `examples` draws, in standard errors. `structured`: fraction of the all-equal part in the
    family, one half in the paper.
    """

    d: int = eqx.field(static=True)
    k: int = eqx.field(static=True)
    structured: float = eqx.field(static=True, default=0.5)
    examples: int = eqx.field(static=True, default=100_000)

    def __check_init__(self) -> None:
        require(
            self.d <= LISTED,
            f"`d` must be at most {LISTED} to enumerate all inputs, got {self.d}.",
        )

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        key_task, key_draw = jax.random.split(key)
        task = EqualBits(d=self.d, k=self.k, structured=self.structured).task(key=key_task)
        distribution = task.population
        assert distribution is not None
        population, inside = distribution(), np.isin(np.arange(self.d), np.asarray(task.where))
        z = points(self.d)
        bits, y = z[:, inside], np.prod(z[:, inside], axis=1)
        equal = np.abs(bits.sum(axis=1)) == self.k
        weight = 0.5 / len(z) + 0.5 * equal / np.sum(equal)
        # Indices of the family's points in z.
        order = (np.asarray(population.x) < 0) @ (1 << np.arange(self.d - 1, -1, -1))
        correlation = (weight * y) @ z
        x, drawn_y = task.draw(self.examples, key_draw)
        drawn = np.asarray(drawn_y) @ np.sign(np.asarray(x)) / self.examples
        return {
            "law": float(np.max(np.abs(np.asarray(population.weight) - weight[order]))),
            "label": float(np.mean(np.asarray(population.y) != y[order])),
            "balance": abs(float(weight @ y)),
            "inside": float(np.min(np.abs(correlation[inside]))),
            "outside": float(np.max(np.abs(correlation[~inside]))),
            "drawn": float(
                np.max(np.abs(drawn - correlation) / np.sqrt((1 - correlation**2) / self.examples))
            ),
        }
