"""Depth separation: f_m is learned exactly by trees and needs wide two-layer networks.

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
    """Lemma 23 on random two-layer networks, and the rounding in the proof of Theorem 12.

    `rank_ratio`: maximum rank ÷ 4Bkn′ for integer weights in [−B, B]; `rank_share`: maximum rank
    ÷ 2^{n′}, the full rank. `rounding_ratio`: maximum |ĝ(x, y) − g(x, y)| ÷ (γ/2), where ĝ has the
    weights of g rounded up to multiples of 1/N, N = ⌈2Bk(2n′ + 1)/γ⌉; the networks include tiny
    weights, which change most. `coarse` uses N/4, and non-integer weights for the ranks.
    """

    half: int = eqx.field(static=True)
    networks: int = eqx.field(static=True, default=12, kw_only=True)
    coarse: bool = eqx.field(static=True, default=False, kw_only=True)
    gamma: float = eqx.field(converter=float, default=0.5, kw_only=True)
    precision: int = eqx.field(static=True, default=64, kw_only=True)  # type: ignore[assignment]

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = host_generator(key)
        ratio = fraction = rounding = 0.0
        for index in range(self.networks):
            B, k = 1 + index % 2, 1 + index // 2 % 3
            real = (
                rng.uniform(-B, B, (2, k, self.half)),
                rng.uniform(-B, B, k),
                rng.uniform(-B, B, k),
            )
            integer = rng.integers(-B, B + 1, (2, k, self.half)), rng.integers(-B, B + 1, k)
            (w, v), b = (real[0], real[1]) if self.coarse else integer
            matrix = network_matrix(w, v, b, real[2])
            rank = int(np.linalg.matrix_rank(matrix))
            ratio, fraction = (
                max(ratio, rank / lemma23_bound(B, k, self.half)),
                max(fraction, rank / len(matrix)),
            )
            tiny = np.full((2, k, self.half), 1e-9), np.full(k, 1e-9), np.full(k, float(B))
            rounding = max(rounding, self._rounded(B, *real), self._rounded(B, *tiny))
        return {
            "rank_ratio": np.asarray(ratio),
            "rank_share": np.asarray(fraction),
            "rounding_ratio": np.asarray(rounding),
        }

    def _rounded(self, B: int, wv: np.ndarray, b: np.ndarray, u: np.ndarray) -> float:
        """Return the maximum change by rounding up, ÷ (γ/2)."""
        N = rounding_steps(B, len(b), self.half, self.gamma) // (4 if self.coarse else 1)
        exact = network_matrix(wv[0], wv[1], b, u)
        rounded = network_matrix(np.ceil(N * wv[0]), np.ceil(N * wv[1]), np.ceil(N * b), u / N)
        return float(np.abs(rounded - exact).max()) / (self.gamma / 2)


class SignRank(ExactComputation):
    """Bounds on the sign-rank of f_m = ⋀_m ⋁_{m²} (x ∧ y) for m = 1, 2; the axis is m.

    `spectral`: maximum of the bounds of Forster and of Razborov and Sherstov. `lower`: maximum of
    `spectral` rounded up, 2 if the matrix is no outer product of sign vectors, and the number of
    rows, among m(m² − 1) chosen x, that the columns y shatter. `upper`: m^{2m} + 1, the bound on
    the rank of Π_i Σ_j x_ij y_ij − ½ over {0, 1}, whose signs are those of f_m. `growth`: `lower`
    at m = 2 minus `upper` at m = 1. `width_bound`: minimum width by the proof of Theorem 12, for
    weights in [−1, 1] and margin 1. `conjunction` uses the AND of all inputs instead.
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
    """Return the row number of the x that selects y_ij in one clause and y_i1 in all others."""
    bits = np.zeros((m, m * m), int)
    bits[:, 0] = 1
    bits[clause] = 0
    bits[clause, term] = 1
    return int(bits.ravel() @ (1 << np.arange(m**3)[::-1]))


