"""Exact first gradient of a ternary neuron on the mixture of uniform and all-equal bits.

    x = z/√n, z ∈ {±1}^n;  f(z) = Π_{j∈A} z_j, |A| = k odd
    half of the inputs are uniform, in the other half all bits of A are equal
    a neuron σ(⟨w, x⟩ + b) with w ∈ {−1, 0, 1}^n, σ(s) = min(max(s, 0), 6);  σ' = 1 if 0 < s < 6

Given the bits of A, ⟨w, z⟩ is an integer plus a sum of M independent signs, where M counts the
nonzero weights outside A. This sum is 2·Bin(M, ½) − M. So every expectation is a sum over the bits
of A of values of a binomial distribution function. The bits of A enter only by the numbers of their
weights equal to 1, −1 and 0. Inputs are not enumerated, so n may be in the millions.

On the uniform part, f times a function that does not depend on some bit of A has mean zero. So with
Z zero weights in A:

- Z ≥ 2: all gradients vanish.
- Z = 1: all vanish but the coordinate of that weight.
- Z = 0: none need vanish.

Reference: daniely2020, Section 4.1 (Lemmas 3 to 7) and Lemma 12.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from jaxtyping import Float, Int
from scipy.special import betainc, comb, ndtr

from unlazy.core.errors import require

#: Maximum of the activation.
CEILING = 6.0
#: Above this number of signs an Edgeworth expansion is used, with error below 1e-13; the exact
#: distribution function would take milliseconds per value.
MANY_SIGNS = 1_000_000


def binomial_cdf(
    c: Float[np.ndarray, "..."], M: Int[np.ndarray, "..."]
) -> Float[np.ndarray, "..."]:
    """Return P[Bin(M, ½) ≤ c] for integers c.

    Large M use the Edgeworth expansion Φ(x) + φ(x)·((x³ − 3x)/12 + x/6)/M with x = (2c + 1 − M)/√M.
    The second term is for the kurtosis −2/M, the third for the lattice. The error is of order 1/M².
    """
    c, M = np.broadcast_arrays(np.asarray(c, float), np.asarray(M))
    few = np.minimum(M, MANY_SIGNS)
    within = np.clip(c, 0, np.maximum(few - 1, 0))
    exact = np.where(
        c < 0, 0.0, np.where(c >= few, 1.0, betainc(np.maximum(few - within, 1), within + 1, 0.5))
    )
    if np.all(M <= MANY_SIGNS):
        return exact
    many = np.maximum(M, 1).astype(float)
    x = (2 * c + 1 - many) / np.sqrt(many)
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    return np.where(
        M <= MANY_SIGNS, exact, ndtr(x) + density * ((x**3 - 3 * x) / 12 + x / 6) / many
    )


@dataclasses.dataclass(frozen=True)
class NeuronGradients:
    """Expectations per neuron on one part of the distribution, times √n for those with an x_j.

    `on_plus`, `on_zero`, `on_minus`: E[z_j f σ'] for j in A with w_j = 1, 0, −1. `off`: the same
    for j outside A with w_j = 1; for w_j = −1 it is the negative, for w_j = 0 it is 0. `bias`: E[f
    σ']; `output`: E[f σ].
    """

    on_plus: Float[np.ndarray, " q"]
    on_zero: Float[np.ndarray, " q"]
    on_minus: Float[np.ndarray, " q"]
    off: Float[np.ndarray, " q"]
    bias: Float[np.ndarray, " q"]
    output: Float[np.ndarray, " q"]

    def mixed(self, other: NeuronGradients, fraction: float = 0.5) -> NeuronGradients:
        """Return the gradients of the mixture with this fraction of `other`."""
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in dataclasses.fields(self))
        return NeuronGradients(
            *((1 - fraction) * mine + fraction * theirs for mine, theirs in pairs)
        )


def composition(
    w: Int[np.ndarray, "q n"], relevant: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, per neuron, the numbers of weights 1 and −1 in A and of nonzero weights outside."""
    integer = np.issubdtype(w.dtype, np.integer) or bool(np.all(w == np.round(w)))
    require(
        integer and bool(np.min(w) >= -1 and np.max(w) <= 1),
        "The weights of a neuron must be −1, 0 or 1.",
    )
    inside = w[:, relevant]
    plus, minus = np.sum(inside > 0, axis=1), np.sum(inside < 0, axis=1)
    return plus, minus, np.count_nonzero(w, axis=1) - plus - minus


@dataclasses.dataclass(frozen=True)
class FirstGradients:
    """Gradients of all neurons for one n, k and bias b."""

    n: int
    k: int
    b: float

    def __post_init__(self) -> None:
        require(
            self.k % 2 == 1,
            f"k must be odd, so that the two all-equal inputs have opposite labels, got {self.k}.",
        )
        require(1 <= self.k <= self.n, f"1 ≤ k ≤ n is required, got k={self.k}, n={self.n}.")

    @property
    def _window(self) -> tuple[float, float]:
        """The open interval of ⟨w, z⟩ in which σ' = 1."""
        return -self.b * math.sqrt(self.n), (CEILING - self.b) * math.sqrt(self.n)

    def rising(self, shift: np.ndarray, M: np.ndarray) -> np.ndarray:
        """Return P[0 < s < 6] if ⟨w, z⟩ is `shift` plus a sum of M signs."""
        first, last = self._ends(shift, M)
        result: np.ndarray = binomial_cdf(last, M) - binomial_cdf(first - 1, M)
        return result

    def surely_rising(self, M: np.ndarray) -> np.ndarray:
        """Return P[k/√n < ⟨w, x⟩ outside A + b < 6 − k/√n] (φ of Lemma 6).

        This is the probability that σ' = 1 for all values of the bits of A.
        """
        low, high = self._window
        first, last = np.floor((low + self.k + M) / 2) + 1, np.ceil((high - self.k + M) / 2) - 1
        result: np.ndarray = np.maximum(binomial_cdf(last, M) - binomial_cdf(first - 1, M), 0.0)
        return result

    def _ends(self, shift: np.ndarray, M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and largest binomial number within the open window."""
        low, high = self._window
        return np.floor((low - shift + M) / 2) + 1, np.ceil((high - shift + M) / 2) - 1

    def _output(self, shift: np.ndarray, M: np.ndarray) -> np.ndarray:
        """Return E σ(s).

        For B ~ Bin(M, ½), E[B·1{B ≤ c}] = (M/2)·P[Bin(M − 1, ½) ≤ c − 1].
        """
        first, last = self._ends(shift, M)
        inside = self.rising(shift, M)
        fewer = np.maximum(M - 1, 0)
        below = binomial_cdf(last - 1, fewer) - binomial_cdf(first - 2, fewer)
        mean = (2 * np.where(M > 0, M / 2 * below, 0.0) + (shift - M) * inside) / math.sqrt(
            self.n
        ) + self.b * inside
        result: np.ndarray = mean + CEILING * (1 - binomial_cdf(last, M))
        return result

    def uniform(self, plus: np.ndarray, minus: np.ndarray, outside: np.ndarray) -> NeuronGradients:
        """Return the gradients on uniform bits."""
        plus, minus, M = (np.asarray(part) for part in (plus, minus, outside))
        K = plus + minus
        zeros = self.k - K
        sign = np.where(minus % 2 == 0, 1.0, -1.0)
        rising, output, off = (
            self._alternating(K, M, kind) for kind in ("rising", "output", "off")
        )
        rest = self._alternating_without_one(K, M)
        full = zeros == 0
        return NeuronGradients(
            on_plus=np.where(full, sign * rest, 0.0),
            on_zero=np.where(zeros == 1, sign * rising, 0.0),
            on_minus=np.where(full, -sign * rest, 0.0),
            off=np.where(full, sign * off, 0.0),
            bias=np.where(full, sign * rising, 0.0),
            output=np.where(full, sign * output, 0.0),
        )

    def _alternating(self, K: np.ndarray, M: np.ndarray, kind: str) -> np.ndarray:
        """Return Σ_h C(K, h)·2^−K·(−1)^h·g(K − 2h), that is E[Π t_i·g] over K signs."""
        total = np.zeros(np.broadcast(K, M).shape)
        for h in range(self.k + 1):
            shift = (K - 2 * h).astype(float)
            if kind == "rising":
                value = self.rising(shift, M)
            elif kind == "output":
                value = self._output(shift, M)
            else:
                value = self._tilted(shift, M)
            total += np.where(h <= K, comb(K, h) * 0.5**K * (-1.0) ** h * value, 0.0)
        return total

    def _tilted(self, shift: np.ndarray, M: np.ndarray) -> np.ndarray:
        """Return E[t_j · 1{0 < s < 6}] for one t_j of the M signs outside A."""
        fewer = np.maximum(M - 1, 0)
        return np.where(
            M > 0, 0.5 * (self.rising(shift + 1, fewer) - self.rising(shift - 1, fewer)), 0.0
        )

    def _alternating_without_one(self, K: np.ndarray, M: np.ndarray) -> np.ndarray:
        """Return E[Π_{i≠j} t_i · 1{0 < s < 6}] for one t_j of the K signs."""
        total = np.zeros(np.broadcast(K, M).shape)
        for h in range(self.k):
            shift = (K - 1 - 2 * h).astype(float)
            value = 0.5 * (self.rising(shift + 1, M) + self.rising(shift - 1, M))
            fewer = np.maximum(K - 1, 0)
            total += np.where(h <= K - 1, comb(fewer, h) * 0.5**fewer * (-1.0) ** h * value, 0.0)
        return total

    def structured(
        self, plus: np.ndarray, minus: np.ndarray, outside: np.ndarray
    ) -> NeuronGradients:
        """Return the gradients for all-equal bits of A.

        There ⟨w, z⟩ on A is ±(plus − minus), and z_j f = 1 for all j in A.
        """
        W, M = (np.asarray(plus) - np.asarray(minus)).astype(float), np.asarray(outside)
        up, down = self.rising(W, M), self.rising(-W, M)
        on = 0.5 * (up + down)
        return NeuronGradients(
            on_plus=on,
            on_zero=on,
            on_minus=on,
            off=0.5 * (self._tilted(W, M) - self._tilted(-W, M)),
            bias=0.5 * (up - down),
            output=0.5 * (self._output(W, M) - self._output(-W, M)),
        )

    def mixture(self, plus: np.ndarray, minus: np.ndarray, outside: np.ndarray) -> NeuronGradients:
        """Return the gradients on the mixture of both, in equal parts."""
        return self.uniform(plus, minus, outside).mixed(self.structured(plus, minus, outside))

    def of(self, w: Int[np.ndarray, "q n"], relevant: np.ndarray) -> NeuronGradients:
        """Return the gradients of neurons with these weights.

        Equal compositions are computed once.
        """
        rows = np.stack(composition(w, relevant), axis=1)
        distinct, where = np.unique(rows, axis=0, return_inverse=True)
        value = self.mixture(*distinct.T)
        return NeuronGradients(
            *(getattr(value, f.name)[where.reshape(-1)] for f in dataclasses.fields(value))
        )
