"""Exact evaluation of a learned circuit: its error, and which target gates it recovered up to sign.

For product and generative distributions the subtrees below a gate are independent given the
target's values at their roots. So M[b, o] = P(learned node = o | target node = b) is computed from
the inputs up, and with it the statistics for training the next layer.

Reference: malach2019, proof of Theorem 4.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from unlazy.tasks.circuits.circuit import TABLE, Circuit
from unlazy.tasks.circuits.correlation import (
    FIRST,
    NEVER,
    SECOND,
    components,
    influences,
    sample_tables,
    tables,
)
from unlazy.tasks.circuits.distributions import InputDistribution, WeightedSample
from unlazy.tasks.circuits.statistics import Statistics


class PopulationStatistics(Statistics):
    """P(learned pattern, label) under a distribution, for any learned layers."""

    def __init__(self, circuit: Circuit, distribution: InputDistribution) -> None:
        self.circuit = circuit
        self.parts = [(weight, tables(circuit, part)) for weight, part in components(distribution)]

    @property
    def n(self) -> int:
        return self.circuit.n

    def table(self, learned: Sequence[np.ndarray]) -> np.ndarray:
        level = self.circuit.depth - len(learned) - 1
        table = 0.0
        for weight, target in self.parts:
            transfer = transfers(self.circuit, target, learned)
            pair = _pair(transfer)  # gates, target pattern, learned pattern
            table = table + weight * np.einsum("gty,gtq->gqy", target[level], pair)
        return np.asarray(table)


@dataclasses.dataclass(frozen=True)
class WeightedSampleStatistics(Statistics):
    """P(learned pattern, label) under a weighted sample."""

    sample: WeightedSample

    @property
    def n(self) -> int:
        return int(self.sample.x.shape[1])

    def table(self, learned: Sequence[np.ndarray]) -> np.ndarray:
        depth = self.n.bit_length() - 1
        above = [np.zeros(2**i, np.uint8) for i in range(depth - len(learned))]
        return sample_tables([*above, *reversed(learned)], self.sample)[depth - len(learned) - 1]


def _pair(transfer: np.ndarray) -> np.ndarray:
    """Return P(learned pattern | target pattern) from M of the two nodes below each gate."""
    left, right = transfer[0::2], transfer[1::2]
    result: np.ndarray = left[:, FIRST][:, :, FIRST] * right[:, SECOND][:, :, SECOND]
    return result


def transfers(
    circuit: Circuit, target: Sequence[np.ndarray], learned: Sequence[np.ndarray]
) -> np.ndarray:
    """Return M at the nodes above the learned levels (that of the inputs first).

    A target value that never occurs gets probability ½ for each output.
    """
    return all_transfers(circuit, target, learned)[-1]


def all_transfers(
    circuit: Circuit, target: Sequence[np.ndarray], learned: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Return M at the inputs, and at the nodes above each learned level."""
    matrix = np.broadcast_to(np.eye(2), (circuit.n, 2, 2))
    levels = [matrix]
    for index, gates in enumerate(learned):
        level = circuit.depth - index - 1
        pattern = target[level].sum(axis=2)  # gates, target pattern
        pair = _pair(matrix)
        # P(learned output = 1 | target pattern)
        positive = np.einsum("gtq,gq->gt", pair, TABLE[gates])
        rows = []
        for value in (0, 1):
            mass = np.where(TABLE[circuit.levels[level]] == value, pattern, 0.0)
            total = mass.sum(axis=1)
            rows.append(
                np.where(
                    total > NEVER,
                    (mass * positive).sum(axis=1) / np.where(total > NEVER, total, 1),
                    0.5,
                )
            )
        one = np.stack(rows, axis=1)
        matrix = np.stack([1 - one, one], axis=2)
        levels.append(matrix)
    return levels


def error(circuit: Circuit, distribution: InputDistribution, learned: Circuit) -> float:
    """Return P(learned output ≠ target output), exactly."""
    return Examiner(circuit, distribution).error(learned)


@dataclasses.dataclass(frozen=True)
class Recovery:
    """Recovered gates and exact error of a learned circuit.

    `status` by level 0 … d − 1: +1 for a gate that has the target's value, or its negation, on all
    patterns that occur; −1 for a wrong gate; 0 for a gate without influence.
    """

    status: list[np.ndarray]
    error: float

    @property
    def share(self) -> float:
        """Fraction of the gates with influence that were recovered."""
        flat = np.concatenate(self.status)
        return float(np.mean(flat[flat != 0] > 0)) if np.any(flat) else 1.0

    @property
    def exact(self) -> bool:
        """Whether all gates with influence are recovered and the error is zero."""
        return self.share == 1.0 and self.error <= 1e-12


class Examiner:
    """Comparison of learned circuits with one target, whose statistics are computed once."""

    def __init__(self, circuit: Circuit, distribution: InputDistribution) -> None:
        self.circuit, self.influence = circuit, influences(circuit)
        self.parts = [
            (weight, tables(circuit, part))
            for weight, part in components(distribution)
            if weight > 0
        ]

    def error(self, learned: Circuit) -> float:
        """Return P(learned output ≠ target output), exactly."""
        below = learned.levels[::-1]
        return sum(
            weight * _error(target, transfers(self.circuit, target, below))
            for weight, target in self.parts
        )

    def __call__(self, learned: Circuit) -> Recovery:
        """Return the recovery, up to the signs of inner gates."""
        depth, wrong = self.circuit.depth, 0.0
        status = [np.ones(2**i, int) for i in range(depth)]
        for weight, target in self.parts:
            transfer = all_transfers(self.circuit, target, learned.levels[::-1])
            wrong += weight * _error(target, transfer[-1])
            for level in range(depth):
                matrix = transfer[depth - level]
                straight, swapped = (
                    matrix[:, 0, 1] + matrix[:, 1, 0],
                    matrix[:, 0, 0] + matrix[:, 1, 1],
                )
                mass = target[level].sum(axis=2)
                values = TABLE[self.circuit.levels[level]]
                # A target gate that takes a single value counts as recovered.
                constant = ((mass * (values == 0)).sum(axis=1) <= NEVER) | (
                    (mass * (values == 1)).sum(axis=1) <= NEVER
                )
                right = (straight <= 1e-12) | (swapped <= 1e-12) | constant
                status[level] = np.where(right, status[level], -1)
        return Recovery(
            [np.where(self.influence[i] == 0, 0, level) for i, level in enumerate(status)], wrong
        )


def _error(target: Sequence[np.ndarray], transfer: np.ndarray) -> float:
    label = target[0].sum(axis=(0, 1))
    return float(label[0] * transfer[0, 0, 1] + label[1] * transfer[0, 1, 0])


def recovery(circuit: Circuit, distribution: InputDistribution, learned: Circuit) -> Recovery:
    """Compare a learned circuit with its target, up to the signs of inner gates."""
    return Examiner(circuit, distribution)(learned)
