"""Reduced dynamics of SGD on XOR: w along μ₁, w along μ₂, ‖w_perp‖ and a of each neuron.

In high dimension ⟨w_perp, ξ⟩ is Gaussian with standard deviation r = ‖w_perp‖ and nearly
independent between neurons. Hence the score given the cluster z concentrates at f̄(z) = mean_j
a_j·E relu(u_j + r_j·G), u = ⟨w, z⟩. With g(z) = −ℓ'(z)·y = 2/(1 + e^{y·f̄(z)}) a step is

    w_12 += η·a·E_z[y·g·Φ(u/r)·z],   r += η·a·E_z[y·g·φ(u/r)],
    a += η·E_z[y·g·(u·Φ(u/r) + r·φ(u/r))].

A minibatch of m examples adds noise of variance η²·a²·q/m to each of the d coordinates of w, q =
E_z[g²·Φ(u/r)]: random noise in the two relevant ones, and a drift r² += η²·a²·q·(d − 2)/m in the
others. The cost does not depend on d, which enters only through initialization and noise.

Reference: glasgow2023, Section 4 and Appendices C and D.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.core.random import normal, rademacher


class Neurons(NamedTuple):
    """Reduced state: coordinates along μ₁/√2 and μ₂/√2, ‖w_perp‖, and the second layer."""

    along: Float[Array, "p 2"]
    rest: Float[Array, " p"]
    a: Float[Array, " p"]

    @property
    def signal(self) -> Float[Array, "*s p"]:
        """‖w_sig‖."""
        return jnp.abs(jnp.where(self.a > 0, self.along[..., 0], self.along[..., 1]))

    @property
    def opposite(self) -> Float[Array, "*s p"]:
        """‖w_opp‖."""
        return jnp.abs(jnp.where(self.a > 0, self.along[..., 1], self.along[..., 0]))


#: Coordinates of the clusters μ₁, −μ₁, μ₂, −μ₂, and their labels.
CENTERS = math.sqrt(2) * jnp.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
LABELS = jnp.array([1.0, 1.0, -1.0, -1.0])


def initial(p: int, d: float, radius: float, *, key: PRNGKeyArray) -> Neurons:
    """Draw p neurons uniformly from the sphere of the given radius in d dimensions."""
    require(d > 4, f"`d` must be larger than 4, got {d}.")
    key_along, key_rest, key_a = jax.random.split(key, 3)
    along = normal(key_along, (p, 2))
    # ‖·‖² of the d − 2 other coordinates has mean d − 2 and variance 2(d − 2).
    rest = jnp.sqrt(d - 2 + math.sqrt(2 * (d - 2)) * normal(key_rest, (p,)))
    scale = radius / jnp.sqrt(jnp.sum(along**2, axis=1) + rest**2)
    return Neurons(along * scale[:, None], rest * scale, rademacher(key_a, (p,)) * radius)


def _centers(state: Neurons) -> Float[Array, "4 2"]:
    return CENTERS.astype(state.along.dtype)


def margins(state: Neurons) -> Float[Array, " 4"]:
    """Return y·f̄ at the four clusters, averaged over the other coordinates."""
    u, r = state.along @ _centers(state).T, state.rest[:, None]
    return LABELS.astype(u.dtype) * jnp.mean(
        state.a[:, None] * (u * norm.cdf(u / r) + r * norm.pdf(u / r)), axis=0
    )


def advance(
    state: Neurons, step: float, noise: Float[Array, "p 2"], ratio: float, d: float
) -> Neurons:
    """Return the state after one step; `ratio` = d/m of the minibatch noise, 0 for none."""
    u, r = state.along @ _centers(state).T, jnp.maximum(state.rest, 1e-12)[:, None]
    cdf, pdf = norm.cdf(u / r), norm.pdf(u / r)
    g = 2 * jax.nn.sigmoid(-margins(state))  # at each cluster
    weighted = LABELS.astype(u.dtype) * g / 4
    a = state.a[:, None]
    along = state.along + step * a * ((weighted[None, :] * cdf) @ _centers(state))
    rest = state.rest + step * state.a * (pdf @ weighted)
    second = state.a + step * ((u * cdf + r * pdf) @ weighted)
    q = cdf @ g**2 / 4
    jitter = step * jnp.abs(state.a) * jnp.sqrt(q * ratio / d)
    along = along + jitter[:, None] * noise
    rest = jnp.sqrt(rest**2 + step**2 * state.a**2 * q * ratio * (d - 2) / d)
    return Neurons(along, rest, second)


def velocity(state: Neurons, second: float | Array = 1.0) -> Neurons:
    """Return the derivatives of along, rest and a in time ηt, without noise.

    `second` multiplies the learning rate of the second layer.
    """
    smallest = jnp.finfo(state.rest.dtype).tiny
    u, r = state.along @ _centers(state).T, jnp.maximum(state.rest, smallest)[:, None]
    cdf, pdf = norm.cdf(u / r), norm.pdf(u / r)
    weighted = (
        LABELS.astype(u.dtype) * 2 * jax.nn.sigmoid(-margins(state)) / 4
    )  # y·g/4 at each cluster
    return Neurons(
        state.a[:, None] * ((weighted[None, :] * cdf) @ _centers(state)),
        state.a * (pdf @ weighted),
        second * ((u * cdf + r * pdf) @ weighted),
    )


@eqx.filter_jit
def flow(state: Neurons, steps: int, step: Array, second: Array) -> Float[Array, "s 4"]:
    """Return the margins along the noiseless flow (η → 0) after 0, …, `steps` Runge–Kutta steps."""

    def plus(state: Neurons, slope: Neurons, time: Array) -> Neurons:
        along, rest, a = (x + time * v for x, v in zip(state, slope, strict=True))
        return Neurons(along, jnp.abs(rest), a)

    def body(state: Neurons, _: Array) -> tuple[Neurons, Float[Array, " 4"]]:
        one = velocity(state, second)
        two = velocity(plus(state, one, step / 2), second)
        three = velocity(plus(state, two, step / 2), second)
        four = velocity(plus(state, three, step), second)
        mean = jax.tree.map(lambda a, b, c, d: (a + 2 * b + 2 * c + d) / 6, one, two, three, four)
        moved = plus(state, mean, step)
        return moved, margins(moved)

    _, path = jax.lax.scan(body, state, jnp.arange(steps))
    return jnp.concatenate([margins(state)[None], path])


@eqx.filter_jit
def simulate(
    state: Neurons,
    steps: int,
    step: float,
    *,
    ratio: float = 0.0,
    d: float = math.inf,
    key: PRNGKeyArray,
) -> Neurons:
    """Return the states at steps 0, …, `steps`, stacked."""

    def body(state: Neurons, t: Array) -> tuple[Neurons, Neurons]:
        noise = normal(jax.random.fold_in(key, t), state.along.shape)
        moved = advance(state, step, noise, ratio, d)
        return moved, moved

    _, path = jax.lax.scan(body, state, jnp.arange(steps))
    result: Neurons = jax.tree.map(
        lambda first, rest: jnp.concatenate([first[None], rest]), state, path
    )
    return result
