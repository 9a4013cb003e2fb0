"""Minimal hinge loss of norm-bounded linear models on fixed features, certified by duality.

min over ‖w‖ ≤ B of mean max(0, 1 − y⟨Ψ(x), w⟩) is solved by accelerated projected gradient steps on
a smoothed hinge loss. Every dual point 0 ≤ α_i ≤ 1/n gives the certified lower bound
Σα_i − B‖Σ α_i y_i Ψ(x_i)‖ on the minimum. The duality gap is the difference of the two.

Reference: shi2022, Theorems 2 and 28, Corollaries 3 and 30.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.core.linear_algebra import eigenvectors
from unlazy.core.losses import hinge
from unlazy.core.random import normal, rademacher
from unlazy.lab.trials import ExactComputation
from unlazy.papers.shi2022.fixed_feature_bounds import (
    fixed_features,
    shift_invariant,
    uniform_bits,
)
from unlazy.tasks.dictionary.balance import BalancedParity

#: Random neurons, their parameter gradients, random cosines, kernels at fixed points; and "told",
#: a negative control in which one feature is the label.
Kind = Literal["random", "tangent", "fourier", "kernel", "told"]
#: Data: the mixture of Theorem 2, or uniform bits only (Theorem 29).
Part = Literal["mixture", "coins"]


class Best(NamedTuple):
    """Minimizer found, its hinge loss, and the dual value, a lower bound on the minimal loss."""

    w: Float[Array, " N"]
    loss: Float[Array, ""]
    certified: Float[Array, ""]

    @property
    def gap(self) -> Float[Array, ""]:
        """Duality gap."""
        return self.loss - self.certified


def best_hinge(
    features: Float[Array, "n N"], y: Float[Array, " n"], B: float | Array, *, iterations: int = 300
) -> Best:
    """Minimize the mean hinge loss of linear models of norm at most B.

    FISTA on the hinge loss, smoothed over a width that decreases in stages from 1 to 0.01. Each
    stage is warm-started and restarts the momentum.
    """
    n = len(y)
    signed = y[:, None] * features  # n N
    # Largest eigenvalue of the second moment, by power iteration.
    top = jax.lax.fori_loop(
        0, 30, lambda _, v: _unit(signed.T @ (signed @ v)), _unit(jnp.ones(features.shape[1]))
    )
    largest = 1.1 * jnp.sum((signed @ top) ** 2) / n + 1e-12

    def dual_point(w: Array, width: Array) -> Array:
        """Return the negative derivative of the smoothed hinge at each example."""
        return jnp.clip((1 - signed @ w) / width, 0, 1)

    def stage(w: Array, width: Array) -> tuple[Array, Array]:
        rate = width / largest

        def step(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            w, momentum = carry
            moved = _into_ball(momentum + rate * (dual_point(momentum, width) @ signed) / n, B)
            return moved, moved + i / (i + 3.0) * (moved - w)

        w, _ = jax.lax.fori_loop(0, iterations, step, (w, w))
        alpha = dual_point(w, width) / n
        return w, jnp.sum(alpha) - B * jnp.linalg.norm(alpha @ signed)

    w, certified = jax.lax.scan(
        stage, jnp.zeros(features.shape[1]), jnp.array([1.0, 0.3, 0.1, 0.03, 0.01])
    )
    return Best(w, jnp.mean(hinge(features @ w, y)), jnp.max(certified))


def _unit(v: Array) -> Array:
    return v / jnp.maximum(jnp.linalg.norm(v), 1e-30)


def _into_ball(w: Array, B: float | Array) -> Array:
    return w * jnp.minimum(1.0, B / jnp.maximum(jnp.linalg.norm(w), 1e-30))


def draw_features(
    kind: Kind, z: Float[Array, "n D"], N: int, *, key: PRNGKeyArray
) -> Float[Array, "n N"]:
    """Return N fixed features in [−1, 1] of inputs z with E‖z‖² = 1.

    Features are truncated ReLU neurons, their gradients by first-layer weights, random cosines, or
    a Gaussian kernel at random vertices of the scaled cube.
    """
    key_w, key_b = jax.random.split(key)
    D = z.shape[1]
    if kind == "kernel":
        points = rademacher(key_w, (N, D)) / math.sqrt(D)
        return jnp.exp(-jnp.maximum(jnp.sum(z**2, axis=1)[:, None] + 1 - 2 * z @ points.T, 0) / 2)
    w = normal(key_w, (N, D))
    b = 0.5 * normal(key_b, (N,))
    if kind == "random":
        return jnp.clip(z @ w.T + b[None, :], 0, 1)
    if kind == "fourier":
        return jnp.cos(z @ w.T + 2 * math.pi * b[None, :])
    # A neuron gives D features: its derivative by the j-th weight is σ'(⟨w, x⟩ + b)·x_j.
    neurons = -(-N // D)
    active = jnp.abs(z @ w[:neurons].T + b[None, :neurons] - 0.5) < 0.5  # n neurons
    scaled = z / jnp.max(jnp.abs(z), axis=0)[None, :]
    return jnp.where(active[:, :, None], scaled[:, None, :], 0).reshape(len(z), -1)[:, :N]


class FixedFeatures(ExactComputation):
    """Minimal hinge loss on N fixed features under norms B, over N, maximum over `draws` random A;
    and the bound ½(1 − √(2N)·B/2^k), or twice that on uniform bits.

    `least_excess`: minimum over B and all N so far of the certified loss minus its bound. The
    minimum on a sample is below that of the population, so a positive value is conservative.
    `needed`: log₂ of the smallest N whose minimal loss under the largest norm is at most 3/4 of the
    trivial loss, or of twice the largest N if there is none.
    """

    kind: Kind = eqx.field(static=True)
    k: int = eqx.field(static=True)
    D: int = eqx.field(static=True)
    sizes: tuple[int, ...] = eqx.field(static=True)
    norms: tuple[float, ...] = eqx.field(static=True)
    n: int = eqx.field(static=True, default=2000)
    draws: int = eqx.field(static=True, default=2, metadata={"key": "secrets"})
    part: Part = eqx.field(static=True, default="mixture")

    def __check_init__(self) -> None:
        require(16 * self.k <= self.D, f"`k` must be at most D/16, got k={self.k}, D={self.D}.")

    axis = "sizes"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        family = BalancedParity(
            d=self.D, D=self.D, k=self.k, structure=0.5 if self.part == "mixture" else 0.0
        )
        key_features, *keys = jax.random.split(key, self.draws + 1)
        sizes, norms = jnp.array(self.sizes), jnp.array(self.norms)
        solutions = [
            _solve_all(family, self.kind, max(self.sizes), self.n, sizes, norms, key_features, each)
            for each in keys
        ]
        loss, certified = (
            np.max(np.stack([np.asarray(each[i]) for each in solutions]), axis=0) for i in (0, 1)
        )  # N B
        gap = np.max(np.stack([np.asarray(each[0] - each[1]) for each in solutions]), axis=(0, 2))
        bound = np.array([[self._bound(N, B) for B in self.norms] for N in self.sizes])
        measured = {f"loss, B={B:g}": loss[:, i] for i, B in enumerate(self.norms)}
        bounds = {f"bound, B={B:g}": bound[:, i] for i, B in enumerate(self.norms)}
        excess = np.minimum.accumulate((certified - bound).min(axis=1))
        trivial = 0.5 if self.part == "mixture" else 1.0
        enough = [N for N, row in zip(self.sizes, loss, strict=True) if row[-1] <= 0.75 * trivial]
        needed = math.log2(min(enough, default=2 * max(self.sizes)))
        summary = {
            "least_excess": excess,
            "gap": np.maximum.accumulate(gap),
            "needed": np.full(len(self.sizes), needed),
        }
        return measured | bounds | summary

    def _bound(self, N: int, B: float) -> float:
        return (
            uniform_bits(N=N, B=B, k=self.k)
            if self.part == "coins"
            else fixed_features(po=0.5, N=N, B=B, k=self.k)
        )


@eqx.filter_jit
def _solve_all(
    family: BalancedParity,
    kind: Kind,
    max_size: int,
    n: int,
    sizes: Array,
    norms: Array,
    key_features: PRNGKeyArray,
    key: PRNGKeyArray,
) -> tuple[Array, Array]:
    """Return loss and certified loss for every number of features and every norm, for one A.

    The features do not depend on A.
    """
    key_task, key_data = jax.random.split(key)
    z, y = family.task(key=key_task).draw(n, key_data)
    features = draw_features("random" if kind == "told" else kind, z, max_size, key=key_features)
    if kind == "told":
        features = features.at[:, 0].set(y)

    def solve(case: tuple[Array, Array]) -> tuple[Array, Array]:
        N, B = case
        best = best_hinge(jnp.where((jnp.arange(max_size) < N)[None, :], features, 0), y, B)
        return best.loss, best.certified

    cases = jnp.repeat(sizes, len(norms)), jnp.tile(norms, len(sizes))
    loss, certified = jax.lax.map(solve, cases)
    return loss.reshape(len(sizes), -1), certified.reshape(len(sizes), -1)


class KernelBall(ExactComputation):
    """Minimal hinge loss of functions of norm at most L in the RKHS of a Gaussian kernel, over L,
    and the bound ½(1 − 2L/2^k).

    `told` (negative control): the kernel is a function of the labels instead of the inputs.
    """

    k: int = eqx.field(static=True)
    D: int = eqx.field(static=True)
    norms: tuple[int, ...] = eqx.field(static=True)
    n: int = eqx.field(static=True, default=1500)
    bandwidth: float = eqx.field(converter=float, default=1.0)
    told: bool = eqx.field(static=True, default=False)

    axis = "norms"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Solve for every norm, on the square root of the Gram matrix (representer theorem)."""
        family = BalancedParity(d=self.D, D=self.D, k=self.k, structure=0.5)
        norms = jnp.array(self.norms, float)
        loss, certified = map(
            np.asarray, _solve_kernel(family, self.n, self.bandwidth, self.told, norms, key)
        )
        bound = np.array([shift_invariant(po=0.5, L=L, k=self.k) for L in self.norms])
        excess = np.minimum.accumulate(certified - bound)
        return {
            "loss": loss,
            "bound": bound,
            "least_excess": excess,
            "gap": np.maximum.accumulate(loss - certified),
        }


@eqx.filter_jit
def _solve_kernel(
    family: BalancedParity, n: int, bandwidth: float, told: bool, norms: Array, key: PRNGKeyArray
) -> tuple[Array, Array]:
    key_task, key_data = jax.random.split(key)
    z, y = family.task(key=key_task).draw(n, key_data)
    z = 2 * y[:, None] if told else z
    square = jnp.sum(z**2, axis=1)
    distance = jnp.maximum(square[:, None] + square[None, :] - 2 * z @ z.T, 0)
    gram = jnp.exp(-distance / (2 * bandwidth**2))
    values, vectors = eigenvectors(gram)
    features = vectors * jnp.sqrt(jnp.maximum(values, 0))[None, :]

    def solve(L: Array) -> tuple[Array, Array]:
        best = best_hinge(features, y, L)
        return best.loss, best.certified

    result: tuple[Array, Array] = jax.lax.map(solve, norms)
    return result
