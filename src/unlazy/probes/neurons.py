"""Where the neurons of a network lie among the hidden directions."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.errors import BadInput, require
from unlazy.core.linear_algebra import orthogonal_triangular
from unlazy.networks import HasNeurons, Model, TwoLayer
from unlazy.probes.base import ModelProbe
from unlazy.tasks.base import Batch, Data, Task


def _neurons(model: Model) -> Float[Array, "m d"]:
    if not isinstance(model, HasNeurons):
        raise BadInput(
            f"Only networks with neurons can be looked at so, not {type(model).__name__}."
        )
    return model.first_layer


def _scaled(w: Float[Array, "m d"]) -> Float[Array, "m d"]:
    """Rows of greatest entry one: squares of weights may underflow after a theorem-sized step."""
    return w / jnp.maximum(jnp.max(jnp.abs(w), axis=1, keepdims=True), jnp.finfo(w.dtype).tiny)


def _cosines(task: Data, model: Model) -> Float[Array, "m f"]:
    """One row a neuron, one column a hidden direction. A neuron of weight zero has cosine zero."""
    w = _scaled(_neurons(model))
    return (w @ _secret(task).features.T) / jnp.maximum(
        jnp.linalg.norm(w, axis=1, keepdims=True), jnp.finfo(w.dtype).tiny
    )


def _secret(task: Data) -> Task:
    if not isinstance(task, Task):
        raise BadInput(f"{type(task).__name__} has no secret with which neurons could be compared.")
    return task


class Alignment(ModelProbe):
    """Cosines between neurons and hidden directions: `cosine`, the greatest; `cosines`, one row a
    neuron, one column a direction.
    """

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        cosines = _cosines(task, model)
        return {"cosine": jnp.max(cosines), "cosines": cosines}


class Silhouette(ModelProbe):
    """`neurons`, the weights of up to `count` neurons spread evenly over the layer, and
    `directions`, the task's features.

    Both are given in coordinates of their common span: angles are kept, in far less room than d.
    """

    count: int = eqx.field(static=True, default=100)

    def __check_init__(self) -> None:
        require(
            self.count > 0,
            f"The number of neurons in a silhouette must be positive, but is {self.count}.",
        )

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        w = _scaled(_neurons(model))
        w = w[:: -(-len(w) // self.count)]
        rows = jnp.concatenate([w, _secret(task).features])  # c d
        coordinates = orthogonal_triangular(rows.T)[
            1
        ].T  # c min(c, d): rows = coordinates · orthonormal
        return {"neurons": coordinates[: len(w)], "directions": coordinates[len(w) :]}


class Clusters(ModelProbe):
    """How neurons gather around the hidden directions, with `near` the cosine from which on a
    neuron counts as being there.

    `clustered`: share of neurons near some direction (or, with `opposites`, its opposite);
    `covered`: share of directions with a neuron near them; `least_cosine`: the cosine of the
    direction that is farthest from all neurons, with its nearest neuron.
    """

    near: float = eqx.field(converter=float, default=0.9)
    opposites: bool = eqx.field(static=True, default=False)

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        cosines = _cosines(task, model)
        cosines = jnp.abs(cosines) if self.opposites else cosines
        best = jnp.max(cosines, axis=0)
        return {
            "clustered": jnp.mean(jnp.max(cosines, axis=1) >= self.near),
            "covered": jnp.mean(best >= self.near),
            "least_cosine": jnp.min(best),
        }


class SecondLayerSigns(ModelProbe):
    """`agreement`: among neurons near a hidden direction, the share whose second-layer weight has
    the sign of the label there.
    """

    near: float = eqx.field(converter=float, default=0.9)

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        """Measure. Where no neuron is near any direction, there is no agreement: one half."""
        if not isinstance(model, TwoLayer):
            raise BadInput(
                "Only two-layer networks have a second layer of one weight a neuron, not "
                f"{type(model).__name__}."
            )
        cosines = _cosines(task, model)
        there = jnp.max(cosines, axis=1) >= self.near
        same = (
            model.a * _secret(task).target(_secret(task).features)[jnp.argmax(cosines, axis=1)] > 0
        )
        return {
            "agreement": jnp.where(
                jnp.any(there), jnp.sum(there & same) / jnp.maximum(jnp.sum(there), 1), 0.5
            )
        }


class Kinks(ModelProbe):
    """`kinked`: share of neurons that bend within the data, with at least `share` of the examples
    seen on either side of a kink.

    The truncated ReLU has its kinks at 0 and 1; a network whose neurons do not bend within the data
    is linear on them.
    """

    share: float = eqx.field(converter=float, default=0.005)

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        if not isinstance(model, TwoLayer):
            raise BadInput(
                f"Only two-layer networks have neurons with kinks, not {type(model).__name__}."
            )
        inside = model if task.basis is None else model.enter(task.basis)
        z = seen.x @ inside.first_layer.T + inside.b[None, :]
        above = jnp.stack([jnp.mean(z > 0, axis=0), jnp.mean(z > 1, axis=0)])  # 2 m
        return {
            "kinked": jnp.mean(jnp.any((above >= self.share) & (above <= 1 - self.share), axis=0))
        }
