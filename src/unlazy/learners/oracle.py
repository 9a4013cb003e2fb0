"""The statistical query model: a learner that sees no examples, only averages within a tolerance.

A query is a function q(x, y) ∈ [−1, 1]; the oracle answers with a number within `tolerance` of E q(x, y). Three ways to answer:
`honest` gives the mean itself, `adversarial` goes as far as it may towards what coin-flip labels would give, `sampled` averages over fresh
examples, as many as keep within the tolerance with certainty for all purposes. Every answer is checked, whatever made it.

Reference: shi2022, Section 4 and Appendix D (after Kearns, 1998).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from unlazy.core.errors import require

Mode = Literal["honest", "adversarial", "sampled"]
#: q(x, y) for all points of a population: one row a point, one column a query.
Query = Callable[[Float[Array, "p r"], Float[Array, " p"]], Float[Array, "p q"]]
#: Probability with which the average over a sample may leave the tolerance, by Hoeffding's inequality.
MISS = 1e-9
#: Rounding of the answers that does not count as leaving the tolerance.
ROUNDING = 1e-5


class Population(eqx.Module):
    """All inputs with their weights and labels: the law over which an oracle averages."""

    x: Float[Array, "p r"]
    y: Float[Array, " p"]
    weight: Float[Array, " p"]

    def mean(self, values: Float[Array, "p q"]) -> Float[Array, " q"]:
        """Average each column."""
        return self.weight @ values


class Oracle(eqx.Module):
    """Answers queries about a population. `asked` counts them; asking gives answers and the oracle with its new count."""

    population: Population
    tolerance: float | Float[Array, ""]
    mode: Mode = eqx.field(static=True, default="honest")
    asked: Int[Array, ""] = eqx.field(default_factory=lambda: jnp.zeros((), int))
    sample_size: int = eqx.field(static=True, default=0)

    def __check_init__(self) -> None:
        """Refuse a mode that does not exist."""
        require(self.mode in get_args(Mode), f"mode must be one of {', '.join(get_args(Mode))}, but is {self.mode!r}.")

    def ask(self, query: Query, *, key: PRNGKeyArray) -> tuple[Float[Array, " q"], Oracle]:
        """Answer all columns of a query."""
        population = self.population
        values = query(population.x, population.y)
        truth = population.mean(values)
        if self.mode == "adversarial":
            blind = (truth + population.mean(query(population.x, -population.y))) / 2
            answer = truth + jnp.clip(blind - truth, -self.tolerance, self.tolerance)
        elif self.mode == "sampled":
            answer = _shares(key, population.weight, self.sample_size) @ values
        else:
            answer = truth
        return self.answer(truth, answer)

    def answer(self, truth: Float[Array, " q"], answer: Float[Array, " q"]) -> tuple[Float[Array, " q"], Oracle]:
        """Count the answers, and refuse one that leaves the tolerance."""
        outside = jnp.any(jnp.abs(answer - truth) > self.tolerance + ROUNDING)
        answer = eqx.error_if(answer, outside, "An answer lies outside the tolerance of the statistical query oracle.")
        return answer, eqx.tree_at(lambda oracle: oracle.asked, self, self.asked + truth.size)


def _shares(key: PRNGKeyArray, weight: Float[Array, " p"], n: int) -> Float[Array, " p"]:
    """The share of each point of a population among `n` independent draws."""
    u = jax.random.uniform(key, (n,), jnp.float32)
    drawn = jnp.minimum(jnp.searchsorted(jnp.cumsum(weight), u), len(weight) - 1)
    return jnp.zeros_like(weight).at[drawn].add(1 / n)


def examples_needed(tolerance: float) -> int:
    """2·log(2/δ)/τ²: examples whose average of a query in [−1, 1] is within τ of its mean but for a probability δ = `MISS`."""
    return math.ceil(2 * math.log(2 / MISS) / tolerance**2)
