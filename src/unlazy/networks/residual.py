"""The three-layer residual network and its fully connected counterpart.

Reference: allenzhu2019, Eq. (2.1), and Section 6 for U = VA.
"""

from __future__ import annotations

import equinox as eqx
from jaxtyping import Array, Float

from unlazy.core.activations import activation_of
from unlazy.networks.base import HasNeurons, Rotatable, Scores, Smoothable, SplitWeights

#: Parameter groups of `ThreeLayerResNet`: hidden layers (trained in the paper's theorem), and all.
HIDDEN = ("w", "b", "v", "e")
ALL = (*HIDDEN, "a")


class ThreeLayerResNet(Rotatable, HasNeurons, Smoothable):
    """out(x) = A·(h₁ + h₂) with h₁ = σ(W·x + b₁) and h₂ = σ(U·h₁ + b₂).

    `w` = W, `b` = b₁, `e` = b₂, `a` = Aᵀ, of shape (m,) or, with o outputs, (m, o). With
    `bottleneck`, U = V·A as in the paper's theorem. Then `v` = V has one column per output, and
    h₂ = σ(V·out₁ + b₂) depends only on the base signal out₁ = A·h₁. Otherwise `v` = U is m × m.
    Groups: w, b, v, e (`HIDDEN`) and a (`ALL`). `smoothing` applies to both hidden layers.
    """

    w: Float[Array, "m d"] | SplitWeights
    b: Float[Array, " m"]
    v: Float[Array, "m k"]
    e: Float[Array, " m"]
    a: Float[Array, " m"] | Float[Array, "m o"]
    bottleneck: bool = eqx.field(static=True, default=True)
    activation: str = eqx.field(static=True, default="relu")

    @property
    def first_layer(self) -> Float[Array, "*s m r"]:
        return self.w.inside if isinstance(self.w, SplitWeights) else self.w

    def layers(
        self, x: Float[Array, "n d"], *, smoothing: float | Float[Array, ""] | None = None
    ) -> tuple[Float[Array, "n m"], Float[Array, "n m"]]:
        """Return h₁ and h₂."""
        activate = activation_of(self.activation)
        first = activate(x @ self.first_layer.T + self.b[None, :], smoothing)
        skipped = (first @ self.a).reshape(len(x), -1) if self.bottleneck else first
        return first, activate(skipped @ self.v.T + self.e[None, :], smoothing)

    def hidden(
        self, x: Float[Array, "n d"], *, smoothing: float | Float[Array, ""] | None = None
    ) -> Float[Array, "n m"]:
        """Return h₁ + h₂, the features of the linear last layer."""
        first, second = self.layers(x, smoothing=smoothing)
        return first + second

    def __call__(
        self, x: Float[Array, "n d"], *, smoothing: float | Float[Array, ""] | None = None
    ) -> Scores:
        return self.hidden(x, smoothing=smoothing) @ self.a

    def enter(self, basis: Float[Array, "r d"]) -> ThreeLayerResNet:
        assert not isinstance(self.w, SplitWeights)
        return self.put({"w": SplitWeights.of(self.w, basis)})

    def leave(self, basis: Float[Array, "r d"]) -> ThreeLayerResNet:
        assert isinstance(self.w, SplitWeights)
        return self.put({"w": self.w.join(basis)})


class ThreeLayer(ThreeLayerResNet):
    """The fully connected network out(x) = A·h₂, h₂ = σ(U·h₁ + b₂), h₁ = σ(W·x + b₁).

    Groups as in `ThreeLayerResNet`.
    """

    def hidden(
        self, x: Float[Array, "n d"], *, smoothing: float | Float[Array, ""] | None = None
    ) -> Float[Array, "n m"]:
        """Return h₂, the features of the linear last layer."""
        return self.layers(x, smoothing=smoothing)[1]
