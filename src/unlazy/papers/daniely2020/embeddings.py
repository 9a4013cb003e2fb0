"""The price of fixed embeddings: how many features, drawn without regard to the label, express a
parity, and how many learn it.

Whether labels y can be separated is a question about a convex hull: some v has y_i⟨v, φ_i⟩ > 0 for
all i exactly if no λ ≥ 0, λ ≠ 0 has Σ λ_i y_i φ_i = 0. The point of the hull that is nearest to the
origin decides it, with a certificate either way: it is itself such a v, or it is zero and its
weights are such a λ. It is found by non-negative least squares; where rounding leaves both open, by
a linear program.

Reference: daniely2020, Theorem 1; Forster (2002).
"""

from __future__ import annotations

import functools
import math
from typing import Any, Literal

import equinox as eqx
import jax
import numpy as np
import scipy.linalg
import scipy.optimize
from jaxtyping import Float, Int, PRNGKeyArray
from threadpoolctl import threadpool_limits

from unlazy.core.errors import require
from unlazy.lab.power_laws import slope
from unlazy.lab.trials import ExactComputation
from unlazy.theory.sign_rank import forster_bound
from unlazy.theory.walsh import points

Kind = Literal["relu", "fourier", "tangent", "polynomial"]
KINDS: tuple[Kind, ...] = ("relu", "fourier", "tangent", "polynomial")
#: How weights are drawn: each by itself; or all alike in a neuron, which then looks at the sum of
#: the bits, as after one step of descent.
Weights = Literal["blind", "along the sum"]
#: A feature whose part outside of those before it is smaller than this, relative to it, adds
#: nothing to them.
_DEPENDENT = 1e-9
#: Below so many bits k each bit less doubles the number of embeddings that are drawn.
MANY_DRAWS = 8
#: Features that are made orthogonal to those before them at once.
_BLOCK = 64


