"""Parity patterns whose input structure and class balance are numbers: one program runs all of
them.

    (1 − structure)·[fair coins] + structure·[relevant patterns all absent or all present], then the
    classes drawn in unequal shares

The background is fair coins throughout. `structure` = ½ is the law of Table 1 (po = ½), `structure`
= 0 is the family without input structure; `negative` is the share of the class −1, where within
each class the law stays what it was.

Reference: shi2022, Appendix E.2.2 (class imbalance), Appendix C (the law).
"""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.core.random import categorical, rademacher
from unlazy.tasks.dictionary.patterns import PatternDistribution, PatternFamily, parity


class BalancedPatternDistribution(PatternDistribution):
    """A pattern law whose classes are drawn anew with shares 1 − `negative` and `negative`."""

    negative: Float[Array, ""]

    @property
    def count_distribution(self) -> Float[Array, " {self.k}+1"]:
        """P(Σ_A φ̃ = s), each class scaled to its share."""
        mass = PatternDistribution(
            self.weight, self.p, self.q, self.D, self.k, self.P
        ).count_distribution
        is_positive = self.label_of_count > 0
        positive = mass @ is_positive
        return mass * jnp.where(
            is_positive, (1 - self.negative) / positive, self.negative / (1 - positive)
        )

    def _relevant(self, share: Float[Array, ""]) -> Float[Array, ""]:
        return share

    def mass(
        self, on: Int[Array | np.ndarray, " p"], off: Int[Array | np.ndarray, " p"]
    ) -> Float[Array, " p"]:
        """Given the count, all subsets of A are equally likely; the background is fair coins."""
        ways = jnp.array([math.comb(self.k, s) for s in range(self.k + 1)], jnp.result_type(float))
        return (self.count_distribution / ways)[on] * 0.5 ** (self.D - self.k)

    def draw(self, n: int, relevant: Bool[Array, " D"], *, key: PRNGKeyArray) -> Bool[Array, "n D"]:
        """The number of relevant patterns by its law, a random subset of that size, and a
        background of fair coins.
        """
        key_count, key_subset, key_background = jax.random.split(key, 3)
        count = categorical(key_count, self.count_distribution, n)
        u = jax.random.uniform(key_subset, (n, self.k), jnp.float32)
        rank = jnp.sum(u[:, :, None] > u[:, None, :], axis=2)  # n k
        present = rademacher(key_background, (n, self.D)) > 0
        places = jnp.nonzero(relevant, size=self.k)[0]
        return present.at[:, places].set(rank < count[:, None])


def balanced_distribution(
    D: int, k: int, structure: float | Array, negative: float | Array
) -> BalancedPatternDistribution:
    """Fair coins, all absent, all present, with the shares that `structure` gives them; parity
    labels.
    """
    share = jnp.asarray(structure)
    return BalancedPatternDistribution(
        weight=jnp.stack([1 - share, share / 2, share / 2]),
        p=jnp.array([0.5, 0.0, 1.0]),
        q=jnp.full(3, 0.5),
        D=D,
        k=k,
        P=parity(k),
        negative=jnp.asarray(negative),
    )


class BalancedParity(PatternFamily):
    """Parity labels, with input structure and class balance as numbers."""

    structure: float = eqx.field(converter=float, default=0.5, kw_only=True)
    negative: float = eqx.field(converter=float, default=0.5, kw_only=True)

    def __check_init__(self) -> None:
        self._check_sizes()
        require(
            self.k % 2 == 1,
            f"k must be odd for parity labels, but is {self.k}: for even k both structured "
            "inputs have one label.",
        )
        require(
            0 <= self.structure <= 1,
            f"structure is a share of the inputs, in [0, 1], but is {self.structure}.",
        )
        require(
            0 < self.negative < 1,
            f"negative is the share of the class −1, in (0, 1), but is {self.negative}.",
        )

    @property
    def distribution(self) -> BalancedPatternDistribution:
        """Fair coins, all absent, all present; the background is fair coins in all three."""
        return balanced_distribution(self.D, self.k, self.structure, self.negative)
