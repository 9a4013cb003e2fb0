"""Where a step of training gets its gradient from: the seam of the one training loop.

A source is chosen with the learner (`GradientDescent.source`) and knows nothing of any task. Before
training it takes what it needs from the sampler (`material`); then it answers each step with a loss
and its gradient.

- `SampleGradients`: a fixed sample of n examples, whole or by minibatches in a new random order
  each epoch.
- `FreshGradients`: examples that were never seen before, at each step.
- `PopulationGradients`: the exact population, where the data offer it.
- `QueryGradients`: a statistical query oracle that answers each coordinate within a tolerance.
  Learners that are no gradient descent may
  ask the same `QueryOracle` any query.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from unlazy.core.errors import BadInput, require, require_one_of
from unlazy.core.random import shuffled
from unlazy.networks.base import Network, SlopeBounded, SplitWeights
from unlazy.tasks.base import Population, Sampler, WeightedBatch

Groups = dict[str, Any]  # parameter group name -> arrays
#: Mean loss of parameter groups over examples with weights.
BatchLoss = Callable[[Groups, Array, Array, Array], Float[Array, ""]]
#: A step of a stage: carry, (loss, gradient) as a function of the groups, the batch to look at, and
#: the number of the step.
Step = Callable[[Any, Callable[[Groups], tuple[Array, Groups]], Any, Int[Array, ""]], Any]

#: Gradients over larger batches are summed up over pieces of at most this many rows, so that memory
#: stays flat.
CHUNK = 4096
Mode = Literal["honest", "adversarial", "sampled"]
#: q(x, y) ∈ [−1, 1] for all points of a population: one row a point, one column a query.
Query = Callable[[Float[Array, "p r"], Float[Array, " p"]], Float[Array, "p q"]]
#: Probability with which the average over a sample may leave the tolerance, by Hoeffding's
#: inequality.
MISS = 1e-9
#: Points of a sample that stands for a law whose points are too many to be listed.
POINTS = 20_000
#: Rounding of the answers that does not count as leaving the tolerance.
ROUNDING = 1e-5


def chunks(rows: int) -> int:
    """Into how many equal pieces a batch is cut: the fewest of at most `PIECE` rows, or one where
    no fair cut exists.
    """
    fewest = -(-rows // CHUNK)
    return next((count for count in range(fewest, 4 * fewest) if rows % count == 0), 1)


def batch_gradient(
    loss: BatchLoss, groups: Groups, x: Array, y: Array, weight: Array
) -> tuple[Float[Array, ""], Groups]:
    """Mean loss over a batch and its gradient, summed up over pieces of bounded size."""
    value_and_gradient = jax.value_and_grad(loss)
    count = chunks(len(y))
    if count == 1:
        return value_and_gradient(groups, x, y, weight)

    def add(total: Any, chunk: Any) -> Any:
        return jax.tree.map(jnp.add, total, value_and_gradient(groups, *chunk)), None

    split = jax.tree.map(lambda leaf: leaf.reshape(count, -1, *leaf.shape[1:]), (x, y, weight))
    zero = jax.tree.map(jnp.zeros_like, (jnp.zeros(()), groups))
    total, _ = jax.lax.scan(add, zero, split)
    result: tuple[Float[Array, ""], Groups] = jax.tree.map(lambda leaf: leaf / count, total)
    return result


class GradientSource(eqx.Module):
    """What a learner's steps may ask."""

    @property
    def fresh(self) -> bool:
        """Whether every step takes new examples, so that n is counted by steps."""
        return False

    def accept(self, loss: str) -> None:
        """Refuse a loss whose gradient it cannot give."""

    @abstractmethod
    def material(self, sampler: Sampler, n: int, key: PRNGKeyArray) -> Any:
        """What training needs of the data: a batch, a population, or the sampler itself."""

    @abstractmethod
    def fold(
        self,
        step: Step,
        carry: Any,
        material: Any,
        span: Int[Array, " 2"],
        *,
        batch: int | None,
        loss: BatchLoss,
        weigh: Callable[[Any, Any], Array],
        model: Network,
        key: PRNGKeyArray,
    ) -> Any:
        """Do the steps span[0] ≤ t < span[1], each with the gradient that the source gives.

        `weigh(batch, whole)`: weights of examples.
        """

    def queries(self, groups: Groups, steps: int) -> int | None:
        """How many queries so many steps on these groups ask, where they are counted."""
        return None


def _answer(loss: BatchLoss, batch: Any, weight: Array) -> Callable[[Groups], tuple[Array, Groups]]:
    return lambda groups: batch_gradient(loss, groups, batch.x, batch.y, weight)


