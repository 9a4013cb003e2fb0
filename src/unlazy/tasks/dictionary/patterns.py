"""Dictionary data: the label depends on the number of present patterns among k hidden ones.

    φ̃ ∈ {0,1}^D random,   x̃ = M φ̃,   y = +1 if Σ_{j∈A} φ̃_j ∈ P else −1,   x = (x̃ − E x̃) / σ̃

`dictionary` = Mᵀ (orthonormal rows), `relevant` = indicator of A, `P` = label set, `po` = P(φ̃_j =
1) outside A, `sigma` = σ̃ with σ̃² = Σ_j Var φ̃_j, `gamma` = γ = E[y φ̃_i] − E[y] E[φ̃_i] for i ∈
A.

Reference: shi2022, Section 3, Appendix C and E.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from unlazy.core.errors import require, require_whole
from unlazy.core.random import bernoulli, categorical, orthonormal, random_subset
from unlazy.tasks.base import Batch, Family, Population, Task, error_of_constant

#: Maximum number of patterns for which all 2^D inputs are listed.
LISTED = 18


def parity(k: int) -> tuple[int, ...]:
    """Return P = the odd numbers up to k (Example 2 of shi2022)."""
    return tuple(range(1, k + 1, 2))


def threshold(k: int) -> tuple[int, ...]:
    """Return P = the numbers above k/2, up to k (Example 1 of shi2022)."""
    return tuple(s for s in range(1, k + 1) if 2 * s > k)


def interval(k: int, low: int, high: int) -> tuple[int, ...]:
    """Return P = {low, …, high} within [k] (Appendix E.1.2 of shi2022)."""
    require(
        1 <= low <= high <= k,
        f"1 ≤ low ≤ high ≤ k is required, got low={low}, high={high}, k={k}.",
    )
    return tuple(range(low, high + 1))


class PatternMoments(NamedTuple):
    """Exact moments of a pattern distribution."""

    positive: Float[Array, ""]  # P(y = +1)
    gamma: Float[Array, ""]  # γ, correlation of the label with each relevant pattern
    relevant: Float[Array, ""]  # P(φ̃_i = 1), i ∈ A
    background: Float[Array, ""]  # po = P(φ̃_j = 1), j ∉ A
    sigma: Float[Array, ""]  # σ̃


class PatternDistribution(eqx.Module):
    """Mixture of product distributions on {0,1}^D.

    Component c has φ̃_j ~ Bernoulli(p_c) on A and Bernoulli(q_c) off A. Components with p = 0 and p
    = 1 represent "all relevant patterns absent" and "all present".
    """

    weight: Float[Array, " c"]
    p: Float[Array, " c"]
    q: Float[Array, " c"]
    D: int = eqx.field(static=True)
    k: int = eqx.field(static=True)
    P: tuple[int, ...] = eqx.field(static=True)

    @property
    def label_of_count(self) -> Float[Array, " {self.k}+1"]:
        """Label y as a function of the number 0 … k of relevant patterns that are present."""
        return jnp.array([1.0 if s in self.P else -1.0 for s in range(self.k + 1)])

    @property
    def count_distribution(self) -> Float[Array, " {self.k}+1"]:
        """P(Σ_A φ̃ = s) for s = 0 … k, a mixture of binomials."""
        s = jnp.arange(self.k + 1.0)[None, :]
        log_choose = jnp.array([math.log(math.comb(self.k, i)) for i in range(self.k + 1)])
        # xlogy and xlog1py take 0·log 0 = 0, so that p = 0 and p = 1 are exact.
        log_mass = jax.scipy.special.xlogy(s, self.p[:, None]) + jax.scipy.special.xlog1py(
            self.k - s, -self.p[:, None]
        )
        return self.weight @ jnp.exp(log_choose[None, :] + log_mass)

    @property
    def moments(self) -> PatternMoments:
        """All moments in closed form; by exchangeability E[y φ̃_i] = E[y Σ_A φ̃] / k."""
        mass, label, fraction = (
            self.count_distribution,
            self.label_of_count,
            jnp.arange(self.k + 1.0) / self.k,
        )
        p, q = self._relevant(mass @ fraction), self.weight @ self.q
        return PatternMoments(
            positive=mass @ (label > 0).astype(mass.dtype),
            gamma=mass @ (label * fraction) - (mass @ label) * (mass @ fraction),
            relevant=p,
            background=q,
            sigma=jnp.sqrt(self.k * p * (1 - p) + (self.D - self.k) * q * (1 - q)),
        )

    def _relevant(self, fraction: Float[Array, ""]) -> Float[Array, ""]:
        """Return P(φ̃_i = 1) on A; `fraction` is the same from the distribution of the count."""
        return self.weight @ self.p

    def mass(
        self, on: Int[Array | np.ndarray, " p"], off: Int[Array | np.ndarray, " p"]
    ) -> Float[Array, " p"]:
        """Return P(φ̃) of single vectors with `on` patterns of A and `off` others present."""

        def product(fraction: Array, present: Array | np.ndarray, of: int) -> Array:
            fraction, present = fraction[:, None], present[None, :].astype(fraction.dtype)
            return jax.scipy.special.xlogy(present, fraction) + jax.scipy.special.xlog1py(
                of - present, -fraction
            )

        return self.weight @ jnp.exp(
            product(self.p, on, self.k) + product(self.q, off, self.D - self.k)
        )

    def draw(self, n: int, relevant: Bool[Array, " D"], *, key: PRNGKeyArray) -> Bool[Array, "n D"]:
        """Draw `n` hidden vectors φ̃."""
        key_component, key_bits = jax.random.split(key)
        component = categorical(key_component, self.weight, n)
        probability = jnp.where(
            relevant[None, :], self.p[component][:, None], self.q[component][:, None]
        )
        return bernoulli(key_bits, probability)


class HiddenPatterns(Task):
    """Normalized dictionary data (x, y) with known dictionary, relevant set A and label set P."""

    dictionary: Float[Array, "D d"]
    relevant: Bool[Array, " D"]
    distribution: PatternDistribution

    @property
    def dimension(self) -> int:
        return self.dictionary.shape[1]

    @property
    def basis(self) -> Float[Array, "D d"]:
        """The dictionary, which is orthonormal and spans all inputs."""
        return self.dictionary

    @property
    def mean(self) -> Float[Array, " D"]:
        """E φ̃."""
        moments = self.distribution.moments
        return jnp.where(self.relevant, moments.relevant, moments.background)

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        """Draw coordinates φ = (φ̃ − E φ̃) / σ̃ of `n` inputs, and their labels."""
        return self._examples(self.distribution.draw(n, self.relevant, key=key))

    def _examples(self, present: Bool[Array, "n D"]) -> Batch:
        z = (present.astype(self.mean.dtype) - self.mean[None, :]) / self.distribution.moments.sigma
        return Batch(
            z, self.distribution.label_of_count[jnp.sum(present & self.relevant[None, :], axis=1)]
        )

    @property
    def population(self) -> Callable[[], Population] | None:
        """All 2^D inputs if D ≤ `LISTED`, otherwise None."""
        return self._population if self.distribution.D <= LISTED else None

    def _population(self) -> Population:
        D = self.distribution.D
        present = (jnp.arange(1 << D)[:, None] >> jnp.arange(D)[None, :]) & 1 == 1  # 2^D D
        mass = self.distribution.mass(
            jnp.sum(present & self.relevant[None, :], axis=1),
            jnp.sum(present & ~self.relevant[None, :], axis=1),
        )
        return Population(*self._examples(present), mass)

    def target(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """Return the label from the number of relevant patterns in x."""
        present = (x @ self.dictionary.T) * self.distribution.moments.sigma + self.mean[None, :]
        count = jnp.round(jnp.sum(jnp.where(self.relevant[None, :], present, 0), axis=1)).astype(
            int
        )
        return self.distribution.label_of_count[jnp.clip(count, 0, self.distribution.k)]

    @property
    def features(self) -> Float[Array, "1 d"]:
        """The single relevant direction, Σ_{j∈A} M_j / √k."""
        return (self.relevant.astype(self.dictionary.dtype) @ self.dictionary)[None] / math.sqrt(
            self.distribution.k
        )

    @property
    def chance(self) -> Float[Array, ""]:
        return error_of_constant(self.distribution.moments.positive)


class PatternFamily(Family):
    """Base class with a random orthonormal dictionary of D patterns in R^d and a random A."""

    d: int = eqx.field(static=True, kw_only=True)
    D: int = eqx.field(static=True, kw_only=True)
    k: int = eqx.field(static=True, kw_only=True)

    @property
    def distribution(self) -> PatternDistribution:
        """Distribution of the hidden vector."""
        raise NotImplementedError

    @property
    def moments(self) -> PatternMoments:
        """Exact class balance, γ, po and σ̃."""
        return self.distribution.moments

    @property
    def dimension(self) -> int:
        return self.d

    @property
    def coordinates(self) -> int:
        """D: inputs lie in the span of D patterns."""
        return self.D

    def task(self, *, key: PRNGKeyArray) -> HiddenPatterns:
        key_dictionary, key_relevant = jax.random.split(key)
        dictionary = orthonormal(key_dictionary, self.d, self.D)
        relevant = random_subset(key_relevant, self.D, self.k)
        return HiddenPatterns(dictionary, relevant, self.distribution)

    def _check_sizes(self) -> None:
        for name in ("d", "D", "k"):
            value = getattr(self, name)
            require_whole(name, value)
        require(
            self.k <= self.D,
            f"k ≤ D is required (k relevant patterns of D), got k={self.k}, D={self.D}.",
        )
        require(
            self.D <= self.d,
            f"D ≤ d is required (D orthonormal patterns), got D={self.D}, d={self.d}.",
        )


def _check_label_set(P: tuple[int, ...], k: int) -> None:
    require(
        isinstance(P, tuple) and all(isinstance(s, int) for s in P),
        f"P must be a tuple of integers, got {P!r}.",
    )
    outside = [s for s in P if not 1 <= s <= k]
    require(not outside, f"P must lie in [k] = {{1, …, {k}}}, got {outside}.")
    require(
        len(P) > 0 and len(set(P)) == len(P),
        f"P must contain at least one number and no duplicates, got {P!r}.",
    )


def _check_po(po: float) -> None:
    require(
        0 < po <= 0.5,
        f"po (the probability of a background pattern) must lie in (0, 1/2], got {po}.",
    )


class ParityMixture(PatternFamily):
    """Mixture po·D⁽⁰⁾ + (1−po)·D⁽¹⁾ with parity labels, used in the lower bound for fixed features.

    D⁽⁰⁾: all D patterns are uniform bits. D⁽¹⁾: the k relevant patterns are all absent or all
    present, with probability ½ each, and each background pattern is present with probability
    po/(2−2po).

    Deviation: for po < 1/2 background patterns have different probabilities in the two parts. So
    (A2), independence of the background, holds only at po = 1/2.

    Reference: shi2022, proof of Theorem 2 (Appendix C), Section E.1.1.
    """

    po: float = eqx.field(converter=float, default=0.5, kw_only=True)

    def __check_init__(self) -> None:
        self._check_sizes()
        _check_po(self.po)
        require(
            self.k % 2 == 1,
            f"k must be odd, so that 'all absent' and 'all present' have different labels, got "
            f"{self.k}.",
        )

    @property
    def distribution(self) -> PatternDistribution:
        """Three product components: uniform bits, all absent, all present."""
        background = self.po / (2 - 2 * self.po)
        return PatternDistribution(
            weight=jnp.stack(
                [
                    jnp.asarray(self.po),
                    jnp.asarray((1 - self.po) / 2),
                    jnp.asarray((1 - self.po) / 2),
                ]
            ),
            p=jnp.array([0.5, 0.0, 1.0]),
            q=jnp.stack([jnp.asarray(0.5), jnp.asarray(background), jnp.asarray(background)]),
            D=self.D,
            k=self.k,
            P=parity(self.k),
        )


def _correlation(k: int, P: tuple[int, ...], p: float) -> float:
    """Return γ of `PatternDistribution.moments` for one component, without compiling a program."""
    mass = [math.comb(k, s) * p**s * (1 - p) ** (k - s) for s in range(k + 1)]
    label = [1.0 if s in P else -1.0 for s in range(k + 1)]
    joint = sum(m * y * s for s, (m, y) in enumerate(zip(mass, label, strict=True)))
    return (joint - p * k * sum(m * y for m, y in zip(mass, label, strict=True))) / k


class ProductPatterns(PatternFamily):
    """Independent patterns, present with probability p on A and po off A, with any label set P.

    Reference: shi2022, assumptions (A0)–(A2) in Section 3, and Section E.1.2 (interval labels).
    """

    P: tuple[int, ...] = eqx.field(static=True, kw_only=True)
    p: float = eqx.field(converter=float, kw_only=True)
    po: float = eqx.field(converter=float, default=0.5, kw_only=True)

    def __check_init__(self) -> None:
        self._check_sizes()
        _check_label_set(self.P, self.k)
        _check_po(self.po)
        require(
            0 < self.p < 1,
            f"p (the probability of a relevant pattern) must lie in (0, 1), got {self.p}.",
        )
        gamma = _correlation(self.k, self.P, self.p)
        require(
            gamma > 1e-6,
            f"(A1) requires correlation γ > 0 of the label with each relevant pattern, got γ = "
            f"{gamma:.3g} for p={self.p}, P={self.P}. Choose another P or p, or "
            "UnstructuredPatterns for γ = 0.",
        )

    @property
    def distribution(self) -> PatternDistribution:
        return PatternDistribution(
            weight=jnp.ones(1),
            p=jnp.asarray(self.p)[None],
            q=jnp.asarray(self.po)[None],
            D=self.D,
            k=self.k,
            P=self.P,
        )


class UnstructuredPatterns(PatternFamily):
    """Patterns without input structure: all D are uniform bits, independent of A.

    Reference: shi2022, assumption (A1') in Section 3.
    """

    P: tuple[int, ...] = eqx.field(static=True, kw_only=True)

    def __check_init__(self) -> None:
        self._check_sizes()
        _check_label_set(self.P, self.k)

    @property
    def distribution(self) -> PatternDistribution:
        return PatternDistribution(
            weight=jnp.ones(1), p=jnp.full(1, 0.5), q=jnp.full(1, 0.5), D=self.D, k=self.k, P=self.P
        )
