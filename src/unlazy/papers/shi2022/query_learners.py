"""Learners that access the data only through a statistical query oracle: expectations within a
tolerance, no examples.

Queries use the coordinates of inputs in the dictionary, which the learners know; the relevant
patterns are hidden. Inputs are centered, so a pattern is present if its coordinate is positive.

Reference: shi2022, Theorems 4 and 33.
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.core.metrics import Outputs
from unlazy.learners.base import SEEN, Learner, Trace, keys_of
from unlazy.learners.sources import QueryOracle
from unlazy.networks.base import Model
from unlazy.tasks.base import Population, Sampler


class PatternModel(Model):
    """Model of the signs of the patterns in an input.

    `dictionary`: patterns as rows; None: inputs are coordinates.
    """

    dictionary: Float[Array, "D d"] | None

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        return self.score(jnp.sign(x if self.dictionary is None else x @ self.dictionary.T))

    @abstractmethod
    def score(self, signs: Float[Array, "n D"]) -> Float[Array, " n"]:
        """Return scores; signs are +1 for patterns that are present, −1 for the others."""

    def enter(self, basis: Float[Array, "r d"]) -> Self:
        inner = basis.T if self.dictionary is None else self.dictionary @ basis.T  # D r
        result: Self = eqx.tree_at(
            lambda model: model.dictionary, self, inner, is_leaf=lambda leaf: leaf is None
        )
        return result


class CountLabels(PatternModel):
    """Label as a function of the number of `chosen` patterns that are present.

    `answers` = answers of the oracle on the correlation of each pattern with the label.
    """

    answers: Float[Array, " D"]
    chosen: Float[Array, " D"]
    labels: Float[Array, " counts"]

    def score(self, signs: Float[Array, "n D"]) -> Float[Array, " n"]:
        return counts(signs, self.chosen, len(self.labels)) @ self.labels


class ParityLabel(PatternModel):
    """Product of the signs of the patterns in `subset`.

    `answer` = answer of the oracle on its correlation with the label.
    """

    subset: Int[Array, " k"]
    answer: Float[Array, ""]

    def score(self, signs: Float[Array, "n D"]) -> Float[Array, " n"]:
        return jnp.prod(signs[:, self.subset], axis=1)


def counts(
    signs: Float[Array, "n D"], chosen: Float[Array, " D"], size: int
) -> Float[Array, "n size"]:
    """Return the number of chosen patterns present, 0 to size − 1, in one-hot form."""
    return jax.nn.one_hot(jnp.round((signs + 1) / 2 @ chosen).astype(int), size)


class QueryLearner(Learner):
    """Base class of learners with a query `oracle`, for k relevant patterns, without examples."""

    oracle: QueryOracle
    k: int = eqx.field(static=True)

    def suits(self, outputs: Outputs) -> bool:
        return outputs.kind == "signs"

    @abstractmethod
    def learn(
        self, population: Population, dictionary: Float[Array, "D d"] | None, *, key: PRNGKeyArray
    ) -> tuple[PatternModel, int]:
        """Return the model and the number of queries."""

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        _, key_data, key_answers = keys_of(key)
        population = self.oracle.population(sampler, key_data)
        require(
            self.k <= population.x.shape[1],
            f"`k` must be at most the number {population.x.shape[1]} of patterns, got {self.k}.",
        )
        model, asked = self.learn(population, sampler.basis, key=key_answers)
        # No examples were used; traces need some, so fresh ones are drawn.
        seen = sampler.draw(min(n, SEEN), key_data)
        notes = {"queries": jnp.full(1, float(asked))}
        return Trace(
            jax.tree.map(lambda leaf: leaf[None], model),
            jnp.full(1, jnp.nan),
            seen,
            self.recorded(n),
            notes,
        )


class CorrelationQueries(QueryLearner):
    """Learner with D + k + 1 queries.

    It queries the correlation E[y·s_j] of every pattern's sign with the label, and keeps the k
    largest of those above twice the tolerance. It then queries the label for each number of them.
    """

    def learn(
        self, population: Population, dictionary: Float[Array, "D d"] | None, *, key: PRNGKeyArray
    ) -> tuple[CountLabels, int]:
        key_patterns, key_labels = jax.random.split(key)
        signs = jnp.sign(population.x)
        answers = self.oracle.ask(lambda x, y: y[:, None] * signs, population, key=key_patterns)
        _, best = jax.lax.top_k(answers, self.k)
        # Twice the tolerance: the answer to a correlation of zero is at most τ.
        certain = (answers[best] > 2 * self.oracle.tolerance).astype(answers.dtype)
        chosen = jnp.zeros_like(answers).at[best].set(certain)
        present = counts(signs, chosen, self.k + 1)
        labels = self.oracle.ask(lambda x, y: y[:, None] * present, population, key=key_labels)
        return CountLabels(dictionary, answers, chosen, labels), len(answers) + len(labels)


class ParitySearch(QueryLearner):
    """Learner that queries the correlation of the label with each of the C(D, k) parities, and
    keeps the largest.
    """

    def __check_init__(self) -> None:
        # For even k the product of signs is the opposite of the label.
        require(self.k % 2 == 1, f"`k` must be odd, got {self.k}.")

    def work(self, n: int, r: int) -> float:
        return float(n) * self.k * math.comb(r, self.k)

    def learn(
        self, population: Population, dictionary: Float[Array, "D d"] | None, *, key: PRNGKeyArray
    ) -> tuple[ParityLabel, int]:
        subsets = jnp.asarray(
            np.array(list(itertools.combinations(range(population.x.shape[1]), self.k)))
        )  # C(D, k) k
        parities = jnp.prod(jnp.sign(population.x)[:, subsets], axis=2)
        answers = self.oracle.ask(lambda x, y: y[:, None] * parities, population, key=key)
        best = jnp.argmax(answers)
        return ParityLabel(dictionary, subsets[best], answers[best]), len(subsets)