def conjunction_rank(matrix: np.ndarray, m: int) -> int:
    """Return m^{2m} + 1 if Π_i Σ_j x_ij y_ij − ½ has the signs of the matrix, else its rank."""
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
    """Return Algorithm 1 on f_m under its generative distribution; the axis is m.

    m is a power of two. Runs use the exact distribution, or about 256/Δ² examples if `sample`.
    `recovered`, `error` in percent; `settled`: 1 if all gate outputs are ±1. `separated`: 1 if the
    error is zero and all outputs are ±1 for all m' ≤ m, which is separation with margin 1.
    `worst_recovered`: minimum of `recovered` over m' ≤ m. `gates` replace AND and OR.
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


def _worst_tree(sizes: np.ndarray, table: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {
        "worst_recovered": np.minimum.accumulate(table["recovered"]),
        "separated": np.minimum.accumulate(np.where(table["error"] <= 1e-9, table["settled"], 0.0)),
        "inputs": 2 * sizes**3,
    }


class BalancedCircuitTask(Task):
    """⋀_{i≤m} ⋁_{j≤r} (x_ij ∧ y_ij) with balanced labels.

    Given the label, all inputs with that label are equally likely.
    """

    m: int = eqx.field(static=True)
    r: int = eqx.field(static=True)

    @property
    def dimension(self) -> int:
        """Number of inputs, ordered x_11, y_11, x_12, y_12, …"""
        return 2 * self.m * self.r

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        key_label, key_index = jax.random.split(key)
        y = bernoulli(key_label, jnp.full(n, 0.5))
        u = jax.random.uniform(key_index, (n,), jnp.float32)
        positive, negative = (
            jnp.asarray(np.flatnonzero(_labels(self.m, self.r) == sign)) for sign in (True, False)
        )
        index = jnp.where(
            y, positive[(u * len(positive)).astype(int)], negative[(u * len(negative)).astype(int)]
        )
        bits = (index[:, None] >> jnp.arange(self.dimension)[None, ::-1]) & 1
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
    """Return the labels of all inputs by number; the first input is the highest bit."""
    bits = all_inputs(2 * m * r)
    result: np.ndarray = (bits[:, 0::2] & bits[:, 1::2]).reshape(-1, m, r).any(axis=2).all(axis=1)
    return result


class AndOfOrs(Family):
    """⋀_m ⋁_r (x ∧ y) with balanced labels; every key gives the same task.

    On uniform inputs the function is nearly constant.
    """

    m: int = eqx.field(static=True)
    r: int = eqx.field(static=True)

    def __check_init__(self) -> None:
        require(
            self.m >= 1 and self.r >= 1,
            f"`m` and `r` must be positive integers, got {self.m} and {self.r}.",
        )
        require(
            self.dimension <= LISTED,
            f"2·m·r must be at most {LISTED}, got {self.dimension}.",
        )

    @property
    def dimension(self) -> int:
        return 2 * self.m * self.r

    def task(self, *, key: PRNGKeyArray) -> BalancedCircuitTask:
        return BalancedCircuitTask(self.m, self.r)


class WrongInputs(ModelProbe):
    """Errors of a model on all 2^n inputs.

    `error`: percentage of wrong outputs, both labels weighted equally; a zero output is wrong.
    `exact`: 1 if no output is wrong. `unit_margin`, for two-layer networks: minimum y·g(x) after
    scaling weights and biases to [−1, 1].
    """

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        if not isinstance(task, Task) or task.dimension > LISTED:
            raise BadInput(f"`WrongInputs` needs a task with at most {LISTED} bits.")
        x = listed(task.dimension)
        y = task.target(x)
        margin = model(x) * y
        wrong = [jnp.sum((margin <= 0) & (y == sign)) / jnp.sum(y == sign) for sign in (1, -1)]
        measured = {
            "error": 50 * (wrong[0] + wrong[1]),
            "exact": (jnp.min(margin) > 0).astype(jnp.result_type(float)),
        }
        if isinstance(model, TwoLayer):
            inner = jnp.maximum(jnp.max(jnp.abs(model.first_layer)), jnp.max(jnp.abs(model.b)))
            measured["unit_margin"] = jnp.min(margin) / (
                inner * jnp.maximum(jnp.max(jnp.abs(model.a)), jnp.max(jnp.abs(model.c)))
            )
        return measured


#: Learning rate of Adam.
RATE = 0.02


def two_layers(width: int, steps: int, batch: int) -> GradientDescent:
    """Return Adam on fresh examples for a two-layer ReLU network of even width."""
    init = AntisymmetricInit(m=width // 2, w_scale=1.0, b_scale=1.0, a_scale=0.5, activation="relu")
    descent = Descent(
        dict.fromkeys("wbac", RATE), steps=steps, batch=batch, loss="logistic", optimizer="adam"
    )
    return GradientDescent(init, (descent,), source=FreshGradients())


def errors_by_width(
    m: int, r: int, widths: tuple[int, ...], *, repeats: int, steps: int, batch: int = 256
) -> Row:
    """Return two-layer ReLU networks trained by Adam on ⋀_m ⋁_r (x ∧ y); the axis is the width.

    `error` in percent, `exact` and `unit_margin` on all inputs: means over `repeats`
    initializations. `least_exact`: smallest width at which some initialization is exact, or twice
    the largest width if none is. It only bounds the minimum width from above: that Adam failed does
    not show that no such network exists.
    """

    def smallest(widths: np.ndarray, table: Mapping[str, np.ndarray]) -> dict[str, float]:
        return {"least_exact": min(widths[table["exact"] > 0], default=2 * widths[-1])}

    arms = {
        width: Arm(AndOfOrs(m, r), two_layers(width, steps, batch), steps * batch, (WrongInputs(),))
        for width in widths
    }
    return Row({width: Repeats(arm, repeats) for width, arm in arms.items()}, summaries=(smallest,))
