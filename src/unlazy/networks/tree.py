"""Trees of neural gates: small networks on two inputs near ±1, one per node of a binary tree.

    B(x)_j = φ(Σ_l v_jl·max(⟨w_jl, (x_{2j−1}, x_{2j})⟩, 0)),   φ(u) = min(max(u, −1), 1)

Reference: malach2019, Section 3.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.networks.base import HasNeurons, Init
from unlazy.tasks.circuits.circuit import Circuit


class GateNeurons(NamedTuple):
    """The neurons of a layer of gates: `w` of shape (gates, k, 2) and `v` of shape (gates, k)."""

    w: Array | np.ndarray
    v: Array | np.ndarray


def width_for(n: int, delta: float) -> int:
    """Return k ≥ log(8·n·d/δ) / log(4/3), the neurons per gate.

    With probability 1 − δ all gates then have the neurons required by Lemma 14. k is rounded up to
    a multiple of 32, so that circuits of many sizes share one compiled program.
    """
    require(0 < delta < 1, f"delta must be in (0, 1), got {delta}.")
    return 32 * math.ceil(math.log(8 * n * max(1, math.log2(n)) / delta) / math.log(4 / 3) / 32)


def initial_neurons(gates: int, k: int, *, key: PRNGKeyArray) -> GateNeurons:
    """Draw w uniformly from [−1/(4√2·k), 1/(4√2·k)]² and v uniformly from ±1."""
    key_w, key_v = jax.random.split(key)
    scale = 1 / (4 * math.sqrt(2) * k)
    w = jax.random.uniform(key_w, (gates, k, 2), jnp.float32, -scale, scale).astype(
        jnp.result_type(float)
    )
    v = jnp.where(jax.random.bits(key_v, (gates, k), jnp.uint32) & 1, 1.0, -1.0)
    return GateNeurons(w, v)


def initial_tree(n: int, k: int, *, key: PRNGKeyArray) -> list[GateNeurons]:
    """Draw initial neurons of every level, level 0 first."""
    return levels_of(*initial_neurons(n - 1, k, key=key))


def levels_of(w: Array | np.ndarray, v: Array | np.ndarray) -> list[GateNeurons]:
    """Return the neurons of all gates by level."""
    return [
        GateNeurons(w[2**i - 1 : 2 ** (i + 1) - 1], v[2**i - 1 : 2 ** (i + 1) - 1])
        for i in range(len(v).bit_length())
    ]


def hard_tanh(u: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return φ(u) = min(max(u, −1), 1), with derivative 0 at ±1."""
    inside = jnp.abs(u) < 1
    return jnp.where(inside, jnp.where(inside, u, 0), jnp.sign(u))


class TreeNetwork(HasNeurons):
    """A tree of neural gates.

    Groups: w (first layers of all gates) and v (second layers), level 0 first.
    """

    w: tuple[Float[Array, "*s _ k 2"], ...]
    v: tuple[Float[Array, "*s _ k"], ...]

    @property
    def depth(self) -> int:
        """The number d of levels."""
        return len(self.w)

    def layer(self, level: int, below: Float[Array, "b m"]) -> Float[Array, "b g"]:
        """Return the outputs of one level of gates."""
        pairs = below.reshape(len(below), -1, 2)
        hidden = jax.nn.relu(jnp.einsum("bgi,gki->bgk", pairs, self.w[level]))
        return hard_tanh(jnp.einsum("bgk,gk->bg", hidden, self.v[level]))

    def up_to(self, level: int, x: Float[Array, "b n"]) -> Float[Array, "b m"]:
        """Return the outputs of `level`; level d is the input."""
        for index in reversed(range(level, self.depth)):
            x = self.layer(index, x)
        return x

    def __call__(self, x: Float[Array, "b n"]) -> Float[Array, " b"]:
        return self.up_to(0, x)[:, 0]

    @property
    def gates(self) -> Int[Array, " gates"]:
        """The gates as truth-table numbers; an output above 0 on a pattern of ±1 counts as +1."""
        return ((self.gate_outputs > 0).astype(int) << jnp.arange(4)[None, :]).sum(axis=1)

    @property
    def gate_outputs(self) -> Float[Array, "gates 4"]:
        """The outputs of each gate on the four patterns of ±1, level 0 first."""
        patterns = jnp.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
        levels = [
            hard_tanh(
                jnp.einsum("pgk,gk->gp", jax.nn.relu(jnp.einsum("pi,gki->pgk", patterns, w)), v)
            )
            for w, v in zip(self.w, self.v, strict=True)
        ]
        return jnp.concatenate(levels)

    @property
    def circuit(self) -> Circuit:
        """The gates as a circuit (on the host only)."""
        return Circuit(np.asarray(self.gates))

    @property
    def first_layer(self) -> Float[Array, "m d"]:
        """The neurons of the gates at the inputs, as rows over all inputs."""
        gates, k = self.v[-1].shape
        spread = jnp.eye(2 * gates).reshape(gates, 2, 2 * gates)
        return jnp.einsum("gki,gid->gkd", self.w[-1], spread).reshape(gates * k, 2 * gates)


class TreeInit(Init):
    """A tree of neural gates with `k` neurons each, as initialized in Algorithm 1.

    `scale` multiplies the first layers. End-to-end training needs a larger scale than Algorithm 1,
    or else the signal vanishes from level to level.
    """

    k: int = eqx.field(static=True)
    scale: float = eqx.field(converter=float, default=1.0, kw_only=True)

    @property
    def width(self) -> int:
        return self.k

    def __call__(self, d: Any, *, outputs: int | None = None, key: PRNGKeyArray) -> TreeNetwork:
        require(outputs is None, "A tree of gates has exactly one output.")
        tree = initial_tree(d, self.k, key=key)
        return TreeNetwork(
            tuple(jnp.asarray(self.scale * layer.w) for layer in tree),
            tuple(jnp.asarray(layer.v) for layer in tree),
        )
