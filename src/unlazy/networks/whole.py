"""Networks on coordinates of the inputs whose weights keep all input dimensions."""

from __future__ import annotations

from typing import Any, Self

import equinox as eqx
from jaxtyping import Array, Float

from unlazy.networks.base import HasNeurons, Rotatable, Scores, Smoothable
from unlazy.networks.two_layer import TwoLayer


class WholeWeights(Rotatable, HasNeurons, Smoothable):
    """A two-layer network of x = z·basis as a network of z, with weights in the input space.

    For stages that do not commute with rotations, such as Adam: gradients are those with respect
    to the weights of `net`, at the cost of r coordinates instead of d inputs per example.
    """

    net: TwoLayer
    basis: Float[Array, "r d"]

    @property
    def groups(self) -> tuple[str, ...]:
        return self.net.groups

    def get(self, groups: tuple[str, ...]) -> dict[str, Any]:
        return self.net.get(groups)

    def put(self, groups: dict[str, Any]) -> Self:
        result: Self = eqx.tree_at(lambda whole: whole.net, self, self.net.put(groups))
        return result

    @property
    def first_layer(self) -> Float[Array, "*s m r"]:
        return self.net.enter(self.basis).first_layer

    def __call__(
        self, x: Float[Array, "n r"], *, smoothing: float | Float[Array, ""] | None = None
    ) -> Scores:
        return self.net.enter(self.basis)(x, smoothing=smoothing)

    def enter(self, basis: Float[Array, "r d"]) -> Self:
        return type(self)(self.net, basis)

    def leave(self, basis: Float[Array, "r d"]) -> TwoLayer:  # type: ignore[override]
        return self.net
