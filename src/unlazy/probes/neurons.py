"""Geometry of neurons relative to the hidden directions."""

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
        raise BadInput(f"This probe needs a network with neurons, got {type(model).__name__}.")
    return model.first_layer


def _scaled(w: Float[Array, "m d"]) -> Float[Array, "m d"]:
    """Return rows scaled to maximum entry one: squares of weights may underflow."""
    return w / jnp.maximum(jnp.max(jnp.abs(w), axis=1, keepdims=True), jnp.finfo(w.dtype).tiny)


def _cosines(task: Data, model: Model) -> Float[Array, "m f"]:
    """Return cosines, a neuron per row and a hidden direction per column; 0 for zero weights."""
    w = _scaled(_neurons(model))
    return (w @ _with_truth(task).features.T) / jnp.maximum(
        jnp.linalg.norm(w, axis=1, keepdims=True), jnp.finfo(w.dtype).tiny
    )


def _with_truth(task: Data) -> Task:
    if not isinstance(task, Task):
        raise BadInput(f"{type(task).__name__} has no known hidden directions.")
    return task


class Alignment(ModelProbe):
    """Cosines between neurons and hidden directions.

    `cosine`: the maximum. `cosines`: one row per neuron, one column per direction.
    """

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        cosines = _cosines(task, model)
        return {"cosine": jnp.max(cosines), "cosines": cosines}


class Silhouette(ModelProbe):
    """Weights of up to `count` neurons (`neurons`) and the task's features (`directions`).

    The neurons are spaced evenly over the layer. Both are given by coordinates in their common
    span, which keep angles with far less than d numbers.
    """

    count: int = eqx.field(static=True, default=100)

    def __check_init__(self) -> None:
        require(
            self.count > 0,
            f"The number of neurons in a silhouette must be positive, got {self.count}.",
        )

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        w = _scaled(_neurons(model))
        w = w[:: -(-len(w) // self.count)]
        rows = jnp.concatenate([w, _with_truth(task).features])  # c d
        # rows = coordinates · orthonormal, of shape c min(c, d)
        coordinates = orthogonal_triangular(rows.T)[1].T
        return {"neurons": coordinates[: len(w)], "directions": coordinates[len(w) :]}


class Clusters(ModelProbe):
    """Clustering of neurons around the hidden directions, within cosine `near`.

    `clustered`: fraction of neurons near some direction (or, with `opposites`, its negative).
    `covered`: fraction of directions with a neuron near them. `least_cosine`: minimum over
    directions of the cosine to the nearest neuron.
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
    """Agreement of second-layer signs with the labels at the hidden directions.

    `agreement`: among neurons near a hidden direction, the fraction whose second-layer weight has
    the sign of the label there. It is ½ if no neuron is near any direction.
    """

    near: float = eqx.field(converter=float, default=0.9)

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        if not isinstance(model, TwoLayer):
            raise BadInput(
                f"SecondLayerSigns needs a two-layer network, got {type(model).__name__}."
            )
        cosines = _cosines(task, model)
        near = jnp.max(cosines, axis=1) >= self.near
        same = (
            model.a
            * _with_truth(task).target(_with_truth(task).features)[jnp.argmax(cosines, axis=1)]
            > 0
        )
        return {
            "agreement": jnp.where(
                jnp.any(near), jnp.sum(near & same) / jnp.maximum(jnp.sum(near), 1), 0.5
            )
        }


class Kinks(ModelProbe):
    """Fraction of neurons with a kink within the data (`kinked`).

    At least `fraction` of the training examples must be on either side of the kink. The truncated
    ReLU has kinks at 0 and 1. A network without kinks within the data is linear on them.
    """

    fraction: float = eqx.field(converter=float, default=0.005, metadata={"key": "share"})

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        if not isinstance(model, TwoLayer):
            raise BadInput(f"Kinks needs a two-layer network, got {type(model).__name__}.")
        inside = model if task.basis is None else model.enter(task.basis)
        z = seen.x @ inside.first_layer.T + inside.b[None, :]
        above = jnp.stack([jnp.mean(z > 0, axis=0), jnp.mean(z > 1, axis=0)]).astype(float)  # 2 m
        return {
            "kinked": jnp.mean(
                jnp.any((above >= self.fraction) & (above <= 1 - self.fraction), axis=0)
            )
        }
