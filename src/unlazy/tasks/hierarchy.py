"""Hierarchical targets: a simple base signal plus a smaller composite of it. Labels are

    y = H(x) = β·F(x) + α·G(F(x)),   F: R^d → R^k,   G: R^k → R^k.

- `PairHierarchy` (experiments): pairwise products of signs, and a product of four of them.
- `HardInstance` (lower bounds): k coordinates and their product; other coordinates are arbitrary.
- `SmoothHierarchy` (concept class): networks of smooth neurons.

Reference: allenzhu2019, Eq. (2.2), Sections 5, 7 and 8.1.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from unlazy.core.errors import require, require_one_of
from unlazy.core.metrics import Outputs
from unlazy.core.random import bernoulli, normal, rademacher
from unlazy.core.series import series_of
from unlazy.tasks.base import Batch, Family, Task

Background = Literal["uniform", "constant", "tied", "biased"]
#: Size of the fixed sample that estimates the variance of a smooth hierarchy.
VARIANCE_POINTS = 1 << 16


class HierarchyTask(Task):
    """Target H = β·F + α·G(F)."""

    alpha: Float[Array, ""]
    beta: Float[Array, ""]

    @abstractmethod
    def inputs(self, n: int, key: PRNGKeyArray) -> Float[Array, "n d"]:
        """Draw inputs."""

    @abstractmethod
    def base_signal(self, x: Float[Array, "n d"]) -> Float[Array, "n k"]:
        """Return F(x)."""

    @abstractmethod
    def composite(self, h: Float[Array, "n k"]) -> Float[Array, "n k"]:
        """Return G(h)."""

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        x = self.inputs(n, key)
        return Batch(x, self.target(x))

    def target(self, x: Float[Array, "n d"]) -> Float[Array, "n k"]:
        base = self.base_signal(x)
        return self.beta * base + self.alpha * self.composite(base)


def _check_sizes(alpha: float, beta: float) -> None:
    require(alpha >= 0 and beta >= 0, f"alpha and beta must be ≥ 0, got {alpha} and {beta}.")
    require(alpha + beta > 0, "alpha and beta must not both be 0; there is nothing to learn.")


class PairHierarchyTask(HierarchyTask):
    """F_i = x_{2i−1}·x_{2i}; G_i(h) = (−1)^i·h₁⋯h_q, for coordinates in the order of `where`."""

    where: Int[Array, " d"]
    order: int = eqx.field(static=True)

    @property
    def dimension(self) -> int:
        return len(self.where)

    @property
    def outputs(self) -> Outputs:
        return Outputs("reals", self.dimension // 2)

    def inputs(self, n: int, key: PRNGKeyArray) -> Float[Array, "n d"]:
        return rademacher(key, (n, self.dimension))

    def base_signal(self, x: Float[Array, "n d"]) -> Float[Array, "n k"]:
        pairs = x[:, self.where].reshape(len(x), -1, 2)
        return pairs[:, :, 0] * pairs[:, :, 1]

    def composite(self, h: Float[Array, "n k"]) -> Float[Array, "n k"]:
        alternating = jnp.where(jnp.arange(1, h.shape[1] + 1) % 2 == 0, 1.0, -1.0)
        return jnp.prod(h[:, : self.order], axis=1, keepdims=True) * alternating[None, :]

    @property
    def features(self) -> Float[Array, "d d"]:
        return jax.nn.one_hot(self.where, self.dimension)

    @property
    def chance(self) -> Float[Array, ""]:
        """k·(β² + α²), since all products have mean zero and are orthogonal."""
        return (self.dimension // 2) * (self.beta**2 + self.alpha**2)


class PairHierarchy(Family):
    """Products F of d/2 pairs of uniform signs, and a product G of the first `order` of them.

    x is uniform in {±1}^d, k = d/2, and G_i = (−1)^i·F₁⋯F_order. The paper pairs adjacent
    coordinates. Here the pairs are random, which is equivalent for every learner that
    is invariant to permutations of coordinates. If nothing of α·G(F) is learned, the
    squared error is k·α².
    """

    d: int = eqx.field(static=True, default=30, kw_only=True)
    alpha: float = eqx.field(converter=float, default=0.3, kw_only=True)
    beta: float = eqx.field(converter=float, default=1.0, kw_only=True)
    order: int = eqx.field(static=True, default=4, kw_only=True)

    def __check_init__(self) -> None:
        require(
            isinstance(self.d, int) and self.d > 0 and self.d % 2 == 0,
            f"d must be a positive even integer, got {self.d!r}.",
        )
        require(
            2 <= self.order <= self.d // 2,
            f"order must lie between 2 and d/2 = {self.d // 2}, got {self.order}.",
        )
        _check_sizes(self.alpha, self.beta)

    @property
    def dimension(self) -> int:
        return self.d

    @property
    def outputs(self) -> Outputs:
        return Outputs("reals", self.d // 2)

    def task(self, *, key: PRNGKeyArray) -> PairHierarchyTask:
        return PairHierarchyTask(
            jnp.asarray(self.alpha),
            jnp.asarray(self.beta),
            jax.random.permutation(key, self.d),
            self.order,
        )


class HardInstanceTask(HierarchyTask):
    """F(x) = √d·(x_{i₁}, …, x_{i_k}); G(h) = (Π_j h_j, …, Π_j h_j).

    The indices are among the first d₁ coordinates, which are uniform signs divided by √d.
    """

    where: Int[Array, " k"]
    d: int = eqx.field(static=True)
    fair: int = eqx.field(static=True)
    background: Background = eqx.field(static=True)

    @property
    def dimension(self) -> int:
        return self.d

    @property
    def outputs(self) -> Outputs:
        return Outputs("reals", len(self.where))

    def inputs(self, n: int, key: PRNGKeyArray) -> Float[Array, "n d"]:
        key_fair, key_rest = jax.random.split(key)
        rest = self.d - self.fair
        front = rademacher(key_fair, (n, self.fair))
        if self.background == "constant":
            back = jnp.ones_like(front, shape=(n, rest))
        elif self.background == "tied":
            back = jnp.broadcast_to(rademacher(key_rest, (n, 1)), (n, rest))
        elif self.background == "biased":
            back = jnp.where(bernoulli(key_rest, jnp.full((n, rest), 0.9)), 1.0, -1.0)
        else:
            back = rademacher(key_rest, (n, rest))
        return jnp.concatenate([front, back.astype(front.dtype)], axis=1) / jnp.sqrt(self.d)

    def base_signal(self, x: Float[Array, "n d"]) -> Float[Array, "n k"]:
        return jnp.sqrt(self.d) * x[:, self.where]

    def composite(self, h: Float[Array, "n k"]) -> Float[Array, "n k"]:
        return jnp.broadcast_to(jnp.prod(h, axis=1, keepdims=True), h.shape)

    @property
    def features(self) -> Float[Array, "k d"]:
        return jax.nn.one_hot(self.where, self.d)

    @property
    def chance(self) -> Float[Array, ""]:
        return len(self.where) * (self.beta**2 + self.alpha**2)


class HardInstance(Family):
    """Class (7.1): k of the first d₁ (`fair`) coordinates and their product.

    `background` is the distribution of the other coordinates: "uniform" signs, "constant", "tied"
    (all equal to one sign), or "biased" (+ with probability 0.9).
    """

    d: int = eqx.field(static=True, default=30, kw_only=True)
    fair: int | None = eqx.field(static=True, default=None, kw_only=True)
    k: int = eqx.field(static=True, default=3, kw_only=True)
    alpha: float = eqx.field(converter=float, default=0.3, kw_only=True)
    beta: float = eqx.field(converter=float, default=1.0, kw_only=True)
    background: Background = eqx.field(static=True, default="uniform", kw_only=True)

    def __check_init__(self) -> None:
        require(
            2 <= self.k <= self.d1 <= self.d,
            f"2 ≤ k ≤ d₁ ≤ d is required, got k={self.k}, d₁={self.d1}, d={self.d}.",
        )
        known = get_args(Background)
        require_one_of("background", self.background, known)
        _check_sizes(self.alpha, self.beta)

    @property
    def d1(self) -> int:
        """Number of coordinates that are uniform signs."""
        return self.d if self.fair is None else self.fair

    @property
    def dimension(self) -> int:
        return self.d

    @property
    def outputs(self) -> Outputs:
        return Outputs("reals", self.k)

    def task(self, *, key: PRNGKeyArray) -> HardInstanceTask:
        where = jax.random.permutation(key, self.d1)[: self.k]
        return HardInstanceTask(
            jnp.asarray(self.alpha), jnp.asarray(self.beta), where, self.d, self.d1, self.background
        )


class RealParityTask(HierarchyTask):
    """Composite signal alone: y = Π_j √d·x_{i_j}, one real number."""

    where: Int[Array, " k"]
    d: int = eqx.field(static=True)

    @property
    def dimension(self) -> int:
        return self.d

    @property
    def outputs(self) -> Outputs:
        return Outputs("reals")

    def inputs(self, n: int, key: PRNGKeyArray) -> Float[Array, "n d"]:
        return rademacher(key, (n, self.d)) / jnp.sqrt(self.d)

    def base_signal(self, x: Float[Array, "n d"]) -> Float[Array, "n k"]:
        return jnp.sign(x[:, self.where])

    def composite(self, h: Float[Array, "n k"]) -> Float[Array, " n"]:
        return jnp.prod(h, axis=1)

    def target(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        return self.composite(self.base_signal(x))

    @property
    def features(self) -> Float[Array, "k d"]:
        return jax.nn.one_hot(self.where, self.d)

    @property
    def chance(self) -> Float[Array, ""]:
        return jnp.asarray(1.0)


class RealParity(Family):
    """Parity of k hidden coordinates of x ∈ {±1/√d}^d as a real-valued target.

    Section 8.2 has k = 6.
    """

    d: int = eqx.field(static=True, default=40, kw_only=True)
    k: int = eqx.field(static=True, default=6, kw_only=True)

    def __check_init__(self) -> None:
        require(2 <= self.k <= self.d, f"2 ≤ k ≤ d is required, got k={self.k}, d={self.d}.")

    @property
    def dimension(self) -> int:
        return self.d

    @property
    def outputs(self) -> Outputs:
        return Outputs("reals")

    def task(self, *, key: PRNGKeyArray) -> RealParityTask:
        where = jax.random.permutation(key, self.d)[: self.k]
        return RealParityTask(jnp.asarray(1.0), jnp.asarray(0.0), where, self.d)


class SmoothHierarchyTask(HierarchyTask):
    """F_r(x) = Σ_i a_{r,i}·φ(⟨w_{r,i}, x⟩), G_r(h) = Σ_i c_{r,i}·ψ(⟨v_{r,i}, h⟩).

    Inputs are uniform on the unit sphere.
    """

    w: Float[Array, "k p d"]
    a: Float[Array, "k p"]
    v: Float[Array, "k q k"]
    c: Float[Array, "k q"]
    inner: str = eqx.field(static=True)
    outer: str = eqx.field(static=True)

    @property
    def dimension(self) -> int:
        return self.w.shape[2]

    @property
    def outputs(self) -> Outputs:
        return Outputs("reals", len(self.w))

    def inputs(self, n: int, key: PRNGKeyArray) -> Float[Array, "n d"]:
        x = normal(key, (n, self.dimension))
        result: Array = x / jnp.linalg.norm(x, axis=1, keepdims=True)
        return result

    def base_signal(self, x: Float[Array, "n d"]) -> Float[Array, "n k"]:
        return jnp.einsum(
            "kp,nkp->nk", self.a, series_of(self.inner)(jnp.einsum("kpd,nd->nkp", self.w, x))
        )

    def composite(self, h: Float[Array, "n k"]) -> Float[Array, "n k"]:
        return jnp.einsum(
            "kq,nkq->nk", self.c, series_of(self.outer)(jnp.einsum("kqj,nj->nkq", self.v, h))
        )

    @property
    def features(self) -> Float[Array, "f d"]:
        """Directions of the base signal."""
        rows = self.w.reshape(-1, self.dimension)
        result: Array = rows / jnp.linalg.norm(rows, axis=1, keepdims=True)
        return result

    @property
    def chance(self) -> Float[Array, ""]:
        """Variance of the target on `VARIANCE_POINTS` fixed points; there is no closed form."""
        y = self.draw(VARIANCE_POINTS, jax.random.key(0)).y
        return jnp.sum(jnp.var(y, axis=0))


class SmoothHierarchy(Family):
    """Concept 1: `p` inner and `q` outer neurons per output, for k outputs.

    Weights have norm 1/√2, coefficients are uniform in [−1, 1]. `inner` and `outer` name smooth
    functions (`SERIES`). F is not normalized, as Concept 2 allows.
    """

    d: int = eqx.field(static=True, default=20, kw_only=True)
    k: int = eqx.field(static=True, default=3, kw_only=True)
    p: int = eqx.field(static=True, default=2, kw_only=True)
    q: int = eqx.field(static=True, default=2, kw_only=True)
    inner: str = eqx.field(static=True, default="sin", kw_only=True)
    outer: str = eqx.field(static=True, default="square", kw_only=True)
    alpha: float = eqx.field(converter=float, default=0.3, kw_only=True)
    beta: float = eqx.field(converter=float, default=1.0, kw_only=True)

    def __check_init__(self) -> None:
        require(
            min(self.d, self.k, self.p, self.q) > 0,
            f"d, k, p and q must be positive, got {self.d}, {self.k}, {self.p}, {self.q}.",
        )
        series_of(self.inner)
        series_of(self.outer)
        _check_sizes(self.alpha, self.beta)

    @property
    def dimension(self) -> int:
        return self.d

    @property
    def outputs(self) -> Outputs:
        return Outputs("reals", self.k)

    def task(self, *, key: PRNGKeyArray) -> SmoothHierarchyTask:
        key_w, key_a, key_v, key_c = jax.random.split(key, 4)

        def rows(key: PRNGKeyArray, shape: tuple[int, ...]) -> Array:
            drawn = normal(key, shape)
            result: Array = drawn / jnp.linalg.norm(drawn, axis=-1, keepdims=True) / jnp.sqrt(2.0)
            return result

        def sizes(key: PRNGKeyArray, shape: tuple[int, ...]) -> Array:
            return (
                2 * jax.random.uniform(key, shape, jnp.float32).astype(jnp.result_type(float)) - 1
            )

        return SmoothHierarchyTask(
            jnp.asarray(self.alpha),
            jnp.asarray(self.beta),
            rows(key_w, (self.k, self.p, self.d)),
            sizes(key_a, (self.k, self.p)),
            rows(key_v, (self.k, self.q, self.k)),
            sizes(key_c, (self.k, self.q)),
            self.inner,
            self.outer,
        )
