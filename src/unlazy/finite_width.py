"""Kernels of networks of finite width, at the parameters they have: the conjugate kernel of the hidden layer and the tangent kernel."""

from __future__ import annotations

import functools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from unlazy.errors import require
from unlazy.kernels import BLOCK, Kernel, Points, gram, squared_norm
from unlazy.networks import Linearised, Network, TwoLayer, activate


class Conjugate(Kernel):
    """The conjugate kernel of a network of finite width: k(x, z) = ⟨h(x), h(z)⟩ with h its last hidden layer, `network.hidden`."""

    network: Network

    def __check_init__(self) -> None:
        """Refuse networks that do not show their hidden layer."""
        kind = type(self.network).__name__
        require(callable(getattr(self.network, "hidden", None)), f"The conjugate kernel needs a network with `hidden`, which {kind} lacks.")

    def _features(self, x: Float[Array, "n d"]) -> Float[Array, "n m"]:
        return self.network.hidden(x)  # type: ignore[attr-defined]

    def __call__(self, x: Float[Array, "n d"], z: Float[Array, "m d"]) -> Float[Array, "n m"]:
        """Inner products of hidden layers."""
        return self._features(x) @ self._features(z).T

    def diagonal(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """‖h(x)‖²."""
        return squared_norm(self._features(x))


class Tangent(Kernel):
    """The tangent kernel of a network of finite width: k(x, z) = Σ_p ∂_p f(x)·∂_p f(z), over all its parameters p.

    With several outputs it is the mean over them: the tangent kernel of wide networks is the same for all outputs, between which it is 0.

    `TwoLayer`, and `Linearised`, whose trained parameters have the gradients of its base, are done by structure: with
    s_i(x) = a_i·σ'(⟨w_i, x⟩ + b_i), k = ⟨h(x), h(z)⟩ + ⟨s(x), s(z)⟩·(⟨x, z⟩ + 1) + 1. For any other network the gradients of the given
    points are made and contracted, all x with all z: give few at a time, as `tangent_gram` does.
    """

    network: Network

    def _by_layers(self, x: Float[Array, "n d"]) -> tuple[Float[Array, "n m"], Float[Array, "n m"]] | None:
        """Hidden layer h(x), and the derivative s(x) of the score in the pre-activations."""
        network = self.network.base if isinstance(self.network, Linearised) else self.network
        if not isinstance(network, TwoLayer):
            return None
        before = x @ network.first_layer.T + network.b
        hidden, slope = jax.jvp(lambda t: activate(t, network.activation, None), (before,), (jnp.ones_like(before),))
        if network.a.ndim == 1:
            return hidden, slope * network.a
        return hidden, (slope[:, :, None] * network.a).reshape(len(x), -1) / math.sqrt(network.a.shape[1])

    def _gradients(self, x: Float[Array, "n d"]) -> list[Float[Array, "n p"]]:
        parameters, rest = eqx.partition(self.network, eqx.is_inexact_array)
        one = jax.jacrev(lambda parameters, point: eqx.combine(parameters, rest)(point[None])[0])
        outputs = jax.eval_shape(self.network, x[:1]).size
        return [leaf.reshape(len(x), -1) / math.sqrt(outputs) for leaf in jax.tree.leaves(jax.vmap(one, (None, 0))(parameters, x))]

    def __call__(self, x: Float[Array, "n d"], z: Float[Array, "m d"]) -> Float[Array, "n m"]:
        """Inner products of gradients."""
        of_x, of_z = self._by_layers(x), self._by_layers(z)
        if of_x is not None and of_z is not None:
            return of_x[0] @ of_z[0].T + (of_x[1] @ of_z[1].T) * (x @ z.T + 1) + 1
        return functools.reduce(jnp.add, (a @ b.T for a, b in zip(self._gradients(x), self._gradients(z), strict=True)))

    def diagonal(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """‖∇f(x)‖²."""
        layers = self._by_layers(x)
        if layers is not None:
            return squared_norm(layers[0]) + squared_norm(layers[1]) * (squared_norm(x) + 1) + 1
        # One point at a time: the gradients of all points together are what must not be stored.
        return jax.lax.map(lambda point: functools.reduce(jnp.add, (squared_norm(g)[0] for g in self._gradients(point[None]))), x)


def conjugate_gram(network: Network, x: Points, z: Points | None = None, *, block: int = BLOCK) -> Array:
    """Inner products of the hidden layers of a network of finite width, ⟨h(x_i), h(z_j)⟩: the Gram matrix of `Conjugate`."""
    return gram(Conjugate(network), x, z, block=block)


def tangent_gram(network: Network, x: Points, z: Points | None = None, *, block: int | None = None) -> Array:
    """Inner products of the gradients of a network of finite width, over all its parameters: the Gram matrix of `Tangent`.

    Gradients are made for two blocks of points at a time and never stored for all. By default a block has as many points as have
    gradients of 64 MB, if the network has to be done by its gradients.
    """
    kernel = Tangent(network)
    if block is None:
        leaves = jax.tree.leaves(eqx.filter(network, eqx.is_inexact_array))
        block = (
            BLOCK if isinstance(network, TwoLayer | Linearised) else max(1, min(BLOCK, 64 * 10**6 // sum(leaf.nbytes for leaf in leaves)))
        )
    return gram(kernel, x, z, block=block)
