"""Exact local correlations of a circuit's gates with its label.

All quantities follow from one table per gate, P(pattern of its two inputs, label). It is exact for
product and generative distributions and for weighted samples. If subtrees are independent given the
values at their roots, the table of another circuit on the same inputs and that circuit's error are
exact too, by a recursion from the inputs up.

`c` = c_ij = E[z_ij·y], `influence` = I_ij, `mean_label` = E y, `margin` = Δ = min |c_ij| − |E y|
over nodes with influence of levels 1 … d, `epsilon` = ε, the smallest positive probability of a
pattern.

Reference: malach2019, Section 4 (Assumption 1, Properties 1–3), Lemma 3.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from unlazy.core.errors import BadInput, require
from unlazy.tasks.circuits.bits import pack, unpack
from unlazy.tasks.circuits.circuit import TABLE, Circuit
from unlazy.tasks.circuits.distributions import (
    GenerativeDistribution,
    InputDistribution,
    MixtureDistribution,
    ProductDistribution,
    WeightedSample,
)

SIGN = np.array([-1.0, 1.0])
#: First and second bit of the patterns 0 … 3.
FIRST, SECOND = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])

#: Probabilities below this are rounding errors of zero.
NEVER = 1e-13

Tables = list[np.ndarray]  # by level 0 … d − 1: (gates, pattern, label −1 / +1)


def components(distribution: InputDistribution) -> list[tuple[float, InputDistribution]]:
    """Return the distribution as a mixture of distributions that are not mixtures."""
    if isinstance(distribution, MixtureDistribution):
        return [
            (w * v, inner)
            for w, part in zip(distribution.weights, distribution.distributions, strict=True)
            for v, inner in components(part)
        ]
    return [(1.0, distribution)]


def tables(circuit: Circuit, distribution: InputDistribution | WeightedSample) -> Tables:
    """Return P(pattern, label) at every gate, exactly.

    The label is the circuit's output, or that of the sample.
    """
    if isinstance(distribution, WeightedSample):
        return sample_tables(circuit.levels, distribution)
    require(
        circuit.n == distribution.n,
        f"The circuit has {circuit.n} inputs, but the distribution has {distribution.n}.",
    )
    total: Tables = [np.zeros((2**i, 4, 2)) for i in range(circuit.depth)]
    for weight, part in components(distribution):
        for sums, table in zip(total, _pure(circuit, part), strict=True):
            sums += weight * table
    return total


def _pure(circuit: Circuit, distribution: InputDistribution) -> Tables:
    if isinstance(distribution, ProductDistribution):
        return _product(circuit, distribution.p)
    if isinstance(distribution, GenerativeDistribution):
        require(
            distribution.circuit == circuit,
            "The generative distribution must be that of the same circuit.",
        )
        return _generative(circuit, distribution.positive)
    raise BadInput(f"{type(distribution).__name__} has no exact statistics; draw a sample of it.")


def _pattern_distribution(q: np.ndarray) -> np.ndarray:
    """Return P(pattern) at each gate for independent inputs with P(node = 1) = q."""
    left, right = np.stack([1 - q[0::2], q[0::2]], 1), np.stack([1 - q[1::2], q[1::2]], 1)
    result: np.ndarray = left[:, FIRST] * right[:, SECOND]
    return result


def _upwards(levels: Sequence[np.ndarray], q: np.ndarray) -> list[np.ndarray]:
    """Return P(node = 1) on all levels above a level of independent nodes; level 0 first."""
    result = [q]
    for gates in reversed(levels):
        result.append((_pattern_distribution(result[-1]) * TABLE[gates]).sum(axis=1))
    return result[::-1]


def _product(circuit: Circuit, p: np.ndarray) -> Tables:
    """Return the tables for independent inputs: P(node = 1) upwards, P(y = 1 | node) downwards."""
    q = _upwards(circuit.levels, p)
    given = np.array([[0.0, 1.0]])  # P(y = 1 | node = −1), P(y = 1 | node = +1)
    result = []
    for i, gates in enumerate(circuit.levels):
        positive = np.take_along_axis(given, TABLE[gates], axis=1)  # gates, pattern
        pattern = _pattern_distribution(q[i + 1])
        result.append(np.stack([pattern * (1 - positive), pattern * positive], axis=2))
        other_left, other_right = (
            np.stack([1 - side, side], 1) for side in (q[i + 1][0::2], q[i + 1][1::2])
        )
        square = positive.reshape(-1, 2, 2)  # gates, first bit, second bit
        left, right = (
            np.einsum("gab,gb->ga", square, other_right),
            np.einsum("gab,ga->gb", square, other_left),
        )
        given = np.stack([left, right], axis=1).reshape(-1, 2)
    return result


def _generative(circuit: Circuit, positive: float) -> Tables:
    """Return the tables from P(node, y), downwards: patterns are uniform given the gate's value."""
    joint = np.array([[[1 - positive, 0.0], [0.0, positive]]])  # nodes, value, label
    result = []
    for gates in circuit.levels:
        values = TABLE[gates]
        uniform = 1 / np.stack([4 - values.sum(axis=1), values.sum(axis=1)], axis=1)  # gates, value
        table = (
            np.take_along_axis(joint, values[:, :, None], axis=1)
            * np.take_along_axis(uniform, values, axis=1)[:, :, None]
        )
        result.append(table)
        left = np.stack([table[:, FIRST == bit].sum(axis=1) for bit in (0, 1)], axis=1)
        right = np.stack([table[:, SECOND == bit].sum(axis=1) for bit in (0, 1)], axis=1)
        joint = np.stack([left, right], axis=1).reshape(-1, 2, 2)
    return result


