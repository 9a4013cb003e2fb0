"""The random start, neuron by neuron: all that a first gradient depends on, with exact
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

#: Of so many numbers of weights that are not 0 outside A, all are kept.
MOST = 10_000


@dataclasses.dataclass(frozen=True)
class RandomStart:
    """The compositions of a random ternary neuron, with their probabilities; outside A twelve
    standard deviations are kept.

    Above `most` numbers of weights ≠ 0 outside A, every s-th of them stands for s neighbours, s odd
    so that both parities are met: first gradients are smooth in that number.
    """

    plus: Int[np.ndarray, " c"]
    minus: Int[np.ndarray, " c"]
    outside: Int[np.ndarray, " c"]
    share: Float[np.ndarray, " c"]

    @classmethod
    def of(cls, n: int, k: int, *, cancelling: bool = False, most: int = MOST) -> RandomStart:
        """All compositions of n weights, k of them in A; or those alone whose weights in A sum to
        zero.
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
        stride = (high - low) // most // 2 * 2 + 1
        M = np.arange(low, high + 1, stride)
        zeros = k - pairs.sum(axis=1)
        within = np.exp(
            gammaln(k + 1)
            - gammaln(pairs[:, 0] + 1)
            - gammaln(pairs[:, 1] + 1)
            - gammaln(zeros + 1)
            - k * math.log(3)
        )
        share = within[:, None] * scipy.stats.binom.pmf(M, rest, 2 / 3) * stride
        grid = np.broadcast_to(M, share.shape).reshape(-1)
        plus, minus = (np.repeat(pairs[:, side], len(M)) for side in (0, 1))
        return cls(plus, minus, grid, share.reshape(-1))

    @property
    def cancelling(self) -> np.ndarray:
        """Whether the weights in A sum to zero."""
        result: np.ndarray = self.plus == self.minus
        return result
