"""SGD on XOR with four numbers a neuron: the population dynamics reduced to (w along μ₁, w along
μ₂, ‖w_perp‖, a).

In many dimensions ⟨w_perp, ξ⟩ is Gaussian with standard deviation r = ‖w_perp‖ and nearly
independent between neurons, so that the score given the cluster z concentrates at f̄(z) = mean_j
a_j·E relu(u_j + r_j·G), u = ⟨w, z⟩. With g(z) = −ℓ'(z)·y = 2/(1 + e^{y·f̄(z)}) a step is

    w_12 += η·a·E_z[y·g·Φ(u/r)·z],   r += η·a·E_z[y·g·φ(u/r)],
    a += η·E_z[y·g·(u·Φ(u/r) + r·φ(u/r))].

A minibatch of m examples adds noise of variance η²·a²·q/m to each of the d coordinates of w, q =
E_z[g²·Φ(u/r)]: random in the two that matter, a drift r² += η²·a²·q·(d − 2)/m in the rest. The
dimension enters through the start and the noise alone, so d = 10⁶ costs what d = 10 does.

Reference: glasgow2023, Section 4 and Appendix C, D (the same closures, as bounds).
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
    """The reduced state: coordinates along μ₁/√2 and μ₂/√2, the length of the rest, and the second
    layer.
    """

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


#: Clusters μ₁, −μ₁, μ₂, −μ₂ by their coordinates, and their labels.
CENTRES = math.sqrt(2) * jnp.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
LABELS = jnp.array([1.0, 1.0, -1.0, -1.0])


def initial(p: int, d: float, radius: float, *, key: PRNGKeyArray) -> Neurons:
    """p neurons uniform on the sphere of the given radius in d dimensions; d may be any size."""
    require(d > 4, f"The reduction is meant for many dimensions, but d={d}.")
    key_along, key_rest, key_a = jax.random.split(key, 3)
    along = normal(key_along, (p, 2))
    # ‖·‖² of the d − 2 other coordinates has mean d − 2 and variance 2(d − 2).
    rest = jnp.sqrt(d - 2 + math.sqrt(2 * (d - 2)) * normal(key_rest, (p,)))
    scale = radius / jnp.sqrt(jnp.sum(along**2, axis=1) + rest**2)
    return Neurons(along * scale[:, None], rest * scale, rademacher(key_a, (p,)) * radius)


def margins(state: Neurons) -> Float[Array, " 4"]:
    """y·f̄ at the four clusters, averaged over the other coordinates."""
    u, r = state.along @ CENTRES.T, state.rest[:, None]
    return LABELS * jnp.mean(state.a[:, None] * (u * norm.cdf(u / r) + r * norm.pdf(u / r)), axis=0)


def advance(
    state: Neurons, step: float, noise: Float[Array, "p 2"], ratio: float, d: float
) -> Neurons:
    """One step; `ratio` = d/m of the minibatch noise, 0 for the population."""
    u, r = state.along @ CENTRES.T, jnp.maximum(state.rest, 1e-12)[:, None]
    open_, bump = norm.cdf(u / r), norm.pdf(u / r)
    slope = 2 * jax.nn.sigmoid(-margins(state))  # g at each cluster
    pull = LABELS * slope / 4
    a = state.a[:, None]
    along = state.along + step * a * ((pull[None, :] * open_) @ CENTRES)
    rest = state.rest + step * state.a * (bump @ pull)
    second = state.a + step * ((u * open_ + r * bump) @ pull)
    q = open_ @ slope**2 / 4
    jitter = step * jnp.abs(state.a) * jnp.sqrt(q * ratio / d)
    along = along + jitter[:, None] * noise
    rest = jnp.sqrt(rest**2 + step**2 * state.a**2 * q * ratio * (d - 2) / d)
    return Neurons(along, rest, second)


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
    """The states at times 0, …, steps, stacked."""

    def body(state: Neurons, t: Array) -> tuple[Neurons, Neurons]:
        noise = normal(jax.random.fold_in(key, t), state.along.shape)
        moved = advance(state, step, noise, ratio, d)
        return moved, moved

    _, path = jax.lax.scan(body, state, jnp.arange(steps))
    result: Neurons = jax.tree.map(
        lambda first, rest: jnp.concatenate([first[None], rest]), state, path
    )
    return result
