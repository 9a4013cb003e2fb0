"""Depth separation: functions that a deep tree learns exactly, and what two-layer networks need for them.

Reference: malach2019, Section 6 (Theorems 11 and 12, Lemma 23, Corollary 13).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.core.random import bernoulli, host_generator
from unlazy.lab.arms import Arm, Comparison, Repeats, Row
from unlazy.lab.trials import Instrument, Record
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.sources import FreshGradients
from unlazy.networks.base import Model
from unlazy.networks.inits import MirroredInit
from unlazy.papers.malach2019.instruments import all_inputs
from unlazy.papers.malach2019.recovering import layerwise
from unlazy.probes.base import ModelProbe
from unlazy.tasks.base import Batch, Data, Family, Task
from unlazy.tasks.circuits.examples import and_of_ors, razborov_sherstov
from unlazy.tasks.circuits.families import LISTED, FixedCircuit, listed
from unlazy.theory.sign_rank import forster_bound, least_width, lemma23_bound, network_matrix, razborov_sherstov_bound, sign_matrix


class SignRank(Instrument):
    """Lemma 23 on random two-layer networks with integer weights in [−B, B], and bounds on the sign-rank of ⋀_2 ⋁_r (x ∧ y).

    `rank_ratio`: greatest rank over 4Bkn′ among the networks; `rank_share`: greatest rank over the full rank 2^{n′}, to show that the
    bound is not empty. `forster`, `razborov_sherstov`: lower bounds of the sign-rank of the matrix of f with `terms` r; `inner_product`:
    Forster's bound for the inner product modulo 2, where it is 2^{n′/2}, over that value. `width_bound`: the width that Theorem 12 then
    forbids networks with weights in [−1, 1] and margin 1 to fall below.
    """

    half: int = eqx.field(static=True)
    networks: int = eqx.field(static=True, default=6, kw_only=True)
    terms: int = eqx.field(static=True, default=2, kw_only=True)
    precision: int = eqx.field(static=True, default=64, kw_only=True)  # type: ignore[assignment]

    @property
    def work(self) -> float:
        """A few ranks and norms."""
        return 100.0 * self.networks * 8.0**self.half

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = host_generator(key)
        ratio = share = 0.0
        for index in range(self.networks):
            B, k = 1 + index % 2, 1 + index // 2
            w, v = rng.integers(-B, B + 1, (2, k, self.half))
            matrix = network_matrix(w, v, rng.integers(-B, B + 1, k), rng.normal(size=k))
            rank = int(np.linalg.matrix_rank(matrix))
            ratio, share = max(ratio, rank / lemma23_bound(B, k, self.half)), max(share, rank / len(matrix))
        matrix = sign_matrix(and_of_ors(2, self.terms))
        bound = razborov_sherstov_bound(matrix)
        bits = all_inputs(self.half).astype(int)
        product = 1 - 2 * (bits @ bits.T % 2)
        return {
            "rank_ratio": np.asarray(ratio),
            "rank_share": np.asarray(share),
            "forster": np.asarray(forster_bound(matrix)),
            "razborov_sherstov": np.asarray(bound),
            "inner_product": np.asarray(forster_bound(product) / 2 ** (self.half / 2)),
            "width_bound": np.asarray(least_width(bound, 1.0, 2 * self.terms, 1.0)),
        }


def deep_recovery(sizes: tuple[int, ...], sample: int) -> Row:
    """Algorithm 1 on f_m under its generative law, which is f_m's own circuit read backwards; the axis is m, a power of two.

    `recovered`, `error` in percent; `inputs` = 2m³; `gates`: size of the tree. On the law itself, and on examples up to m = 2 (`…_sample`).
    """
    return Row({m: _deep(m, sample if m <= 2 else None) for m in sizes})


def _deep(m: int, sample: int | None) -> Comparison:
    circuit = razborov_sherstov(m)
    family, margin = FixedCircuit(str(circuit)), (2 / 3) ** circuit.depth
    arms = {"law": layerwise(family, margin, None)} | ({} if sample is None else {"sample": layerwise(family, margin, sample)})

    def measure(records: Mapping[str, Record]) -> dict[str, float]:
        law, sampled = records["law"], records.get("sample", records["law"])
        found = {"recovered": law.value("recovered"), "error": law.value("error"), "error_sample": sampled.value("error")}
        return found | {"inputs": float(circuit.n), "gates": float(circuit.n - 1)}

    return Comparison(arms, measure)


class BalancedCircuitTask(Task):
    """⋀_{i≤m} ⋁_{j≤r} (x_ij ∧ y_ij), both labels equally often: given the label, all inputs that have it are equally likely."""

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
        positive, negative = (jnp.asarray(np.flatnonzero(_labels(self.m, self.r) == sign)) for sign in (True, False))
        place = jnp.where(y, positive[(u * len(positive)).astype(int)], negative[(u * len(negative)).astype(int)])
        bits = (place[:, None] >> jnp.arange(self.dimension)[::-1]) & 1
        return Batch(jnp.where(bits == 1, 1.0, -1.0), jnp.where(y, 1.0, -1.0))

    def target(self, x: Float[Array, "b n"]) -> Float[Array, " b"]:
        both = jnp.minimum(x[:, 0::2], x[:, 1::2]).reshape(len(x), self.m, self.r)
        return jnp.where(jnp.min(jnp.max(both, axis=2), axis=1) > 0, 1.0, -1.0)

    @property
    def features(self) -> Float[Array, "n n"]:
        """Every input matters."""
        return jnp.eye(self.dimension)

    @property
    def chance(self) -> Float[Array, ""]:
        return jnp.asarray(0.5)


@functools.cache
def _labels(m: int, r: int) -> np.ndarray:
    """Labels of all inputs by their number, the first input as the highest bit."""
    bits = all_inputs(2 * m * r)
    return (bits[:, 0::2] & bits[:, 1::2]).reshape(-1, m, r).any(axis=2).all(axis=1)


class AndOfOrs(Family):
    """The one function ⋀_m ⋁_r (x ∧ y) with balanced labels. It is nearly constant on uniform inputs. Every key gives the same task."""

    m: int = eqx.field(static=True)
    r: int = eqx.field(static=True)

    def __check_init__(self) -> None:
        """Refuse what cannot be listed."""
        require(self.m >= 1 and self.r >= 1, f"m and r count clauses and terms and must be at least 1, but are {self.m} and {self.r}.")
        require(self.dimension <= LISTED, f"All inputs are listed: at most {LISTED} of them, but 2mr is {self.dimension}.")

    @property
    def dimension(self) -> int:
        return 2 * self.m * self.r

    def task(self, *, key: PRNGKeyArray) -> BalancedCircuitTask:
        return BalancedCircuitTask(self.m, self.r)


class WrongInputs(ModelProbe):
    """`wrong`: how many of all 2^n inputs a model gets wrong, a score of zero being wrong; `exact`: 1 where there is none."""

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        require(isinstance(task, Task) and task.dimension <= LISTED, f"All inputs are listed: at most {LISTED} bits.")
        assert isinstance(task, Task)
        x = listed(task.dimension)
        wrong = jnp.sum(model(x) * task.target(x) <= 0)
        return {"wrong": wrong.astype(jnp.result_type(float)), "exact": (wrong == 0).astype(jnp.result_type(float))}


#: Step size of Adam.
RATE = 0.02


def two_layers(width: int, steps: int, batch: int) -> GradientDescent:
    """A two-layer ReLU network of even width, trained by Adam on fresh examples."""
    # Neurons come in mirrored pairs.
    init = MirroredInit(m=width // 2, w_scale=1.0, b_scale=1.0, a_scale=0.5, activation="relu")
    descent = Descent(dict.fromkeys("wbac", RATE), steps=steps, batch=batch, loss="logistic", optimiser="adam")
    return GradientDescent(init, (descent,), source=FreshGradients())


def least_widths(widths: Mapping[tuple[int, int], tuple[int, ...]], *, starts: int, steps: int, batch: int = 256) -> Row:
    """The least even width at which one of `starts` two-layer ReLU networks, trained by Adam, gets ⋀_{i≤m} ⋁_{j≤r} (x_ij ∧ y_ij) right on
    every one of its 2^{2mr} inputs, among the `widths` tried for each (m, r). The axis is the number 2mr of inputs.

    `width`: that width, or twice the greatest tried where none did. `parameters`: of that network. `tree`: neurons of a tree of neural
    gates of width 4, which expresses the function. It measures training as well as expression: a smaller network may exist.
    """
    return Row({2 * m * r: _least_width(m, r, tried, starts, steps, batch) for (m, r), tried in widths.items()})


def _least_width(m: int, r: int, widths: tuple[int, ...], starts: int, steps: int, batch: int) -> Comparison:
    n, family, probes = 2 * m * r, AndOfOrs(m, r), (WrongInputs(),)
    arms = {width: Repeats(Arm(family, two_layers(width, steps, batch), steps * batch, probes), starts) for width in widths}

    def measure(records: Mapping[str, Record]) -> dict[str, float]:
        exact = [width for width in widths if records[str(width)].value("exact") > 0]
        width = min(exact, default=2 * widths[-1])
        return {"width": float(width), "parameters": float(width * (n + 2) + 1), "tree": 4.0 * (n - 1)}

    return Comparison({str(width): arm for width, arm in arms.items()}, measure)
