"""What the live page sees of a network: its neurons in a plane that stays, its weights as tiles,
its gates, its signals.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.errors import BadInput
from unlazy.core.linear_algebra import eigenvectors, orthogonal_triangular
from unlazy.core.random import normal
from unlazy.networks import HasNeurons, Model, TwoLayer
from unlazy.networks.tree import TreeNetwork
from unlazy.probes.base import ModelProbe
from unlazy.tasks.base import Batch, Data, Task
from unlazy.tasks.circuits.families import GenerativeTask, ProductCircuitTask
from unlazy.tasks.hierarchy import HierarchyTask

#: More hidden directions than these have no place of their own around the circle.
MAX_STARS = 8
#: Inputs without a secret are drawn by their main directions up to this dimension: these are found
#: anew for each picture.
MAX_COLUMNS = 500
#: Directions beside the hidden ones that tiles show.
OTHERS = 12


class NeuronView(ModelProbe):
    """Where neurons point, in a plane that is the same at all steps, so that they can be seen to
    move.

    Of data without a secret the two directions in which the inputs vary most stand for the hidden
    ones (`main_directions`). The plane of one hidden direction u is spanned by u and a random
    direction; two directions span it themselves. Of more, the j-th of f is drawn at the angle
    π·j/f, and a neuron at the sum of these places with its cosines as weights. `places`: of up to
    `count` neurons; `stars`: of the hidden directions; `lengths`: ‖w‖; `votes`: the sign of the
    second layer, 0 where it has no one sign; `tiles`: cosines of the first `rows` neurons with the
    hidden directions and then with others that are random; without a secret, with the first
    columns.
    """

    count: int = eqx.field(static=True, default=64)
    rows: int = eqx.field(static=True, default=24)

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        if not isinstance(model, HasNeurons):
            raise BadInput("Only networks with neurons are seen so.")
        w = model.first_layer
        every = -(-len(w) // self.count)
        w = w[::every]
        tiny = jnp.finfo(w.dtype).tiny
        units = w / jnp.maximum(jnp.max(jnp.abs(w), axis=1, keepdims=True), tiny)
        units = units / jnp.maximum(jnp.linalg.norm(units, axis=1, keepdims=True), tiny)
        secret = isinstance(task, Task)
        hidden = task.features[:MAX_STARS] if isinstance(task, Task) else main_directions(seen.x)
        others = _others(hidden, key)
        plane = _plane(hidden, others)  # d 2
        votes = (
            jnp.sign(model.a[::every])
            if isinstance(model, TwoLayer) and model.a.ndim == 1
            else jnp.zeros(len(w))
        )
        return {
            "places": units @ plane,
            "stars": hidden @ plane,
            "lengths": jnp.linalg.norm(w, axis=1),
            "votes": votes,
            "tiles": units[: self.rows] @ jnp.concatenate([hidden, others]).T
            if secret
            else units[: self.rows, : MAX_STARS + OTHERS],
        }


def main_directions(x: Float[Array, "n d"]) -> Float[Array, "f d"]:
    """The two orthogonal unit directions in which inputs vary most; one where there is no
    second.
    """
    centred = x - jnp.mean(x, axis=0, keepdims=True)
    result: Array = eigenvectors(centred.T @ centred)[1][:, ::-1].T[:2]
    return result


def _others(hidden: Float[Array, "f d"], key: PRNGKeyArray) -> Float[Array, "o d"]:
    """Random directions orthogonal to the hidden ones and to each other, as many as fit."""
    f, d = hidden.shape
    drawn = normal(key, (d, min(OTHERS, d - f)))
    result: Array = orthogonal_triangular(
        jnp.concatenate([hidden.T.astype(drawn.dtype), drawn], axis=1)
    )[0][:, f:].T
    return result


def _plane(hidden: Float[Array, "f d"], others: Float[Array, "o d"]) -> Float[Array, "d 2"]:
    f = len(hidden)
    if f == 1:
        second = others[0] if len(others) else jnp.zeros_like(hidden[0])
        return jnp.stack([hidden[0], second], axis=1)
    angle = jnp.pi * jnp.arange(float(f)) / f
    return hidden.T @ jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)


class GateView(ModelProbe):
    """`gates`: what each gate of a tree computes, by number; `outputs`: its answers to the four
    patterns; `wanted`: the target's gates.
    """

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        if not isinstance(model, TreeNetwork):
            raise BadInput(f"{type(model).__name__} is no tree of gates.")
        if not isinstance(task, (GenerativeTask, ProductCircuitTask)):
            raise BadInput(f"{type(task).__name__} is no circuit of gates.")
        number = jnp.result_type(float)
        return {
            "gates": model.gates.astype(number),
            "outputs": model.gate_outputs,
            "wanted": task.gates.astype(number),
        }


class SignalView(ModelProbe):
    """`base` and `composite`: how much of β·F and of α·G(F) is in the output, as slopes of a
    regression on both; 1 is all of it.

    The two signals are uncorrelated on the tasks that are drawn so; `examples` fresh inputs measure
    it.
    """

    examples: int = eqx.field(static=True, default=2000)

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        if not isinstance(task, HierarchyTask):
            raise BadInput(f"{type(task).__name__} is no hierarchy.")
        x = task.inputs(self.examples, key)
        base = task.base_signal(x)
        signals = jnp.stack([task.beta * base, task.alpha * task.composite(base)])  # 2 n k
        moment = jnp.einsum("ink,jnk->ij", signals, signals) + 1e-9 * jnp.eye(2)
        along = jnp.einsum("ink,nk->i", signals, model(x).reshape(len(x), -1))
        (p, q), (_, r) = moment
        base_slope = (r * along[0] - q * along[1]) / (p * r - q * q)
        composite_slope = (p * along[1] - q * along[0]) / (p * r - q * q)
        return {"base": base_slope, "composite": jnp.where(task.alpha > 0, composite_slope, 0.0)}


def sights_of(family_task: Data, model: Model) -> tuple[ModelProbe, ...]:
    """All sights that fit a task and a network."""
    found: list[ModelProbe] = []
    if isinstance(model, TreeNetwork):
        return (
            (GateView(),) if isinstance(family_task, (GenerativeTask, ProductCircuitTask)) else ()
        )
    flat = len(family_task.shape) == 1 and family_task.dimension <= MAX_COLUMNS
    if isinstance(model, HasNeurons) and (isinstance(family_task, Task) or flat):
        found.append(NeuronView())
    if isinstance(family_task, HierarchyTask):
        found.append(SignalView())
    return tuple(found)
