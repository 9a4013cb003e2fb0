"""Features ψ_r, and separators of the parity as their linear combinations.

Reference: daniely2020, Lemmas 8 and 10.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.lab.trials import ExactComputation
from unlazy.theory.parity_gradients import CEILING


class ReadoutFeatures(ExactComputation):
    """Lemmas 8 and 10 as functions of z = √n·Σ_{j∈A} x_j: approximation of the features ψ_r by a
    neuron, and separators made of them.

    `wanted`: minimum over ε, r and α in [1/4, 1] of the probability over u that a feature is within
    ε of ψ_r, divided by ε/(8k²). `error`: maximum distance at the ends of the interval of u,
    divided by ε. ε is 1/(10k), as in the proof of Lemma 10, and each of `fractions` times k·|r|,
    the largest ε of the lemma. `printed_margin`, `margin`: minimum over z of y·Σ_r c_r ψ_r(z) with
    the printed coefficients, and with those of `separator`. `ceiling`: ψ_r is truncated at 6 like
    the activation, and the coefficients are those of `ceiling_separator`. `swapped` (negative
    control): coefficients of the other kind.
    """

    counts: tuple[int, ...] = eqx.field(static=True)
    ceiling: bool = eqx.field(static=True, default=False)
    swapped: bool = eqx.field(static=True, default=False)
    fractions: tuple[float, ...] = eqx.field(static=True, default=())

    axis = "counts"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rows = [self._one(k) for k in self.counts]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def _one(self, k: int) -> dict[str, float]:
        b, z = 1 / (8 * k), np.linspace(-k, k, 40 * k + 1)
        wanted, error = math.inf, 0.0
        for r in levels(k):
            tolerances = (1 / (10 * k), *(part * k * abs(r) for part in self.fractions))
            for epsilon, alpha in itertools.product(tolerances, np.linspace(0.25, 1, 16)):
                target, half = -b / (alpha * r), b / (alpha * abs(r) * k) * epsilon  # in units of n
                wanted = min(
                    wanted,
                    half * k / (epsilon / (8 * k**2))
                    if abs(target) + half <= (1 + 1e-12) / k
                    else 0.0,
                )
                for u in (target - half, target + half):
                    feature = abs(r) / b * np.clip(alpha * u * z + b, 0, CEILING)
                    distance = float(np.max(np.abs(feature - self._psi(r, z))))
                    error = max(error, distance / epsilon)
        sums = np.arange(-k, k + 1, 2)
        labels = np.where((k - sums) // 2 % 2 == 0, 1.0, -1.0)
        psi = np.stack([self._psi(r, sums.astype(float)) for r in levels(k)])
        own = ceiling_separator(k) if self.ceiling != self.swapped else separator(k)
        margins = {
            name: float(np.min(labels * (coefficients @ psi)))
            for name, coefficients in (("printed_margin", printed_separator(k)), ("margin", own))
        }
        return {"wanted": wanted, "error": error} | margins

    def _psi(self, r: int, z: np.ndarray) -> np.ndarray:
        rise = np.maximum(-np.sign(r) * z + abs(r), 0.0)
        result: np.ndarray = np.minimum(rise, CEILING) if self.ceiling else rise
        return result


def levels(k: int) -> list[int]:
    """Return r ∈ {−k, −k + 2, …, k}."""
    return list(range(-k, k + 1, 2))


def printed_separator(k: int) -> np.ndarray:
    """Return (−1)^((k−r)/2)·v_r with v_r = 1 for |r| = k, 2.5 for |r| = 1, else 2, as in the proof
    of Lemma 10.
    """
    values = {r: 1.0 if abs(r) == k else 2.5 if abs(r) == 1 else 2.0 for r in levels(k)}
    return np.array([(-1.0) ** ((k - r) // 2) * values[r] for r in levels(k)])


def separator(k: int) -> np.ndarray:
    """Return coefficients with Σ_r c_r ψ_r(z) = f(z) for all z ∈ {−k, −k + 2, …, k}, where ψ_r(z) =
    max(−sign(r)·z + |r|, 0).

    c_r = −(−1)^((k−r)/2)·v_r, v_r = 2 for |r| < k, v_{±k} = 1 − ½·(−1)^((k−1)/2). Proof: f
    alternates on the grid of z, so its second difference at an interior z is −4 f(z). Each ψ_r has
    its kink at z = r, with a change of slope by 1. On a grid of spacing 2 it adds 2 to the second
    difference at z = r, and 0 elsewhere. So c_r = −2 f(r) at interior points, f(r) =
    (−1)^((k−r)/2). The functions ψ_k(z) = k − z and ψ_{−k}(z) = k + z have no interior kink and
    span the linear functions; c_k and c_{−k} follow from the values at z = ±k.
    """
    ends = 1 - 0.5 * (-1.0) ** ((k - 1) // 2)
    return np.array(
        [-((-1.0) ** ((k - r) // 2)) * (ends if abs(r) == k else 2.0) for r in levels(k)]
    )


def ceiling_separator(k: int) -> np.ndarray:
    """Return coefficients for which f(z)·Σ_r c_r min(ψ_r(z), 6) ≥ 1 for all
    z ∈ {−k, −k + 2, …, k}.

    For k ≥ 5 the functions min(ψ_r, 6) do not span all functions of z: ψ_5 + ψ_{−1} = ψ_3 + ψ_{−3}
    = ψ_1 + ψ_{−5} = 6. Since ψ_{−r}(z) = ψ_r(−z), their orthogonal complement splits into even and
    odd functions. f is odd, so f·G with an even G lies in the span if Σ_z a(z)·G(z) = 0 with a(z) =
    e(z)·f(z) for the odd e of the complement (there is at most one). If Σ a ≠ 0 for G = 1, G is
    increased by −Σ a/a(z) at the z with the largest |a(z)| of opposite sign. G, and so the margin,
    stays at least 1. Such a z exists, or no function with the signs of f would lie in the span. For
    k = 3 no ψ_r exceeds 6, and G = 1.
    """
    sums = np.arange(-k, k + 1, 2).astype(float)
    f = np.where((k - sums) // 2 % 2 == 0, 1.0, -1.0)
    psi = np.stack([np.clip(-np.sign(r) * sums + abs(r), 0.0, CEILING) for r in levels(k)])
    _, sizes, rows = np.linalg.svd(psi)
    complement = rows[np.sum(sizes > 1e-9 * sizes[0]) :]
    odd = complement - complement[:, ::-1]
    G = np.ones_like(sums)
    if np.any(np.abs(odd) > 1e-9):
        a = odd[np.argmax(np.max(np.abs(odd), axis=1))] * f
        total = np.sum(a)
        index = int(np.argmax(-np.sign(total) * a))
        pair = [index, len(sums) - 1 - index]  # a is even
        G[pair] -= total / (2 * a[index])
    result: np.ndarray = np.linalg.lstsq(psi.T, f * G, rcond=None)[0]
    return result
