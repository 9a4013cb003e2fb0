"""Circuit tasks: parities of biased bits, random circuits on independent or generative inputs.

Reference: malach2019, Figure 1, Sections 3, 5.1 and 5.2.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from unlazy.core.errors import require, unknown
from unlazy.core.random import bernoulli
from unlazy.tasks.base import Batch, Family, Task, WeightedBatch, error_of_constant
from unlazy.tasks.circuits.circuit import GATES, MONOTONE_AND_NEGATED, TABLE, Circuit, check_leaves
from unlazy.tasks.circuits.distributions import (
    GenerativeDistribution,
    InputDistribution,
    ProductDistribution,
)
from unlazy.tasks.circuits.examples import parity_circuit
from unlazy.tasks.circuits.recovery import PopulationStatistics
from unlazy.tasks.circuits.statistics import Statistics
from unlazy.tasks.circuits.unlabeled import UnlabeledCircuitPopulation

#: Gate g has value v on `COUNT[2g + v]` patterns; `ORDER[4·(2g + v) + i]` is the i-th of them.
COUNT = np.stack([4 - TABLE.sum(axis=1), TABLE.sum(axis=1)], axis=1).ravel().astype(np.int32)
ORDER = np.concatenate(
    [np.argsort(TABLE[g] != v, kind="stable") for g in range(16) for v in (0, 1)]
).astype(np.int32)
#: Maximum number of bits for which all inputs are listed.
LISTED = 16


def node_bits(gates: Int[Array, " gates"], x: Float[Array, "b n"]) -> list[Int[Array, "b _"]]:
    """Return bits of all nodes of a circuit, level 0 first; input bits are signs of x."""
    gates, nodes = gates.astype(jnp.int32), [(x > 0).astype(jnp.int32)]
    while nodes[-1].shape[1] > 1:
        count = nodes[-1].shape[1] // 2
        nodes.append(
            (
                gates[None, count - 1 : 2 * count - 1]
                >> (2 * nodes[-1][:, 0::2] + nodes[-1][:, 1::2])
            )
            & 1
        )
    return nodes[::-1]


def evaluate_signs(gates: Int[Array, " gates"], x: Float[Array, "b n"]) -> Float[Array, " b"]:
    """Return the output ±1 of a circuit, given by its gate numbers."""
    return _signs(node_bits(gates, x)[0][:, 0] > 0)


def _signs(bits: Bool[Array, "..."]) -> Float[Array, "..."]:
    return jnp.where(bits, 1.0, -1.0)


def _unit(direction: Float[Array, " n"]) -> Float[Array, "1 n"]:
    """Return a direction as a unit row, or the first input if the direction is zero."""
    length = jnp.linalg.norm(direction)
    first = jnp.zeros_like(direction).at[0].set(1.0)
    return jnp.where(length > 1e-6, direction / jnp.where(length > 1e-6, length, 1.0), first)[None]


class CircuitTask(Task):
    """Task whose label is a circuit of its inputs.

    The circuit and the input distribution are available on the host, for exact computations.
    """

    @property
    @abstractmethod
    def circuit(self) -> Circuit:
        """The target circuit. Available on the host only."""

    @property
    @abstractmethod
    def input_distribution(self) -> InputDistribution:
        """The input distribution. Available on the host only."""

    @abstractmethod
    def probability(self, x: Float[Array, "b n"]) -> Float[Array, " b"]:
        """Return P(x) of each input."""

    @property
    def population(self) -> Callable[[], CircuitPopulation]:
        return self._population

    def _population(self) -> CircuitPopulation:
        return CircuitPopulation(self)


class CircuitPopulation(eqx.Module, Statistics):
    """Exact distribution of a circuit's examples.

    It is given by the statistics for layerwise learning, or by the list of all inputs.
    """

    task: CircuitTask

    @property
    def n(self) -> int:
        return self.task.dimension

    def table(self, learned: Sequence[np.ndarray]) -> np.ndarray:
        """Return exact probabilities. Runs on the host only."""
        return PopulationStatistics(self.task.circuit, self.task.input_distribution).table(learned)

    @property
    def batch(self) -> WeightedBatch:
        """All inputs as one batch, whose weighted mean loss is the expected loss."""
        require(
            self.n <= LISTED,
            f"All inputs can be listed for at most {LISTED} bits, got {self.n}.",
        )
        x = listed(self.n)
        return WeightedBatch(x, self.task.target(x), self.task.probability(x) * len(x))

    @property
    def unlabeled(self) -> UnlabeledCircuitPopulation:
        """The same inputs with independent labels."""
        return UnlabeledCircuitPopulation(self)


def listed(n: int) -> Float[Array, "2**{n} {n}"]:
    """Return all inputs ±1, one per row."""
    return _signs((jnp.arange(2**n)[:, None] >> jnp.arange(n)[None, ::-1]) & 1 == 1)


def _independent(p: Float[Array, "..."], x: Float[Array, "b n"]) -> Float[Array, " b"]:
    return jnp.prod(jnp.where(x > 0, p, 1 - p), axis=1)


class ParityTask(CircuitTask):
    """y = Π_{j ∈ I} x_j for independent bits with P(x_j = 1) = p.

    `relevant` = I in increasing order.
    """

    relevant: Int[Array, " k"]
    p: Float[Array, ""]
    n: int = eqx.field(static=True)

    @property
    def dimension(self) -> int:
        return self.n

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        x = _signs(bernoulli(key, jnp.broadcast_to(self.p, (n, self.n))))
        return Batch(x, self.target(x))

    def target(self, x: Float[Array, "b n"]) -> Float[Array, " b"]:
        return jnp.prod(_signs(x[:, self.relevant] > 0), axis=1)

    @property
    def features(self) -> Float[Array, "k n"]:
        return jax.nn.one_hot(self.relevant, self.n, dtype=jnp.result_type(float))

    @property
    def chance(self) -> Float[Array, ""]:
        """(1 − |E y|)/2 with E y = (2p − 1)^k."""
        return error_of_constant((1 + (2 * self.p - 1) ** len(self.relevant)) / 2)

    @property
    def circuit(self) -> Circuit:
        """Circuit whose gates return their relevant side; n must be a power of two."""
        return parity_circuit(self.n, np.asarray(self.relevant).tolist())

    @property
    def input_distribution(self) -> ProductDistribution:
        return ProductDistribution(np.full(self.n, float(self.p)))

    def probability(self, x: Float[Array, "b n"]) -> Float[Array, " b"]:
        return _independent(self.p, x)


class BiasedParity(Family):
    """Parity of k hidden bits of n, each +1 with probability p; p = 1/2 is uniform."""

    n: int = eqx.field(static=True)
    k: int = eqx.field(static=True)
    p: float = eqx.field(converter=float)

    def __check_init__(self) -> None:
        require(
            0 < self.k < self.n,
            f"k must lie between 1 and n − 1 = {self.n - 1}, got {self.k}.",
        )
        require(0 < self.p < 1, f"p (the probability of +1) must lie in (0, 1), got {self.p}.")

    @property
    def dimension(self) -> int:
        return self.n

    def task(self, *, key: PRNGKeyArray) -> ParityTask:
        relevant = jnp.sort(jax.random.permutation(key, self.n)[: self.k])
        return ParityTask(relevant, jnp.asarray(self.p), self.n)


class _Circuits(Family):
    """Random circuits with gates from `gates`."""

    n: int = eqx.field(static=True)
    gates: tuple[str, ...] = eqx.field(static=True, default=MONOTONE_AND_NEGATED, kw_only=True)

    def _check(self) -> None:
        check_leaves(self.n, f"n={self.n}")
        for name in self.gates:
            if name not in GATES:
                raise unknown("gate", name, GATES)

    @property
    def dimension(self) -> int:
        return self.n

    def _draw_gates(self, key: PRNGKeyArray) -> Int[Array, " gates"]:
        kinds = jnp.array([GATES[name] for name in self.gates])
        return kinds[jax.random.randint(key, (self.n - 1,), 0, len(self.gates))]


class GenerativeTask(CircuitTask):
    """Circuit with inputs generated from the output down (see `GenerativeDistribution`).

    Both labels have probability ½.
    """

    gates: Int[Array, " gates"]

    @property
    def dimension(self) -> int:
        return len(self.gates) + 1

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        """Draw, level by level, uniform patterns that give each gate its value."""
        order, count = jnp.asarray(ORDER, self.gates.dtype), jnp.asarray(COUNT, jnp.float32)
        depth = int(math.log2(self.dimension))
        keys = jax.random.split(key, depth + 1)
        y = bernoulli(keys[0], jnp.full((n, 1), 0.5)).astype(self.gates.dtype)
        nodes = y
        for i in range(depth):
            wanted = 2 * self.gates[None, 2**i - 1 : 2 ** (i + 1) - 1] + nodes  # n, gates
            index = (
                jax.random.uniform(keys[i + 1], nodes.shape, jnp.float32) * count[wanted]
            ).astype(self.gates.dtype)
            pattern = order[4 * wanted + index]
            nodes = jnp.stack([pattern >> 1, pattern & 1], axis=2).reshape(n, -1)
        return Batch(_signs(nodes > 0), _signs(y[:, 0] > 0))

    def target(self, x: Float[Array, "b n"]) -> Float[Array, " b"]:
        return evaluate_signs(self.gates, x)

    @property
    def features(self) -> Float[Array, "1 n"]:
        """Direction E[y·x]; the gates determine its signs."""
        table = jnp.asarray(TABLE, jnp.result_type(float))
        c = jnp.ones(1)
        for i in range(int(math.log2(self.dimension))):
            values = table[self.gates[2**i - 1 : 2 ** (i + 1) - 1]]  # gates, pattern
            conditional = jnp.stack(
                [
                    (1 - values) / (4 - values.sum(axis=1, keepdims=True)),
                    values / values.sum(axis=1, keepdims=True),
                ]
            )
            means = jnp.stack(
                [
                    conditional @ jnp.array([-1.0, -1.0, 1.0, 1.0]),
                    conditional @ jnp.array([-1.0, 1.0, -1.0, 1.0]),
                ],
                axis=2,
            )
            slope = (means[1] - means[0]) / 2  # gates, side: E[input · gate value]
            c = (c[:, None] * slope).reshape(-1)
        return _unit(c)

    @property
    def chance(self) -> Float[Array, ""]:
        return jnp.asarray(0.5)

    @property
    def circuit(self) -> Circuit:
        return Circuit(np.asarray(self.gates))

    @property
    def input_distribution(self) -> GenerativeDistribution:
        return GenerativeDistribution(self.circuit)

    def probability(self, x: Float[Array, "b n"]) -> Float[Array, " b"]:
        """Return ½ for the label, divided by the number of matching patterns of each gate."""
        mass = jnp.full(len(x), 0.5)
        ones = jnp.asarray(TABLE).sum(axis=1)[None, self.gates].astype(float)
        for i, bits in enumerate(node_bits(self.gates, x)[:-1]):
            level = ones[:, 2**i - 1 : 2 ** (i + 1) - 1]
            mass = mass / jnp.prod(jnp.where(bits == 1, level, 4 - level), axis=1)
        return mass


class GenerativeCircuits(_Circuits):
    """Random circuits with the generative distribution."""

    def __check_init__(self) -> None:
        self._check()
        require(
            not {"TRUE", "FALSE"} & set(self.gates),
            "The generative distribution needs gates that take both values; omit TRUE and FALSE.",
        )

    def task(self, *, key: PRNGKeyArray) -> GenerativeTask:
        return GenerativeTask(self._draw_gates(key))


class ProductCircuitTask(CircuitTask):
    """Circuit on independent bits with P(x_j = 1) = p_j."""

    gates: Int[Array, " gates"]
    p: Float[Array, " n"]

    @property
    def dimension(self) -> int:
        return len(self.p)

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        x = _signs(bernoulli(key, jnp.broadcast_to(self.p, (n, len(self.p)))))
        return Batch(x, self.target(x))

    def target(self, x: Float[Array, "b n"]) -> Float[Array, " b"]:
        return evaluate_signs(self.gates, x)

    def _positive(self, p: Float[Array, " n"]) -> Float[Array, ""]:
        """Return P(y = 1), computed from the inputs up."""
        table = jnp.asarray(TABLE, p.dtype)
        while len(p) > 1:
            count = len(p) // 2
            left, right = jnp.stack([1 - p[0::2], p[0::2]], 1), jnp.stack([1 - p[1::2], p[1::2]], 1)
            p = jnp.einsum(
                "ga,gb,gab->g",
                left,
                right,
                table[self.gates[count - 1 : 2 * count - 1]].reshape(-1, 2, 2),
            )
        return p[0]

    @property
    def features(self) -> Float[Array, "1 n"]:
        """Covariances of label and inputs: ∂P(y = 1)/∂p_j · p_j(1 − p_j), normalized."""
        return _unit(jax.grad(self._positive)(self.p) * self.p * (1 - self.p))

    @property
    def chance(self) -> Float[Array, ""]:
        return error_of_constant(self._positive(self.p))

    @property
    def circuit(self) -> Circuit:
        return Circuit(np.asarray(self.gates))

    @property
    def input_distribution(self) -> ProductDistribution:
        return ProductDistribution(np.asarray(self.p, float))

    def probability(self, x: Float[Array, "b n"]) -> Float[Array, " b"]:
        return _independent(self.p[None, :], x)


class ProductCircuits(_Circuits):
    """Random circuits on independent bits, with P(+1) uniform in [low, high] per bit."""

    low: float = eqx.field(converter=float, default=0.25, kw_only=True)
    high: float = eqx.field(converter=float, default=0.75, kw_only=True)

    def __check_init__(self) -> None:
        self._check()
        require(
            0 < self.low <= self.high < 1,
            f"0 < low ≤ high < 1 is required, got low={self.low}, high={self.high}.",
        )

    def task(self, *, key: PRNGKeyArray) -> ProductCircuitTask:
        key_gates, key_bias = jax.random.split(key)
        u = jax.random.uniform(key_bias, (self.n,), jnp.float32).astype(jnp.result_type(float))
        return ProductCircuitTask(
            self._draw_gates(key_gates), self.low + (self.high - self.low) * u
        )


def _one_line(text: str) -> str:
    """Return a circuit as text, the same for equal circuits."""
    return str(Circuit.parse(text)).replace("\n", " / ")


def _floats(p: Sequence[float] | None) -> tuple[float, ...] | None:
    return None if p is None else tuple(map(float, p))


class FixedCircuit(Family):
    """A given circuit, in the format of `Circuit.parse`.

    Its inputs are independent bits with P(x_j = 1) = p_j, or have its generative distribution if
    `p` is None. Every key gives the same task. It is meant for counterexamples and named functions.
    """

    text: str = eqx.field(static=True, converter=_one_line)
    p: tuple[float, ...] | None = eqx.field(converter=_floats, default=None)

    def __check_init__(self) -> None:
        if self.p is None:
            GenerativeDistribution(self.circuit)
            return
        require(
            len(self.p) == self.dimension,
            f"p must have one entry per input ({self.dimension}), got {len(self.p)}.",
        )
        require(all(0 < p < 1 for p in self.p), f"p must lie in (0, 1), got {self.p}.")

    @property
    def circuit(self) -> Circuit:
        """The target circuit."""
        return Circuit.parse(self.text)

    @property
    def dimension(self) -> int:
        return self.circuit.n

    def task(self, *, key: PRNGKeyArray) -> CircuitTask:
        gates = jnp.asarray(self.circuit.gates.astype(int))
        return (
            GenerativeTask(gates)
            if self.p is None
            else ProductCircuitTask(gates, jnp.stack([jnp.asarray(p) for p in self.p]))
        )
