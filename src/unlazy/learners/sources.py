"""Gradient estimators: sample, online, population and statistical query oracle.

`GradientDescent.source` selects the estimator. `material` prepares the data before training; then
`fold` computes a loss and its gradient for each step.

- `SampleGradients`: a fixed sample of n examples, full-batch or in minibatches, in a new random
  order per epoch.
- `FreshGradients`: new examples at each step.
- `PopulationGradients`: the exact population, if the data provide it.
- `QueryGradients`: a statistical query oracle that returns each coordinate within a tolerance.
  Other learners may use `QueryOracle` for any query.
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
#: A step of a stage: carry, (loss, gradient) as a function of the groups, batch, and step number.
Step = Callable[[Any, Callable[[Groups], tuple[Array, Groups]], Any, Int[Array, ""]], Any]

#: Gradients over larger batches are sums over chunks of at most this many rows, to limit memory.
CHUNK = 4096
Mode = Literal["honest", "adversarial", "sampled"]
#: q(x, y) ∈ [−1, 1] for all points of a population, one row per point, one column per query.
Query = Callable[[Float[Array, "p r"], Float[Array, " p"]], Float[Array, "p q"]]
#: Probability that a sample mean is outside the tolerance, by Hoeffding's inequality.
MISS = 1e-9
#: Points of the sample that replaces a population with too many points.
POINTS = 20_000
#: Rounding error of the answers that is allowed beyond the tolerance.
ROUNDING = 1e-5


def chunks(rows: int) -> int:
    """Return the smallest number of equal chunks of at most `CHUNK` rows, or 1 if none divides."""
    fewest = -(-rows // CHUNK)
    return next((count for count in range(fewest, 4 * fewest) if rows % count == 0), 1)


def batch_gradient(
    loss: BatchLoss, groups: Groups, x: Array, y: Array, weight: Array
) -> tuple[Float[Array, ""], Groups]:
    """Return the mean loss over a batch and its gradient, summed over chunks."""
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
    """Base class of gradient estimators."""

    @property
    def fresh(self) -> bool:
        """Whether every step draws new examples."""
        return False

    def accept(self, loss: str) -> None:
        """Raise `BadInput` if the loss is not supported."""

    @abstractmethod
    def material(self, sampler: Sampler, n: int, key: PRNGKeyArray) -> Any:
        """Return the data for training: a batch, a population, or the sampler."""

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
        """Perform the steps span[0] ≤ t < span[1] with example weights `weigh(batch, whole)`."""

    def queries(self, groups: Groups, steps: int) -> int | None:
        """Return the number of queries of this many steps, or None if they are not counted."""
        return None


def _answer(loss: BatchLoss, batch: Any, weight: Array) -> Callable[[Groups], tuple[Array, Groups]]:
    return lambda groups: batch_gradient(loss, groups, batch.x, batch.y, weight)


class SampleGradients(GradientSource):
    """Gradients on a fixed sample."""

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
        """Use the whole sample, or the next minibatch in the epoch's random order.

        The order depends only on the epoch, so a span may begin inside an epoch.
        """
        (begin, end), sample = span, material

        def go(t: Any, carry: Any, part: Any) -> Any:
            return step(carry, _answer(loss, part, weigh(part, sample)), part, t)

        if batch is None or batch >= len(sample.y):
            return jax.lax.fori_loop(begin, end, lambda t, c: go(t, c, sample), carry)
        length = len(sample.y) // batch  # steps per epoch

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
    """Gradients on fresh examples at each step (online SGD)."""

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
        require(batch is not None, "FreshGradients requires a batch size.")

        def go(t: Any, carry: Any) -> Any:
            part = material.draw(batch, jax.random.fold_in(key, t))
            return step(carry, _answer(loss, part, weigh(part, part)), part, t)

        return jax.lax.fori_loop(span[0], span[1], go, carry)


class PopulationGradients(GradientSource):
    """Gradients of the population loss."""

    KEY = "LawGradients"

    def material(self, sampler: Sampler, n: int, key: PRNGKeyArray) -> Any:
        if sampler.population is None:
            raise BadInput(
                "The data do not provide an exact population. Use a sample or a smaller task."
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
    """Return n = 2·log(2/δ)/τ², for which a mean over n examples is within τ of the expectation.

    It holds for queries in [−1, 1] with probability 1 − δ, where δ = `MISS`.
    """
    return math.ceil(2 * math.log(2 / MISS) / tolerance**2)


class QueryOracle(eqx.Module):
    """A statistical query oracle: it returns E[q(x, y)] within `tolerance`, and no examples.

    A query is a function q(x, y) ∈ [−1, 1]. `mode`: "honest" returns the expectation, "adversarial"
    moves it by up to the tolerance towards its value for uniform random labels, and "sampled"
    averages over `examples` draws. If the population has too many points, a sample of `points`
    replaces it. Every answer is checked against the tolerance.

    Reference: shi2022, Section 4 and Appendix D (after Kearns, 1998).
    """

    tolerance: float = eqx.field(converter=float)
    mode: Mode = eqx.field(static=True, default="honest")
    points: int = eqx.field(static=True, default=POINTS)
    examples: int = eqx.field(static=True, default=0)

    @classmethod
    def of(cls, tolerance: float, mode: Mode = "honest") -> QueryOracle:
        """Return an oracle with the number of examples that its tolerance requires."""
        return cls(tolerance, mode, examples=examples_needed(tolerance) if mode == "sampled" else 0)

    def __check_init__(self) -> None:
        require_one_of("mode", self.mode, get_args(Mode))
        require(0 < self.tolerance <= 1, f"tolerance must be in (0, 1], got {self.tolerance}.")
        require(
            self.mode != "sampled" or self.examples > 0,
            "mode='sampled' requires examples > 0; use `QueryOracle.of`.",
        )

    def population(self, sampler: Sampler, key: PRNGKeyArray) -> Population:
        """Return the exact population if available, otherwise a sample of `points`."""
        population = None if sampler.population is None else sampler.population()
        if isinstance(population, Population):
            return population
        x, y = sampler.draw(self.points, key)
        return Population(x, y, jnp.full(self.points, 1 / self.points))

    def ask(self, query: Query, population: Population, *, key: PRNGKeyArray) -> Float[Array, " q"]:
        """Return the answers to all columns of a query."""

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
        """Return answers near the expectations `truth`, as pytrees.

        `mean(y, weight)` are the expectations for other labels and weights. `scales` are bounds on
        the absolute values of the queries, which multiply the tolerance.
        """
        given = truth
        if self.mode == "adversarial":
            flipped = mean(-population.y, population.weight)
            bound = jax.tree.map(lambda scale: self.tolerance * scale, scales)
            given = jax.tree.map(
                lambda g, f, m: g + jnp.clip((f - g) / 2, -m, m), truth, flipped, bound
            )
        elif self.mode == "sampled":
            given = mean(population.y, frequencies(key, population.weight, self.examples))
        return within(given, truth, scales, self.tolerance)


def within(given: Any, truth: Any, scales: Any, tolerance: Any) -> Any:
    """Return the answers, or NaN for all of them if one is outside the tolerance.

    The trial is then recorded as diverged. An error raised inside the program would end all its
    trials and prevent caching.
    """
    gaps = jax.tree.map(
        lambda a, b, s: jnp.max(jnp.abs(a - b) - (tolerance + ROUNDING) * s, initial=-jnp.inf),
        given,
        truth,
        scales,
    )
    inside = jnp.max(jnp.stack(jax.tree.leaves(gaps))) <= 0
    return jax.tree.map(lambda leaf: jnp.where(inside, leaf, jnp.nan), given)


def frequencies(key: PRNGKeyArray, weight: Float[Array, " p"], n: int) -> Float[Array, " p"]:
    """Draw the fraction of each point of a population among `n` independent draws."""
    u = jax.random.uniform(key, (n,), jnp.float32)
    drawn = jnp.minimum(jnp.searchsorted(jnp.cumsum(weight), u), len(weight) - 1)
    return jnp.zeros_like(weight).at[drawn].add(1 / n)


class QueryGradients(GradientSource):
    """Gradients from a statistical query oracle, one query per coordinate.

    Each coordinate is divided by its bound from `max_slopes`, to lie in [−1, 1]. This requires
    losses with derivatives of at most 1, hinge and logistic. If the sampler has a basis, queries
    are coordinates in it; unlike training, tolerances do not commute with rotations.
    """

    oracle: QueryOracle

    @classmethod
    def of(cls, tolerance: float, mode: Mode = "honest") -> QueryGradients:
        """Return the source with the oracle `QueryOracle.of(tolerance, mode)`."""
        return cls(QueryOracle.of(tolerance, mode))

    def accept(self, loss: str) -> None:
        known = ("hinge", "logistic")
        require(
            loss in known,
            f"Statistical queries require the loss {' or '.join(known)}, got {loss}.",
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
            f"{type(model).__name__} does not support statistical queries (no `max_slopes`).",
        )
        require(batch is None, "Statistical queries average over the population; omit batch.")
        population: Population = material
        whole: WeightedBatch = population.batch
        # Class weights multiply queries and their bounds; the weights of the population do not.
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
        # Derivatives by weights outside the span of the inputs are zero and need no query.
        leaves = jax.tree.leaves(groups, is_leaf=lambda leaf: isinstance(leaf, SplitWeights))
        return steps * sum(
            leaf.inside.size if isinstance(leaf, SplitWeights) else leaf.size for leaf in leaves
        )
