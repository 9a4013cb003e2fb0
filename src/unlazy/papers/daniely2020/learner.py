"""The network of the paper and the schedules that train it: one step that forgets the start, then
small or practical steps.

    g(x) = Σ_{i≤2q} u_i σ(⟨w_i, x⟩ + b_i),   σ(s) = min(max(s, 0), 6),
    loss E max(1 − y·g, 0) + λ·(‖u‖² + Σ‖w_i‖²),
    step 1: η = 1, λ = 1/2, so w ← −∇_w and u ← −∇_u,
    steps t > 1: η = k²/(T√q), λ ≤ k/n (the theorem), or a practical η

On n ≤ 14 bits all of it runs on the exact law, listed. For any n the first step is exact by
`theory.parity_gradients`; what follows runs on the k + 1 numbers of ones that A can have
(`CountedBits`): after the first step the weights are nearly equal on A and nearly zero elsewhere,
and `AfterFirstStep` draws neurons that are exactly so.

Reference: daniely2020, Section 2, Theorem 2.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, Literal, Self, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.core.errors import require, require_one_of
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.readout import RidgeReadout
from unlazy.learners.sources import GradientSource, PopulationGradients, SampleGradients
from unlazy.networks.base import Init
from unlazy.networks.inits import TernaryInit
from unlazy.networks.two_layer import TwoLayer
from unlazy.papers.daniely2020.random_start import RandomStart
from unlazy.tasks.base import Family
from unlazy.tasks.equal_bits import EqualBits
from unlazy.theory.parity_gradients import FirstGradients

#: Which steps move the biases: all of them, all but the first, or none.
Biases = Literal["trained", "after step 1", "frozen"]
#: Which layers move after the first step.
Layers = Literal["both", "second"]


class AfterFirstStep(Init):
    """The network after the exact first step on n bits, as it acts along A: one weight ⟨w, e_A⟩ a
    neuron, e_A the unit vector of A.

    Neurons are drawn from the random start by how many of their weights in A are 1 and −1 and how
    many outside A are not 0; all of the step follows from that. Where the weights on A differ after
    the step, as those of neurons with at most one zero in A do, their mean is taken; weights
    outside A are dropped.
    """

    n: int = eqx.field(static=True, kw_only=True)
    k: int = eqx.field(static=True, kw_only=True)
    neurons: int = eqx.field(static=True, kw_only=True)
    moves_bias: bool = eqx.field(static=True, default=False, kw_only=True)
    structured: float = eqx.field(static=True, default=0.5, kw_only=True)

    def __check_init__(self) -> None:
        TernaryInit(neurons=self.neurons, k=self.k)
        EqualBits(d=self.n, k=self.k, structured=self.structured)

    @property
    def width(self) -> int:
        return self.neurons

    def __call__(self, d: Any, *, outputs: int | None = None, key: PRNGKeyArray) -> TwoLayer:
        require(
            d == 1 and outputs is None,
            "After the first step a network is drawn for the one coordinate of `CountedBits` "
            "alone.",
        )
        key_start, key_u = jax.random.split(key)
        table, number = _first_step(self.n, self.k, self.structured), jnp.result_type(float)
        half = self.neurons // 2
        chosen = jnp.searchsorted(
            table.cumulative, jax.random.uniform(key_start, (half,), jnp.float32)
        )
        along, bias, output = (
            jnp.asarray(column, number)[chosen]
            for column in (table.along, table.bias, table.output)
        )
        u = (
            self.n
            / self.k
            * jax.random.uniform(key_u, (half,), jnp.float32, -1.0, 1.0).astype(number)
        )
        w, b = u * along, (u * bias if self.moves_bias else jnp.zeros(half, number))
        start = 1 / (8 * self.k)
        return TwoLayer(
            jnp.concatenate([w, -w])[:, None],
            start + jnp.concatenate([b, -b]),
            jnp.concatenate([output, output]),
            jnp.zeros((), number),
            "relu6",
        )


class ParityDescent(GradientDescent):
    """Gradient descent from ternary pairs, which on `EqualBits` takes the k of the family: the
    algorithm of the paper is told k, not A.
    """

    def suited(self, family: Family) -> GradientDescent:
        told: GradientDescent = self
        if isinstance(family, EqualBits) and isinstance(self.init, TernaryInit):
            told = dataclasses.replace(self, init=dataclasses.replace(self.init, k=family.k))
        return told.suited_to_outputs(family.outputs)


@dataclasses.dataclass(frozen=True)
class _FirstStep:
    """By composition: ⟨E[x f σ'], e_A⟩, E[f σ'], E[f σ], and its distribution function."""

    along: np.ndarray
    bias: np.ndarray
    output: np.ndarray
    cumulative: np.ndarray


@functools.lru_cache(maxsize=16)
def _first_step(n: int, k: int, structured: float) -> _FirstStep:
    start, exact = RandomStart.of(n, k), FirstGradients(n, k, 1 / (8 * k))
    rows = (start.plus, start.minus, start.outside)
    found = exact.uniform(*rows).mixed(exact.structured(*rows), structured)
    zero = k - start.plus - start.minus
    mean = (start.plus * found.on_plus + start.minus * found.on_minus + zero * found.on_zero) / k
    return _FirstStep(
        mean * math.sqrt(k / n),
        found.bias,
        found.output,
        np.minimum(np.cumsum(start.share), 1.0).astype(np.float32),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParitySchedule:
    """One step that forgets, then `steps` steps of size `rate` with penalty `penalty`, on pairs of
    neurons.

    Make one with `theorem` or `practical`.
    """

    n: int
    k: int
    neurons: int
    steps: int
    rate: float
    penalty: float = 0.0
    biases: Biases = "trained"
    layers: Layers = "both"
    printed: bool = False
    record: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        TernaryInit(neurons=self.neurons, k=self.k)
        EqualBits(d=self.n, k=self.k)
        require_one_of("biases", self.biases, get_args(Biases))
        require_one_of("layers", self.layers, get_args(Layers))

    @classmethod
    def theorem(cls, *, n: int, k: int, q: int, T: int, **others: Any) -> Self:
        """Theorem 2 to the letter, with the largest penalty that it allows: q pairs, η = k²/(T√q),
        λ = k/n.
        """
        return cls(
            n=n,
            k=k,
            neurons=2 * q,
            steps=T,
            rate=k**2 / (T * math.sqrt(q)),
            penalty=k / n,
            **others,
        )

    @classmethod
    def practical(cls, *, n: int, k: int, q: int, T: int, pace: float, **others: Any) -> Self:
        """η = pace/q, no penalty, the biases left alone in step 1."""
        return cls(
            n=n, k=k, neurons=2 * q, steps=T, rate=pace / q, **({"biases": "after step 1"} | others)
        )

    @property
    def first(self) -> Descent:
        """Step 1: 2·η·λ = 1, so weights are forgotten."""
        groups = {"w": 1.0, "a": 1.0} | ({"b": 1.0} if self.biases == "trained" else {})
        return Descent(groups, steps=1, full_decay=("w", "a"))

    @property
    def rest(self) -> Descent:
        """All steps after it."""
        groups = (
            ["a"]
            if self.layers == "second"
            else ["w", "a"]
            if self.biases == "frozen"
            else ["w", "a", "b"]
        )
        decay = {group: self.penalty for group in groups if group != "b"} if self.penalty else {}
        return Descent(dict.fromkeys(groups, self.rate), steps=self.steps, decay=decay)

    def network(
        self, source: GradientSource | None = None, *, batch: int | None = None
    ) -> GradientDescent:
        """On n bits, with gradients from a source: by default a fixed sample.

        `batch`: examples a step after the first.
        """
        rest = dataclasses.replace(self.rest, batch=batch)
        start = TernaryInit(neurons=self.neurons, k=self.k, printed=self.printed)
        return ParityDescent(
            start,
            (self.first, rest),
            record=self.record,
            source=source or SampleGradients(),
            precision=64,
        )

    def one_step(self, ridge: float = 1e-6) -> GradientDescent:
        """Step 1 on a fixed sample, then the ridge regression of the labels on the hidden
        features.
        """
        start = TernaryInit(neurons=self.neurons, k=self.k, printed=self.printed)
        return ParityDescent(
            start, (self.first, RidgeReadout(ridge)), record=self.record, precision=64
        )

    def reduced(self, structured: float = 0.5) -> GradientDescent:
        """On `CountedBits` with its exact law; the first step is exact and already behind the
        start, so that step t is step t + 1.
        """
        start = AfterFirstStep(
            n=self.n,
            k=self.k,
            neurons=self.neurons,
            moves_bias=self.biases == "trained",
            structured=structured,
        )
        return GradientDescent(
            start, (self.rest,), record=self.record, source=PopulationGradients(), precision=64
        )
