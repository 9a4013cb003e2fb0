"""Networks with scaled output: feature learning for a small scale, lazy training for a large one.

Reference: Chizat, Oyallon and Bach, On lazy training in differentiable programming, 2019.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.networks.base import Init, Scores
from unlazy.networks.inits import PlainInit
from unlazy.networks.two_layer import TwoLayer


class ScaledTwoLayer(TwoLayer):
    """α·(g(x) − g₀(x)) with a two-layer network g and its initialization g₀; `scale` = α.

    It is zero at initialization. With learning rates divided by α², the initial speed of the
    function does not depend on α, and the weights move less for larger α.
    """

    start: TwoLayer = eqx.field(kw_only=True)
    scale: Float[Array, ""] = eqx.field(kw_only=True)

    def __call__(
        self, x: Float[Array, "n d"], *, smoothing: float | Float[Array, ""] | None = None
    ) -> Scores:
        start = jax.lax.stop_gradient(self.start)
        return self.scale * (
            TwoLayer.__call__(self, x, smoothing=smoothing) - start(x, smoothing=smoothing)
        )

    @property
    def unscaled(self) -> TwoLayer:
        """The network g."""
        return TwoLayer(self.w, self.b, self.a, self.c, self.activation)


class ScaledInit(Init):
    """`ScaledTwoLayer` from a two-layer network drawn by `of`."""

    of: PlainInit
    scale: float = eqx.field(converter=float)

    def __check_init__(self) -> None:
        require(self.scale > 0, f"scale must be positive, got {self.scale}.")

    @property
    def width(self) -> int:
        return self.of.width

    def __call__(self, d: Any, *, outputs: int | None = None, key: PRNGKeyArray) -> ScaledTwoLayer:
        net = self.of(d, outputs=outputs, key=key)
        return ScaledTwoLayer(
            net.w, net.b, net.a, net.c, net.activation, start=net, scale=jnp.asarray(self.scale)
        )
