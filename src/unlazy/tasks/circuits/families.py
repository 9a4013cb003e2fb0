"""Circuits as tasks for learners: parities of biased bits, random circuits on independent bits, and the generative law.

Reference: malach2019, Figure 1, Sections 3, 5.1 and 5.2.
"""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from unlazy.core.errors import require, unknown
from unlazy.core.random import bernoulli
from unlazy.tasks.base import Batch, Family, Task, error_of_constant
from unlazy.tasks.circuits.circuit import GATES, MONOTONE_AND_NEGATED, TABLE, check_leaves


def evaluate_signs(gates: Int[Array, " n-1"], x: Float[Array, "b n"]) -> Float[Array, " b"]:
    """Output ±1 of a circuit, given by its gate numbers, on inputs whose signs are the bits."""
    bits = (x > 0).astype(jnp.int32)
    while bits.shape[1] > 1:
        count = bits.shape[1] // 2
        level = gates[count - 1 : 2 * count - 1]
        bits = (level >> (2 * bits[:, 0::2] + bits[:, 1::2])) & 1
    return 2.0 * bits[:, 0] - 1


def _signs(bits: Bool[Array, "..."]) -> Float[Array, "..."]:
    return jnp.where(bits, 1.0, -1.0)


def _unit(direction: Float[Array, " n"]) -> Float[Array, "1 n"]:
    """A direction as a unit row; the first input where there is none."""
    length = jnp.linalg.norm(direction)
    first = jnp.zeros_like(direction).at[0].set(1.0)
    return jnp.where(length > 1e-6, direction / jnp.where(length > 1e-6, length, 1.0), first)[None]


class ParityTask(Task):
    """y = Π_{j ∈ I} x_j for independent bits with P(x_j = 1) = p. `relevant` = I in increasing order."""

    relevant: Int[Array, " k"]
    p: Float[Array, ""]
    n: int = eqx.field(static=True)

    @property
    def dimension(self) -> int:
        """Number n of bits."""
        return self.n

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        """Biased bits."""
        x = _signs(bernoulli(key, jnp.broadcast_to(self.p, (n, self.n))))
        return Batch(x, self.target(x))

    def target(self, x: Float[Array, "b n"]) -> Float[Array, " b"]:
        """The product of the relevant signs."""
        return jnp.prod(_signs(x[:, self.relevant] > 0), axis=1)

    @property
    def features(self) -> Float[Array, "k n"]:
        """The relevant inputs."""
        return jax.nn.one_hot(self.relevant, self.n, dtype=jnp.result_type(float))

    @property
    def chance(self) -> Float[Array, ""]:
        """E y = (2p − 1)^k."""
        return error_of_constant((1 + (2 * self.p - 1) ** len(self.relevant)) / 2)


class BiasedParity(Family):
    """A parity of k hidden bits among n, each +1 with probability p: p = 1/2 is the uniform case."""

    n: int = eqx.field(static=True)
    k: int = eqx.field(static=True)
    p: float = eqx.field(converter=float)

    def __check_init__(self) -> None:
        """Refuse parameters outside the family."""
        require(0 < self.k < self.n, f"A parity has between 1 and n − 1 = {self.n - 1} relevant bits, but k={self.k}.")
        require(0 < self.p < 1, f"p is the probability of +1 and lies in (0, 1), but is {self.p}.")

    @property
    def dimension(self) -> int:
        """Number n of bits."""
        return self.n

    def task(self, *, key: PRNGKeyArray) -> ParityTask:
        """Choose the relevant bits."""
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
        """Number n of inputs."""
        return self.n

    def _draw_gates(self, key: PRNGKeyArray) -> Int[Array, " n-1"]:
        kinds = jnp.array([GATES[name] for name in self.gates])
        return kinds[jax.random.randint(key, (self.n - 1,), 0, len(self.gates))]


