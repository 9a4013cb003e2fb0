"""Learnable parities: half of the inputs are uniform, in the other half all parity bits are equal.

    z ∈ {±1}^d, x = z/√d;   A ⊂ [d], |A| = k odd;   y = Π_{j∈A} z_j
    with probability `structured` all bits of A equal one uniform bit, else all bits are uniform

`CountedBits` is the projection onto A: the number of ones in A determines the label, and the output
of a network whose weights are equal on A and zero elsewhere.

`where` = A. The label is uncorrelated with every bit outside A. On the all-equal part each bit of A
equals the label.

Reference: daniely2020, Section 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.core.random import bernoulli, categorical, rademacher
from unlazy.tasks.base import Batch, Family, Population, Task
from unlazy.tasks.spectrum import corners

#: Maximum number of bits for which the exact distribution is listed.
LISTED = 14


class EqualBitsTask(Task):
    """Parity of known bits."""

    where: Int[Array, " k"]
    structured: float | Float[Array, ""]
    d: int = eqx.field(static=True)

    @property
    def dimension(self) -> int:
        return self.d

    @property
    def k(self) -> int:
        """The number of bits in the parity."""
        return len(self.where)

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        return self.draw_parts(n, key)[0]

    def draw_parts(self, n: int, key: PRNGKeyArray) -> tuple[Batch, Bool[Array, " n"]]:
        """Draw examples, and a mask of those from the all-equal part."""
        key_bits, key_sign, key_part = jax.random.split(key, 3)
        z = rademacher(key_bits, (n, self.d))
        equal = bernoulli(key_part, jnp.full(n, self.structured))
        sign = rademacher(key_sign, (n,))
        bits = jnp.where(equal[:, None], sign[:, None], z[:, self.where])
        return Batch(
            z.at[:, self.where].set(bits) / math.sqrt(self.d), jnp.prod(bits, axis=1)
        ), equal

    @property
    def population(self) -> Callable[[], Population] | None:
        """All inputs with their probabilities if d ≤ `LISTED`, otherwise None."""
        return self._distribution if self.d <= LISTED else None

    def _distribution(self) -> Population:
        z = jnp.asarray(corners(self.d), jnp.result_type(float))
        bits = z[:, self.where]
        equal = jnp.all(bits == bits[:, :1], axis=1)
        structured = jnp.where(equal, self.structured * 2.0 ** (self.k - 1), 0)
        weight = (1 - self.structured + structured) / len(z)
        return Population(z / math.sqrt(self.d), jnp.prod(bits, axis=1), weight)

    def target(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        return jnp.prod(jnp.sign(x[:, self.where]), axis=1)

    @property
    def features(self) -> Float[Array, "1 d"]:
        """Direction of the sum of the bits in A."""
        return jnp.zeros((1, self.d)).at[0, self.where].set(1 / math.sqrt(self.k))

    @property
    def chance(self) -> Float[Array, ""]:
        """½: both labels are equally likely, since k is odd."""
        return jnp.asarray(0.5)


class EqualBits(Family):
    """Random choice of the k bits."""

    d: int = eqx.field(static=True, kw_only=True)
    k: int = eqx.field(static=True, kw_only=True)
    structured: float = eqx.field(converter=float, default=0.5, kw_only=True)

    def __check_init__(self) -> None:
        require(
            isinstance(self.k, int) and self.k % 2 == 1,
            f"k must be odd, so that both labels are equally likely, got {self.k}.",
        )
        require(3 <= self.k <= self.d, f"3 ≤ k ≤ d is required, got k={self.k}, d={self.d}.")
        require(
            0 <= self.structured <= 1,
            f"structured (a fraction) must lie in [0, 1], got {self.structured}.",
        )

    @property
    def dimension(self) -> int:
        return self.d

    def task(self, *, key: PRNGKeyArray) -> EqualBitsTask:
        return EqualBitsTask(jax.random.permutation(key, self.d)[: self.k], self.structured, self.d)


class CountedBitsTask(Task):
    """Distribution of one coordinate, ξ = Σ_{j∈A} z_j/√(k·d), with k + 1 atoms."""

    structured: float | Float[Array, ""]
    d: int = eqx.field(static=True)
    k: int = eqx.field(static=True)

    @property
    def dimension(self) -> int:
        return 1

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        distribution = self._distribution()
        chosen = categorical(key, distribution.weight, n)
        return Batch(distribution.x[chosen], distribution.y[chosen])

    @property
    def population(self) -> Callable[[], Population]:
        """All atoms, from no bit of A set to all of them."""
        return self._distribution

    def _distribution(self) -> Population:
        minus = np.arange(self.k, -1, -1)  # bits of A that are −1
        uniform = scipy.special.comb(self.k, minus) / 2.0**self.k
        equal = np.where((minus == 0) | (minus == self.k), 0.5, 0.0)
        number = jnp.result_type(float)
        return Population(
            jnp.asarray((self.k - 2 * minus)[:, None] / math.sqrt(self.k * self.d), number),
            jnp.asarray(1.0 - 2.0 * (minus % 2), number),
            (1 - self.structured) * jnp.asarray(uniform, number)
            + self.structured * jnp.asarray(equal, number),
        )

    def target(self, x: Float[Array, "n 1"]) -> Float[Array, " n"]:
        """Return the parity of the number of bits that are −1."""
        minus = jnp.round((self.k - x[:, 0] * math.sqrt(self.k * self.d)) / 2)
        return 1 - 2 * jnp.mod(minus, 2)

    @property
    def features(self) -> Float[Array, "1 1"]:
        return jnp.ones((1, 1))

    @property
    def chance(self) -> Float[Array, ""]:
        """½: both labels are equally likely, since k is odd."""
        return jnp.asarray(0.5)


class CountedBits(Family):
    """`EqualBits` as a function of the number of ones in A.

    This is the view of a network whose weights are equal on all bits of A and zero elsewhere. The
    coordinate is that along the unit vector of A. Gradient descent on its weight, a bias and a
    second layer equals gradient descent on d bits as long as the weights keep this form. On the
    exact distribution they do.
    """

    d: int = eqx.field(static=True, kw_only=True)
    k: int = eqx.field(static=True, kw_only=True)
    structured: float = eqx.field(converter=float, default=0.5, kw_only=True)

    def __check_init__(self) -> None:
        EqualBits(d=self.d, k=self.k, structured=self.structured)  # the same constraints apply

    @property
    def dimension(self) -> int:
        return 1

    def task(self, *, key: PRNGKeyArray) -> CountedBitsTask:
        """Return the only task; the choice of A does not matter."""
        return CountedBitsTask(self.structured, self.d, self.k)
