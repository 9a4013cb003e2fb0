"""Layerwise gradient descent on a tree of neural gates (Algorithm 1), from statistics of the data.

A layer is trained on S_p = E[(λ − y)·1{pattern p}] of each gate, with λ = |E y| + Δ/4. If E y < 0,
labels are negated, and so is the output gate at the end. The expectation is over a sample, a stream
of examples or a population. `learners/circuits/tree.py` trains the network through its loss.

Deviation: the regularizer is λ|1 + ŷ|. The text prints λ|1 − ŷ| with the derivative −λ, while its
proofs use +λ. With the printed sign, gates with influence that satisfy the assumptions become
constant. `printed_sign=True` uses the printed sign.

Reference: malach2019, Algorithm 1, Theorems 2 and 4, Lemmas 14 and 15.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.errors import BadInput, require, require_one_of
from unlazy.core.metrics import SIGNS, Outputs
from unlazy.learners.base import SEEN, Call, Keys, Learner, Trace, at_once, keys_of
from unlazy.learners.circuits.neural_gates import Rate, TrainedGates, step_size, train_gates
from unlazy.networks.base import Model
from unlazy.networks.tree import GateNeurons, initial_neurons, levels_of, width_for
from unlazy.tasks.base import Batch, Sampler, draw
from unlazy.tasks.circuits.bits import Packed, counts, pack, unpack, valid
from unlazy.tasks.circuits.circuit import Circuit, apply_gates
from unlazy.tasks.circuits.distributions import Stream, WeightedSample
from unlazy.tasks.circuits.families import evaluate_signs
from unlazy.tasks.circuits.recovery import WeightedSampleStatistics
from unlazy.tasks.circuits.statistics import Statistics

#: Maximum number of steps per layer.
LIMIT = 1 << 17


@dataclasses.dataclass(frozen=True)
class StreamStatistics(Statistics):
    """Frequencies in a stream, which is read once per level, in bounded memory."""

    stream: Stream
    inputs: int

    @property
    def n(self) -> int:
        return self.inputs

    def table(self, learned: Sequence[np.ndarray]) -> np.ndarray:
        """Return the frequencies in the sample."""
        total, count = np.zeros((self.inputs >> (len(learned) + 1), 4, 2), np.int64), 0
        for batch in self.stream():
            nodes = batch.x
            for gates in learned:
                nodes = apply_gates(gates, nodes)
            total += counts(nodes[0::2], nodes[1::2], batch.y, batch.count)
            count += batch.count
        require(count > 0, "The stream of examples is empty.")
        return total / count


def sample_statistics(sample: Packed) -> StreamStatistics:
    """Return the frequencies in a sample in memory."""
    return StreamStatistics(lambda: iter([sample]), len(sample.x))


@dataclasses.dataclass(frozen=True)
class LearnedCircuit:
    """The result of Algorithm 1: the circuit, each level's training (level 0 first), and λ."""

    circuit: Circuit
    layers: list[TrainedGates]
    penalty: float

    @property
    def steps(self) -> list[int]:
        """The gradient steps per level until its gradients were zero, level 0 first."""
        return [int(layer.steps.max()) for layer in self.layers]

    @property
    def settled(self) -> bool:
        """Whether every output that occurs is ±1."""
        return all(bool(layer.settled.all()) for layer in self.layers)


def learn_circuit(
    statistics: Statistics,
    tree: Sequence[GateNeurons],
    *,
    margin: float,
    rate: Rate = "lemma",
    limit: int = LIMIT,
    printed_sign: bool = False,
) -> LearnedCircuit:
    """Train one layer after the other, from the inputs to the output.

    `margin` = Δ. `rate` selects η, see `step_size`.
    """
    (learned,) = learn_circuits(
        [statistics], tree, margin=margin, rate=rate, limit=limit, printed_sign=printed_sign
    )
    return learned


def learn_circuits(
    statistics: Sequence[Statistics],
    tree: Sequence[GateNeurons],
    *,
    margin: float,
    rate: Rate = "lemma",
    limit: int = LIMIT,
    printed_sign: bool = False,
) -> list[LearnedCircuit]:
    """Learn a circuit from each of several statistics, all from the same initial tree.

    Gates are independent, so a level of all circuits is trained at once, which is faster.
    """
    count = len(statistics)
    learned: list[list[np.ndarray]] = [[] for _ in statistics]
    layers: list[list[TrainedGates]] = [[] for _ in statistics]
    penalties, swapped = np.zeros(count), np.zeros(count, bool)
    for level in reversed(range(len(tree))):
        pulls = []
        for index, source in enumerate(statistics):
            joint = source.table(learned[index])
            if not learned[index]:
                mean = float(joint[0, :, 1].sum() - joint[0, :, 0].sum())
                # Rounding must not negate the labels of a balanced sample.
                penalties[index], swapped[index] = abs(mean) + margin / 4, mean < -1e-9
            balance = (joint[:, :, 1] - joint[:, :, 0]) * (-1 if swapped[index] else 1)
            pulls.append(
                (-penalties[index] if printed_sign else penalties[index]) * joint.sum(axis=2)
                - balance
            )
        pull = np.concatenate(pulls)
        step = step_size(rate, 2 ** (level + 1), pull, tree[level].v.shape[1])
        w, v = (np.concatenate([np.asarray(part)] * count) for part in tree[level])
        trained = train_gates(pull, GateNeurons(w, v), step=step, limit=limit)
        for index in range(count):
            layers[index].append(trained.part(slice(index << level, (index + 1) << level)))
            learned[index].append(layers[index][-1].gates)
    for index in np.flatnonzero(swapped).tolist():
        learned[index][-1] = 15 - learned[index][-1]
    return [
        LearnedCircuit(Circuit(np.concatenate(gates[::-1])), trained[::-1], float(penalty))
        for gates, trained, penalty in zip(learned, layers, penalties, strict=True)
    ]


