"""Depth separation: functions that a deep tree learns exactly, and what two-layer networks need for them.

Reference: malach2019, Section 6 (Theorems 11 and 12, Lemma 23, Corollary 13).
"""

from __future__ import annotations

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from unlazy.core.random import host_generator
from unlazy.lab.trials import Instrument
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.sources import FreshGradients
from unlazy.networks.inits import MirroredInit
from unlazy.papers.malach2019.instruments import OverSizes, all_inputs
from unlazy.papers.malach2019.recovering import learn
from unlazy.tasks.base import Batch, Sampler
from unlazy.tasks.circuits.examples import and_of_ors, razborov_sherstov
from unlazy.tasks.circuits.laws import GenerativeLaw
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
        """Measure."""
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


class DeepRecovery(OverSizes):
    """Algorithm 1 on f_m under its generative law, which is f_m's own circuit read backwards; the axis is m, a power of two.

    `recovered`, `error` in percent; `inputs` = 2m³; `gates`: size of the tree. On the law itself, and on examples up to m = 2 (`…_sample`).
    """

    sample: int = eqx.field(static=True, default=16_384, kw_only=True)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Measure all sizes."""
        rng, rows = host_generator(key), []
        for m in self.sizes:
            circuit = razborov_sherstov(m)
            law = GenerativeLaw(circuit)
            _, seen = learn(circuit, law, None, rng, key=key)
            _, sampled = learn(circuit, law, self.sample, rng, key=key) if m <= 2 else (None, seen)
            rows.append([100 * seen.share, 100 * seen.error, 100 * sampled.error, circuit.n, circuit.n - 1])
        return dict(zip(("recovered", "error", "error_sample", "inputs", "gates"), np.array(rows, float).T, strict=True))


@functools.lru_cache(maxsize=8)
def _shallow(width: int, steps: int, rate: float, batch: int) -> Any:
    """A compiled function that trains some networks of a width from different starts and counts the inputs each gets wrong."""
    # Neurons come in mirrored pairs: widths are even.
    init = MirroredInit(m=width // 2, w_scale=1.0, b_scale=1.0, a_scale=0.5, activation="relu")
    rates = {"w": rate, "b": rate, "a": rate, "c": rate}
    learner = GradientDescent(init, (Descent(rates, steps=steps, batch=batch, loss="logistic", optimiser="adam"),), source=FreshGradients())

    def fit(x: Array, positive: Array, negative: Array, key: Array) -> Array:
        def draw(count: int, key: Array) -> Batch:
            # Both labels equally often: f is nearly constant on uniform inputs.
            key_label, key_place = jax.random.split(key)
            y = jax.random.bernoulli(key_label, 0.5, (count,))
            u = jax.random.uniform(key_place, (count,))
            place = jnp.where(y, positive[(u * len(positive)).astype(int)], negative[(u * len(negative)).astype(int)])
            return Batch(x[place], jnp.where(y, 1.0, -1.0))

        model = learner.fit(Sampler(draw, x.shape[1]), steps * batch, key=key).at(0)
        score = model(x)
        wrong = jnp.sum(score[positive] <= 0) + jnp.sum(score[negative] >= 0)
        return wrong

    return jax.jit(jax.vmap(fit, in_axes=(None, None, None, 0)))


class LeastWidth(Instrument):
    """The least even width at which one of `starts` two-layer ReLU networks, trained by Adam, gets ⋀_{i≤m} ⋁_{j≤r} (x_ij ∧ y_ij) right on
    every one of its 2^{2mr} inputs. The axis is the number 2mr of inputs.

    `width`: that width, or twice the greatest tried where none did. `parameters`: of that network. `tree`: neurons of a tree of neural
    gates of width 4, which expresses the function. It measures training as well as expression: a smaller network may exist. With
    some inputs fixed a function becomes the one before it in `shapes`, so the search begins at the width that that one took.
    """

    shapes: tuple[tuple[int, int], ...] = eqx.field(static=True)
    widths: tuple[int, ...] = eqx.field(static=True, default=(2, 4, 8, 16, 32, 64, 128), kw_only=True)
    starts: int = eqx.field(static=True, default=4, kw_only=True)
    training: int = eqx.field(static=True, default=3000, kw_only=True)
    batch: int = eqx.field(static=True, default=256, kw_only=True)

    @property
    def steps(self) -> tuple[int, ...]:
        """Numbers of inputs."""
        return tuple(2 * m * r for m, r in self.shapes)

    @property
    def work(self) -> float:
        """A handful of widths each."""
        return sum(3.0 * 6 * self.starts * self.training * self.batch * 16 * n for n in self.steps)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Measure all functions."""
        rows: list[list[int]] = []
        for index, (m, r) in enumerate(self.shapes):
            n = 2 * m * r
            bits = all_inputs(n)
            pairs = bits[:, 0::2] & bits[:, 1::2]
            label = pairs.reshape(-1, m, r).any(axis=2).all(axis=1)
            x = jnp.where(jnp.asarray(bits), 1.0, -1.0)
            keys = jax.random.split(jax.random.fold_in(key, index), self.starts)
            found = 2 * self.widths[-1]
            for width in (w for w in self.widths if not rows or w >= rows[-1][0]):
                wrong = _shallow(width, self.training, 0.02, self.batch)(x, np.flatnonzero(label), np.flatnonzero(~label), keys)
                if int(jnp.min(wrong)) == 0:
                    found = width
                    break
            rows.append([found, found * (n + 2) + 1, 4 * (n - 1)])
        return dict(zip(("width", "parameters", "tree"), np.array(rows, float).T, strict=True))