def embedding(
    kind: Kind,
    z: Float[np.ndarray, "p k"],
    count: int,
    draw: np.random.Generator,
    weights: Weights = "blind",
) -> Float[np.ndarray, "p N"]:
    """`count` random features of each point.

    Neurons max(⟨w, z⟩ + b, 0); cosines; tangents of neurons (a block of k + 1 for each); powers
    (⟨w, z⟩ + b)^k. Polynomials of lower degree than k cannot express the parity of k bits, however
    many there are.
    """
    k = z.shape[1]
    neurons = count if kind != "tangent" else -(-count // (k + 1))
    w, b = draw.normal(size=(k, neurons)) / math.sqrt(k), draw.normal(size=neurons)
    w = w if weights == "blind" else np.broadcast_to(w[:1], w.shape)
    if kind == "fourier":
        return np.cos(z @ w + draw.uniform(0, 2 * math.pi, size=neurons))
    s = z @ w + b
    if kind == "relu":
        return np.maximum(s, 0)
    if kind == "polynomial":
        powers: np.ndarray = s**k
        return powers
    blocks = (s > 0)[:, :, None] * np.concatenate([z, np.ones((len(z), 1))], axis=1)[:, None, :]
    result: np.ndarray = blocks.reshape(len(z), -1)[:, :count]
    return result


def leading_basis(
    features: Float[np.ndarray, "p N"],
) -> tuple[Float[np.ndarray, "p r"], Int[np.ndarray, " r"]]:
    """An orthonormal basis of the span whose first j vectors span that of the leading features, and
    the feature that each comes with.

    By Gram and Schmidt, twice; features that depend on those before them give none. It ends where
    all of the space is spanned.
    """
    size = np.linalg.norm(features, axis=0)
    basis = np.empty((len(features), min(features.shape)))
    owners: list[int] = []
    for start in range(0, features.shape[1], _BLOCK):
        width = size[start : start + _BLOCK]
        block = features[:, start : start + _BLOCK] / np.where(width > 0, width, 1)
        known = basis[:, : len(owners)]
        for _ in range(2):
            block = block - known @ (known.T @ block)
        first = len(owners)
        for j in range(block.shape[1]):
            rest = block[:, j]
            for _ in range(2):
                rest = rest - basis[:, first : len(owners)] @ (
                    basis[:, first : len(owners)].T @ rest
                )
            length = np.linalg.norm(rest)
            if length > _DEPENDENT and len(owners) < basis.shape[1]:
                basis[:, len(owners)] = rest / length
                owners.append(start + j)
        if len(owners) == len(features):
            break
    return basis[:, : len(owners)], np.array(owners)


def separates(basis: Float[np.ndarray, "p r"], labels: Float[np.ndarray, " p"]) -> bool:
    """Whether labels are the signs of some function in the span of an orthonormal basis."""
    count, rank = basis.shape
    if rank == count:
        return True
    rows = labels[:, None] * basis
    stacked = np.concatenate([math.sqrt(count) * rows.T, np.ones((1, count))])
    wanted = np.zeros(rank + 1)
    wanted[-1] = 1
    try:
        weights, distance = scipy.optimize.nnls(stacked, wanted, maxiter=30 * count)
    except RuntimeError:  # it did not end
        return _by_program(rows)
    if distance < 1e-12:
        return False
    margins = rows @ (rows.T @ weights)
    if np.min(margins) > 1e-9 * np.max(np.abs(margins)):
        return True
    return _by_program(rows)


def _by_program(rows: Float[np.ndarray, "p r"]) -> bool:
    """The same by a linear program: some v has ⟨v, row⟩ ≥ 1 for all rows."""
    found = scipy.optimize.linprog(
        np.zeros(rows.shape[1]),
        A_ub=-rows,
        b_ub=-np.ones(len(rows)),
        bounds=(None, None),
        method="highs",
    )
    return bool(found.status == 0)


def separable(features: Float[np.ndarray, "p N"], labels: Float[np.ndarray, " p"]) -> bool:
    """Whether some v has label·⟨v, features⟩ > 0 at every point."""
    return separates(leading_basis(features)[0], labels)


def min_embedding_size(features: Float[np.ndarray, "p N"], labels: Float[np.ndarray, " p"]) -> int:
    """The least number of leading features that separate the labels.

    More features never hurt, so it is bisected.
    """
    basis, owners = leading_basis(features)
    require(
        separates(basis, labels),
        f"{features.shape[1]} features do not separate the labels: draw more.",
    )
    low, high = 0, len(owners)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if separates(basis[:, :middle], labels) else (middle, high)
    return int(owners[high - 1]) + 1


def growth(k: np.ndarray, least: np.ndarray) -> dict[str, float]:
    """How a number grows with k: `bits`, the slope of log₂ N in k; `base` = 2^bits; `degree`, the
    slope of log N in log k over the three greatest k, that of the polynomial which they would lie
    on; `rise`: by how much this exceeds the same over the three least k. A power of k rises by
    zero, a polynomial of degree 2 is either below 2 or falls towards it, an exponential rises in
    proportion to k.
    """
    bits = slope(k, np.log2(least))
    ends = [
        slope(np.log(k[part]), np.log(least[part])) for part in (slice(None, 3), slice(-3, None))
    ]
    return {"bits": bits, "base": 2**bits, "degree": ends[1], "rise": ends[1] - ends[0]}


class _Embeddings(ExactComputation):
    """Base of counts over the numbers k of bits, all for one kind of features."""

    kind: Kind = eqx.field(static=True)
    counts: tuple[int, ...] = eqx.field(static=True)
    weights: Weights = eqx.field(static=True, default="blind")

    def __check_init__(self) -> None:
        require(
            len(self.counts) >= 3 and min(self.counts) >= 2,
            f"Growth takes three or more k of at least 2, but they are {self.counts}.",
        )

    axis = "counts"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        draw = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        with threadpool_limits(
            1, user_api="blas"
        ):  # many small products: threads would wait for each other
            least = np.array([self._mean(k, draw) for k in self.counts], float)
        k = np.array(self.counts, float)
        forster = np.array([parities_bound(k) for k in self.counts])
        found = {
            "least": least,
            "forster": forster,
            "over_forster": np.minimum.accumulate(least / forster),
        }
        return found | {name: np.full(len(k), value) for name, value in growth(k, least).items()}

    def _mean(self, k: int, draw: np.random.Generator) -> float:
        """The geometric mean over draws; several for small k, where one varies and costs little."""
        return float(
            np.exp(
                np.mean([math.log(self._one(k, draw)) for _ in range(1 << max(0, MANY_DRAWS - k))])
            )
        )

    def _drawn(
        self, k: int, draw: np.random.Generator, more: int = 1
    ) -> tuple[Float[np.ndarray, "p N"], Float[np.ndarray, " p"]]:
        z = points(k)
        count = more * ((4 if self.kind == "tangent" else 2) * 2**k + 8 * k)
        return embedding(self.kind, z, count, draw, self.weights), np.prod(z, axis=1)

    def _one(self, k: int, draw: np.random.Generator) -> int:
        raise NotImplementedError


class MinimalEmbedding(_Embeddings):
    """The least number N of random features that express the parity of all k bits: that separate it
    on the whole cube.

    `least`: N, the geometric mean over 2^(8−k) embeddings for k < 8; `forster`: Forster's bound
    2^(k/2) for an embedding that serves all parities of k bits, from the spectral norm of the
    matrix of their values; `over_forster`: N over it, the least so far; and its `growth`.
    """

    KEY = "LeastEmbedding"

    def _one(self, k: int, draw: np.random.Generator) -> int:
        for more in (
            1,
            4,
            16,
        ):  # the first is enough but where weights look along the sum, whose ends few kinks reach
            features, labels = self._drawn(k, draw, more)
            if separable(features, labels) or more == 16:
                break
        return min_embedding_size(features, labels)


class LearnedEmbedding(_Embeddings):
    """The least number N of random features by which ridge regression learns the parity of all k
    bits, from examples·2^k uniform draws.

    Learned means that at most a share `error` of all points of the cube is labelled wrong. The
    ridge is chosen on a fifth of the examples. The number is bisected, as if more features never
    hurt, down to 2 %. Measures are those of `MinimalEmbedding`.
    """

    examples: int = eqx.field(static=True, default=8)
    error: float = eqx.field(static=True, default=0.05)

    def _one(self, k: int, draw: np.random.Generator) -> int:
        features, labels = self._drawn(k, draw)
        sample = draw.multinomial(self.examples * 2**k, np.full(2**k, 2.0**-k))
        held_out = draw.multivariate_hypergeometric(sample, sample.sum() // 5)
        features = features / np.maximum(np.linalg.norm(features, axis=0), 1e-12)
        low, high = 0, features.shape[1]
        while high - low > max(1, high // 50):
            middle = (low + high) // 2
            wrong = ridge_error(features[:, :middle], labels, sample - held_out, held_out)
            low, high = (low, middle) if wrong <= self.error else (middle, high)
        return int(high)


#: Ridges that are tried, as shares of the kernel's mean diagonal.
RIDGES = 10.0 ** np.arange(-10.0, 2.0)


def ridge_error(
    features: Float[np.ndarray, "p N"],
    labels: Float[np.ndarray, " p"],
    seen: Int[np.ndarray, " p"],
    held_out: Int[np.ndarray, " p"],
) -> float:
    """The share of points that a tuned ridge regression labels wrong, where each point was seen and
    held out so many times.
    """
    kernel = features @ features.T
    kernel = kernel / np.mean(np.diag(kernel))
    root = np.sqrt(seen)
    values, vectors = np.linalg.eigh(root[:, None] * kernel * root)
    inside, back = vectors.T @ (root * labels), kernel @ (root[:, None] * vectors)
    right = [
        held_out @ ((back @ (inside / (np.maximum(values, 0) + ridge))) * labels > 0)
        for ridge in RIDGES
    ]
    chosen, root = RIDGES[int(np.argmax(right))], np.sqrt(seen + held_out)
    ridged = root[:, None] * kernel * root + chosen * np.eye(len(root))
    scores = kernel @ (root * scipy.linalg.solve(ridged, root * labels, assume_a="pos"))
    return float(np.mean(scores * labels <= 0))


@functools.cache
def parities_bound(k: int) -> float:
    """Forster's bound for the matrix of all parities of k bits at all points, which is a Hadamard
    matrix: of norm 2^(k/2).
    """
    return (
        forster_bound(np.prod(np.where(points(k)[:, None, :] < 0, points(k)[None], 1.0), axis=2))
        if k <= 8
        else 2 ** (k / 2)
    )