class SampleGradients(GradientSource):
    """A fixed sample."""

    def material(self, sampler: Sampler, n: int, key: PRNGKeyArray) -> Any:
        return sampler.draw(n, key)

    def fold(
        self,
        step: Step,
        carry: Any,
        material: Any,
        span: Any,
        *,
        batch: Any,
        loss: Any,
        weigh: Any,
        model: Any,
        key: Any,
    ) -> Any:
        """On the whole sample, or on the next part of the epoch's random order.

        An epoch's order depends on the epoch alone, so a span may begin in the middle of one.
        """
        (begin, end), sample = span, material

        def go(t: Any, carry: Any, part: Any) -> Any:
            return step(carry, _answer(loss, part, weigh(part, sample)), part, t)

        if batch is None or batch >= len(sample.y):
            return jax.lax.fori_loop(begin, end, lambda t, c: go(t, c, sample), carry)
        length = len(sample.y) // batch  # steps of an epoch

        def epoch(index: Int[Array, ""], carry: Any) -> Any:
            order = shuffled(jax.random.fold_in(key, index), len(sample.y))
            mixed = jax.tree.map(lambda leaf: leaf[order], sample)
            first = index * length

            def part(t: Int[Array, ""]) -> Any:
                return jax.tree.map(
                    lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, (t - first) * batch, batch),
                    mixed,
                )

            low, high = jnp.maximum(begin, first), jnp.minimum(end, first + length)
            return jax.lax.fori_loop(low, high, lambda t, c: go(t, c, part(t)), carry)

        return jax.lax.fori_loop(begin // length, -(-end // length), epoch, carry)


class FreshGradients(GradientSource):
    """Fresh examples at each step: one pass over the data."""

    @property
    def fresh(self) -> bool:
        return True

    def material(self, sampler: Sampler, n: int, key: PRNGKeyArray) -> Any:
        return sampler

    def fold(
        self,
        step: Step,
        carry: Any,
        material: Any,
        span: Any,
        *,
        batch: Any,
        loss: Any,
        weigh: Any,
        model: Any,
        key: Any,
    ) -> Any:
        require(batch is not None, "Fresh data need a batch size.")

        def go(t: Any, carry: Any) -> Any:
            part = material.draw(batch, jax.random.fold_in(key, t))
            return step(carry, _answer(loss, part, weigh(part, part)), part, t)

        return jax.lax.fori_loop(span[0], span[1], go, carry)


class PopulationGradients(GradientSource):
    """The exact population: every step sees the expected loss."""

    KEY = "LawGradients"

    def material(self, sampler: Sampler, n: int, key: PRNGKeyArray) -> Any:
        if sampler.population is None:
            raise BadInput(
                "These data do not offer their exact law: take a sample, or a smaller task."
            )
        return sampler.population()

    def fold(
        self,
        step: Step,
        carry: Any,
        material: Any,
        span: Any,
        *,
        batch: Any,
        loss: Any,
        weigh: Any,
        model: Any,
        key: Any,
    ) -> Any:
        whole = material.batch
        answer = _answer(loss, whole, weigh(whole, whole))
        return jax.lax.fori_loop(span[0], span[1], lambda t, c: step(c, answer, whole, t), carry)


def examples_needed(tolerance: float) -> int:
    """2·log(2/δ)/τ²: examples whose average of a query in [−1, 1] is within τ of its mean but for a
    probability δ = `MISS`.
    """
    return math.ceil(2 * math.log(2 / MISS) / tolerance**2)


class QueryOracle(eqx.Module):
    """The statistical query model: who asks it sees no examples, only averages over the law, each
    within `tolerance` of the truth.

    A query is a function q(x, y) ∈ [−1, 1]. `honest` gives its mean itself, `adversarial` goes as
    far as it may towards what coin-flip labels would give, `sampled` averages over examples, as
    many as keep within the tolerance with certainty for all purposes. Where the law cannot be
    listed, a sample of `points` stands for it. Every answer is checked, whatever made it.

    Reference: shi2022, Section 4 and Appendix D (after Kearns, 1998).
    """

    tolerance: float = eqx.field(converter=float)
    mode: Mode = eqx.field(static=True, default="honest")
    points: int = eqx.field(static=True, default=POINTS)
    examples: int = eqx.field(static=True, default=0)

    @classmethod
    def of(cls, tolerance: float, mode: Mode = "honest") -> QueryOracle:
        """An oracle that, where it samples, takes as many examples as its tolerance needs."""
        return cls(tolerance, mode, examples=examples_needed(tolerance) if mode == "sampled" else 0)

    def __check_init__(self) -> None:
        require_one_of("mode", self.mode, get_args(Mode))
        require(0 < self.tolerance <= 1, f"tolerance lies in (0, 1], but is {self.tolerance}.")
        require(
            self.mode != "sampled" or self.examples > 0,
            "A sampled oracle needs a number of examples: make it with `QueryOracle.of`.",
        )

    def population(self, sampler: Sampler, key: PRNGKeyArray) -> Population:
        """What it averages over: the exact law where it is offered, or else a large sample that
        stands for it.
        """
        population = None if sampler.population is None else sampler.population()
        if isinstance(population, Population):
            return population
        x, y = sampler.draw(self.points, key)
        return Population(x, y, jnp.full(self.points, 1 / self.points))

    def ask(self, query: Query, population: Population, *, key: PRNGKeyArray) -> Float[Array, " q"]:
        """The answers to all columns of a query."""

        def mean(y: Array, weight: Array) -> Array:
            return weight @ query(population.x, y)

        truth = mean(population.y, population.weight)
        result: Array = self.answer(truth, mean, population, jnp.ones_like(truth), key=key)
        return result

    def answer(
        self,
        truth: Any,
        mean: Callable[[Array, Array], Any],
        population: Population,
        scales: Any,
        *,
        key: PRNGKeyArray,
    ) -> Any:
        """Answers near the `truth`, by trees of arrays. `mean(y, weight)`: the truth where labels
        and weights were these; `scales`: the greatest possible size of each query, by which it is
        divided before it is asked.
        """
        given = truth
        if self.mode == "adversarial":
            flipped = mean(-population.y, population.weight)
            most = jax.tree.map(lambda scale: self.tolerance * scale, scales)
            given = jax.tree.map(
                lambda g, f, m: g + jnp.clip((f - g) / 2, -m, m), truth, flipped, most
            )
        elif self.mode == "sampled":
            given = mean(population.y, shares(key, population.weight, self.examples))
        return within(given, truth, scales, self.tolerance)


def within(given: Any, truth: Any, scales: Any, tolerance: Any) -> Any:
    """The answers; where one of them lies outside the tolerance, none: all are NaN, so that the
    trial is recorded as diverged.

    An error raised from inside the program would end all trials that run with it, and keep the
    program from being cached.
    """
    gaps = jax.tree.map(
        lambda a, b, s: jnp.max(jnp.abs(a - b) - (tolerance + ROUNDING) * s, initial=-jnp.inf),
        given,
        truth,
        scales,
    )
    inside = jnp.max(jnp.stack(jax.tree.leaves(gaps))) <= 0
    return jax.tree.map(lambda leaf: jnp.where(inside, leaf, jnp.nan), given)


def shares(key: PRNGKeyArray, weight: Float[Array, " p"], n: int) -> Float[Array, " p"]:
    """The share of each point of a population among `n` independent draws."""
    u = jax.random.uniform(key, (n,), jnp.float32)
    drawn = jnp.minimum(jnp.searchsorted(jnp.cumsum(weight), u), len(weight) - 1)
    return jnp.zeros_like(weight).at[drawn].add(1 / n)


class QueryGradients(GradientSource):
    """A statistical query oracle: each coordinate of the gradient is a query, divided by its
    greatest possible size to lie in [−1, 1].

    The network says how large a slope can be (`max_slopes`), for losses whose own slope is at
    most 1: hinge and logistic. Queries are asked by coordinates in the sampler's basis where it has
    one: unlike training itself, tolerances do not commute with rotations.
    """

    oracle: QueryOracle

    @classmethod
    def of(cls, tolerance: float, mode: Mode = "honest") -> QueryGradients:
        """Of an oracle that, where it samples, takes as many examples as its tolerance needs."""
        return cls(QueryOracle.of(tolerance, mode))

    def accept(self, loss: str) -> None:
        known = ("hinge", "logistic")
        require(
            loss in known,
            f"Queries are bounded for a loss with a slope of at most 1 ({', '.join(known)}), "
            f"but the loss is {loss}.",
        )

    def material(self, sampler: Sampler, n: int, key: PRNGKeyArray) -> Population:
        return self.oracle.population(sampler, key)

    def fold(
        self,
        step: Step,
        carry: Any,
        material: Any,
        span: Any,
        *,
        batch: Any,
        loss: Any,
        weigh: Any,
        model: Any,
        key: Any,
    ) -> Any:
        require(
            isinstance(model, SlopeBounded),
            f"{type(model).__name__} does not say how large its slopes can be, as queries need.",
        )
        require(batch is None, "A query is about the whole law: leave the batch size out.")
        population: Population = material
        whole: WeightedBatch = population.batch
        # Class weights multiply queries, and so their greatest possible size; the weights of the
        # law itself do not.
        factor = weigh(whole, whole) / jnp.where(whole.weight > 0, whole.weight, 1.0)
        largest, heaviest = jnp.max(jnp.abs(population.x)), jnp.max(factor)

        def go(t: Any, carry: Any) -> Any:
            def answer(groups: Groups) -> tuple[Array, Groups]:
                def gradient(y: Array, weight: Array) -> tuple[Array, Groups]:
                    return batch_gradient(
                        loss, groups, population.x, y, weight * len(weight) * factor
                    )

                value, truth = gradient(population.y, population.weight)
                scales = jax.tree.map(
                    lambda scale: scale * heaviest,
                    model.put(groups).max_slopes(tuple(groups), largest),
                )
                key_step = jax.random.fold_in(key, t)
                return value, self.oracle.answer(
                    truth,
                    lambda y, weight: gradient(y, weight)[1],
                    population,
                    scales,
                    key=key_step,
                )

            return step(carry, answer, whole, t)

        return jax.lax.fori_loop(span[0], span[1], go, carry)

    def queries(self, groups: Groups, steps: int) -> int:
        # What lies outside of the span of the inputs has no slope: there is nothing to ask.
        leaves = jax.tree.leaves(groups, is_leaf=lambda leaf: isinstance(leaf, SplitWeights))
        return steps * sum(
            leaf.inside.size if isinstance(leaf, SplitWeights) else leaf.size for leaf in leaves
        )
