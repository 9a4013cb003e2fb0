"""Best readout on the features after two steps, and the regret of online gradient descent.

Reference: shi2022, Lemma 23, Theorem 27.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

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
from unlazy.papers.shi2022.setting import all_bits

#: Largest weight of a second layer that does not fit all labels, and accepted violation of a
#: constraint.
MAX_WEIGHT, TOLERANCE = 1e6, 1e-6


class GoodReadout(ExactComputation):
    """Second layer ã of minimum ‖ã‖_∞ with y·g̃(x) ≥ 1 on all 2^D inputs, on the features after two
    population steps.

    `loss`: minimum over ã of the largest hinge loss; 0 if such an ã exists. "greatest": ‖ã‖_∞
    divided by k⁵/m. Of the network itself: `second`, ‖a⁽²⁾‖_∞ divided by 1/(km²); `weights`, max
    ‖w_i⁽²⁾‖ divided by σ̃/k; `bias`, max |b_i⁽²⁾| divided by 1/k². `steps_taken` = 0 gives random
    features; `b_scale`: factor on the initial biases.
    """

    D: int = eqx.field(static=True)
    k: int = eqx.field(static=True)
    m: int = eqx.field(static=True)
    steps_taken: int = eqx.field(static=True, default=2)
    b_scale: float = eqx.field(converter=float, default=1.0)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        q, b, a = self.two_steps(generator(key, self.m))
        sigma = math.sqrt(self.D) / 2
        z = 2.0 * all_bits(self.D) - 1
        signed = z @ q.T / (2 * sigma) + b  # 2^D 2m
        np.clip(signed, 0, 1, out=signed)
        signed *= np.prod(z[:, : self.k], axis=1)[:, None]
        loss, largest = min_max_weight(signed)
        return {
            "loss": loss,
            "greatest": largest * self.m / self.k**5,
            "second": float(np.max(np.abs(a))) * self.k * self.m**2,
            "weights": float(np.max(np.linalg.norm(q, axis=1))) * self.k / sigma,
            "bias": float(np.max(np.abs(b))) * self.k**2,
        }

    def two_steps(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return w along the patterns, b and a of all 2m neurons after the two steps of Lemma 23,
        with A = {1, …, k}.
        """
        k, m, D, noise = self.k, self.m, self.D, self.k**-1.5
        sigma = math.sqrt(D) / 2
        eta = GAMMA**2 * sigma / (k * m**3)
        q, b = rng.normal(size=(m, D)) / k, self.b_scale * rng.normal(size=m) / k**2
        a = sigma**2 / (GAMMA * k**2) * rng.normal(size=m)
        q, b, a = np.concatenate([q, q]), np.concatenate([b, b]), np.concatenate([a, -a])
        for step, rate in enumerate((eta, 1.0)[: self.steps_taken]):
            neurons = [
                components(w[:k], w[k:], float(bias), noise) for w, bias in zip(q, b, strict=True)
            ]
            q = (
                rate
                * a[:, None]
                * np.array([np.concatenate([each.on, each.off]) for each in neurons])
            )
            kept = 1.0 - step  # the second step has full decay of a as well
            b, a = (
                b + rate * a * [each.bias for each in neurons],
                kept * a + rate * np.array([each.second for each in neurons]),
            )
        return q, b, a


def min_max_weight(signed: np.ndarray) -> tuple[float, float]:
    """Return (0, min ‖a‖_∞ subject to signed·a ≥ 1). If no such a exists, return (minimum over
    ‖a‖_∞ ≤ 10⁶ of the largest shortfall from 1, 10⁶).
    """
    found = on_rows(signed, smallest)
    if found is not None:
        return 0.0, found.value
    short = on_rows(signed, _shortfall)
    return (1.0 if short is None else short.value), MAX_WEIGHT


class LinearSolution(NamedTuple):
    """Minimum of a linear program, its weights a, and the shortfall allowed to every row."""

    value: float
    a: np.ndarray
    short: float = 0.0


