"""Depth separation: functions that a deep tree learns exactly, and what two-layer networks need for
them.

Reference: malach2019, Section 6 (Theorems 11 and 12, Lemma 23, Corollary 13).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.errors import BadInput, require
from unlazy.core.random import bernoulli, host_generator
from unlazy.lab.arms import Arm, Repeats, Row
from unlazy.lab.trials import ExactComputation
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.sources import FreshGradients
from unlazy.networks.base import Model
from unlazy.networks.inits import AntisymmetricInit
from unlazy.networks.two_layer import TwoLayer
from unlazy.papers.malach2019.computations import all_inputs
from unlazy.papers.malach2019.recovering import layerwise
from unlazy.probes.base import ModelProbe
from unlazy.tasks.base import Batch, Data, Family, Task
from unlazy.tasks.circuits.examples import and_of_ors, razborov_sherstov
from unlazy.tasks.circuits.families import LISTED, FixedCircuit, listed
from unlazy.theory.sign_rank import (
    forster_bound,
    is_no_product,
    least_width,
    lemma23_bound,
    network_matrix,
    razborov_sherstov_bound,
    rounding_steps,
    shattered_rows,
    sign_matrix,
)


class NetworkRank(ExactComputation):
    """Lemma 23 on random two-layer networks with integer weights in [−B, B], and the rounding in
    the proof of Theorem 12.

    `rank_ratio`: greatest rank over 4Bkn′; `rank_share`: greatest rank over 2^{n′}, the most that
    it could be. `rounding_ratio`: greatest
    |ĝ(x, y) − g(x, y)| over γ/2, where ĝ has the weights of g rounded up to multiples of 1/N, N =
    ⌈2Bk(2n′ + 1)/γ⌉; tiny weights, which
    are rounded furthest, are among those tried. `coarse` takes a quarter of that N, and weights
    that are not integers for the ranks.
    """

    half: int = eqx.field(static=True)
    networks: int = eqx.field(static=True, default=12, kw_only=True)
    coarse: bool = eqx.field(static=True, default=False, kw_only=True)
    gamma: float = eqx.field(converter=float, default=0.5, kw_only=True)
    precision: int = eqx.field(static=True, default=64, kw_only=True)  # type: ignore[assignment]

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = host_generator(key)
        ratio = share = rounding = 0.0
        for index in range(self.networks):
            B, k = 1 + index % 2, 1 + index // 2 % 3
            real = (
                rng.uniform(-B, B, (2, k, self.half)),
                rng.uniform(-B, B, k),
                rng.uniform(-B, B, k),
            )
            whole = rng.integers(-B, B + 1, (2, k, self.half)), rng.integers(-B, B + 1, k)
            (w, v), b = (real[0], real[1]) if self.coarse else whole
            matrix = network_matrix(w, v, b, real[2])
            rank = int(np.linalg.matrix_rank(matrix))
            ratio, share = (
                max(ratio, rank / lemma23_bound(B, k, self.half)),
                max(share, rank / len(matrix)),
            )
            tiny = np.full((2, k, self.half), 1e-9), np.full(k, 1e-9), np.full(k, float(B))
            rounding = max(rounding, self._rounded(B, *real), self._rounded(B, *tiny))
        return {
            "rank_ratio": np.asarray(ratio),
            "rank_share": np.asarray(share),
            "rounding_ratio": np.asarray(rounding),
        }

    def _rounded(self, B: int, wv: np.ndarray, b: np.ndarray, u: np.ndarray) -> float:
        """Greatest change over γ/2 by rounding up."""
        N = rounding_steps(B, len(b), self.half, self.gamma) // (4 if self.coarse else 1)
        exact = network_matrix(wv[0], wv[1], b, u)
        near = network_matrix(np.ceil(N * wv[0]), np.ceil(N * wv[1]), np.ceil(N * b), u / N)
        return float(np.abs(near - exact).max()) / (self.gamma / 2)


class SignRank(ExactComputation):
    """Bounds on the sign-rank of f_m = ⋀_m ⋁_{m²} (x ∧ y) for m = 1, 2; the axis is m.

    `lower`: the greatest of Forster's bound, that of Razborov and Sherstov, 2 where the signs are
    no product of signs, and the number of rows x, m(m² − 1) of them, on which columns y give all
    patterns of signs. `upper`: m^{2m} + 1, the rank of Π_i Σ_j x_ij y_ij − ½ over 0 and 1, where
    those are the signs. `spectral`: the first two. `growth`: lower at m = 2 less upper at m = 1.
    `width_bound`: below this width the proof of Theorem 12 forbids networks with weights in [−1, 1]
    and margin 1. `conjunction` takes the AND of all inputs instead.
    """

    conjunction: bool = eqx.field(static=True, default=False, kw_only=True)
    precision: int = eqx.field(static=True, default=64, kw_only=True)  # type: ignore[assignment]

    @property
    def steps(self) -> tuple[int, ...]:
        return (1, 2)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rows = [self._at(m) for m in self.steps]
        table = {name: np.array([row[name] for row in rows], float) for name in rows[0]}
        return table | {"growth": np.full(2, table["lower"][1] - table["upper"][0])}

    def _at(self, m: int) -> dict[str, float]:
        matrix = sign_matrix(and_of_ors(m**3, 1) if self.conjunction else razborov_sherstov(m))
        spectral = max(forster_bound(matrix), razborov_sherstov_bound(matrix, 5))
        shattered = shattered_rows(
            matrix, [_row(m, i, j) for i in range(m) for j in range(1, m * m)]
        )
        lower = max(math.ceil(spectral - 1e-9), 2 if is_no_product(matrix) else 1, shattered)
        upper = 2 if self.conjunction else conjunction_rank(matrix, m)
        return {
            "spectral": spectral,
            "lower": lower,
            "upper": upper,
            "width_bound": least_width(lower, 1.0, m**3, 1.0),
        }


def _row(m: int, clause: int, term: int) -> int:
    """The x whose clauses read y_i1, but one y_ij: its number as a row of the matrix of f_m."""
    bits = np.zeros((m, m * m), int)
    bits[:, 0] = 1
    bits[clause] = 0
    bits[clause, term] = 1
    return int(bits.ravel() @ (1 << np.arange(m**3)[::-1]))


def conjunction_rank(matrix: np.ndarray, m: int) -> int:
    """m^{2m} + 1, if Π_i Σ_j x_ij y_ij − ½ has the signs of the matrix; else its own rank."""
    bits = all_inputs(m**3).astype(int).reshape(-1, m, m * m)
    product = np.prod(np.einsum("aij,bij->abi", bits, bits), axis=2) - 0.5
    return (
        m ** (2 * m) + 1
        if np.array_equal(np.sign(product), matrix)
        else int(np.linalg.matrix_rank(matrix.astype(float)))
    )


def deep_recovery(
    sizes: tuple[int, ...], *, sample: bool, gates: tuple[str, str] = ("AND", "OR")
) -> Row:
    """Algorithm 1 on f_m under its generative law, which is f_m's own circuit read backwards; the
    axis is m, a power of two.

    `recovered`, `error` in percent; `settled`: 1 where all outputs are ±1. `separated`: 1 where f_m
    is separated with margin 1 for all m up to this one, which is no error and outputs of ±1;
    `worst_recovered` likewise. On the law itself, or on about 256/Δ² examples. `gates` stand for
    AND and OR.
    """
    arms = {}
    for m in sizes:
        text = str(razborov_sherstov(m)).replace("AND", "first").replace("OR", "second")
        family = FixedCircuit(text.replace("first", gates[0]).replace("second", gates[1]))
        margin = (2 / 3) ** family.circuit.depth
        arms[m] = layerwise(
            family, margin, 2 ** math.ceil(math.log2(256 / margin**2)) if sample else None
        )
    return Row(arms, summaries=(_worst_tree,))


def _worst_tree(places: np.ndarray, table: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {
        "worst_recovered": np.minimum.accumulate(table["recovered"]),
        "separated": np.minimum.accumulate(np.where(table["error"] <= 1e-9, table["settled"], 0.0)),
        "inputs": 2 * places**3,
    }


class BalancedCircuitTask(Task):
    """⋀_{i≤m} ⋁_{j≤r} (x_ij ∧ y_ij), both labels equally often: given the label, all inputs that
    have it are equally likely.
    """

    m: int = eqx.field(static=True)
    r: int = eqx.field(static=True)

    @property
    def dimension(self) -> int:
        """The pairs x_11, y_11, x_12, y_12, …"""
        return 2 * self.m * self.r

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        key_label, key_place = jax.random.split(key)
        y = bernoulli(key_label, jnp.full(n, 0.5))
        u = jax.random.uniform(key_place, (n,), jnp.float32)
        positive, negative = (
            jnp.asarray(np.flatnonzero(_labels(self.m, self.r) == sign)) for sign in (True, False)
        )
        place = jnp.where(
            y, positive[(u * len(positive)).astype(int)], negative[(u * len(negative)).astype(int)]
        )
        bits = (place[:, None] >> jnp.arange(self.dimension)[None, ::-1]) & 1
        return Batch(jnp.where(bits == 1, 1.0, -1.0), jnp.where(y, 1.0, -1.0))

    def target(self, x: Float[Array, "b n"]) -> Float[Array, " b"]:
        both = jnp.minimum(x[:, 0::2], x[:, 1::2]).reshape(len(x), self.m, self.r)
        return jnp.where(jnp.min(jnp.max(both, axis=2), axis=1) > 0, 1.0, -1.0)

    @property
    def features(self) -> Float[Array, "n n"]:
        return jnp.eye(self.dimension)

    @property
    def chance(self) -> Float[Array, ""]:
        return jnp.asarray(0.5)


@functools.cache
def _labels(m: int, r: int) -> np.ndarray:
    """Labels of all inputs by their number, the first input as the highest bit."""
    bits = all_inputs(2 * m * r)
    result: np.ndarray = (bits[:, 0::2] & bits[:, 1::2]).reshape(-1, m, r).any(axis=2).all(axis=1)
    return result


class AndOfOrs(Family):
    """The one function ⋀_m ⋁_r (x ∧ y) with balanced labels.

    It is nearly constant on uniform inputs. Every key gives the same task.
    """

    m: int = eqx.field(static=True)
    r: int = eqx.field(static=True)

    def __check_init__(self) -> None:
        require(
            self.m >= 1 and self.r >= 1,
            f"m and r count clauses and terms and must be at least 1, but are {self.m} and "
            f"{self.r}.",
        )
        require(
            self.dimension <= LISTED,
            f"All inputs are listed: at most {LISTED} of them, but 2mr is {self.dimension}.",
        )

    @property
    def dimension(self) -> int:
        return 2 * self.m * self.r

    def task(self, *, key: PRNGKeyArray) -> BalancedCircuitTask:
        return BalancedCircuitTask(self.m, self.r)


class WrongInputs(ModelProbe):
    """On all 2^n inputs: `error`, the share in percent that a model gets wrong under balanced
    labels, a score of zero being wrong; `exact`: 1 where there is none. `unit_margin`: least y·g(x)
    where weights and biases are scaled to [−1, 1], for two-layer networks.
    """

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        if not isinstance(task, Task) or task.dimension > LISTED:
            raise BadInput(f"All inputs are listed: at most {LISTED} bits.")
        x = listed(task.dimension)
        y = task.target(x)
        right = model(x) * y
        wrong = [jnp.sum((right <= 0) & (y == sign)) / jnp.sum(y == sign) for sign in (1, -1)]
        found = {
            "error": 50 * (wrong[0] + wrong[1]),
            "exact": (jnp.min(right) > 0).astype(jnp.result_type(float)),
        }
        if isinstance(model, TwoLayer):
            inner = jnp.maximum(jnp.max(jnp.abs(model.first_layer)), jnp.max(jnp.abs(model.b)))
            found["unit_margin"] = jnp.min(right) / (
                inner * jnp.maximum(jnp.max(jnp.abs(model.a)), jnp.max(jnp.abs(model.c)))
            )
        return found


#: Step size of Adam.
RATE = 0.02


def two_layers(width: int, steps: int, batch: int) -> GradientDescent:
    """A two-layer ReLU network of even width, trained by Adam on fresh examples."""
    # Neurons come in mirrored pairs.
    init = AntisymmetricInit(m=width // 2, w_scale=1.0, b_scale=1.0, a_scale=0.5, activation="relu")
    descent = Descent(
        dict.fromkeys("wbac", RATE), steps=steps, batch=batch, loss="logistic", optimizer="adam"
    )
    return GradientDescent(init, (descent,), source=FreshGradients())


def errors_by_width(
    m: int, r: int, widths: tuple[int, ...], *, starts: int, steps: int, batch: int = 256
) -> Row:
    """Two-layer ReLU networks trained by Adam on ⋀_m ⋁_r (x ∧ y); the axis is their width.

    At each width, measured on all inputs and as means over `starts`: `error` in percent, `exact`,
    the share of starts without any, and `unit_margin`. `least_exact`: the least width with an exact
    start, or twice the greatest where none has. That a width was not enough for Adam does not show
    that no network of that width exists: these numbers bound the least width from above only.
    """

    def least(places: np.ndarray, table: Mapping[str, np.ndarray]) -> dict[str, float]:
        return {"least_exact": min(places[table["exact"] > 0], default=2 * places[-1])}

    arms = {
        width: Arm(AndOfOrs(m, r), two_layers(width, steps, batch), steps * batch, (WrongInputs(),))
        for width in widths
    }
    return Row({width: Repeats(arm, starts) for width, arm in arms.items()}, summaries=(least,))
