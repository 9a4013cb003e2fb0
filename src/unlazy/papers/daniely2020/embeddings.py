"""Number of random features that express a parity, and number that learn it.

Labels y are separable, y_i⟨v, φ_i⟩ > 0 for some v and all i, if and only if no λ ≥ 0, λ ≠ 0 has
Σ λ_i y_i φ_i = 0. The point of the convex hull of y_i φ_i nearest to the origin decides this with a
certificate: it is such a v, or it is zero and its weights are such a λ. It is computed by
non-negative least squares, or by a linear program if rounding makes the result ambiguous.

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
#: Weights of a neuron: independent, or all equal, as after one gradient step.
Weights = Literal["blind", "along the sum"]
#: A feature is dependent on earlier ones if its relative residual is below this.
_DEPENDENT = 1e-9
#: For k below this, the number of embeddings drawn is 2^(MANY_DRAWS − k).
MANY_DRAWS = 8
#: Features per block of the Gram–Schmidt process.
_BLOCK = 64


def embedding(
    kind: Kind,
    z: Float[np.ndarray, "p k"],
    count: int,
    draw: np.random.Generator,
    weights: Weights = "blind",
) -> Float[np.ndarray, "p N"]:
    """Return `count` random features of each point.

    Kinds: neurons max(⟨w, z⟩ + b, 0); cosines; gradients of neurons (k + 1 features per neuron);
    powers (⟨w, z⟩ + b)^k. Polynomials of degree below k cannot express the parity of k bits.
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
    """Return an orthonormal basis whose first j vectors span that of the leading features, and the
    index of the feature that adds each vector.

    Gram–Schmidt process, applied twice. Dependent features add no vector. It ends once the whole
    space is spanned.
    """
    size = np.linalg.norm(features, axis=0)
    basis = np.empty((len(features), min(features.shape)))
    owners: list[int] = []
    for offset in range(0, features.shape[1], _BLOCK):
        norms = size[offset : offset + _BLOCK]
        block = features[:, offset : offset + _BLOCK] / np.where(norms > 0, norms, 1)
        previous = basis[:, : len(owners)]
        for _ in range(2):
            block = block - previous @ (previous.T @ block)
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
                owners.append(offset + j)
        if len(owners) == len(features):
            break
    return basis[:, : len(owners)], np.array(owners)


def separates(basis: Float[np.ndarray, "p r"], labels: Float[np.ndarray, " p"]) -> bool:
    """Return whether labels are the signs of some function in the span of an orthonormal basis."""
    count, rank = basis.shape
    if rank == count:
        return True
    rows = labels[:, None] * basis
    stacked = np.concatenate([math.sqrt(count) * rows.T, np.ones((1, count))])
    target = np.zeros(rank + 1)
    target[-1] = 1
    try:
        weights, distance = scipy.optimize.nnls(stacked, target, maxiter=30 * count)
    except RuntimeError:  # not converged
        return _by_program(rows)
    if distance < 1e-12:
        return False
    margins = rows @ (rows.T @ weights)
    if np.min(margins) > 1e-9 * np.max(np.abs(margins)):
        return True
    return _by_program(rows)


def _by_program(rows: Float[np.ndarray, "p r"]) -> bool:
    """Return by a linear program whether some v has ⟨v, row⟩ ≥ 1 for all rows."""
    solution = scipy.optimize.linprog(
        np.zeros(rows.shape[1]),
        A_ub=-rows,
        b_ub=-np.ones(len(rows)),
        bounds=(None, None),
        method="highs",
    )
    return bool(solution.status == 0)


def separable(features: Float[np.ndarray, "p N"], labels: Float[np.ndarray, " p"]) -> bool:
    """Return whether some v has label·⟨v, features⟩ > 0 at every point."""
    return separates(leading_basis(features)[0], labels)


def min_embedding_size(features: Float[np.ndarray, "p N"], labels: Float[np.ndarray, " p"]) -> int:
    """Return the smallest number of leading features that separate the labels.

    Separability is monotone in the number of features, so bisection applies.
    """
    basis, owners = leading_basis(features)
    require(
        separates(basis, labels),
        f"{features.shape[1]} features do not separate the labels; draw more.",
    )
    low, high = 0, len(owners)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if separates(basis[:, :middle], labels) else (middle, high)
    return int(owners[high - 1]) + 1


