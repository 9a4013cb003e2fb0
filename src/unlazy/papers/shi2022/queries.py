"""Learners that see the data through a statistical query oracle alone, on data with and without input structure.

`correlation` asks for E[y z_j] of every pattern, keeps those that stand out from the tolerance and learns the label of each count of them;
`search` asks for the correlation with each of the C(D, k) parities; `descent` trains a two-layer network, where every coordinate of every
gradient is a query, scaled to [−1, 1].

Reference: shi2022, Theorems 4 and 33.
"""

from __future__ import annotations

import itertools
from typing import Any, Literal

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.lab.trials import Instrument
from unlazy.learners.oracle import Mode, Oracle, Population, examples_needed
from unlazy.networks.inits import MirroredInit
from unlazy.networks.two_layer import TwoLayer
from unlazy.tasks.dictionary.balance import BalancedParity
from unlazy.tasks.dictionary.patterns import HiddenPatterns
from unlazy.theory.statistical_queries import parity_dimension, queries_needed

Kind = Literal["correlation", "search", "descent"]
#: Up to so many patterns, the population is all 2^D inputs; beyond, a sample of `POINTS` is taken for it.
ENUMERATED = 14
POINTS = 20_000


def population_of(task: HiddenPatterns, *, key: PRNGKeyArray) -> Population:
    """All inputs with their exact weights where there are few, or else a large sample."""
    D = task.law.D
    if D > ENUMERATED:
        x, y = task.draw(POINTS, key)
        return Population(x, y, jnp.full(POINTS, 1 / POINTS))
    present = np.array(list(itertools.product((0, 1), repeat=D)))
    count = jnp.asarray(present) @ task.relevant
    # Given the count of relevant patterns, all inputs are equally likely: the background is fair coins, the relevant ones exchangeable.
    ways = jnp.zeros(task.law.k + 1).at[count].add(1.0)
    z = (present - task.mean) / task.law.moments.sigma
    return Population(jnp.asarray(z), task.law.label_of_count[count], (task.law.count_law / ways)[count])


def correlation(oracle: Oracle, task: HiddenPatterns, *, key: PRNGKeyArray) -> tuple[Any, Oracle]:
    """Relevant patterns by their correlation with the label; then the label of each number of them."""
    k, scale, mean = task.law.k, task.law.moments.sigma, task.mean
    keys = jax.random.split(key)

    def signs(x: Float[Array, "p D"]) -> Float[Array, "p D"]:
        return jnp.sign(x * scale + mean - 0.5)

    answers, oracle = oracle.ask(lambda x, y: y[:, None] * signs(x), key=keys[0])
    _, best = jax.lax.top_k(answers, k)
    # Beyond twice the tolerance: an answer of at most τ may hide a correlation of zero.
    chosen = jnp.zeros(len(answers)).at[best].set(answers[best] > 2 * oracle.tolerance)

    def counts(x: Float[Array, "p D"]) -> Float[Array, "p k+1"]:
        present = (signs(x) + 1) / 2
        return jax.nn.one_hot(jnp.round(present @ chosen).astype(int), k + 1)

    labels, oracle = oracle.ask(lambda x, y: y[:, None] * counts(x), key=keys[1])
    return lambda x: counts(x) @ labels, oracle


def search(oracle: Oracle, task: HiddenPatterns, *, key: PRNGKeyArray) -> tuple[Any, Oracle]:
    """The parity that correlates most, among all."""
    subsets = jnp.array(list(itertools.combinations(range(task.law.D), task.law.k)))  # C(D, k) k
    scale, mean = task.law.moments.sigma, task.mean

    def parities(x: Float[Array, "p D"]) -> Float[Array, "p C"]:
        # The label is +1 where the number of present patterns is odd, and k is odd: the product of signs.
        return jnp.prod(jnp.sign(x * scale + mean - 0.5)[:, subsets], axis=2)

    answers, oracle = oracle.ask(lambda x, y: y[:, None] * parities(x), key=key)
    best = jnp.argmax(answers)
    return lambda x: parities(x)[:, best], oracle


