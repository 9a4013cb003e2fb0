"""What a layer knows of the base and of the composite signal, and how large a first layer is."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.errors import BadInput
from unlazy.core.linear_algebra import solve_positive
from unlazy.networks import HasNeurons, Model, ThreeLayer, ThreeLayerResNet, TwoLayer
from unlazy.probes.base import ModelProbe
from unlazy.tasks.base import Batch, Data, Task
from unlazy.tasks.hierarchy import HierarchyTask

#: Relative to the mean squared size of a feature: keeps the readout solvable where neurons are
#: dead.
RIDGE = 1e-4


def layers_of(model: Model, x: Float[Array, "n d"]) -> dict[str, Float[Array, "n f"]]:
    """What is there after each layer: `first` and `second` hidden layer, and of a residual network
    `out1`, its base signal.
    """
    if isinstance(model, TwoLayer):
        return {"first": model.hidden(x)}
    if not isinstance(model, ThreeLayerResNet):
        raise BadInput(f"{type(model).__name__} has no layers that could be read out.")
    first, second = model.layers(x)
    found = {"first": first, "second": second}
    return (
        found
        if isinstance(model, ThreeLayer)
        else found | {"out1": (first @ model.a).reshape(len(x), -1)}
    )


def readout_share(
    features: Float[Array, "n f"],
    targets: Float[Array, "n k"],
    others: Float[Array, "n f"],
    truth: Float[Array, "n k"],
) -> Float[Array, ""]:
    """R² on other examples of the linear readout of targets from features, with an offset."""
    centre = jnp.mean(features, axis=0, keepdims=True)
    middle = jnp.mean(targets, axis=0, keepdims=True)
    phi = features - centre
    moment = phi.T @ phi / len(phi)
    ridge = RIDGE * jnp.trace(moment) / len(moment) + jnp.finfo(phi.dtype).tiny
    weights = solve_positive(
        moment + ridge * jnp.eye(len(moment)), phi.T @ (targets - middle) / len(phi)
    )
    missed = truth - middle - (others - centre) @ weights
    return 1 - jnp.mean(jnp.sum(missed**2, axis=1)) / jnp.mean(
        jnp.sum((truth - jnp.mean(truth, axis=0, keepdims=True)) ** 2, axis=1)
    )


class LayerReadout(ModelProbe):
    """How much of F and of G(F) a linear readout finds after each layer: R² on held-out examples,
    `base_LAYER` and `composite_LAYER`.

    Readouts are fitted to `examples` fresh ones and judged on as many others. `distance_out1`:
    E‖out₁ − F‖², where there is an out₁.
    """

    examples: int = eqx.field(static=True, default=3000)

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        if not isinstance(task, HierarchyTask):
            raise BadInput(f"{type(task).__name__} is no hierarchy.")
        x = task.inputs(2 * self.examples, key)
        base = task.base_signal(x)
        signals = {"base": base, "composite": task.composite(base)}
        half = self.examples
        layers = layers_of(model, x)
        found = {
            f"{signal}_{layer}": readout_share(
                features[:half], targets[:half], features[half:], targets[half:]
            )
            for layer, features in layers.items()
            for signal, targets in signals.items()
        }
        if "out1" in layers:
            found["distance_out1"] = jnp.mean(jnp.sum((layers["out1"] - base) ** 2, axis=1))
        return found


class FirstLayerNorm(ModelProbe):
    """`norm`: ‖W‖_F/√d; `energy`: how many times more of ‖W‖² lies on the hidden coordinates than
    if it were spread evenly.
    """

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        if not (isinstance(model, HasNeurons) and isinstance(task, Task)):
            raise BadInput("This needs a network's first layer and a task with a secret.")
        w = model.first_layer
        total = jnp.sum(w**2)
        features = task.features
        inside = jnp.sum((w @ features.T) ** 2)
        return {
            "norm": jnp.sqrt(total / w.shape[1]),
            "energy": inside / total * w.shape[1] / len(features),
        }
