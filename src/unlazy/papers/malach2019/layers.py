"""The lemmas behind Theorem 4, tested along the training of one layer.

S_p = E[(λ − y)·1{pattern p}] of each gate determines the gradients of a layer. Along p, the weight
of an active neuron changes by −η·(4/n_i)·v_l·S_p (‖p‖² = 2; the paper prints ‖p‖). Each neuron has
two projections, ⟨w, (1, 1)⟩ and ⟨w, (1, −1)⟩; their two signs belong to the patterns ±p.

`target` = γ̃(p)·ν_j, where ν_j is the sign of c_{i−1,j}. For gates without influence ν_j = −1, which
corrects a sign in the paper.

Reference: malach2019, Appendix B (Lemmas 14–22).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from unlazy.networks.tree import initial_neurons
from unlazy.papers.malach2019.computations import OverSizes
from unlazy.papers.malach2019.theorem_runs import DELTA, NEURONS_OF_GATE, Case, draw_case
from unlazy.tasks.circuits.circuit import TABLE, Circuit
from unlazy.tasks.circuits.correlation import NEVER, SIGN, correlations, sample_tables, tables
from unlazy.tasks.circuits.distributions import ProductDistribution

#: Tolerance for rounding of a weight of size about 0.01.
TINY = 1e-14


class Layer(NamedTuple):
    """Quantities of a layer in the lemmas, each of shape (gates, 4).

    S_p on the distribution and on the sample, target ±1, and which patterns occur.
    """

    distribution: np.ndarray
    sample: np.ndarray
    target: np.ndarray
    occurs: np.ndarray


def lemma14_sample(case: Case, size: int) -> float:
    """Return the bound |S| > 2¹¹/(ε²Δ²)·log(8n_i/δ)."""
    return 2**11 / (case.epsilon * case.margin) ** 2 * math.log(8 * size / DELTA)


def lemma14_width(size: int) -> float:
    """Return the bound k ≥ log(8n_i/δ)/log(4/3)."""
    return math.log(8 * size / DELTA) / math.log(4 / 3)


def layers_of(
    case: Case, examples: int, rng: np.random.Generator, *, printed_sign: bool = False
) -> list[Layer]:
    """Return all layers of a case, level 0 first, each with random signs ψ of its inputs."""
    known, exact = (
        correlations(case.circuit, case.distribution),
        tables(case.circuit, case.distribution),
    )
    observed = sample_tables(case.circuit.levels, case.sample(examples, rng))
    swap = -1.0 if known.mean_label < 0 else 1.0
    penalty = abs(known.mean_label) + case.margin / 4
    layers = []
    for level, gates in enumerate(case.circuit.levels):
        signs = rng.integers(0, 2, (2, len(gates)))
        flipped = np.arange(4)[None] ^ (2 * signs[0] + signs[1])[:, None]  # pattern before ψ
        pulls = [
            np.take_along_axis(
                (-penalty if printed_sign else penalty) * table.sum(axis=2) - swap * (table @ SIGN),
                flipped,
                axis=1,
            )
            for table in (exact[level], observed[level])
        ]
        nu = np.where(known.influence[level] > 0, np.sign(swap * known.c[level]), -1.0)
        target = np.take_along_axis(SIGN[TABLE[gates]], flipped, axis=1) * nu[:, None]
        occurs = np.take_along_axis(exact[level].sum(axis=2) > NEVER, flipped, axis=1)
        layers.append(Layer(pulls[0], np.where(occurs, pulls[1], 0.0), target, occurs))
    return layers


class Followed(NamedTuple):
    """Whether Lemmas 18, 19, 20 and 21 held at every step, and Lemma 22 at the end."""

    lemma18: bool
    lemma19: bool
    lemma20: bool
    lemma21: bool
    lemma22: bool


def follow(layer: Layer, margin: float, epsilon: float, *, key: Any) -> Followed:
    """Train a layer as in Lemma 14 and test Lemmas 18 to 22.

    η = n_i/(16√2·k), for T > 6n_i/(√2·η·ε·Δ) steps.
    """
    k = NEURONS_OF_GATE
    w, v = initial_neurons(len(layer.distribution), k, key=key)
    lines = jnp.concatenate([w[:, :, 0] + w[:, :, 1], w[:, :, 0] - w[:, :, 1]])
    sides = [
        np.concatenate([part[:, [3, 0]], part[:, [2, 1]]])
        for part in (layer.sample, layer.target, layer.occurs)
    ]
    pace = 1 / (4 * math.sqrt(2) * k)  # 4η/n_i
    longest = math.floor(96 * k / (epsilon * margin)) + 1
    growth = pace * epsilon * margin / (8 * math.sqrt(2))  # η·ε·Δ/(2√2·n_i)
    held = _check_lemmas(
        lines,
        jnp.concatenate([v, v]),
        pace * sides[0],
        sides[1],
        sides[2],
        math.sqrt(2) * pace,
        growth,
        longest,
    )
    return Followed(*(bool(each) for each in jax.device_get(held)))


@jax.jit
def _check_lemmas(
    z: Array,
    v: Array,
    pull: Array,
    target: Array,
    occurs: Array,
    edge: float,
    growth: float,
    longest: int,
) -> tuple[Array, ...]:
    """Return whether each lemma held; `edge` = 4√2·η/n_i bounds the set A_t.

    Inner arrays have shape (projections, 2 signs, neurons).
    """
    agrees = target[:, :, None] * v[:, None, :]  # γ̃(p)·v_l·ν_j
    occurs = occurs.astype(bool)
    excused = (agrees[:, ::-1] < 0) | ~occurs[:, ::-1, None]

    def ends(z: Array) -> Array:
        return jnp.stack([z, -z], axis=1)

    def outputs(z: Array) -> Array:
        return jnp.sum(v[:, None] * jax.nn.relu(ends(z)), axis=2)

    def slow(z: Array) -> Array:
        return occurs[:, :, None] & (agrees < 0) & (ends(z) <= edge) & excused

    def forward(z: Array, before: Array) -> Array:
        """Return whether active neurons outside A_t moved toward the gate's value."""
        watched = (ends(z) > 0) & ~slow(z) & occurs[:, :, None]
        return jnp.all(
            ~watched | ((jax.nn.relu(ends(z)) - jax.nn.relu(ends(before))) * agrees >= -TINY)
        )

    def moves(z: Array) -> Array:
        still_open = jnp.abs(outputs(z)) < 1
        change = jnp.where(still_open, pull, 0)[:, :, None] * v[:, None]
        return jnp.where(z > 0, change[:, 0], jnp.where(z < 0, -change[:, 1], 0))

    def unfinished(state: Any) -> Array:
        result: Array = (state[0] < longest) & jnp.any(moves(state[1]) != 0)
        return result

    def advance(state: Any) -> Any:
        t, z, kept, went, gone, good = state
        after, unsaturated = z - moves(z), jnp.abs(outputs(z)) < 1
        kept &= jnp.all(~slow(z) | slow(after))
        went &= forward(after, z)
        gone &= forward(after, start)
        strong = jax.nn.relu(ends(after)) * agrees >= growth * (t + 1) - TINY
        return t + 1, after, kept, went, gone, good & (strong | ~unsaturated[:, :, None])

    start, yes = z, jnp.array(True)
    good = (agrees > 0) & (ends(z) > 0)
    _, z, kept, went, gone, good = jax.lax.while_loop(
        unfinished, advance, (0, z, yes, yes, yes, good)
    )
    lemma21 = jnp.all(jnp.any(good, axis=2) | ~occurs)
    lemma22 = jnp.all((outputs(z) * target >= 1) | ~occurs)
    return kept, went, gone, lemma21, lemma22