def descent(oracle: Oracle, task: HiddenPatterns, *, key: PRNGKeyArray, m: int = 10, steps: int = 300) -> tuple[Any, Oracle]:
    """Two weight-forgetting steps, then gradient descent on both layers, where every gradient coordinate is a query."""
    key_init, key_answers = jax.random.split(key)
    bias, w_rate, a_rate = 0.5, 0.3, 15 / m
    net = MirroredInit(m=m, w_scale=1 / task.law.k, b_scale=bias, a_scale=1.0)(task.law.D, key=key_init)
    largest = jnp.max(jnp.abs(oracle.population.x))

    def gradient(net: TwoLayer, oracle: Oracle, t: Array, smoothing: float | None) -> tuple[dict[str, Array], Oracle]:
        """The gradient of the hinge loss, each coordinate within the tolerance of its greatest possible size."""
        scales = {
            "w": jnp.broadcast_to(jnp.abs(net.a)[:, None] * largest, net.first_layer.shape),
            "b": jnp.abs(net.a),
            "a": jnp.ones_like(net.a),
        }
        flat, unflatten = jax.flatten_util.ravel_pytree(scales)

        def query(x: Array, y: Array) -> Array:
            def score(groups: dict[str, Array], row: Array) -> Array:
                return net.put(groups)(row[None], smoothing=smoothing)[0]

            groups = net.get(("w", "b", "a"))
            slopes = jax.vmap(lambda row: jax.flatten_util.ravel_pytree(jax.grad(score)(groups, row))[0])(x)
            active = y * net(x, smoothing=smoothing) < 1
            return -(y * active)[:, None] * slopes / jnp.maximum(flat, 1e-12)

        answers, oracle = oracle.ask(query, key=jax.random.fold_in(key_answers, t))
        return unflatten(answers * flat), oracle

    for t in (0, 1):  # the two steps that forget, of another form than all that follow
        found, oracle = gradient(net, oracle, jnp.asarray(t), bias)
        pushed = -found["w"]
        spread = jnp.sqrt(oracle.population.weight @ jnp.mean((oracle.population.x @ pushed.T) ** 2, axis=1))
        groups = {"w": pushed * bias / jnp.maximum(spread, 1e-12)}
        net = net.put(groups | ({"a": -found["a"]} if t else {}))

    def step(carry: tuple[TwoLayer, Oracle], t: Array) -> tuple[tuple[TwoLayer, Oracle], None]:
        net, oracle = carry
        found, oracle = gradient(net, oracle, t, None)
        rates = {"w": w_rate, "b": w_rate, "a": a_rate}
        return (net.put({name: getattr(net, name) - rates[name] * found[name] for name in rates}), oracle), None

    (net, oracle), _ = jax.lax.scan(step, (net, oracle), jnp.arange(2, steps))
    return net, oracle


LEARNERS = {"correlation": correlation, "search": search, "descent": descent}


class QueryLearning(Instrument):
    """Accuracy, number of queries and the lower bound on it, over the inverse tolerance 1/τ."""

    learner: Kind = eqx.field(static=True)
    family: BalancedParity
    inverse_tolerances: tuple[int, ...] = eqx.field(static=True)
    mode: Mode = eqx.field(static=True, default="adversarial")

    @property
    def steps(self) -> tuple[int, ...]:
        """1/τ."""
        return self.inverse_tolerances

    @property
    def work(self) -> float:
        """One pass over the population for each of 300 steps of a network of 20 neurons, at most."""
        points = min(2**self.family.D, POINTS)
        return len(self.steps) * points * self.family.D * (300.0 * 60 if self.learner == "descent" else 50.0)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Learn at every tolerance."""
        rows = []
        family = jax.tree.map(jnp.asarray, self.family)  # its numbers are inputs of one program
        for inverse in self.inverse_tolerances:
            sample_size = examples_needed(1 / inverse) if self.mode == "sampled" else 0
            rows.append(_learn(self.learner, family, self.mode, sample_size, jnp.asarray(1 / inverse), key))
        needed = queries_needed(parity_dimension(self.family.D, self.family.k))
        return {
            "accuracy": np.array([float(row[0]) for row in rows]),
            "queries": np.array([float(row[1]) for row in rows]),
            "needed": np.full(len(rows), needed),
            "queries_over_needed": np.array([float(row[1]) for row in rows]) / needed,
        }


@eqx.filter_jit
def _learn(learner: Kind, family: BalancedParity, mode: Mode, sample_size: int, tolerance: Array, key: PRNGKeyArray) -> tuple[Array, Array]:
    """Accuracy in percent over the law, and the number of queries."""
    key_task, key_points, key_learner, key_test = jax.random.split(key, 4)
    task = family.task(key=key_task)
    population = population_of(task, key=key_points)
    model, oracle = LEARNERS[learner](Oracle(population, tolerance, mode, sample_size=sample_size), task, key=key_learner)
    test = population if family.D <= ENUMERATED else population_of(task, key=key_test)
    score = model(test.x)
    right = jnp.where(jnp.abs(score) <= 1e-5, 0.5, score * test.y > 0)
    return 100 * test.weight @ right, oracle.asked