def growth(k: np.ndarray, minimal: np.ndarray) -> dict[str, float]:
    """Return the growth of a number N with k.

    `bits`: slope of log₂ N in k. `base` = 2^bits. `degree`: slope of log N in log k over the three
    largest k. `rise`: `degree` minus the same slope over the three smallest k. For a power of k,
    `rise` is zero. A polynomial of degree 2 has `degree` below 2, or decreasing towards 2. For an
    exponential, `rise` grows in proportion to k.
    """
    bits = slope(k, np.log2(minimal))
    ends = [
        slope(np.log(k[part]), np.log(minimal[part])) for part in (slice(None, 3), slice(-3, None))
    ]
    return {"bits": bits, "base": 2**bits, "degree": ends[1], "rise": ends[1] - ends[0]}


class _Embeddings(ExactComputation):
    """Base class: number of features of one kind, over the numbers k of bits."""

    kind: Kind = eqx.field(static=True)
    counts: tuple[int, ...] = eqx.field(static=True)
    weights: Weights = eqx.field(static=True, default="blind")

    def __check_init__(self) -> None:
        require(
            len(self.counts) >= 3 and min(self.counts) >= 2,
            f"`counts` must contain at least three values, each at least 2, got {self.counts}.",
        )

    axis = "counts"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        draw = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        # Many small matrix products: several threads would be slower.
        with threadpool_limits(1, user_api="blas"):
            minimal = np.array([self._mean(k, draw) for k in self.counts], float)
        k = np.array(self.counts, float)
        forster = np.array([parities_bound(k) for k in self.counts])
        measured = {
            "least": minimal,
            "forster": forster,
            "over_forster": np.minimum.accumulate(minimal / forster),
        }
        fitted = growth(k, minimal)
        return measured | {name: np.full(len(k), value) for name, value in fitted.items()}

    def _mean(self, k: int, draw: np.random.Generator) -> float:
        """Return the geometric mean over draws; small k have more, since they vary more and cost
        less.
        """
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
    """Smallest number N of random features that separate the parity of all k bits on the cube.

    Measure "least": N, geometric mean over 2^(8−k) embeddings for k < 8. `forster`: Forster's bound
    2^(k/2) for embeddings that realize all parities of k bits, from the spectral norm of their sign
    matrix. `over_forster`: minimum of N/forster over all k so far. Further measures: see `growth`.
    """

    KEY = "LeastEmbedding"

    def _one(self, k: int, draw: np.random.Generator) -> int:
        # 1 suffices unless weights lie along the sum, whose extreme values few kinks reach.
        for more in (1, 4, 16):
            features, labels = self._drawn(k, draw, more)
            if separable(features, labels) or more == 16:
                break
        return min_embedding_size(features, labels)


class LearnedEmbedding(_Embeddings):
    """Smallest number N of random features with which ridge regression learns the parity of all k
    bits from examples·2^k uniform examples.

    Learned: at most a fraction `error` of the points of the cube is labeled wrongly. The ridge is
    tuned on a fifth of the examples. N is found by bisection to 2 %, assuming that more features
    never increase the error. Measures are those of `MinimalEmbedding`.
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


#: Candidate ridges, relative to the mean diagonal of the kernel.
RIDGES = 10.0 ** np.arange(-10.0, 2.0)


def ridge_error(
    features: Float[np.ndarray, "p N"],
    labels: Float[np.ndarray, " p"],
    seen: Int[np.ndarray, " p"],
    held_out: Int[np.ndarray, " p"],
) -> float:
    """Return the fraction of points that a tuned ridge regression labels wrongly; `seen` and
    `held_out` are numbers of training and validation examples per point.
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
    """Return Forster's bound for the sign matrix of all parities of k bits.

    It is a Hadamard matrix of spectral norm 2^(k/2).
    """
    return (
        forster_bound(np.prod(np.where(points(k)[:, None, :] < 0, points(k)[None], 1.0), axis=2))
        if k <= 8
        else 2 ** (k / 2)
    )