class GenerativeTask(Task):
    """A circuit with inputs drawn from the output down (see `GenerativeLaw`), labels of both signs equally often."""

    gates: Int[Array, " n-1"]

    @property
    def dimension(self) -> int:
        """Number n of inputs."""
        return len(self.gates) + 1

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        """Patterns that give each gate its value, uniformly, level by level."""
        table = jnp.asarray(TABLE)
        depth = int(math.log2(self.dimension))
        keys = jax.random.split(key, depth + 1)
        y = bernoulli(keys[0], jnp.full((n, 1), 0.5)).astype(jnp.int32)
        nodes = y
        for i in range(depth):
            fits = table[self.gates[2**i - 1 : 2 ** (i + 1) - 1]][None] == nodes[:, :, None]  # n, gates, pattern
            place = jnp.floor(jax.random.uniform(keys[i + 1], nodes.shape, jnp.float32) * fits.sum(axis=2)).astype(jnp.int32)
            pattern = jnp.argmax(jnp.cumsum(fits, axis=2) > place[:, :, None], axis=2)
            nodes = jnp.stack([pattern // 2, pattern % 2], axis=2).reshape(n, -1)
        return Batch(_signs(nodes > 0), _signs(y[:, 0] > 0))

    def target(self, x: Float[Array, "b n"]) -> Float[Array, " b"]:
        """The circuit's output."""
        return evaluate_signs(self.gates, x)

    @property
    def features(self) -> Float[Array, "1 n"]:
        """The direction E[y·x]: every input has influence, and what the gates hide is the sign of its correlation."""
        table = jnp.asarray(TABLE, jnp.result_type(float))
        c = jnp.ones(1)
        for i in range(int(math.log2(self.dimension))):
            values = table[self.gates[2**i - 1 : 2 ** (i + 1) - 1]]  # gates, pattern
            share = jnp.stack([(1 - values) / (4 - values.sum(axis=1, keepdims=True)), values / values.sum(axis=1, keepdims=True)])
            means = jnp.stack([share @ jnp.array([-1.0, -1.0, 1.0, 1.0]), share @ jnp.array([-1.0, 1.0, -1.0, 1.0])], axis=2)
            slope = (means[1] - means[0]) / 2  # gates, side: how E[input] follows the gate's value
            c = (c[:, None] * slope).reshape(-1)
        return _unit(c)

    @property
    def chance(self) -> Float[Array, ""]:
        """Labels are balanced."""
        return jnp.asarray(0.5)


class GenerativeCircuits(_Circuits):
    """Random circuits under the generative law."""

    def __check_init__(self) -> None:
        """Refuse parameters outside the family."""
        self._check()
        require(not {"TRUE", "FALSE"} & set(self.gates), "The generative law needs gates that take both values: leave out TRUE and FALSE.")

    def task(self, *, key: PRNGKeyArray) -> GenerativeTask:
        """Draw the gates."""
        return GenerativeTask(self._draw_gates(key))


class ProductCircuitTask(Task):
    """A circuit on independent bits with P(x_j = 1) = p_j."""

    gates: Int[Array, " n-1"]
    p: Float[Array, " n"]

    @property
    def dimension(self) -> int:
        """Number n of inputs."""
        return len(self.p)

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        """Independent bits."""
        x = _signs(bernoulli(key, jnp.broadcast_to(self.p, (n, len(self.p)))))
        return Batch(x, self.target(x))

    def target(self, x: Float[Array, "b n"]) -> Float[Array, " b"]:
        """The circuit's output."""
        return evaluate_signs(self.gates, x)

    def _positive(self, p: Float[Array, " n"]) -> Float[Array, ""]:
        """P(y = 1), from the inputs up."""
        table = jnp.asarray(TABLE, p.dtype)
        while len(p) > 1:
            count = len(p) // 2
            left, right = jnp.stack([1 - p[0::2], p[0::2]], 1), jnp.stack([1 - p[1::2], p[1::2]], 1)
            p = jnp.einsum("ga,gb,gab->g", left, right, table[self.gates[count - 1 : 2 * count - 1]].reshape(-1, 2, 2))
        return p[0]

    @property
    def features(self) -> Float[Array, "1 n"]:
        """The direction of the covariances of label and inputs: the slope of P(y = 1) in p times p(1 − p)."""
        return _unit(jax.grad(self._positive)(self.p) * self.p * (1 - self.p))

    @property
    def chance(self) -> Float[Array, ""]:
        """Error of the more frequent label."""
        return error_of_constant(self._positive(self.p))


class ProductCircuits(_Circuits):
    """Random circuits on independent bits, each bit's P(+1) drawn uniformly from [low, high]."""

    low: float = eqx.field(converter=float, default=0.25, kw_only=True)
    high: float = eqx.field(converter=float, default=0.75, kw_only=True)

    def __check_init__(self) -> None:
        """Refuse parameters outside the family."""
        self._check()
        require(0 < self.low <= self.high < 1, f"Probabilities need 0 < low ≤ high < 1, but low={self.low}, high={self.high}.")

    def task(self, *, key: PRNGKeyArray) -> ProductCircuitTask:
        """Draw the gates and the biases."""
        key_gates, key_bias = jax.random.split(key)
        u = jax.random.uniform(key_bias, (self.n,), jnp.float32).astype(jnp.result_type(float))
        return ProductCircuitTask(self._draw_gates(key_gates), self.low + (self.high - self.low) * u)
