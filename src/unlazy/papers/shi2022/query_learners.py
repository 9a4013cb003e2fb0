"""Learners that see the data through a statistical query oracle alone: no examples, only averages
within a tolerance.

Both ask about inputs by their coordinates in the dictionary, which they are thus told; what is
hidden is which patterns matter. Inputs are centred, so that a pattern is present where its
coordinate is positive.

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
    """A model that reads off an input which patterns are present.

    `dictionary`: one row a pattern; None: inputs are coordinates.
    """

    dictionary: Float[Array, "D d"] | None

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        return self.score(jnp.sign(x if self.dictionary is None else x @ self.dictionary.T))

    @abstractmethod
    def score(self, signs: Float[Array, "n D"]) -> Float[Array, " n"]:
        """Scores by signs: +1 where a pattern is present, −1 where it is not."""

    def enter(self, basis: Float[Array, "r d"]) -> Self:
        inner = basis.T if self.dictionary is None else self.dictionary @ basis.T  # D r
        result: Self = eqx.tree_at(
            lambda model: model.dictionary, self, inner, is_leaf=lambda leaf: leaf is None
        )
        return result


class CountLabels(PatternModel):
    """A label for each number of `chosen` patterns that are present.

    `answers` = what the oracle said of every pattern's correlation.
    """

    answers: Float[Array, " D"]
    chosen: Float[Array, " D"]
    labels: Float[Array, " counts"]

    def score(self, signs: Float[Array, "n D"]) -> Float[Array, " n"]:
        return counts(signs, self.chosen, len(self.labels)) @ self.labels


class ParityLabel(PatternModel):
    """The product of the signs of the patterns in `subset`.

    `answer` = what the oracle said of its correlation with the label.
    """

    subset: Int[Array, " k"]
    answer: Float[Array, ""]

    def score(self, signs: Float[Array, "n D"]) -> Float[Array, " n"]:
        return jnp.prod(signs[:, self.subset], axis=1)


def counts(
    signs: Float[Array, "n D"], chosen: Float[Array, " D"], most: int
) -> Float[Array, "n most"]:
    """Which of the numbers 0 … most − 1 of chosen patterns are present."""
    return jax.nn.one_hot(jnp.round((signs + 1) / 2 @ chosen).astype(int), most)


class QueryLearner(Learner):
    """Base of learners that ask an `oracle` about data with k relevant patterns; `n` examples are
    never looked at.
    """

    oracle: QueryOracle
    k: int = eqx.field(static=True)

    def suits(self, outputs: Outputs) -> bool:
        return outputs.kind == "signs"

    @abstractmethod
    def learn(
        self, population: Population, dictionary: Float[Array, "D d"] | None, *, key: PRNGKeyArray
    ) -> tuple[PatternModel, int]:
        """The model, and the number of queries."""

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        _, key_data, key_answers = keys_of(key)
        population = self.oracle.population(sampler, key_data)
        require(
            self.k <= population.x.shape[1],
            f"k={self.k} of {population.x.shape[1]} patterns cannot be relevant.",
        )
        model, asked = self.learn(population, sampler.basis, key=key_answers)
        # No examples were seen: fresh ones stand for them.
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
    """Asks for the correlation E[y·s_j] of every pattern's sign with the label, keeps the k
    greatest that stand out from the tolerance, and asks for the label of each number of them: D + k
    + 1 queries.
    """

    def learn(
        self, population: Population, dictionary: Float[Array, "D d"] | None, *, key: PRNGKeyArray
    ) -> tuple[CountLabels, int]:
        key_patterns, key_labels = jax.random.split(key)
        signs = jnp.sign(population.x)
        answers = self.oracle.ask(lambda x, y: y[:, None] * signs, population, key=key_patterns)
        _, best = jax.lax.top_k(answers, self.k)
        # Beyond twice the tolerance: an answer of at most τ may hide a correlation of zero.
        chosen = jnp.zeros_like(answers).at[best].set(answers[best] > 2 * self.oracle.tolerance)
        present = counts(signs, chosen, self.k + 1)
        labels = self.oracle.ask(lambda x, y: y[:, None] * present, population, key=key_labels)
        return CountLabels(dictionary, answers, chosen, labels), len(answers) + len(labels)


class ParitySearch(QueryLearner):
    """Asks for the correlation of the label with each of the C(D, k) parities, and keeps the
    greatest.
    """

    def __check_init__(self) -> None:
        require(
            self.k % 2 == 1, f"The label is the product of k signs for odd k only, but k={self.k}."
        )

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
