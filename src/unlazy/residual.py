"""The three-layer residual network.

Reference: allenzhu2019, Eq. (2.1), and Section 6 for U = VA.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.errors import unknown
from unlazy.inits import require_law
from unlazy.networks import Activation, Init, Network, Scores, SplitWeights, activate
from unlazy.random import normal

#: Parameter groups of `ThreeLayerResNet`: the hidden layers, which the paper's theorem trains, and all.
HIDDEN = ("w", "b", "v", "e")
ALL = (*HIDDEN, "a")


class ThreeLayerResNet(Network):
    """out(x) = A·(h₁ + h₂) with h₁ = σ(W·x + b₁) and h₂ = σ(U·h₁ + b₂).

    `w` = W, `b` = b₁, `e` = b₂, `a` = Aᵀ, of shape (m,) or, with o outputs, (m, o). With `bottleneck`, U = V·A: then `v` = V has one column
    for each output and h₂ = σ(V·out₁ + b₂) sees only the base signal out₁ = A·h₁, as in the paper's theorem. Without, `v` = U is m × m.
    Groups: w, b, v, e (the hidden layers, `HIDDEN`) and a (`ALL`). `smoothing` is applied in both hidden layers.
    """

    w: Float[Array, "m d"] | SplitWeights
    b: Float[Array, " m"]
    v: Float[Array, "m k"]
    e: Float[Array, " m"]
    a: Float[Array, " m"] | Float[Array, "m o"]
    bottleneck: bool = eqx.field(static=True, default=True)
    activation: Activation = eqx.field(static=True, default="relu")

    @property
    def first_layer(self) -> Float[Array, "m r"]:
        """First-layer weights as they act on the inputs."""
        return self.w.inside if isinstance(self.w, SplitWeights) else self.w

    def layers(
        self, x: Float[Array, "n d"], *, smoothing: float | Float[Array, ""] | None = None
    ) -> tuple[Float[Array, "n m"], Float[Array, "n m"]]:
        """h₁ and h₂."""
        first = activate(x @ self.first_layer.T + self.b, self.activation, smoothing)
        skipped = (first @ self.a).reshape(len(x), -1) if self.bottleneck else first
        return first, activate(skipped @ self.v.T + self.e, self.activation, smoothing)

    def hidden(self, x: Float[Array, "n d"], *, smoothing: float | Float[Array, ""] | None = None) -> Float[Array, "n m"]:
        """h₁ + h₂: the features on which the last layer is linear."""
        first, second = self.layers(x, smoothing=smoothing)
        return first + second

    def __call__(self, x: Float[Array, "n d"], *, smoothing: float | Float[Array, ""] | None = None) -> Scores:
        """Scores of a batch."""
        return self.hidden(x, smoothing=smoothing) @ self.a

    def enter(self, basis: Float[Array, "r d"]) -> ThreeLayerResNet:
        """Split the first layer into coordinates and rest."""
        assert not isinstance(self.w, SplitWeights)
        inside = self.w @ basis.T
        return eqx.tree_at(lambda net: net.w, self, SplitWeights(inside, self.w - inside @ basis))

    def leave(self, basis: Float[Array, "r d"]) -> ThreeLayerResNet:
        """Join coordinates and rest."""
        assert isinstance(self.w, SplitWeights)
        return eqx.tree_at(lambda net: net.w, self, self.w.inside @ basis + self.w.outside)

    def get(self, groups: tuple[str, ...]) -> dict[str, Any]:
        """The named groups among w, b, v, e, a."""
        for name in groups:
            if name not in ALL:
                raise unknown("parameter group", name, ALL)
        return {name: getattr(self, name) for name in groups}

    def put(self, groups: dict[str, Any]) -> ThreeLayerResNet:
        """The network with the named groups replaced."""
        return eqx.tree_at(lambda net: [getattr(net, name) for name in groups], self, list(groups.values()))


class ResNetInit(Init):
    """`ThreeLayerResNet` with independent Gaussian entries.

    Standard deviations are w_scale (W), b_scale (b₁), v_scale (V or U), e_scale (b₂) and a_scale (A). The paper's theorem has
    a_scale = 1/√m, w_scale = b_scale = σ_w and v_scale = e_scale = σ_v/√m; its experiments have 1/√m everywhere.
    """

    m: int = eqx.field(static=True, kw_only=True)
    w_scale: float = eqx.field(converter=float, kw_only=True)
    b_scale: float = eqx.field(converter=float, kw_only=True)
    v_scale: float = eqx.field(converter=float, kw_only=True)
    e_scale: float = eqx.field(converter=float, kw_only=True)
    a_scale: float = eqx.field(converter=float, kw_only=True)
    outputs: int | None = eqx.field(static=True, default=None, kw_only=True)
    bottleneck: bool = eqx.field(static=True, default=True, kw_only=True)
    activation: Activation = eqx.field(static=True, default="relu", kw_only=True)

    def __check_init__(self) -> None:
        """Refuse sizes and scales that make no network."""
        scales = {name: getattr(self, name) for name in ("w_scale", "b_scale", "v_scale", "e_scale", "a_scale")}
        require_law(self.m, self.outputs, self.activation, **scales)

    @property
    def width(self) -> int:
        """Neurons of a hidden layer."""
        return self.m

    def __call__(self, d: int, *, key: PRNGKeyArray) -> ThreeLayerResNet:
        """Draw."""
        key_w, key_b, key_v, key_e, key_a = jax.random.split(key, 5)
        ends = () if self.outputs is None else (self.outputs,)
        return ThreeLayerResNet(
            self.w_scale * normal(key_w, (self.m, d)),
            self.b_scale * normal(key_b, (self.m,)),
            self.v_scale * normal(key_v, (self.m, (self.outputs or 1) if self.bottleneck else self.m)),
            self.e_scale * normal(key_e, (self.m,)),
            self.a_scale * normal(key_a, (self.m, *ends)),
            self.bottleneck,
            self.activation,
        )
