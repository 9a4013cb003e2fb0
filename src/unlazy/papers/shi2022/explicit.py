"""The explicit network that labels every input of a dictionary task exactly: hats of three neurons, one for each count of patterns.

    g(x) = Σ_{p ∈ P} δ_p(⟨w, x⟩) − Σ_{p ∉ P, 0 ≤ p ≤ k} δ_p(⟨w, x⟩),   w = σ̃ Σ_{j∈A} M_j

δ_p is the hat of height 1 at p − μ, with μ = Σ_{j∈A} E φ̃_j, and zero at every other count; scaled by 4k it fits into the linear part of the
truncated ReLU. Hats with top at the count, or shifted by ¼, are taken such that no bias is near zero.

Reference: shi2022, Lemmas 5, 7 and 8.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from unlazy.networks.two_layer import TwoLayer
from unlazy.tasks.dictionary.patterns import HiddenPatterns


def explicit_network(task: HiddenPatterns) -> TwoLayer:
    """3(k + 1) truncated ReLU neurons with g(x) = y on every input."""
    k, P, moments = task.law.k, task.law.P, task.law.moments
    mu = k * moments.relevant
    # Biases μ − p + {½, 0, −½} lie on a grid of distance ½: either it or its shift by ¼ keeps away from zero by 1/8.
    off_grid = jnp.abs(jnp.mod(mu, 0.5) - 0.25) <= 0.125
    shift, slope = jnp.where(off_grid, 0.0, 0.25), jnp.where(off_grid, 2.0, 4.0)
    counts = np.arange(k + 1)
    sign = np.where(np.isin(counts, P), 1.0, -1.0)
    a = slope * sign[:, None] * jnp.array([1.0, -2.0, 1.0])  # k+1 3
    b = mu - shift - counts[:, None] + jnp.array([0.5, 0.0, -0.5])  # k+1 3
    w = moments.sigma * task.relevant @ task.dictionary
    return TwoLayer(
        w=jnp.tile(w / (4 * k), (3 * (k + 1), 1)),
        b=b.ravel() / (4 * k),
        a=a.ravel() * (4 * k),
        c=jnp.zeros(()),
    )