class CircuitModel(Model):
    """A circuit as a model of the signs of the inputs, with scores ±1."""

    gates: Float[Array, "*s gates"]

    def __call__(self, x: Float[Array, "b n"]) -> Float[Array, " b"]:
        return evaluate_signs(self.gates.astype(jnp.int32), x)

    @property
    def circuit(self) -> Circuit:
        """The circuit (on the host only)."""
        return Circuit(np.asarray(self.gates).astype(int))


StatisticsSource = Literal["sample", "weighted sample", "law"]


class Layerwise(Learner):
    """Algorithm 1, from the statistics of its gates.

    `margin` = Δ. `delta` = δ of the theorems sets the number of neurons per gate, unless `k` does.
    `source` is "sample" (frequencies in n examples), "weighted sample" (the same, as a distribution
    with equal weights), or "law" (the exact population, if the data provide it). `limit` is the
    maximum number of steps per layer. Notes: `steps` of the slowest layer, and whether all gates
    `settled` at ±1.
    """

    margin: float = eqx.field(converter=float, kw_only=True)
    delta: float = eqx.field(converter=float, default=0.001, kw_only=True)
    k: int | None = eqx.field(static=True, default=None, kw_only=True)
    rate: Rate = eqx.field(static=True, default="lemma", kw_only=True)
    source: StatisticsSource = eqx.field(static=True, default="sample", kw_only=True)
    limit: int = eqx.field(static=True, default=LIMIT, kw_only=True)
    printed_sign: bool = eqx.field(static=True, default=False, kw_only=True)

    def __check_init__(self) -> None:
        require(
            0 < self.margin < 1,
            f"margin (Δ of the local correlation assumption) must be in (0, 1), got {self.margin}.",
        )
        known = get_args(StatisticsSource)
        require_one_of("source", self.source, known)

    @property
    def on_host(self) -> bool:
        return True

    def suits(self, outputs: Outputs) -> bool:
        return outputs == SIGNS

    def recorded(self, n: int) -> tuple[int, ...]:
        """Return only the end, because the number of steps is not known in advance."""
        return (1,)

    def work(self, n: int, r: int) -> float:
        """Estimate drawing, counting, and some thousand steps of all neurons."""
        return 20.0 * n * r + 4000.0 * 2 * r * self._width(r)

    def prediction_work(self, d: int) -> float:
        """Estimate a few operations per gate."""
        return 4.0 * d

    def _width(self, n: int) -> int:
        return width_for(n, self.delta) if self.k is None else self.k

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        (trace,) = self.fit_prefixes(sampler, (n,), key, at_once)
        return trace

    def fit_prefixes(
        self, sampler: Sampler, sizes: tuple[int, ...], key: Keys, call: Call
    ) -> list[Trace]:
        key_init, key_data, _ = _keys(key)
        # For a population, `seen` is a sample from it.
        z, y = draw(sampler, min(sizes[-1], SEEN) if self.source == "law" else sizes[-1], key_data)
        x = z if sampler.basis is None else z @ sampler.basis
        whole = Packed(pack(np.asarray(x) > 0), pack(np.asarray(y)[:, None] > 0)[0], len(y))
        samples = [whole.first(min(size, len(y))) for size in sizes]
        circuits = learn_circuits(
            [self._statistics(sampler, sample) for sample in samples],
            levels_of(
                *jax.device_get(
                    _neurons(sampler.dimension - 1, self._width(sampler.dimension), key_init)
                )
            ),
            margin=self.margin,
            rate=self.rate,
            limit=self.limit,
            printed_sign=self.printed_sign,
        )
        seen = Batch(z[:SEEN], y[:SEEN])
        return [
            _traced(learned, sample, Batch(seen.x[: sample.count], seen.y[: sample.count]))
            for learned, sample in zip(circuits, samples, strict=True)
        ]

    def _statistics(self, sampler: Sampler, sample: Packed) -> Statistics:
        if self.source == "sample":
            return sample_statistics(sample)
        if self.source == "weighted sample":
            count = sample.count
            return WeightedSampleStatistics(
                WeightedSample.of(unpack(sample.x, count), unpack(sample.y[None], count)[:, 0])
            )
        population = None if sampler.population is None else sampler.population()
        if not isinstance(population, Statistics):
            raise BadInput("The data do not provide exact statistics of a circuit. Use a sample.")
        return population


def _traced(learned: LearnedCircuit, sample: Packed, seen: Batch) -> Trace:
    gates = jnp.asarray(learned.circuit.gates[None].astype(float), jnp.result_type(float))
    wrong = np.bitwise_count(
        (learned.circuit.output(sample.x) ^ sample.y) & valid(sample.count)
    ).sum()
    notes = {
        "steps": np.array([max(learned.steps)], float),
        "settled": np.array([learned.settled], float),
    }
    return Trace(CircuitModel(gates), np.array([wrong / sample.count]), seen, (1,), notes)


# Compiled, because a fit takes only milliseconds.
_keys = jax.jit(keys_of)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _neurons(gates: int, k: int, key: PRNGKeyArray) -> GateNeurons:
    return initial_neurons(gates, k, key=key)
