"""What the features after two steps can do, and what online gradient descent on a readout is
promised: as instruments.

Reference: shi2022, Lemma 23, Theorem 27.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jaxtyping import Array, PRNGKeyArray

from unlazy.core.random import normal
from unlazy.lab.trials import ExactComputation
from unlazy.papers.shi2022.gradients import GAMMA, generator
from unlazy.papers.shi2022.population import components


class GoodReadout(ExactComputation):
    """The second layer ã of least greatest weight with y·g̃(x) ≥ 1 on all 2^D inputs, on the
    features after two steps of the population.

    `loss`: the hinge loss that is left (0 where such an ã exists); `greatest`: ‖ã‖_∞ over k⁵/m; and
    of the network itself: `second`, ‖a⁽²⁾‖_∞ over 1/(km²), `weights`, the greatest ‖w_i⁽²⁾‖ over
    σ̃/k, `bias`, the greatest |b_i⁽²⁾| over 1/k². `steps_taken` = 0 are random features; `b_scale`:
    initial biases of so many times their size.
    """

    D: int = eqx.field(static=True)
    k: int = eqx.field(static=True)
    m: int = eqx.field(static=True)
    steps_taken: int = eqx.field(static=True, default=2)
    b_scale: float = eqx.field(converter=float, default=1.0)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        q, b, a = self.two_steps(generator(key, self.m))
        sigma = math.sqrt(self.D) / 2
        z = np.array(list(itertools.product((-1.0, 1.0), repeat=self.D)))
        y = np.prod(z[:, : self.k], axis=1)
        features = np.clip(z @ q.T / (2 * sigma) + b, 0, 1)  # 2^D 2m
        loss, greatest = least_weights(y[:, None] * features)
        found = {
            "loss": loss,
            "greatest": greatest * self.m / self.k**5,
            "second": float(np.max(np.abs(a))) * self.k * self.m**2,
            "weights": float(np.max(np.linalg.norm(q, axis=1))) * self.k / sigma,
            "bias": float(np.max(np.abs(b))) * self.k**2,
        }
        return found

    def two_steps(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """w along the patterns, b and a of all 2m neurons after the two steps that Lemma 23 sets, A
        being the first k patterns.
        """
        k, m, D, noise = self.k, self.m, self.D, self.k**-1.5
        sigma = math.sqrt(D) / 2
        eta = GAMMA**2 * sigma / (k * m**3)
        q, b = rng.normal(size=(m, D)) / k, self.b_scale * rng.normal(size=m) / k**2
        a = sigma**2 / (GAMMA * k**2) * rng.normal(size=m)
        q, b, a = np.concatenate([q, q]), np.concatenate([b, b]), np.concatenate([a, -a])
        for step, rate in enumerate((eta, 1.0)[: self.steps_taken]):
            found = [
                components(w[:k], w[k:], float(bias), noise) for w, bias in zip(q, b, strict=True)
            ]
            q = (
                rate
                * a[:, None]
                * np.array([np.concatenate([each.on, each.off]) for each in found])
            )
            kept = 1.0 - step  # the second step forgets a as well
            b, a = (
                b + rate * a * [each.bias for each in found],
                kept * a + rate * np.array([each.second for each in found]),
            )
        return q, b, a


def least_weights(signed: np.ndarray) -> tuple[float, float]:
    """(0, min ‖a‖_∞ with signed·a ≥ 1), or where there is no such a, (the least greatest shortfall
    from 1 with |a| ≤ 10⁶, 10⁶).
    """
    rows, columns = signed.shape
    ones, zeros = np.ones((columns, 1)), np.zeros((columns, 1))
    identity = np.eye(columns)
    # Variables a, t: minimise t with −t ≤ a ≤ t.
    solved = scipy.optimize.linprog(
        np.r_[np.zeros(columns), 1.0],
        A_ub=np.block([[-signed, np.zeros((rows, 1))], [identity, -ones], [-identity, -ones]]),
        b_ub=np.r_[-np.ones(rows), np.zeros(2 * columns)],
        bounds=[(None, None)] * columns + [(0, None)],
    )
    if solved.status == 0:
        return 0.0, float(solved.fun)
    most = 1e6
    short = scipy.optimize.linprog(
        np.r_[np.zeros(columns), 1.0],
        A_ub=np.block(
            [
                [-signed, -np.ones((rows, 1))],
                [np.hstack([identity, zeros])],
                [np.hstack([-identity, zeros])],
            ]
        ),
        b_ub=np.r_[-np.ones(rows), np.full(2 * columns, most)],
        bounds=[(None, None)] * columns + [(0, None)],
    )
    return float(short.fun) if short.status == 0 else 1.0, most


class OnlineDescent(ExactComputation):
    """Theorem 27 on random sequences of hinge and squared losses, for every θ* among the origin,
    the start, the path and random points.

    `broken`: the share of sequences and step sizes where (1/T)Σf_t(θ_t) is above the promised bound
    for some θ*; `tightness`: the greatest left side over right side, each less the mean of f_t(θ*),
    exceeded by one in ten. Where not `convex`, the functions are narrow wells 1 − exp(−‖θ − c‖²)
    far from the start, in which nothing tells descent where to go.
    """

    T: int = eqx.field(static=True, default=200)
    d: int = eqx.field(static=True, default=8)
    sequences: int = eqx.field(static=True, default=32)
    rates: tuple[float, ...] = eqx.field(static=True, default=(0.01, 0.1, 1.0))
    convex: bool = eqx.field(static=True, default=True)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        keys = jax.random.split(key, self.sequences)
        excess, tightness = jax.vmap(
            lambda each: jax.vmap(lambda rate: self._one(rate, each))(jnp.array(self.rates))
        )(keys)
        return {
            "broken": float(jnp.mean(~(excess <= 1e-5))),
            "tightness": float(jnp.nanquantile(tightness, 0.9)),
        }

    def _one(self, rate: Array, key: PRNGKeyArray) -> tuple[Array, Array]:
        key_v, key_s, key_w, key_k, key_p = jax.random.split(key, 5)
        v = normal(key_v, (self.T, self.d)) / math.sqrt(self.d)
        # Labels that mostly follow one direction, so that descent has something to learn.
        y = jnp.sign(v @ normal(key_w, (self.d,)) + 0.3 * normal(key_k, (self.T,)))
        squared = jnp.arange(self.T) % 2 == 1

        well = 3 + 0 * v[0]

        def value(theta: Array, t: Array) -> Array:
            if not self.convex:
                return 1 - jnp.exp(-jnp.sum((theta - well) ** 2))
            score = theta @ v[t]
            return jnp.where(
                squared[t], 0.5 * (score - y[t]) ** 2, jnp.maximum(0.0, 1 - y[t] * score)
            )

        def step(theta: Array, t: Array) -> tuple[Array, tuple[Array, Array, Array]]:
            loss, slope = jax.value_and_grad(value)(theta, t)
            return theta - rate * slope, (theta, loss, jnp.linalg.norm(slope))

        start = normal(key_s, (self.d,))
        _, (path, losses, slopes) = jax.lax.scan(step, start, jnp.arange(self.T))
        baselines = jnp.concatenate(
            [
                jnp.zeros((1, self.d)),
                well[None],
                path[:: self.T // 20],
                3 * normal(key_p, (20, self.d)),
            ]
        )
        of_baselines = jax.vmap(
            lambda theta: jnp.mean(jax.vmap(lambda t: value(theta, t))(jnp.arange(self.T)))
        )(baselines)
        more = jnp.sum(baselines**2, axis=1) / (2 * rate * self.T)
        more = more + jnp.linalg.norm(start) * jnp.mean(slopes) + rate * jnp.mean(slopes**2)
        regret = jnp.mean(losses) - of_baselines
        return jnp.max(regret - more), jnp.max(regret / jnp.maximum(more, 1e-9))
