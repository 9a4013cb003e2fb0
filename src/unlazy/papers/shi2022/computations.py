"""Labels and constants of the explicit networks, compared with the lemmas.

Reference: shi2022, Lemmas 5, 7, 8 and 35.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from unlazy.core.linear_algebra import pseudo_inverse
from unlazy.lab.trials import ExactComputation
from unlazy.papers.shi2022.explicit import explicit_general, explicit_network
from unlazy.papers.shi2022.gradients import generator
from unlazy.tasks.dictionary.incoherent import GeneralParity
from unlazy.tasks.dictionary.patterns import HiddenPatterns, PatternDistribution


class ExplicitLabels(ExactComputation):
    """Explicit network on `draws` random (A, P) for each k in `counts`, on inputs with every number
    of relevant patterns and random backgrounds.

    Measures the fraction of wrong labels, max |g(x) − y|, and the constants of Lemma 5 divided by
    their bounds; maximum over all k so far. `stretch` (negative control): alternately, the scale of
    the hats is multiplied and divided by it.
    """

    counts: tuple[int, ...] = eqx.field(static=True)
    draws: int = eqx.field(static=True, default=10)
    D: int = eqx.field(static=True, default=20)
    stretch: float = eqx.field(static=True, default=1.0)

    axis = "counts"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rows = []
        for k in self.counts:
            draws = [
                self._one(k, self.stretch ** (1 - 2 * (i % 2)), generator(key, k, i))
                for i in range(self.draws)
            ]
            rows.append({name: max(draw[name] for draw in draws) for name in draws[0]})
        return {name: np.maximum.accumulate([row[name] for row in rows]) for name in rows[0]}

    def _one(self, k: int, stretch: float, rng: np.random.Generator) -> dict[str, float]:
        """Draw A, P and the rate of the relevant patterns, and measure."""
        P = tuple(s for s in range(1, k + 1) if rng.random() < 0.5) or (k,)
        distribution = PatternDistribution(
            jnp.ones(1), jnp.full(1, rng.uniform(0.05, 0.95)), jnp.full(1, 0.5), self.D, k, P
        )
        q, _ = np.linalg.qr(rng.normal(size=(self.D, self.D)))
        task = HiddenPatterns(
            jnp.asarray(q), jnp.asarray(rng.permutation(self.D) < k), distribution
        )
        present = rng.random((64, self.D)) < 0.5
        count = np.arange(64) % (k + 1)
        relevant = np.flatnonzero(task.relevant)
        for row, s in enumerate(count):
            present[row, relevant] = rng.permutation(k) < s
        x = (
            (present - np.asarray(task.mean))
            / float(distribution.moments.sigma)
            @ np.asarray(task.dictionary)
        )
        y = np.where(np.isin(count, P), 1.0, -1.0)
        net = explicit_network(task, stretch=stretch)
        score = np.asarray(net(jnp.asarray(x)))
        reach = np.abs(x @ np.asarray(net.w).T + np.asarray(net.b))
        return {
            "wrong": float(np.mean(score * y <= 0)),
            "distance": float(np.max(np.abs(score - y))),
            "second_layer": float(np.max(np.abs(net.a))) / (32 * k),
            "largest_bias": float(np.max(np.abs(net.b))) / 0.5,
            "inverse_least_bias": 1 / (32 * k * float(np.min(np.abs(net.b)))),
            "reach": float(np.max(reach)),
        }


class ExplicitGeneral(ExactComputation):
    """Explicit network of the general setting on tasks of a family, over k: fraction of `examples`
    with y·g(x) < 1, and its constants.

    `crowding`: (kμ/√d)·(poD/σ̃), at most 1/16 in the lemma, with po the largest fraction of
    background patterns in one example. `second_layer`: max |a| divided by 64k, as printed;
    `doubled`: divided by 128k. Maximum over `draws` tasks and all k so far. `height` = 1 (negative
    control): hats that are too low if ⟨w, x⟩ deviates.
    """

    family: GeneralParity
    counts: tuple[int, ...] = eqx.field(static=True)
    draws: int = eqx.field(static=True, default=4)
    examples: int = eqx.field(static=True, default=20_000)
    height: int = eqx.field(static=True, default=2)

    axis = "counts"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rows = []
        for k in self.counts:
            # Half of the tasks have means that require shifted hats.
            families = [
                dataclasses.replace(self.family, k=k, negative=(0.5, 0.7)[i % 2])
                for i in range(self.draws)
            ]
            tasks = [
                self._one(each, jax.random.fold_in(key, 100 * k + i))
                for i, each in enumerate(families)
            ]
            rows.append({name: max(task[name] for task in tasks) for name in tasks[0]})
        return {name: np.maximum.accumulate([row[name] for row in rows]) for name in rows[0]}

    def _one(self, family: GeneralParity, key: PRNGKeyArray) -> dict[str, float]:
        margin, fraction, mu, sigma, a, b = _evaluate(family, self.height, self.examples, key)
        k, closeness = family.k, float(mu) / math.sqrt(family.d)
        return {
            "below": float(np.mean(np.asarray(margin) < 1 - 1e-4)),
            "second_layer": float(np.max(np.abs(a))) / (64 * k),
            "doubled": float(np.max(np.abs(a))) / (128 * k),
            "largest_bias": float(np.max(np.abs(b))) / 0.25,
            "inverse_least_bias": 1 / (64 * k * float(np.min(np.abs(b)))),
            "crowding": k * closeness * float(fraction) * family.D / float(sigma),
            "closeness": k * closeness,
        }


@eqx.filter_jit
def _evaluate(family: GeneralParity, height: int, n: int, key: PRNGKeyArray) -> tuple[Array, ...]:
    """Return y·g(x) of n examples, the largest fraction of background patterns in one of them, μ,
    σ̃, and the network's a and b.
    """
    key_task, key_draw = jax.random.split(key)
    task = family.task(key=key_task)
    net = explicit_general(task, height=height)
    x, y = task.draw(n, key_draw)
    present = x * task.sigma @ pseudo_inverse(task.dictionary) + task.mean[None, :]
    fraction = jnp.max(jnp.mean(jnp.round(present), axis=1, where=~task.relevant[None, :]))
    return y * net(x), fraction, task.mu, task.sigma, net.a, net.b
