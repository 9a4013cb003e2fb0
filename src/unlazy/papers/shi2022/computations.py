"""The explicit networks as instruments: how they label, and their constants beside the lemmas'.

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
    """The explicit network on `draws` random (A, P) for each k in `counts`: every number of present
    patterns, with random backgrounds.

    Measures the share of wrong labels, the greatest |g(x) − y|, and the constants of Lemma 5
    relative to their bounds: the worst of all k so far. `stretch` makes them wrong: by turns, the
    hats are scaled down by so much too much and too little.
    """

    counts: tuple[int, ...] = eqx.field(static=True)
    draws: int = eqx.field(static=True, default=10)
    D: int = eqx.field(static=True, default=20)
    stretch: float = eqx.field(static=True, default=1.0)

    axis = "counts"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rows = []
        for k in self.counts:
            found = [
                self._one(k, self.stretch ** (1 - 2 * (i % 2)), generator(key, k, i))
                for i in range(self.draws)
            ]
            rows.append({name: max(f[name] for f in found) for name in found[0]})
        return {name: np.maximum.accumulate([row[name] for row in rows]) for name in rows[0]}

    def _one(self, k: int, stretch: float, rng: np.random.Generator) -> dict[str, float]:
        """One random A and P, and a random rate p at which the relevant patterns are present."""
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
        places = np.flatnonzero(task.relevant)
        for row, s in enumerate(count):
            present[row, places] = rng.permutation(k) < s
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
    """The explicit network of the general setting on tasks of a family, over k: the share of
    `examples` with y·g(x) < 1, and its constants.

    `crowding`: (kμ/√d)·(poD/σ̃), which the lemma bounds by 1/16, with po the greatest share of
    background patterns that an example showed. `second_layer`: |a| over 64k as printed; `doubled`:
    over 128k. The worst of `draws` tasks and all k so far. `height` = 1 are hats that are too low
    for inputs that are off.
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
            # Half of the tasks have means that ask for shifted hats.
            families = [
                dataclasses.replace(self.family, k=k, negative=(0.5, 0.7)[i % 2])
                for i in range(self.draws)
            ]
            found = [
                self._one(each, jax.random.fold_in(key, 100 * k + i))
                for i, each in enumerate(families)
            ]
            rows.append({name: max(f[name] for f in found) for name in found[0]})
        return {name: np.maximum.accumulate([row[name] for row in rows]) for name in rows[0]}

    def _one(self, family: GeneralParity, key: PRNGKeyArray) -> dict[str, float]:
        margin, share, mu, sigma, a, b = _look(family, self.height, self.examples, key)
        k, closeness = family.k, float(mu) / math.sqrt(family.d)
        return {
            "below": float(np.mean(np.asarray(margin) < 1 - 1e-4)),
            "second_layer": float(np.max(np.abs(a))) / (64 * k),
            "doubled": float(np.max(np.abs(a))) / (128 * k),
            "largest_bias": float(np.max(np.abs(b))) / 0.25,
            "inverse_least_bias": 1 / (64 * k * float(np.min(np.abs(b)))),
            "crowding": k * closeness * float(share) * family.D / float(sigma),
            "closeness": k * closeness,
        }


@eqx.filter_jit
def _look(family: GeneralParity, height: int, n: int, key: PRNGKeyArray) -> tuple[Array, ...]:
    """y·g(x) of n examples, their greatest share of background patterns, μ, σ̃, a and b."""
    key_task, key_draw = jax.random.split(key)
    task = family.task(key=key_task)
    net = explicit_general(task, height=height)
    x, y = task.draw(n, key_draw)
    present = x * task.sigma @ pseudo_inverse(task.dictionary) + task.mean[None, :]
    share = jnp.max(jnp.mean(jnp.round(present), axis=1, where=~task.relevant))
    return y * net(x), share, task.mu, task.sigma, net.a, net.b
