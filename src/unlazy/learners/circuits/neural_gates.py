"""Neural gates: k ReLU neurons on two bits, trained by gradient descent on four numbers.

    g(p) = φ(Σ_l v_l·max(⟨w_l, p⟩, 0)),   φ(u) = min(max(u, −1), 1),   p ∈ {±1}²

Pooled over a layer of n_i/2 gates, the loss hinge + λ|1 + ŷ| has the gradient (2/n_i)·E[(λ − y)·∂g]
for an unsaturated gate. So a gate depends on the data only through S_p = E[(λ − y)·1{pattern p}].
The patterns ±(1, 1) and ±(1, −1) are orthogonal, so a = w₁ + w₂ and b = w₁ − w₂ of each neuron
evolve independently (two "lines" per gate), each driven only by the pattern of its sign. Training
loops over the lines until every gradient is exactly zero.

`w` = first layer, `v` = second layer (fixed), `rate` = η, `size` = n_i.

Reference: malach2019, Section 3, Algorithm 1, and the proof of Lemma 15.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from unlazy.core.errors import require_one_of
from unlazy.networks.tree import GateNeurons

#: Steps until converged lines are first removed; each later interval doubles the total.
STRIDE = 256
#: Numbers of lines per program, to which batches are padded; the largest fits into a core's cache.
SIZES = (4, 8, 16, 32, 64, 128, 256, 512, 1024)

Rate = Literal["theorem", "lemma", "scaled"]


def step_size(rate: Rate, size: int, pull: np.ndarray, k: int) -> np.ndarray:
    """Return 4η/n_i for each gate of a layer.

    "theorem": η = 1/(16√2·k) as printed in Theorems 2 and 4. "lemma": η = n_i/(16√2·k), the largest
    value allowed by Lemma 14. "scaled": that of the lemma divided by the gate's max |S_p|. The
    proof only uses |S_p| ≤ 2 and holds for each gate with its own η, so this is valid, and gates
    with small correlations train as fast as others.
    """
    rates = {"theorem": 1 / size, "lemma": 1.0, "scaled": 1.0}
    require_one_of("rate", rate, rates)
    largest = np.abs(pull).max(axis=1) if rate == "scaled" else np.ones(len(pull))
    return rates[rate] / (4 * math.sqrt(2) * k) / np.where(largest > 0, largest, 1)


@dataclasses.dataclass(frozen=True)
class TrainedGates:
    """A trained layer of gates.

    `gates` are truth-table numbers, `values[j, p]` the hard-tanh outputs, and `steps[j]` the steps
    until the gradient was zero. A gate is `settled` if its output is ±1 on every pattern that
    occurs.
    """

    gates: np.ndarray
    values: np.ndarray
    steps: np.ndarray
    settled: np.ndarray

    def part(self, chosen: slice) -> TrainedGates:
        """Return some of the gates."""
        return TrainedGates(
            self.gates[chosen], self.values[chosen], self.steps[chosen], self.settled[chosen]
        )


def train_gates(
    pull: np.ndarray, neurons: GateNeurons, *, step: float | np.ndarray, limit: int
) -> TrainedGates:
    """Train a layer by gradient descent on `pull[j, p]` = S_p for at most `limit` steps.

    `step` = 4η/n_i is the change of one neuron along a pattern with S_p = 1; it may differ between
    gates.
    """
    w, v = np.asarray(neurons.w), np.asarray(neurons.v)
    count = len(v)
    # Lines are a of all gates, then b of all gates. Positive sides are the patterns (+,+) and
    # (+,−), negative sides the opposite ones.
    lines = np.concatenate([w[:, :, 0] + w[:, :, 1], w[:, :, 0] - w[:, :, 1]])
    sides = np.stack(
        [np.concatenate([pull[:, 3], pull[:, 2]]), np.concatenate([pull[:, 0], pull[:, 1]])], axis=1
    )
    signs = np.concatenate([v, v])
    paces = np.tile(np.broadcast_to(np.asarray(step, lines.dtype), (count,)), 2)[:, None]
    lines, steps = _descend(lines, signs, sides.astype(lines.dtype) * paces, limit)
    outputs = np.stack(
        [(signs * np.maximum(lines, 0)).sum(axis=1), (signs * np.maximum(-lines, 0)).sum(axis=1)],
        axis=1,
    )
    values = np.stack(
        [outputs[:count, 1], outputs[count:, 1], outputs[count:, 0], outputs[:count, 0]], axis=1
    )
    gates = ((values > 0) << np.arange(4)).sum(axis=1)
    settled = np.all((np.abs(values) >= 1) | (pull == 0), axis=1)
    return TrainedGates(
        gates.astype(np.uint8),
        np.clip(values, -1, 1),
        np.maximum(steps[:count], steps[count:]),
        settled,
    )


def _descend(
    z: np.ndarray, v: np.ndarray, sides: np.ndarray, limit: int
) -> tuple[np.ndarray, np.ndarray]:
    """Descend on all lines, removing those with zero gradient at intervals."""
    z, steps = z.copy(), np.zeros(len(z), np.int64)
    moving, done = np.arange(len(z)), 0
    while len(moving) and done < limit:
        stride = min(max(STRIDE, done), limit - done)
        still = []
        for begin in range(0, len(moving), SIZES[-1]):
            chosen = moving[begin : begin + SIZES[-1]]
            size = next(s for s in SIZES if s >= len(chosen))
            pad = np.concatenate([chosen, np.repeat(chosen[-1:], size - len(chosen))])
            moved, taken, active = jax.device_get(_stride(z[pad], v[pad], sides[pad], stride))
            z[chosen], steps[chosen] = moved[: len(chosen)], steps[chosen] + taken[: len(chosen)]
            still.append(chosen[active[: len(chosen)]])
        moving, done = np.concatenate(still), done + stride
    return z, steps


@jax.jit
def _stride(
    z: Float[Array, "c k"], v: Float[Array, "c k"], sides: Float[Array, "c 2"], stride: int
) -> tuple[Array, ...]:
    """Perform at most `stride` steps, until all gradients are zero.

    Returns the lines, the numbers of steps with a gradient, and whether it is still nonzero.
    """

    def gradient(z: Array) -> tuple[Array, Array]:
        up, down = z > 0, z < 0
        open_up = jnp.abs(jnp.sum(jnp.where(up, v * z, 0), axis=1)) < 1
        open_down = jnp.abs(jnp.sum(jnp.where(down, v * z, 0), axis=1)) < 1
        pull_up, pull_down = (
            jnp.where(open_up, sides[:, 0], 0),
            jnp.where(open_down, sides[:, 1], 0),
        )
        moves = (pull_up != 0) & jnp.any(up, axis=1) | (pull_down != 0) & jnp.any(down, axis=1)
        return jnp.where(up, pull_up[:, None], jnp.where(down, -pull_down[:, None], 0)) * v, moves

    def unfinished(state: Any) -> Array:
        result: Array = (state[0] < stride) & jnp.any(state[4])
        return result

    def advance(state: Any) -> Any:
        index, z, taken, change, moves = state
        z = z - change
        return index + 1, z, taken + moves.astype(jnp.int32), *gradient(z)

    first = (jnp.zeros((), jnp.int32), z, jnp.zeros(len(z), jnp.int32), *gradient(z))
    _, z, taken, _, moves = jax.lax.while_loop(unfinished, advance, first)
    return z, taken, moves