def sample_tables(levels: Sequence[np.ndarray], sample: WeightedSample) -> Tables:
    """Return the weights of (pattern, label) at every gate, in a sample."""
    nodes = Circuit(np.concatenate(levels)).evaluate(pack(sample.x))
    y = sample.y.astype(int)
    result = []
    for below in nodes[1:]:
        bits = unpack(below, len(y)).astype(int)
        code = 4 * bits[:, 0::2] + 2 * bits[:, 1::2] + y[:, None]
        result.append(
            np.stack([np.bincount(column, sample.weights, 8).reshape(4, 2) for column in code.T])
        )
    return result


def influences(circuit: Circuit) -> list[np.ndarray]:
    """Return I_ij on levels 0 … d: P(flipping node (i, j) flips the output), level i uniform.

    Deviation: the text flips an input of Γ_{i−1} alone; the proofs use the whole circuit above
    level i.
    """
    result = [np.ones(1)]
    for i in range(1, circuit.depth + 1):
        q = _upwards(circuit.levels[:i], np.full(2**i, 0.5))
        path = np.ones(1)
        for level, gates in enumerate(circuit.levels[:i]):
            square = TABLE[gates].reshape(-1, 2, 2)
            flips_left, flips_right = (
                square[:, 0] != square[:, 1],
                square[:, :, 0] != square[:, :, 1],
            )
            left, right = q[level + 1][0::2], q[level + 1][1::2]
            by_left = np.where(flips_left, np.stack([1 - right, right], 1), 0).sum(axis=1)
            by_right = np.where(flips_right, np.stack([1 - left, left], 1), 0).sum(axis=1)
            path = np.stack([path * by_left, path * by_right], axis=1).ravel()
        result.append(path)
    return result


def simplified(circuit: Circuit) -> Circuit:
    """Return the same function with every gate without influence set to TRUE.

    The paper assumes this without loss of generality.
    """
    gates = [
        np.where(i == 0, 15, level)
        for i, level in zip(influences(circuit), circuit.levels, strict=False)
    ]
    return Circuit(np.concatenate(gates))


@dataclasses.dataclass(frozen=True)
class Correlations:
    """Correlations and influences that determine whether layerwise learning works.

    Lists are over levels 0 … d, that of `min_pattern` over 0 … d − 1.
    """

    c: list[np.ndarray]
    influence: list[np.ndarray]
    mean_label: float
    epsilon: float
    min_pattern: list[np.ndarray]  # smallest positive probability of a gate's patterns

    @property
    def gaps(self) -> list[np.ndarray]:
        """|c_ij| − |E y|, NaN for nodes without influence."""
        return [
            np.where(i > 0, np.abs(c) - abs(self.mean_label), np.nan)
            for c, i in zip(self.c, self.influence, strict=True)
        ]

    @property
    def margin(self) -> float:
        """Δ: the smallest gap over nodes with influence of levels 1 … d.

        It is infinite for a constant function, which has no such node.
        """
        return float(
            min(
                (np.nanmin(gap) for gap in self.gaps[1:] if not np.all(np.isnan(gap))),
                default=np.inf,
            )
        )


def node_correlations(circuit: Circuit, probabilities: Tables) -> list[np.ndarray]:
    """Return E[z·y] for every node of levels 0 … d."""
    balance = [table @ SIGN for table in probabilities]  # gates, pattern: E[y; pattern]
    c = [
        (b * SIGN[TABLE[gates]]).sum(axis=1)
        for b, gates in zip(balance, circuit.levels, strict=True)
    ]
    last = balance[-1]
    return [*c, np.stack([last @ SIGN[FIRST], last @ SIGN[SECOND]], axis=1).ravel()]


def correlations(
    circuit: Circuit, distribution: InputDistribution | WeightedSample
) -> Correlations:
    """Return exact correlations and influences."""
    probabilities = tables(circuit, distribution)
    pattern = [table.sum(axis=2) for table in probabilities]
    min_pattern = [np.where(p > NEVER, p, np.inf).min(axis=1) for p in pattern]
    return Correlations(
        c=node_correlations(circuit, probabilities),
        influence=influences(circuit),
        mean_label=float((probabilities[0] @ SIGN).sum()),
        epsilon=float(min(level.min() for level in min_pattern)),
        min_pattern=min_pattern,
    )
