"""Random initialization per neuron: the counts that determine a first gradient, with exact
probabilities.

Reference: daniely2020, Section 2.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import scipy.stats
from jaxtyping import Float, Int
from scipy.special import gammaln

#: Maximum number of values of `outside`.
MAX_VALUES = 10_000


@dataclasses.dataclass(frozen=True)
class InitialNeurons:
    """Counts of the weights of a random ternary neuron, with their probabilities.

    plus, minus: numbers of weights 1 and −1 in A. outside: number of nonzero weights outside A,
    within twelve standard deviations of its mean. If it has more than `max_values` values, every
    s-th represents s neighbors, with s odd so that both parities occur: first gradients are smooth
    in that number.
    """

    plus: Int[np.ndarray, " c"]
    minus: Int[np.ndarray, " c"]
    outside: Int[np.ndarray, " c"]
    probability: Float[np.ndarray, " c"]

    @classmethod
    def of(
        cls, n: int, k: int, *, cancelling: bool = False, max_values: int = MAX_VALUES
    ) -> InitialNeurons:
        """Return all counts for n weights, k of them in A; `cancelling`: only those whose weights
        in A sum to zero.
        """
        rest = n - k
        spread = 12 * math.sqrt(rest * 2 / 9) + 1
        low, high = (
            max(0, math.floor(rest * 2 / 3 - spread)),
            min(rest, math.ceil(rest * 2 / 3 + spread)),
        )
        pairs = np.array(
            [(p, m) for p in range(k + 1) for m in range(k + 1 - p) if p == m or not cancelling]
        )
        stride = (high - low) // max_values // 2 * 2 + 1
        M = np.arange(low, high + 1, stride)
        zeros = k - pairs.sum(axis=1)
        within = np.exp(
            gammaln(k + 1)
            - gammaln(pairs[:, 0] + 1)
            - gammaln(pairs[:, 1] + 1)
            - gammaln(zeros + 1)
            - k * math.log(3)
        )
        probability = within[:, None] * scipy.stats.binom.pmf(M, rest, 2 / 3) * stride
        outside = np.broadcast_to(M, probability.shape).reshape(-1)
        plus, minus = (np.repeat(pairs[:, side], len(M)) for side in (0, 1))
        return cls(plus, minus, outside, probability.reshape(-1))

    @property
    def cancelling(self) -> np.ndarray:
        """Whether the weights in A sum to zero."""
        result: np.ndarray = self.plus == self.minus
        return result
