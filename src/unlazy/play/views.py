"""Views of a network on the live page: neurons in a plane, weights, gates, signals."""

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

#: Maximum number of hidden directions drawn on the circle.
MAX_STARS = 8
#: Maximum dimension for views by principal directions, which are computed for each frame.
MAX_COLUMNS = 500
#: Number of random directions in the weights view.
OTHERS = 12


class NeuronView(ModelProbe):
    """Unit weight vectors projected onto a plane that is the same at all steps.

    One hidden direction u: the plane spans u and a random direction. Two: the plane spans both.
    f > 2: direction j is drawn at the angle π·j/f, and a neuron at the sum of these points weighted
    by its cosines. Data without ground truth: the first two principal directions of the inputs.

    `places`: up to `count` neurons, shape (neurons, 2); `stars`: hidden directions, shape (f, 2);
    `lengths`: ‖w‖; `votes`: sign of the second-layer weight, 0 for several outputs; `tiles`:
    cosines of the first `rows` neurons with the hidden and then random directions, or without
    ground truth the first coordinates of the unit weight vectors.
    """

    count: int = eqx.field(static=True, default=64)
    rows: int = eqx.field(static=True, default=24)

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        if not isinstance(model, HasNeurons):
            raise BadInput(f"{type(model).__name__} has no neurons to draw.")
        w = model.first_layer
        every = -(-len(w) // self.count)
        w = w[::every]
        tiny = jnp.finfo(w.dtype).tiny
        units = w / jnp.maximum(jnp.max(jnp.abs(w), axis=1, keepdims=True), tiny)
        units = units / jnp.maximum(jnp.linalg.norm(units, axis=1, keepdims=True), tiny)
        ground_truth = isinstance(task, Task)
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
            if ground_truth
            else units[: self.rows, : MAX_STARS + OTHERS],
        }


def main_directions(x: Float[Array, "n d"]) -> Float[Array, "f d"]:
    """Return the first two principal directions of the inputs as unit rows; one if d = 1."""
    centered = x - jnp.mean(x, axis=0, keepdims=True)
    result: Array = eigenvectors(centered.T @ centered)[1][:, ::-1].T[:2]
    return result


def _others(hidden: Float[Array, "f d"], key: PRNGKeyArray) -> Float[Array, "o d"]:
    """Return random orthonormal directions, orthogonal to the hidden ones."""
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
    """Gates of a tree network.

    `gates`: index of the Boolean function that each gate computes; `outputs`: its values on the
    four input patterns; `wanted`: gates of the target.
    """

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        if not isinstance(model, TreeNetwork):
            raise BadInput(f"{type(model).__name__} is not a tree of gates.")
        if not isinstance(task, (GenerativeTask, ProductCircuitTask)):
            raise BadInput(f"{type(task).__name__} is not a circuit of gates.")
        number = jnp.result_type(float)
        return {
            "gates": model.gates.astype(number),
            "outputs": model.gate_outputs,
            "wanted": task.gates.astype(number),
        }


class SignalView(ModelProbe):
    """Regression coefficients of the output on β·F (`base`) and α·G(F) (`composite`).

    1: fully learned. Estimated on `examples` fresh inputs.
    """

    examples: int = eqx.field(static=True, default=2000)

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        if not isinstance(task, HierarchyTask):
            raise BadInput(f"{type(task).__name__} is not a hierarchy.")
        x = task.inputs(self.examples, key)
        base = task.base_signal(x)
        signals = jnp.stack([task.beta * base, task.alpha * task.composite(base)])  # 2 n k
        moment = jnp.einsum("ink,jnk->ij", signals, signals) + 1e-9 * jnp.eye(2)
        along = jnp.einsum("ink,nk->i", signals, model(x).reshape(len(x), -1))
        (p, q), (_, r) = moment
        base_slope = (r * along[0] - q * along[1]) / (p * r - q * q)
        composite_slope = (p * along[1] - q * along[0]) / (p * r - q * q)
        return {"base": base_slope, "composite": jnp.where(task.alpha > 0, composite_slope, 0.0)}


def views_of(family_task: Data, model: Model) -> tuple[ModelProbe, ...]:
    """Return all views that apply to a task and a network."""
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
