"""Probes: what is measured of a model on a task. Numbers go into the record's measurements, arrays into its arrays."""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.errors import require
from unlazy.losses import LOSSES, Loss
from unlazy.networks import Model, Network, TwoLayer
from unlazy.tasks.base import Batch, Task, draw

#: A score this close to zero is rounding, not a decision: a mirrored network is zero at first. It counts as half right.
TIE = 1e-5


class Probe(eqx.Module):
    """Measures a model on a task: `(task, model) -> {name: number or array}`. It may read the secret."""

    @abstractmethod
    def __call__(self, task: Task, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        """Measure. `seen` holds training examples by coordinates (see `Sampler`), `key` is the same for every model of a trial."""


def accuracy(score: Float[Array, " n"], y: Float[Array, " n"]) -> Float[Array, ""]:
    """Share in percent of examples whose score has the sign of the label; a tie counts half."""
    right = jnp.where(jnp.abs(score) <= TIE, 0.5, score * y > 0)
    return 100 * jnp.mean(jnp.where(jnp.isfinite(score), right, 0.0))


class Accuracy(Probe):
    """`test_accuracy`, `test_loss` on `test` fresh examples; `train_accuracy`, `train_loss` on the examples seen. In percent."""

    test: int = eqx.field(static=True, default=10_000)
    loss: Loss = eqx.field(static=True, default="hinge")

    def __check_init__(self) -> None:
        """Refuse an empty test set."""
        require(self.loss in LOSSES, f"loss must be one of {', '.join(LOSSES)}, but is {self.loss!r}.")
        require(self.test > 0, f"The number of test examples must be positive, but is {self.test}.")

    def __call__(self, task: Task, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        """Measure."""
        found = {}
        inside = model if task.basis is None else model.enter(task.basis)
        for name, (z, y) in {"test": draw(task.sampler, self.test, key), "train": seen}.items():
            score = inside(z)
            found[f"{name}_accuracy"] = accuracy(score, y)
            # XLA may take max(NaN, 0) for 0: a score that is not finite must not look like a loss of zero.
            found[f"{name}_loss"] = jnp.mean(jnp.where(jnp.isfinite(score), LOSSES[self.loss](score, y), jnp.nan))
        return found


def _neurons(model: Model) -> Float[Array, "m d"]:
    require(isinstance(model, Network), f"Only networks have neurons to look at, not {type(model).__name__}.")
    assert isinstance(model, Network)
    return model.first_layer


def _scaled(w: Float[Array, "m d"]) -> Float[Array, "m d"]:
    """Rows of greatest entry one: after one theorem-sized step, weights are so small that their squares underflow."""
    return w / jnp.maximum(jnp.max(jnp.abs(w), axis=1, keepdims=True), jnp.finfo(w.dtype).tiny)


class Alignment(Probe):
    """Cosines between neurons and hidden directions: `cosine`, the greatest; `cosines`, one row a neuron, one column a direction."""

    def __call__(self, task: Task, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        """Measure. A neuron of weight zero has cosine zero."""
        w = _scaled(_neurons(model))
        cosines = (w @ task.features.T) / jnp.maximum(jnp.linalg.norm(w, axis=1, keepdims=True), jnp.finfo(w.dtype).tiny)
        return {"cosine": jnp.max(cosines), "cosines": cosines}


class Silhouette(Probe):
    """`neurons`, the weights of up to `count` neurons spread evenly over the layer, and `directions`, the task's features.

    Both are given in coordinates of their common span: angles are kept, in far less room than d.
    """

    count: int = eqx.field(static=True, default=100)

    def __check_init__(self) -> None:
        """Refuse an empty picture."""
        require(self.count > 0, f"The number of neurons in a silhouette must be positive, but is {self.count}.")

    def __call__(self, task: Task, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        """Reduce."""
        w = _scaled(_neurons(model))
        w = w[:: -(-len(w) // self.count)]
        rows = jnp.concatenate([w, task.features])  # c d
        coordinates = jnp.linalg.qr(rows.T, mode="r").T  # c min(c, d): rows = coordinates · orthonormal
        return {"neurons": coordinates[: len(w)], "directions": coordinates[len(w) :]}


class Clusters(Probe):
    """How neurons gather around the hidden directions, with `near` the cosine from which on a neuron counts as being there.

    `clustered`: share of neurons near some direction (or, with `opposites`, its opposite); `covered`: share of directions with a neuron
    near them; `least_cosine`: the cosine of the direction that is farthest from all neurons, with its nearest neuron.
    """

    near: float = eqx.field(converter=float, default=0.9)
    opposites: bool = eqx.field(static=True, default=False)

    def __call__(self, task: Task, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        """Measure."""
        w = _scaled(_neurons(model))
        cosines = (w @ task.features.T) / jnp.maximum(jnp.linalg.norm(w, axis=1, keepdims=True), jnp.finfo(w.dtype).tiny)
        cosines = jnp.abs(cosines) if self.opposites else cosines
        best = jnp.max(cosines, axis=0)
        return {
            "clustered": jnp.mean(jnp.max(cosines, axis=1) >= self.near),
            "covered": jnp.mean(best >= self.near),
            "least_cosine": jnp.min(best),
        }


class SecondLayerSigns(Probe):
    """`agreement`: among neurons near a hidden direction, the share whose second-layer weight has the sign of the label there."""

    near: float = eqx.field(converter=float, default=0.9)

    def __call__(self, task: Task, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        """Measure. Where no neuron is near any direction, there is no agreement: one half."""
        require(
            isinstance(model, TwoLayer), f"Only two-layer networks have a second layer of one weight a neuron, not {type(model).__name__}."
        )
        assert isinstance(model, TwoLayer)
        w = _scaled(_neurons(model))
        cosines = (w @ task.features.T) / jnp.maximum(jnp.linalg.norm(w, axis=1, keepdims=True), jnp.finfo(w.dtype).tiny)
        there = jnp.max(cosines, axis=1) >= self.near
        same = model.a * task.target(task.features)[jnp.argmax(cosines, axis=1)] > 0
        return {"agreement": jnp.where(jnp.any(there), jnp.sum(there & same) / jnp.maximum(jnp.sum(there), 1), 0.5)}


class Kinks(Probe):
    """`kinked`: share of neurons that bend within the data, with at least `share` of the examples seen on either side of a kink.

    The truncated ReLU has its kinks at 0 and 1; a network whose neurons do not bend within the data is linear on them.
    """

    share: float = eqx.field(converter=float, default=0.005)

    def __call__(self, task: Task, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        """Measure."""
        require(isinstance(model, TwoLayer), f"Only two-layer networks have neurons with kinks, not {type(model).__name__}.")
        assert isinstance(model, TwoLayer)
        inside = model if task.basis is None else model.enter(task.basis)
        z = seen.x @ inside.first_layer.T + inside.b
        above = jnp.stack([jnp.mean(z > 0, axis=0), jnp.mean(z > 1, axis=0)])  # 2 m
        return {"kinked": jnp.mean(jnp.any((above >= self.share) & (above <= 1 - self.share), axis=0))}
