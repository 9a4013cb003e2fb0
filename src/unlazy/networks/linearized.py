"""The tangent model of a network."""

from __future__ import annotations

from typing import Any

import jax
from jaxtyping import Array, Float

from unlazy.networks.base import HasNeurons, Rotatable, Scores, Smoothable
from unlazy.networks.residual import ThreeLayerResNet
from unlazy.networks.two_layer import TwoLayer


class Linearized(Rotatable, HasNeurons, Smoothable):
    """First-order Taylor model of a network in its parameters: f(x) = g₀(x) + ⟨∇g₀(x), delta⟩. Only
    `delta` is trained.

    Its features ∇g₀(x) are fixed at `base`: this is the finite-width tangent model, whose kernel is
    the NTK of `base`.
    """

    base: TwoLayer | ThreeLayerResNet
    delta: TwoLayer | ThreeLayerResNet

    def __call__(
        self, x: Float[Array, "n d"], *, smoothing: float | Float[Array, ""] | None = None
    ) -> Scores:
        """Scores of a batch, by one forward-mode derivative."""
        base = jax.lax.stop_gradient(self.base)
        value, slope = jax.jvp(lambda net: net(x, smoothing=smoothing), (base,), (self.delta,))
        result: Scores = value + slope
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
        """The tangent model with parts of the displacement replaced."""
        return Linearized(self.base, self.delta.put(groups))

    @property
    def first_layer(self) -> Float[Array, "*s m r"]:
        """The neurons that make the features: those of `base`, which never move."""
        return self.base.first_layer