def smallest(signed: np.ndarray) -> LinearSolution | None:
    """Return min t subject to signed·a ≥ 1, −t ≤ a ≤ t, with a; None if no a exists."""
    rows, columns = signed.shape
    ones, identity = np.ones((columns, 1)), np.eye(columns)
    solved = scipy.optimize.linprog(
        np.r_[np.zeros(columns), 1.0],
        A_ub=np.block([[-signed, np.zeros((rows, 1))], [identity, -ones], [-identity, -ones]]),
        b_ub=np.r_[-np.ones(rows), np.zeros(2 * columns)],
        bounds=[(None, None)] * columns + [(0, None)],
    )
    return LinearSolution(float(solved.fun), solved.x[:-1]) if solved.status == 0 else None


def _shortfall(signed: np.ndarray) -> LinearSolution | None:
    """Return min t ≥ 0 subject to signed·a ≥ 1 − t, ‖a‖_∞ ≤ `MAX_WEIGHT`, with a and t."""
    rows, columns = signed.shape
    solved = scipy.optimize.linprog(
        np.r_[np.zeros(columns), 1.0],
        A_ub=np.hstack([-signed, -np.ones((rows, 1))]),
        b_ub=-np.ones(rows),
        bounds=[(-MAX_WEIGHT, MAX_WEIGHT)] * columns + [(0, None)],
    )
    if solved.status != 0:
        return None
    return LinearSolution(float(solved.fun), solved.x[:-1], float(solved.fun))


def on_rows(
    signed: np.ndarray, solve: Callable[[np.ndarray], LinearSolution | None], added: int = 300
) -> LinearSolution | None:
    """Return the solution of a linear program with one constraint per row, or None if it has none.

    The program is solved on some rows, and rows that its solution violates are added, until there
    are none.
    """
    chosen = np.unique(np.linspace(0, len(signed) - 1, added).astype(int))
    while True:
        solved = solve(signed[chosen])
        if solved is None:
            return None
        missing = 1 - solved.short - signed @ solved.a
        missing[chosen] = 0.0
        worst = np.argsort(-missing)[:added]
        worst = worst[missing[worst] > TOLERANCE]
        if not len(worst):
            return solved
        chosen = np.concatenate([chosen, worst])


class OnlineDescent(ExactComputation):
    """Theorem 27 on random sequences of hinge and squared losses; θ* runs over the origin, points
    of the trajectory (including θ_1), a fixed point and random points.

    `broken`: fraction of sequences and step sizes for which the regret (1/T)Σ(f_t(θ_t) − f_t(θ*))
    exceeds its bound for some θ*. `tightness`: 90 % quantile of the maximum over θ* of the regret
    divided by its bound. `convex` = False (negative control): the functions are
    1 − exp(−‖θ − c‖²), with minimum c far from the initial point, where their gradients vanish.
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
        # Most labels follow one direction, so that the losses can decrease.
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
            loss, gradient = jax.value_and_grad(value)(theta, t)
            return theta - rate * gradient, (theta, loss, jnp.linalg.norm(gradient))

        initial = normal(key_s, (self.d,))
        _, (path, losses, sizes) = jax.lax.scan(step, initial, jnp.arange(self.T))
        references = jnp.concatenate(
            [
                jnp.zeros((1, self.d)),
                well[None],
                path[:: self.T // 20],
                3 * normal(key_p, (20, self.d)),
            ]
        )
        of_references = jax.vmap(
            lambda theta: jnp.mean(jax.vmap(lambda t: value(theta, t))(jnp.arange(self.T)))
        )(references)
        bound = jnp.sum(references**2, axis=1) / (2 * rate * self.T)
        bound = bound + jnp.linalg.norm(initial) * jnp.mean(sizes) + rate * jnp.mean(sizes**2)
        regret = jnp.mean(losses) - of_references
        return jnp.max(regret - bound), jnp.max(regret / jnp.maximum(bound, 1e-9))
