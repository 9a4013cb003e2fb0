"""Exact gradients of the linearized population loss of XOR, and bounds of the lemmas.

With ℓ₀ = 2·log 2 − y·f the gradient of a neuron (w, a) is −∇_w L₀ = a·E[y·σ'(⟨w, x⟩)·x]. It depends
on this neuron only. Let s = √2·‖w_sig‖, o = √2·‖w_opp‖ and X = ⟨w_perp, ξ⟩ for uniform signs ξ. By
the symmetries of the cube

    −⟨w_sig, ∇⟩  = ¼·|a|·s·P(|X| < s),      −⟨w_opp, ∇⟩ = −¼·|a|·o·P(|X| < o),
    −⟨w_perp, ∇⟩ = ¼·|a|·(E[|X|; |X| > s] − E[|X|; |X| > o]),
    −w_i·∇_i     = ¼·|a|·|w_i|·(P(|X_i − s| < |w_i|) − P(|X_i − o| < |w_i|)),

with X_i = X without coordinate i. `SignSum` computes the distribution of such a weighted sum of
signs: by enumeration for few weights, by inverting the Fourier transform Π cos(w_i·t) for many.

Reference: glasgow2023, Lemmas C.2, C.3, C.4, 4.4 (D.3), Proposition F.1.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy.special
import scipy.stats
from jaxtyping import Array, Float

from unlazy.core.errors import require

#: Rate τ of ‖w_sig‖ in phase 1, and τ of phase 2, where rates are multiplied by g_μ.
PHASE1_RATE = 1 / math.sqrt(2 * math.pi)
PHASE2_RATE = math.sqrt(2) / 4
#: Maximum number of weights for enumeration.
ENUMERATED = 36


class SignSum:
    """Distribution of X = Σ_i v_i·ξ_i for uniform signs ξ; values at interval ends count half."""

    def __init__(self, v: Float[np.ndarray, " k"]) -> None:
        self.v = np.asarray(v, np.float64)
        self.listed = len(self.v) <= ENUMERATED
        if self.listed:
            half = len(self.v) // 2
            self.left, right = _all_sums(self.v[:half]), np.sort(_all_sums(self.v[half:]))
            self.right, self.totals = right, np.concatenate([[0.0], np.cumsum(right)])
        else:
            scale = float(np.linalg.norm(self.v))
            # cos(v_i·t) decays like e^{−(v_i·t)²/2}, so the product is below 1e-16 at t = 9/‖v‖
            # unless a few weights dominate.
            nodes, weights = _nodes(400)
            self.t, self.weights = 4.5 * (nodes + 1) / scale, 4.5 * weights / scale
            self.wave = np.prod(np.cos(np.outer(self.t, self.v)), axis=1)

    def between(self, low: float, high: float) -> float:
        """Return P(low < X < high)."""
        if high <= low:
            return 0.0
        if self.listed:
            return float(np.mean(self._count(high) - self._count(low))) / len(self.right)
        # (1/2π)·∫ φ(t)·∫_low^high e^{−itx} dx dt, which is real and even in t.
        density = (np.sin(high * self.t) - np.sin(low * self.t)) / self.t
        return float(np.sum(self.weights * self.wave * density)) / math.pi

    def within(self, c: float) -> float:
        """Return P(|X| < c)."""
        return self.between(-c, c)

    def absolute_between(self, low: float, high: float) -> float:
        """Return E[|X|; low < |X| < high] for 0 ≤ low ≤ high."""
        if high <= low:
            return 0.0
        if self.listed:
            return 2 * float(np.mean(self._total(high) - self._total(low))) / len(self.right)
        t = self.t
        moment = (np.cos(high * t) - np.cos(low * t)) / t**2 + (
            high * np.sin(high * t) - low * np.sin(low * t)
        ) / t
        return 2 * float(np.sum(self.weights * self.wave * moment)) / math.pi

    def coordinates(self, s: float, o: float) -> np.ndarray:
        """Return |v_i|·(P(|X_i − s| < |v_i|) − P(|X_i − o| < |v_i|)) for each i.

        X_i is X without its i-th term.
        """
        if self.listed:
            distributions = [SignSum(np.delete(self.v, i)) for i in range(len(self.v))]
            sizes = np.abs(self.v)
            return np.array(
                [
                    w * (distribution.between(s - w, s + w) - distribution.between(o - w, o + w))
                    for w, distribution in zip(sizes, distributions, strict=True)
                ]
            )
        # ∫_{c−w}^{c+w} cos(t·x) dx = 2·cos(c·t)·sin(w·t)/t; dividing by cos(w·t) removes a term.
        t, w = self.t[:, None], np.abs(self.v)[None]
        waves = self.wave[:, None] / np.cos(w * t) * np.sin(w * t) / t
        result: np.ndarray = (
            2
            / math.pi
            * np.abs(self.v)
            * ((self.weights * (np.cos(s * self.t) - np.cos(o * self.t))) @ waves)
        )
        return result

    def _count(self, c: float) -> np.ndarray:
        """Return for each left sum the number of right sums r with left + r < c, ties half."""
        gap = c - self.left
        tie = 1e-12 * (1 + abs(c))
        return (np.searchsorted(self.right, gap - tie) + np.searchsorted(self.right, gap + tie)) / 2

    def _total(self, c: float) -> np.ndarray:
        """Return for each left sum the total of left + r over these right sums."""
        gap = c - self.left
        tie = 1e-12 * (1 + abs(c))
        indices = np.searchsorted(self.right, gap - tie), np.searchsorted(self.right, gap + tie)
        result: np.ndarray = sum(self.totals[i] + i * self.left for i in indices) / 2
        return result


@functools.lru_cache(maxsize=2)
def _nodes(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of Gauss–Legendre quadrature on [−1, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return nodes, weights


def _all_sums(v: np.ndarray) -> np.ndarray:
    sums = np.zeros(1)
    for weight in v:
        sums = np.concatenate([sums + weight, sums - weight])
    return sums


class Gradient(NamedTuple):
    """−⟨w_sig, ∇L₀⟩, −⟨w_opp, ∇L₀⟩, −⟨w_perp, ∇L₀⟩, and −w_i·∂_i L₀ for each i of w_perp."""

    signal: float
    opposite: float
    rest: float
    coordinates: np.ndarray


def population_gradient(
    signal: float,
    opposite: float,
    perpendicular: Float[np.ndarray, " k"],
    a: float,
    *,
    coordinates: bool = True,
) -> Gradient:
    """Return the gradient of one neuron from ‖w_sig‖, ‖w_opp‖ and the coordinates of w_perp."""
    s, o, size = math.sqrt(2) * signal, math.sqrt(2) * opposite, abs(a) / 4
    distribution = SignSum(perpendicular)
    low, high = min(s, o), max(s, o)
    rest = math.copysign(distribution.absolute_between(low, high), o - s)
    each = size * distribution.coordinates(s, o) if coordinates else np.zeros(len(perpendicular))
    return Gradient(
        size * s * distribution.within(s), -size * o * distribution.within(o), size * rest, each
    )


def phase1_slope(step: float | Float[Array, ""]) -> Float[Array, ""]:
    """Return the slope log(1 + ητ)/η of log‖w_sig‖ in ηt for discrete steps, τ = 1/√(2π).

    It holds if |a| = ‖w‖ and w_sig is small.
    """
    return jnp.log1p(step * PHASE1_RATE) / step


def network_deviation_bound(a: Float[Array, " p"], size: Float[Array, ""]) -> Float[Array, " p"]:
    """Return the bound 2·|a|·E‖a·w‖ on ‖∇_w L_ρ − ∇_w L₀‖ (Lemma C.2); `size` = E‖a·w‖."""
    return 2 * jnp.abs(a) * size


def coordinate_deviation_bound(
    a: Float[Array, " p"],
    size: Float[Array, ""],
    coordinate_size: Float[Array, ""],
    near: Float[Array, " p"],
    d: int,
) -> Float[Array, " p"]:
    """Return the bound on |∇_i L_ρ − ∇_i L₀| of Lemma C.3, without d^{−ω(1)}.

    |a|·(4·E|a·w_i| + 2·log(d)·E‖a·w‖·P(|⟨x, w⟩ without i| ≤ |w_i|)).
    """
    return jnp.abs(a) * (4 * coordinate_size + 2 * math.log(d) * size * near)


#: Dimension above which Chernoff's inequality gives an error of at least 0.03 in the proof of
#: Proposition F.1: log β ≤ −0.75·d·(log 2 − H(0.2)), H the entropy; up to it, β is summed.
CHERNOFF = 1200


class LowerBound(NamedTuple):
    """Lower bound `error` for rotation-invariant learners with `samples` examples."""

    samples: int
    error: float


def rotation_invariant_bound(d: int, n: int | None = None) -> LowerBound:
    """Return the bound of the proof, 0.25·0.15·(1 − 10·β·(d + 1)^n); default n = ⌊d/log² d⌋.

    Points with the same inner products with the sample get the same label. A class of more than
    10·β·2^d points cannot have one label on 85 % of its points for three quarters of all j, where
    β = P(Bin(m, ½) ≥ 0.8·m) with m = ⌈0.75·d⌉. There are at most (d + 1)^n classes.
    """
    require(d > 2, f"`d` must be larger than 2, got {d}.")
    n = int(d / math.log(d) ** 2) if n is None else n
    m = math.ceil(0.75 * d)
    # The tail underflows from about 5,000 dimensions on; its logarithm does not.
    log_beta = float(
        scipy.special.logsumexp(
            scipy.stats.binom.logpmf(np.arange(math.ceil(0.8 * m), m + 1), m, 0.5)
        )
    )
    excluded = math.exp(min(0.0, math.log(10) + log_beta + n * math.log(d + 1)))
    return LowerBound(n, 0.25 * 0.15 * (1 - excluded))


def first_bounded(power: int = 2) -> int:
    """Return the dimension from which on the bound of the proof is at least 0.03.

    n = ⌊d/log^power(d)⌋. Every dimension up to `CHERNOFF` is computed; above it, the bound holds
    by Chernoff's inequality if `power` is 2.
    """
    below = [
        d
        for d in range(3, CHERNOFF + 1)
        if rotation_invariant_bound(d, int(d / math.log(d) ** power)).error < 0.03
    ]
    return 1 + max(below)
