"""Two-layer networks."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from unlazy.core.activations import activation_of
from unlazy.core.errors import require
from unlazy.networks.base import (
    HasNeurons,
    Rotatable,
    Scores,
    SlopeBounded,
    Smoothable,
    SplitWeights,
)

#: Activations with values and derivatives in [−1, 1].
BOUNDED = ("truncated_relu", "hard_tanh", "tanh")


class TwoLayer(Rotatable, HasNeurons, Smoothable, SlopeBounded):
    """g(x) = Σ_i a_i σ(⟨w_i, x⟩ + b_i) + c.

    Groups: w, b, a, c. With `a` of shape (m, o) and `c` of shape (o,) it has o outputs.
    """

    w: Float[Array, "m d"] | SplitWeights
    b: Float[Array, " m"]
    a: Float[Array, " m"] | Float[Array, "m o"]
    c: Float[Array, ""] | Float[Array, " o"]
    activation: str = eqx.field(static=True, default="truncated_relu")

    @property
    def first_layer(self) -> Float[Array, "*s m r"]:
        return self.w.inside if isinstance(self.w, SplitWeights) else self.w

    def hidden(
        self, x: Float[Array, "n d"], *, smoothing: float | Float[Array, ""] | None = None
    ) -> Float[Array, "n m"]:
        """Return the outputs of the hidden neurons, the features of the linear second layer."""
        return activation_of(self.activation)(x @ self.first_layer.T + self.b[None, :], smoothing)

    def __call__(
        self, x: Float[Array, "n d"], *, smoothing: float | Float[Array, ""] | None = None
    ) -> Scores:
        return self.hidden(x, smoothing=smoothing) @ self.a + self.c[None]

    def enter(self, basis: Float[Array, "r d"]) -> TwoLayer:
        assert not isinstance(self.w, SplitWeights)
        return self.put({"w": SplitWeights.of(self.w, basis)})

    def leave(self, basis: Float[Array, "r d"]) -> TwoLayer:
        assert isinstance(self.w, SplitWeights)
        return self.put({"w": self.w.join(basis)})

    def max_slopes(self, groups: tuple[str, ...], largest: Float[Array, ""]) -> dict[str, Any]:
        """Return |a_i|·largest for w, |a_i| for b, and 1 for a and c.

        The derivative by weights outside the span of the inputs is zero.
        """
        require(
            self.activation in BOUNDED,
            f"Statistical queries need the activation {', '.join(BOUNDED)}, got {self.activation}.",
        )
        require(
            self.a.ndim == 1,
            f"Statistical queries need one output, got {self.a.shape[-1]}.",
        )
        size = jnp.abs(self.a)
        w: Any = jnp.broadcast_to(size[:, None] * largest, self.first_layer.shape)
        if isinstance(self.w, SplitWeights):
            w = SplitWeights(w, jnp.zeros_like(self.w.outside))
        bounds = {"w": w, "b": size, "a": jnp.ones_like(self.a), "c": jnp.ones_like(self.c)}
        return {group: bounds[group] for group in groups}