class LayerLemmas(OverSizes):
    """Lemmas 14 to 22 on every layer of circuits with n inputs.

    `circuits` circuits each under the generative and under random product distributions; at n = 4
    also OR(x1, x3) of biased bits. `lemma15`: minimum of −γ̃(p)v_lν_j⟨∂L_Ψ(D), p⟩ ÷ εΔ/(√2·n_i).
    `lemma16`, `lemma17`, `lemma18`, `lemma19` (with Corollary 20), `lemma21`, `lemma22` (Lemma 14
    per gate): fraction of layers that violate the lemma, mean over sizes up to n. `sample`: minimum
    |S| ÷ that of Lemma 14. `printed_sign` uses the regularizer as printed, `examples` another |S|.
    """

    circuits: int = eqx.field(static=True, default=2, kw_only=True)
    printed_sign: bool = eqx.field(static=True, default=False, kw_only=True)
    examples: int | None = eqx.field(static=True, default=None, kw_only=True)

    FRACTIONS: ClassVar = ("lemma16", "lemma17", "lemma18", "lemma19", "lemma21", "lemma22")
    WORST: ClassVar = {"lemma15": np.minimum, "sample": np.minimum}

    def at(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        cases = [
            draw_case(kind, n, rng)
            for kind in ("generative", "product")
            for _ in range(self.circuits)
        ]
        rows, lemma15, ratio = [], np.inf, np.inf
        for case in [*map(_exactly, cases), *([or_of_biased_bits()] if n == 4 else [])]:
            required = lemma14_sample(case, n)
            examples = self.examples or math.floor(required) + 1
            ratio = min(ratio, examples / required)
            for layer in layers_of(case, examples, rng, printed_sign=self.printed_sign):
                scale = case.epsilon * case.margin / math.sqrt(2)  # in units of 1/n_i
                descent = [
                    np.where(layer.occurs, -layer.target * 4 * pull, np.inf)
                    for pull in (layer.distribution, layer.sample)
                ]
                gap = np.where(layer.occurs, 4 * np.abs(layer.distribution - layer.sample), 0)
                lemma15 = min(lemma15, float(descent[0].min()) / scale)
                followed = follow(
                    layer, case.margin, case.epsilon, key=jax.random.key(int(rng.integers(2**31)))
                )
                held = [
                    gap.max() <= scale / 4,
                    descent[1].min() > scale / 2,
                    followed.lemma18,
                    followed.lemma19 and followed.lemma20,
                ]
                rows.append([*held, followed.lemma21, followed.lemma22])
        broken = 1 - np.mean(np.array(rows, float), axis=0)
        return {
            "lemma15": lemma15,
            "sample": ratio,
            **dict(zip(self.FRACTIONS, broken, strict=True)),
        }

    def measure(self, *, key: Any) -> dict[str, Any]:
        table = super().measure(key=key)
        return table | {
            name: np.cumsum(table[name]) / np.arange(1, len(self.sizes) + 1)
            for name in self.FRACTIONS
        }


def _exactly(case: Case) -> Case:
    """Return the case with its exact Δ and ε."""
    known = correlations(case.circuit, case.distribution)
    return Case(case.circuit, case.distribution, known.margin, known.epsilon)


def or_of_biased_bits() -> Case:
    """Return OR(x1, x3) with P(x1 = 1) = 0.3 and P(x3 = 1) = 0.4.

    It satisfies LCA with Δ = 0.28, and its labels are not balanced.
    """
    return _exactly(
        Case(
            Circuit.parse("OR / LEFT LEFT"),
            ProductDistribution(np.array([0.3, 0.5, 0.4, 0.5])),
            0.0,
            0.0,
        )
    )
