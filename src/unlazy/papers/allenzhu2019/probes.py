"""Probes: linear readouts of base and composite signal per layer, and first-layer norms."""

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

#: Ridge relative to the mean squared feature; keeps the readout solvable if neurons are dead.
RIDGE = 1e-4


def layers_of(model: Model, x: Float[Array, "n d"]) -> dict[str, Float[Array, "n f"]]:
    """Return the activations of the `first` and `second` hidden layer, and `out1` of a ResNet."""
    if isinstance(model, TwoLayer):
        return {"first": model.hidden(x)}
    if not isinstance(model, ThreeLayerResNet):
        raise BadInput(f"The model must have two or three layers, got {type(model).__name__}.")
    first, second = model.layers(x)
    layers = {"first": first, "second": second}
    return (
        layers
        if isinstance(model, ThreeLayer)
        else layers | {"out1": (first @ model.a).reshape(len(x), -1)}
    )


def readout_r2(
    features: Float[Array, "n f"],
    targets: Float[Array, "n k"],
    test_features: Float[Array, "n f"],
    test_targets: Float[Array, "n k"],
) -> Float[Array, ""]:
    """Return the test R² of an affine readout of targets from features."""
    feature_mean = jnp.mean(features, axis=0, keepdims=True)
    target_mean = jnp.mean(targets, axis=0, keepdims=True)
    phi = features - feature_mean
    moment = phi.T @ phi / len(phi)
    ridge = RIDGE * jnp.trace(moment) / len(moment) + jnp.finfo(phi.dtype).tiny
    weights = solve_positive(
        moment + ridge * jnp.eye(len(moment)), phi.T @ (targets - target_mean) / len(phi)
    )
    residual = test_targets - target_mean - (test_features - feature_mean) @ weights
    return 1 - jnp.mean(jnp.sum(residual**2, axis=1)) / jnp.mean(
        jnp.sum((test_targets - jnp.mean(test_targets, axis=0, keepdims=True)) ** 2, axis=1)
    )


class LayerReadout(ModelProbe):
    """Test R² of linear readouts of F and G(F) from each layer: `base_LAYER`, `composite_LAYER`.

    Readouts are fitted to `examples` fresh examples and tested on as many others.
    `distance_out1`: E‖out₁ − F‖², for ResNets.
    """

    examples: int = eqx.field(static=True, default=3000)

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        if not isinstance(task, HierarchyTask):
            raise BadInput(f"`LayerReadout` needs a `HierarchyTask`, got {type(task).__name__}.")
        x = task.inputs(2 * self.examples, key)
        base = task.base_signal(x)
        signals = {"base": base, "composite": task.composite(base)}
        half = self.examples
        layers = layers_of(model, x)
        measured = {
            f"{signal}_{layer}": readout_r2(
                features[:half], targets[:half], features[half:], targets[half:]
            )
            for layer, features in layers.items()
            for signal, targets in signals.items()
        }
        if "out1" in layers:
            measured["distance_out1"] = jnp.mean(jnp.sum((layers["out1"] - base) ** 2, axis=1))
        return measured


class FirstLayerNorm(ModelProbe):
    """Norm of the first layer, and its concentration on the relevant coordinates.

    `norm`: ‖W‖_F/√d. `energy`: fraction of ‖W‖² on the relevant coordinates ÷ their fraction of all
    coordinates.
    """

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        if not (isinstance(model, HasNeurons) and isinstance(task, Task)):
            raise BadInput(
                "`FirstLayerNorm` needs a network with neurons and a task with known features."
            )
        w = model.first_layer
        total = jnp.sum(w**2)
        features = task.features
        inside = jnp.sum((w @ features.T) ** 2)
        return {
            "norm": jnp.sqrt(total / w.shape[1]),
            "energy": inside / total * w.shape[1] / len(features),
        }
