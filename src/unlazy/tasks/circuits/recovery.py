"""What a learned circuit is worth, exactly: its error under the law, and which gates of the target
it recovered up to sign.

For product and generative laws the subtrees below a gate are independent given the target's values
at their roots. So M[b, o] = P(learned node = o | target node = b) runs from the inputs up, and with
it the statistics on which the next layer is trained.

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
    """P(learned pattern, label) under a law, for circuits that agree with the target on nothing in
    particular.
    """

    def __init__(self, circuit: Circuit, distribution: InputDistribution) -> None:
        self.circuit = circuit
        self.parts = [(weight, tables(circuit, part)) for weight, part in components(distribution)]

    @property
    def n(self) -> int:
        return self.circuit.n

    def table(self, learned: Sequence[np.ndarray]) -> np.ndarray:
        level = self.circuit.depth - len(learned) - 1
        found = 0.0
        for weight, target in self.parts:
            transfer = transfers(self.circuit, target, learned)
            pair = _pair(transfer)  # gates, target pattern, learned pattern
            found = found + weight * np.einsum("gty,gtq->gqy", target[level], pair)
        return np.asarray(found)


@dataclasses.dataclass(frozen=True)
class WeightedSampleStatistics(Statistics):
    """The same where the law is a weighted sample."""

    sample: WeightedSample

    @property
    def n(self) -> int:
        return int(self.sample.x.shape[1])

    def table(self, learned: Sequence[np.ndarray]) -> np.ndarray:
        depth = self.n.bit_length() - 1
        above = [np.zeros(2**i, np.uint8) for i in range(depth - len(learned))]
        return sample_tables([*above, *reversed(learned)], self.sample)[depth - len(learned) - 1]


def _pair(transfer: np.ndarray) -> np.ndarray:
    """P(learned pattern | target pattern) from M of the two nodes below each gate."""
    left, right = transfer[0::2], transfer[1::2]
    result: np.ndarray = left[:, FIRST][:, :, FIRST] * right[:, SECOND][:, :, SECOND]
    return result


def transfers(
    circuit: Circuit, target: Sequence[np.ndarray], learned: Sequence[np.ndarray]
) -> np.ndarray:
    """M at the nodes above the learned levels (the inputs' level first).

    A target value that never occurs gets fair coins.
    """
    return all_transfers(circuit, target, learned)[-1]


def all_transfers(
    circuit: Circuit, target: Sequence[np.ndarray], learned: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """M at the inputs, and at the nodes above each learned level."""
    found = np.broadcast_to(np.eye(2), (circuit.n, 2, 2))
    levels = [found]
    for index, gates in enumerate(learned):
        level = circuit.depth - index - 1
        pattern = target[level].sum(axis=2)  # gates, target pattern
        pair = _pair(found)
        positive = np.einsum(
            "gtq,gq->gt", pair, TABLE[gates]
        )  # P(learned output = 1 | target pattern)
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
        found = np.stack([1 - one, one], axis=2)
        levels.append(found)
    return levels


def error(circuit: Circuit, distribution: InputDistribution, learned: Circuit) -> float:
    """P(learned output ≠ target output), exactly."""
    return Examiner(circuit, distribution).error(learned)


@dataclasses.dataclass(frozen=True)
class Recovery:
    """By level 0 … d − 1: `status` of each gate is +1 (the target's value, or its negation, on all
    that occurs), −1 (wrong) or 0 (without influence). `share` counts the influencing gates, `error`
    is exact.
    """

    status: list[np.ndarray]
    error: float

    @property
    def share(self) -> float:
        """Share of the influencing gates that were recovered."""
        flat = np.concatenate(self.status)
        return float(np.mean(flat[flat != 0] > 0)) if np.any(flat) else 1.0

    @property
    def exact(self) -> bool:
        """Every influencing gate recovered, and no error."""
        return self.share == 1.0 and self.error <= 1e-12


class Examiner:
    """Holds learned circuits against one target, whose own numbers are computed once."""

    def __init__(self, circuit: Circuit, distribution: InputDistribution) -> None:
        self.circuit, self.influence = circuit, influences(circuit)
        self.parts = [
            (weight, tables(circuit, part))
            for weight, part in components(distribution)
            if weight > 0
        ]

    def error(self, learned: Circuit) -> float:
        """P(learned output ≠ target output), exactly."""
        below = learned.levels[::-1]
        return sum(
            weight * _error(target, transfers(self.circuit, target, below))
            for weight, target in self.parts
        )

    def __call__(self, learned: Circuit) -> Recovery:
        """Compare up to the signs of inner gates."""
        depth, wrong = self.circuit.depth, 0.0
        status = [np.ones(2**i, int) for i in range(depth)]
        for weight, target in self.parts:
            transfer = all_transfers(self.circuit, target, learned.levels[::-1])
            wrong += weight * _error(target, transfer[-1])
            for level in range(depth):
                found = transfer[depth - level]
                straight, swapped = found[:, 0, 1] + found[:, 1, 0], found[:, 0, 0] + found[:, 1, 1]
                mass = target[level].sum(axis=2)
                values = TABLE[self.circuit.levels[level]]
                # Where one value alone occurs, only that one can be asked for.
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
