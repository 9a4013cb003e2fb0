"""Explicit network that labels every input of a dictionary task: one triangular bump, made of three
neurons, per number of relevant patterns present.

    g(x) = Σ_{p ∈ P} δ_p(⟨w, x⟩) − Σ_{p ∉ P, 0 ≤ p ≤ k} δ_p(⟨w, x⟩),   w = σ̃ Σ_{j∈A} M_j

δ_p is a triangular bump (hat function) at p − μ, with μ = Σ_{j∈A} E φ̃_j, and zero at every other
count. Scaled down, it lies in the linear part of the truncated ReLU. Bumps are centered at the
count, or shifted by ¼, such that no bias is near zero. In the simple setting each bump equals 1 at
its count, and g(x) = y exactly. In the general setting ⟨w, x⟩ deviates by up to 1/8, and bumps
twice as high still give y·g(x) ≥ 1.

Reference: shi2022, Lemmas 5, 7, 8 and 35.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from unlazy.networks.two_layer import TwoLayer
from unlazy.tasks.dictionary.incoherent import GeneralPatterns
from unlazy.tasks.dictionary.patterns import HiddenPatterns


def explicit_network(task: HiddenPatterns, *, stretch: float = 1.0) -> TwoLayer:
    """Return 3(k + 1) truncated ReLU neurons with g(x) = y on every input.

    `stretch` (negative control): factor on the scale 4k of the bumps.
    """
    return _hats(task, task.distribution.moments.sigma, height=1, scale=4 * stretch)


def explicit_general(task: GeneralPatterns, *, height: int = 2) -> TwoLayer:
    """Return 3(k + 1) truncated ReLU neurons with y·g(x) ≥ 1 if ⟨w, x⟩ is within 1/8 of the count
    and `height` is 2.
    """
    return _hats(task, task.sigma, height=height, scale=8)


def _hats(
    task: HiddenPatterns | GeneralPatterns, sigma: Float[Array, ""], *, height: int, scale: float
) -> TwoLayer:
    """Return one bump per count, of slope 2·height, or twice that if all are shifted by ¼."""
    k, P = task.distribution.k, task.distribution.P
    mu = k * task.distribution.moments.relevant
    # Biases μ − p + {½, 0, −½} lie on a grid of spacing ½: the grid or its shift by ¼ has distance
    # at least 1/8 from zero.
    off_grid = jnp.abs(jnp.mod(mu, 0.5) - 0.25) <= 0.125
    shift, slope = jnp.where(off_grid, 0.0, 0.25), height * jnp.where(off_grid, 2.0, 4.0)
    counts = np.arange(k + 1.0)
    sign = np.where(np.isin(counts, P), 1.0, -1.0)
    a = slope * sign[:, None] * jnp.array([[1.0, -2.0, 1.0]])  # k+1 3
    b = mu - shift - counts[:, None] + jnp.array([[0.5, 0.0, -0.5]])  # k+1 3
    w = sigma * task.relevant.astype(sigma.dtype) @ task.dictionary
    return TwoLayer(
        w=jnp.tile(w / (scale * k), (3 * (k + 1), 1)),
        b=b.ravel() / (scale * k),
        a=a.ravel() * (scale * k),
        c=jnp.zeros(()),
    )
