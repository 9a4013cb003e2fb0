"""The features that the parity is made of, and the separators made of them.

Reference: daniely2020, Lemmas 8 and 10.
"""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.lab.trials import ExactComputation
from unlazy.theory.parity_gradients import CEILING


class ReadoutFeatures(ExactComputation):
    """Lemmas 8 and 10 in the number z of equal bits: the features ψ_r, how often a neuron gives
    one, and the separator made of them.

    `wanted`: the least probability over u of a feature within ε of ψ_r, over ε/(8k²), for ε =
    1/(10k), all r and α in [1/4, 1]; `error`: the greatest distance at the ends of the u's that
    count, over ε. `printed_margin`, `margin`: the least y·Σ_r c_r ψ_r(z) over z with the
    coefficients of the paper, and with those of `separator`; with `ceiling` the ψ_r stop at 6 as
    the network's activation does, and the coefficients are those of `ceiling_separator`. `swapped`
    takes the coefficients that are for the other kind.
    """

    counts: tuple[int, ...] = eqx.field(static=True)
    ceiling: bool = eqx.field(static=True, default=False)
    swapped: bool = eqx.field(static=True, default=False)

    axis = "counts"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rows = [self._one(k) for k in self.counts]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def _one(self, k: int) -> dict[str, float]:
        epsilon, b, z = 1 / (10 * k), 1 / (8 * k), np.linspace(-k, k, 40 * k + 1)
        wanted, error = math.inf, 0.0
        for r in levels(k):
            for alpha in np.linspace(0.25, 1, 16):
                target, half = -b / (alpha * r), b / (alpha * abs(r) * k) * epsilon  # in units of n
                wanted = min(
                    wanted,
                    half * k / (epsilon / (8 * k**2)) if abs(target) + half <= 1 / k else 0.0,
                )
                for u in (target - half, target + half):
                    feature = abs(r) / b * np.clip(alpha * u * z + b, 0, CEILING)
                    error = max(error, float(np.max(np.abs(feature - self._psi(r, z)))))
        places = np.arange(-k, k + 1, 2)
        labels = np.where((k - places) // 2 % 2 == 0, 1.0, -1.0)
        psi = np.stack([self._psi(r, places.astype(float)) for r in levels(k)])
        right = ceiling_separator(k) if self.ceiling != self.swapped else separator(k)
        margins = {
            name: float(np.min(labels * (coefficients @ psi)))
            for name, coefficients in (("printed_margin", printed_separator(k)), ("margin", right))
        }
        return {"wanted": wanted, "error": error / epsilon} | margins

    def _psi(self, r: int, z: np.ndarray) -> np.ndarray:
        rise = np.maximum(-np.sign(r) * z + abs(r), 0.0)
        result: np.ndarray = np.minimum(rise, CEILING) if self.ceiling else rise
        return result


def levels(k: int) -> list[int]:
    """r ∈ {−k, −k + 2, …, k}."""
    return list(range(-k, k + 1, 2))


def printed_separator(k: int) -> np.ndarray:
    """(−1)^((k−r)/2)·v_r with v_r = 1 for |r| = k, 2.5 for |r| = 1, else 2, as in the proof of
    Lemma 10.
    """
    values = {r: 1.0 if abs(r) == k else 2.5 if abs(r) == 1 else 2.0 for r in levels(k)}
    return np.array([(-1.0) ** ((k - r) // 2) * values[r] for r in levels(k)])


def separator(k: int) -> np.ndarray:
    """Coefficients with which Σ_r c_r ψ_r(z) = f(z) for all z ∈ {−k, −k + 2, …, k}, ψ_r(z) =
    max(−sign(r)·z + |r|, 0).

    c_r = −(−1)^((k−r)/2)·v_r, v_r = 2 for |r| < k, v_{±k} = 1 − ½·(−1)^((k−1)/2). Why: f alternates
    on the places z, so its second difference at an inner place z is −4 f(z). The ψ_r with r > 0
    bends at z = r and those with r < 0 at z = r, each with slope 1: between neighbours two apart it
    adds 2 to the second difference at z = r, and nothing elsewhere. So c_r = −2 f(r) at inner
    places, f(r) = (−1)^((k−r)/2). Two numbers are left, c_k and c_{−k}, whose ψ do not bend within:
    ψ_k(z) = k − z and ψ_{−k}(z) = k + z span the linear functions, and the values at z = ±k fix
    them.
    """
    ends = 1 - 0.5 * (-1.0) ** ((k - 1) // 2)
    return np.array(
        [-((-1.0) ** ((k - r) // 2)) * (ends if abs(r) == k else 2.0) for r in levels(k)]
    )


def ceiling_separator(k: int) -> np.ndarray:
    """Coefficients with which Σ_r c_r min(ψ_r(z), 6) has the sign of f(z) and at least the size 1,
    for all z ∈ {−k, −k + 2, …, k}.

    For k ≥ 5 the functions min(ψ_r, 6) no longer span all functions of z: ψ_5 + ψ_{−1} = ψ_3 +
    ψ_{−3} = ψ_1 + ψ_{−5} = 6. Since ψ_{−r}(z) = ψ_r(−z), what is orthogonal to all of them splits
    into even and odd functions; f is odd, so f·G with an even G is in the span where Σ_z a(z)·G(z)
    = 0, a(z) = e(z)·f(z), for the odd e alone (there is at most one). If Σ a ≠ 0 for G = 1, G is
    raised at the place where |a| is greatest among those of the other sign, by −Σ a/a(z): it stays
    at least 1, and so does the margin. Such a place exists, or no function with the signs of f
    would be in the span. For k = 3 nothing stops below 6 and G = 1.
    """
    places = np.arange(-k, k + 1, 2).astype(float)
    f = np.where((k - places) // 2 % 2 == 0, 1.0, -1.0)
    psi = np.stack([np.clip(-np.sign(r) * places + abs(r), 0.0, CEILING) for r in levels(k)])
    _, sizes, rows = np.linalg.svd(psi)
    free = rows[np.sum(sizes > 1e-9 * sizes[0]) :]  # orthogonal to all ψ_r
    odd = free - free[:, ::-1]
    G = np.ones_like(places)
    if np.any(np.abs(odd) > 1e-9):
        a = odd[np.argmax(np.max(np.abs(odd), axis=1))] * f
        total = np.sum(a)
        place = int(np.argmax(-np.sign(total) * a))
        pair = [place, len(places) - 1 - place]  # a is even
        G[pair] -= total / (2 * a[place])
    result: np.ndarray = np.linalg.lstsq(psi.T, f * G, rcond=None)[0]
    return result
