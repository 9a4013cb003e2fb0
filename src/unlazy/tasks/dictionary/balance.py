"""Parity patterns with real-valued input structure and class balance, for one compiled program.

    (1 − structure)·[uniform bits] + structure·[relevant patterns all absent or all present],
    then classes reweighted

The background bits are always uniform. `structure` = ½ is the distribution of Table 1 (po = ½);
`structure` = 0 has no input structure. `negative` is the probability of class −1; the distribution
within each class is unchanged.

Reference: shi2022, Appendix E.2.2 (class imbalance), Appendix C (the distribution).
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
    """Pattern distribution with class probabilities 1 − `negative` and `negative`."""

    negative: Float[Array, ""]

    @property
    def count_distribution(self) -> Float[Array, " {self.k}+1"]:
        """P(Σ_A φ̃ = s), each class scaled to its probability."""
        mass = PatternDistribution(
            self.weight, self.p, self.q, self.D, self.k, self.P
        ).count_distribution
        is_positive = self.label_of_count > 0
        positive = mass @ is_positive.astype(mass.dtype)
        return mass * jnp.where(
            is_positive, (1 - self.negative) / positive, self.negative / (1 - positive)
        )

    def _relevant(self, fraction: Float[Array, ""]) -> Float[Array, ""]:
        return fraction

    def mass(
        self, on: Int[Array | np.ndarray, " p"], off: Int[Array | np.ndarray, " p"]
    ) -> Float[Array, " p"]:
        """Return P(φ̃): given the count, all subsets of A are equally likely."""
        ways = jnp.array([math.comb(self.k, s) for s in range(self.k + 1)], jnp.result_type(float))
        return (self.count_distribution / ways)[on] * 0.5 ** (self.D - self.k)

    def draw(self, n: int, relevant: Bool[Array, " D"], *, key: PRNGKeyArray) -> Bool[Array, "n D"]:
        """Draw the number of relevant patterns, a subset of that size, and the background."""
        key_count, key_subset, key_background = jax.random.split(key, 3)
        count = categorical(key_count, self.count_distribution, n)
        u = jax.random.uniform(key_subset, (n, self.k), jnp.float32)
        rank = jnp.sum(u[:, :, None] > u[:, None, :], axis=2)  # n k
        present = rademacher(key_background, (n, self.D)) > 0
        positions = jnp.nonzero(relevant, size=self.k)[0]
        return present.at[:, positions].set(rank < count[:, None])


def balanced_distribution(
    D: int, k: int, structure: float | Array, negative: float | Array
) -> BalancedPatternDistribution:
    """Return the mixture of uniform bits, all absent and all present, with parity labels."""
    structure = jnp.asarray(structure)
    return BalancedPatternDistribution(
        weight=jnp.stack([1 - structure, structure / 2, structure / 2]),
        p=jnp.array([0.5, 0.0, 1.0]),
        q=jnp.full(3, 0.5),
        D=D,
        k=k,
        P=parity(k),
        negative=jnp.asarray(negative),
    )


class BalancedParity(PatternFamily):
    """Parity labels with given input structure and class balance."""

    structure: float = eqx.field(converter=float, default=0.5, kw_only=True)
    negative: float = eqx.field(converter=float, default=0.5, kw_only=True)

    def __check_init__(self) -> None:
        self._check_sizes()
        require(
            self.k % 2 == 1,
            f"k must be odd, so that the structured inputs have opposite labels, got {self.k}.",
        )
        require(
            0 <= self.structure <= 1,
            f"structure (a fraction) must lie in [0, 1], got {self.structure}.",
        )
        require(
            0 < self.negative < 1,
            f"negative (the fraction of class −1) must lie in (0, 1), got {self.negative}.",
        )

    @property
    def distribution(self) -> BalancedPatternDistribution:
        """Mixture of uniform bits, all absent and all present, with uniform background."""
        return balanced_distribution(self.D, self.k, self.structure, self.negative)
