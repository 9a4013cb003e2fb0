"""Conjugate and tangent kernels of networks of finite width at given parameters."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from unlazy.core.activations import activation_of
from unlazy.core.errors import require
from unlazy.kernels.base import BLOCK, Kernel, squared_norm
from unlazy.networks import Linearized, Network, ThreeLayer, ThreeLayerResNet, TwoLayer


def _in_precision_of(x: Float[Array, "n d"], network: Network) -> Network:
    """The network with its parameters in the precision of the points."""
    parameters, rest = eqx.partition(network, eqx.is_inexact_array)
    result: Network = eqx.combine(jax.tree.map(lambda p: p.astype(x.dtype), parameters), rest)
    return result


class Conjugate(Kernel):
    """The conjugate kernel k(x, z) = ⟨h(x), h(z)⟩ of the last hidden layer h = `network.hidden`."""

    network: Network

    def __check_init__(self) -> None:
        kind = type(self.network).__name__
        require(
            callable(getattr(self.network, "hidden", None)),
            f"The conjugate kernel needs a network with the method `hidden`, got {kind}.",
        )

    def _features(self, x: Float[Array, "n d"]) -> Float[Array, "n m"]:
        result: Array = _in_precision_of(x, self.network).hidden(x)  # type: ignore[attr-defined]
        return result

    def __call__(self, x: Float[Array, "n d"], z: Float[Array, "m d"]) -> Float[Array, "n m"]:
        return self._features(x) @ self._features(z).T

    def diagonal(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        return squared_norm(self._features(x))


class LayerGradients(NamedTuple):
    """The gradient of the scores by a layer h ↦ W·h + b: δ·hᵀ by W, and δ by b if there is a bias.

    For o outputs δ concatenates those of all outputs, divided by √o. The last layer has δ = 1,
    because each output depends only on its own weights.
    """

    delta: Float[Array, "n m"]
    inputs: Float[Array, "n k"]
    bias: bool


def has_dense_layers(network: Network) -> bool:
    """Return whether all layers are dense and share no weights."""
    if isinstance(network, Linearized):
        network = network.base
    return isinstance(network, TwoLayer) or (
        isinstance(network, ThreeLayerResNet) and not network.bottleneck
    )


def by_layers(network: Network, x: Float[Array, "n d"]) -> list[LayerGradients] | None:
    """Return the gradients per layer, or None unless `has_dense_layers`."""
    if not has_dense_layers(network):
        return None
    if isinstance(network, Linearized):
        network = network.base  # its gradients are those by the displacement
    network = _in_precision_of(x, network)
    one = jnp.ones_like(x, shape=(len(x), 1))
    if isinstance(network, TwoLayer):
        hidden, slope = activation_of(network.activation).with_slope(
            x @ network.first_layer.T + network.b[None, :]
        )
        to_first = slope[:, :, None] * _columns(network.a)[None]
        return [LayerGradients(one, hidden, True), LayerGradients(_flat(to_first), x, True)]
    if isinstance(network, ThreeLayerResNet):
        a = _columns(network.a)[None]  # 1 m o
        sigma = activation_of(network.activation)
        first, first_slope = sigma.with_slope(x @ network.first_layer.T + network.b[None, :])
        second, second_slope = sigma.with_slope(first @ network.v.T + network.e[None, :])
        to_second = second_slope[:, :, None] * a  # n m o
        through = jnp.einsum("nmo,mk->nko", to_second, network.v)
        skips = not isinstance(network, ThreeLayer)
        to_first = first_slope[:, :, None] * (a + through if skips else through)
        return [
            LayerGradients(one, first + second if skips else second, False),
            LayerGradients(_flat(to_second), first, True),
            LayerGradients(_flat(to_first), x, True),
        ]
    return None


def _columns(a: Float[Array, " m"] | Float[Array, "m o"]) -> Float[Array, "m o"]:
    """Return the last layer with an axis of outputs."""
    return a.reshape(len(a), -1)


def _flat(delta: Float[Array, "n m o"]) -> Float[Array, "n mo"]:
    """Concatenate the derivatives of all outputs; inner products are means over outputs."""
    return delta.reshape(len(delta), -1) / math.sqrt(delta.shape[2])


class Tangent(Kernel):
    """The tangent kernel k(x, z) = Σ_p ∂_p f(x)·∂_p f(z) over all parameters p of a network.

    For several outputs it is the mean over outputs. In the limit of infinite width it is the same
    for all outputs, and 0 between different ones.

    For dense layers (`by_layers`), k = Σ_layers ⟨δ(x), δ(z)⟩·(⟨h(x), h(z)⟩ + 1) without gradients
    by weights, with h the input of a layer and δ the derivative of the score by its output. For
    other networks the gradients of all points are computed; `gram` takes few points at a time.
    """

    network: Network

    @property
    def block(self) -> int:
        """The block size; if gradients are needed, they take at most 64 MB."""
        if has_dense_layers(self.network):
            return BLOCK
        leaves = jax.tree.leaves(eqx.filter(self.network, eqx.is_inexact_array))
        return int(max(1, min(BLOCK, 64 * 10**6 // sum(leaf.nbytes for leaf in leaves))))

    def _gradients(self, x: Float[Array, "n d"]) -> list[Float[Array, "n p"]]:
        network = _in_precision_of(x, self.network)
        parameters, rest = eqx.partition(network, eqx.is_inexact_array)
        one = jax.jacrev(lambda parameters, point: eqx.combine(parameters, rest)(point[None])[0])
        outputs = jax.eval_shape(network, x[:1]).size
        return [
            leaf.reshape(len(x), -1) / math.sqrt(outputs)
            for leaf in jax.tree.leaves(jax.vmap(one, (None, 0))(parameters, x))
        ]

    def __call__(self, x: Float[Array, "n d"], z: Float[Array, "m d"]) -> Float[Array, "n m"]:
        of_x, of_z = by_layers(self.network, x), by_layers(self.network, z)
        if of_x is not None and of_z is not None:
            parts = [
                (p.delta @ q.delta.T) * (p.inputs @ q.inputs.T + int(p.bias))
                for p, q in zip(of_x, of_z, strict=True)
            ]
        else:
            parts = [a @ b.T for a, b in zip(self._gradients(x), self._gradients(z), strict=True)]
        return functools.reduce(jnp.add, parts)

    def diagonal(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        layers = by_layers(self.network, x)
        if layers is not None:
            return functools.reduce(
                jnp.add,
                (squared_norm(p.delta) * (squared_norm(p.inputs) + int(p.bias)) for p in layers),
            )
        # One point at a time, to limit memory.
        result: Array = jax.lax.map(
            lambda point: functools.reduce(
                jnp.add, (squared_norm(g)[0] for g in self._gradients(point[None]))
            ),
            x,
        )
        return result
