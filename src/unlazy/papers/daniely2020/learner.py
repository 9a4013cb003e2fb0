"""Network of the paper and its schedules: one step with full decay, then small or practical steps.

    g(x) = Σ_{i≤2q} u_i σ(⟨w_i, x⟩ + b_i),   σ(s) = min(max(s, 0), 6),
    loss E max(1 − y·g, 0) + λ·(‖u‖² + Σ‖w_i‖²),
    step 1: η = 1, λ = 1/2, so w ← −∇_w and u ← −∇_u,
    steps t > 1: η = k²/(T√q), λ ≤ k/n (the theorem), or a practical η

On n ≤ 14 bits all steps use the exact distribution, by enumeration. For any n the first step is
exact by `theory.parity_gradients`. After it the weights are nearly equal on A and nearly zero
elsewhere. `AfterFirstStep` draws neurons with exactly such weights, and later steps use the k + 1
possible numbers of ones in A (`CountedBits`).

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
from unlazy.papers.daniely2020.initial_neurons import InitialNeurons
from unlazy.tasks.base import Family
from unlazy.tasks.equal_bits import EqualBits
from unlazy.theory.parity_gradients import FirstGradients

#: Steps that train the biases: all, all but the first, or none.
Biases = Literal["trained", "after step 1", "frozen"]
#: Layers trained after the first step.
Layers = Literal["both", "second"]


class AfterFirstStep(Init):
    """Network after the exact first step on n bits, restricted to A: one weight ⟨w, e_A⟩ per
    neuron, with e_A the unit vector of A.

    Neurons are drawn by their numbers of weights 1 and −1 in A and of nonzero weights outside A,
    which determine the step. If the weights on A differ after the step, as for neurons with at most
    one zero in A, their mean is used. Weights outside A are dropped.
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
            "`AfterFirstStep` requires the one-dimensional inputs of `CountedBits`.",
        )
        key_w, key_u = jax.random.split(key)
        table, number = _first_step(self.n, self.k, self.structured), jnp.result_type(float)
        half = self.neurons // 2
        chosen = jnp.searchsorted(table.cumulative, jax.random.uniform(key_w, (half,), jnp.float32))
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
        initial = 1 / (8 * self.k)
        return TwoLayer(
            jnp.concatenate([w, -w])[:, None],
            initial + jnp.concatenate([b, -b]),
            jnp.concatenate([output, output]),
            jnp.zeros((), number),
            "relu6",
        )


class ParityDescent(GradientDescent):
    """Gradient descent from ternary pairs, with k from the family on `EqualBits`: the algorithm of
    the paper knows k, but not A.
    """

    def suited(self, family: Family) -> GradientDescent:
        learner: GradientDescent = self
        if isinstance(family, EqualBits) and isinstance(self.init, TernaryInit):
            learner = dataclasses.replace(self, init=dataclasses.replace(self.init, k=family.k))
        return learner.suited_to_outputs(family.outputs)


@dataclasses.dataclass(frozen=True)
class _FirstStep:
    """⟨E[x f σ'], e_A⟩, E[f σ'] and E[f σ] for all counts of a neuron, and cumulative probabilities
    of the counts.
    """

    along: np.ndarray
    bias: np.ndarray
    output: np.ndarray
    cumulative: np.ndarray


@functools.lru_cache(maxsize=16)
def _first_step(n: int, k: int, structured: float) -> _FirstStep:
    neurons, exact = InitialNeurons.of(n, k), FirstGradients(n, k, 1 / (8 * k))
    rows = (neurons.plus, neurons.minus, neurons.outside)
    found = exact.uniform(*rows).mixed(exact.structured(*rows), structured)
    zero = k - neurons.plus - neurons.minus
    mean = (
        neurons.plus * found.on_plus + neurons.minus * found.on_minus + zero * found.on_zero
    ) / k
    return _FirstStep(
        mean * math.sqrt(k / n),
        found.bias,
        found.output,
        np.minimum(np.cumsum(neurons.probability), 1.0).astype(np.float32),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParitySchedule:
    """One step with full decay, then `steps` steps of size `rate` with penalty `penalty`, on pairs
    of neurons; created by `theorem` or `practical`.
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
        """Return the schedule of Theorem 2 with the largest allowed penalty: q pairs,
        η = k²/(T√q), λ = k/n.
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
        """Return a schedule with η = pace/q, no penalty, and fixed biases in step 1."""
        return cls(
            n=n, k=k, neurons=2 * q, steps=T, rate=pace / q, **({"biases": "after step 1"} | others)
        )

    @property
    def first(self) -> Descent:
        """Step 1: full decay, 2·η·λ = 1."""
        groups = {"w": 1.0, "a": 1.0} | ({"b": 1.0} if self.biases == "trained" else {})
        return Descent(groups, steps=1, full_decay=("w", "a"))

    @property
    def rest(self) -> Descent:
        """All steps after the first."""
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
        """Return the learner on n bits, with gradients from `source` (default: a fixed sample).

        `batch`: examples per step after the first.
        """
        rest = dataclasses.replace(self.rest, batch=batch)
        init = TernaryInit(neurons=self.neurons, k=self.k, printed=self.printed)
        return ParityDescent(
            init,
            (self.first, rest),
            record=self.record,
            source=source or SampleGradients(),
            precision=64,
        )

    def one_step(self, ridge: float = 1e-6) -> GradientDescent:
        """Return step 1 on a fixed sample, then ridge regression on the hidden features."""
        init = TernaryInit(neurons=self.neurons, k=self.k, printed=self.printed)
        return ParityDescent(
            init, (self.first, RidgeReadout(ridge)), record=self.record, precision=64
        )

    def reduced(self, structured: float = 0.5) -> GradientDescent:
        """Return the learner on the exact distribution of `CountedBits`.

        The initialization includes the exact first step, so step t of the trace is step t + 1.
        """
        init = AfterFirstStep(
            n=self.n,
            k=self.k,
            neurons=self.neurons,
            moves_bias=self.biases == "trained",
            structured=structured,
        )
        return GradientDescent(
            init, (self.rest,), record=self.record, source=PopulationGradients(), precision=64
        )
