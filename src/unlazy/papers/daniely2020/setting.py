"""The distribution of the paper, held against the family that all studies draw from.

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
    """All inputs of d bits by the definition of the paper, beside the law and the draws of
    `EqualBits`.

    `law`: the greatest difference of a probability; `label`: labels that are not the product of the
    bits in A; `balance`: |E y|; `inside`, `outside`: the least |E y z_j| in A and the greatest
    outside; `drawn`: the greatest deviation of it over `examples` draws, in standard errors.
    `structured`: the share of the all-equal part that the family is given, one half in the paper.
    """

    d: int = eqx.field(static=True)
    k: int = eqx.field(static=True)
    structured: float = eqx.field(static=True, default=0.5)
    examples: int = eqx.field(static=True, default=100_000)

    def __check_init__(self) -> None:
        require(
            self.d <= LISTED,
            f"All inputs of {self.d} bits are too many to list: at most {LISTED} bits.",
        )

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        key_task, key_draw = jax.random.split(key)
        task = EqualBits(d=self.d, k=self.k, structured=self.structured).task(key=key_task)
        distribution = task.population
        assert distribution is not None
        found, inside = distribution(), np.isin(np.arange(self.d), np.asarray(task.where))
        z = points(self.d)
        bits, y = z[:, inside], np.prod(z[:, inside], axis=1)
        equal = np.abs(bits.sum(axis=1)) == self.k
        weight = 0.5 / len(z) + 0.5 * equal / np.sum(equal)
        places = (np.asarray(found.x) < 0) @ (
            1 << np.arange(self.d - 1, -1, -1)
        )  # of the family's points among ours
        correlation = (weight * y) @ z
        x, drawn_y = task.draw(self.examples, key_draw)
        drawn = np.asarray(drawn_y) @ np.sign(np.asarray(x)) / self.examples
        return {
            "law": float(np.max(np.abs(np.asarray(found.weight) - weight[places]))),
            "label": float(np.mean(np.asarray(found.y) != y[places])),
            "balance": abs(float(weight @ y)),
            "inside": float(np.min(np.abs(correlation[inside]))),
            "outside": float(np.max(np.abs(correlation[~inside]))),
            "drawn": float(
                np.max(np.abs(drawn - correlation) / np.sqrt((1 - correlation**2) / self.examples))
            ),
        }
