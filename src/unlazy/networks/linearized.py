"""Linearized networks."""

from __future__ import annotations

from typing import Any

import jax
from jaxtyping import Array, Float

from unlazy.networks.base import HasNeurons, Rotatable, Scores, Smoothable
from unlazy.networks.residual import ThreeLayerResNet
from unlazy.networks.two_layer import TwoLayer


class Linearized(Rotatable, HasNeurons, Smoothable):
    """A network linearized in its parameters, f(x) = g₀(x) + ⟨∇g₀(x), delta⟩.

    Only `delta` is trained. The features ∇g₀(x) are fixed at `base`, and their kernel is the
    finite-width NTK of `base`.
    """

    base: TwoLayer | ThreeLayerResNet
    delta: TwoLayer | ThreeLayerResNet

    def __call__(
        self, x: Float[Array, "n d"], *, smoothing: float | Float[Array, ""] | None = None
    ) -> Scores:
        """Return the scores of a batch, by one forward-mode derivative."""
        base = jax.lax.stop_gradient(self.base)
        value, change = jax.jvp(lambda net: net(x, smoothing=smoothing), (base,), (self.delta,))
        result: Scores = value + change
        return result

    def enter(self, basis: Float[Array, "r d"]) -> Linearized:
        return Linearized(self.base.enter(basis), self.delta.enter(basis))

    def leave(self, basis: Float[Array, "r d"]) -> Linearized:
        return Linearized(self.base.leave(basis), self.delta.leave(basis))

    @property
    def groups(self) -> tuple[str, ...]:
        return self.base.groups

    def get(self, groups: tuple[str, ...]) -> dict[str, Any]:
        return self.delta.get(groups)

    def put(self, groups: dict[str, Any]) -> Linearized:
        """Return the linearized network with parts of `delta` replaced."""
        return Linearized(self.base, self.delta.put(groups))

    @property
    def first_layer(self) -> Float[Array, "*s m r"]:
        """The first-layer weights of `base`, which are not trained."""
        return self.base.first_layer
