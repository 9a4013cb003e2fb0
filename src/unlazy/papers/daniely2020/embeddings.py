"""The price of fixed embeddings: how many features, drawn without regard to the label, a linear separator needs for a parity.

Reference: daniely2020, Theorem 1; Forster (2002).
"""

from __future__ import annotations

import math
from typing import Any, Literal

import equinox as eqx
import jax
import numpy as np
import scipy.optimize
from jaxtyping import Float, PRNGKeyArray

from unlazy.lab.power_laws import slope
from unlazy.lab.trials import Instrument
from unlazy.theory.sign_rank import forster_bound
from unlazy.theory.walsh import points

Kind = Literal["relu", "fourier", "tangent"]


def embedding(kind: Kind, z: Float[np.ndarray, "p k"], count: int, draw: np.random.Generator) -> Float[np.ndarray, "p N"]:
    """`count` random features of each point: neurons, cosines, or tangents of neurons (a block of k + 1 for each)."""
    k = z.shape[1]
    neurons = count if kind != "tangent" else -(-count // (k + 1))
    w, b = draw.normal(size=(k, neurons)) / math.sqrt(k), draw.normal(size=neurons)
    if kind == "fourier":
        return np.cos(math.sqrt(k) * (z @ w) + draw.uniform(0, 2 * math.pi, size=neurons))
    s = z @ w + b
    if kind == "relu":
        return np.maximum(s, 0)
    blocks = (s > 0)[:, :, None] * np.concatenate([z, np.ones((len(z), 1))], axis=1)[:, None, :]
    return blocks.reshape(len(z), -1)[:, :count]


def separable(features: Float[np.ndarray, "p N"], labels: Float[np.ndarray, " p"]) -> bool:
    """Whether some v has label·⟨v, features⟩ ≥ 1 at every point, by linear programming."""
    rows = -labels[:, None] * features / np.maximum(np.abs(features).max(axis=0), 1e-12)
    found = scipy.optimize.linprog(np.zeros(features.shape[1]), A_ub=rows, b_ub=-np.ones(len(labels)), bounds=(None, None), method="highs")
    return bool(found.status == 0)


def least_embedding(features: Float[np.ndarray, "p N"], labels: Float[np.ndarray, " p"]) -> int:
    """The least number of leading features that separate the labels, where all of them do. More features never hurt, so it is bisected."""
    low, high = 0, features.shape[1]
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if separable(features[:, :middle], labels) else (middle, high)
    return high


class LeastEmbedding(Instrument):
    """The least number N of random features that separate the parity of all k bits on the whole cube, over k.

    `least`: N; `forster`: Forster's bound 2^(k/2) for an embedding that serves all parities of k bits, from the spectral norm of the matrix
    of their values; `over_forster`: N over it, the least so far; `bits`: log₂ N over k, fitted; `degree`: log N over log k, fitted to the
    greater half of the k: what a polynomial would have as its degree. `target`: the "parity", or the "first bit".
    """

    kind: Kind = eqx.field(static=True)
    counts: tuple[int, ...] = eqx.field(static=True)
    target: Literal["parity", "first bit"] = eqx.field(static=True, default="parity")

    @property
    def steps(self) -> tuple[int, ...]:
        """The numbers k of bits."""
        return self.counts

    @property
    def work(self) -> float:
        """Linear programs of 2^k rows and columns."""
        return sum(20.0 * 8.0**k for k in self.counts)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        draw = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        least = np.array([self._one(k, draw) for k in self.counts], float)
        forster = np.array([_forster(k) for k in self.counts])
        k, half = np.array(self.counts, float), len(self.counts) // 2
        return {
            "least": least,
            "forster": forster,
            "over_forster": np.minimum.accumulate(least / forster),
            "bits": np.full(len(k), slope(k, np.log2(least))),
            "degree": np.full(len(k), slope(np.log(k[half:]), np.log(least[half:]))),
        }

    def _one(self, k: int, draw: np.random.Generator) -> int:
        z = points(k)
        labels = np.prod(z, axis=1) if self.target == "parity" else z[:, 0]
        count = (3 if self.kind == "tangent" else 2) * 2**k + 8 * k
        return least_embedding(embedding(self.kind, z, count, draw), labels)


def _forster(k: int) -> float:
    """Forster's bound for the matrix of all parities of k bits at all points, which is a Hadamard matrix."""
    return forster_bound(np.prod(np.where(points(k)[:, None, :] < 0, points(k)[None], 1.0), axis=2)) if k <= 9 else 2 ** (k / 2)
