"""Ridge regression on the hidden features of a network."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from unlazy.core.errors import BadInput, require
from unlazy.core.linear_algebra import solve_positive
from unlazy.core.losses import example_losses
from unlazy.learners.parts import Stage
from unlazy.learners.sources import GradientSource
from unlazy.networks import Network, TwoLayer
from unlazy.tasks.base import Batch


class RidgeReadout(Stage):
    """A stage of one step that replaces the second layer by a ridge regression of the labels.

    (a, c) minimizes the mean of (a·φ(x) + c − y)², plus ridge·‖a‖², where the hidden features φ are
    standardized on the sample. So the result does not depend on the scale of the features. After a
    very small step, this scale is far below the bias, which requires double precision.
    """

    ridge: float = eqx.field(converter=float, default=1e-6)

    def __check_init__(self) -> None:
        require(self.ridge > 0, f"ridge must be positive, got {self.ridge}.")

    def length(self, n: int) -> int:
        return 1

    def work(self, n: int, r: int, width: int) -> float:
        return float(n) * width * (r + width)

    def run(
        self,
        model: Network,
        source: GradientSource,
        material: Any,
        lengths: Int[Array, " s"],
        key: PRNGKeyArray,
    ) -> tuple[Network, Float[Array, " s"]]:
        if not isinstance(model, TwoLayer):
            raise BadInput(
                f"RidgeReadout requires a two-layer network, got {type(model).__name__}."
            )
        require(
            isinstance(material, Batch),
            "RidgeReadout requires a fixed sample, not fresh data.",
        )
        x, y = material
        features, mean_y = model.hidden(x), jnp.mean(y, axis=0)  # n m
        mean, scale = jnp.mean(features, axis=0), jnp.std(features, axis=0)
        # Neurons that are constant on the sample up to rounding get no weight.
        rounding = 16 * jnp.finfo(mean.dtype).eps * jnp.abs(mean)
        scale = jnp.where(scale > rounding, scale, jnp.inf)
        standardized = (features - mean[None, :]) / scale[None, :]
        moment = standardized.T @ standardized / len(y) + self.ridge * jnp.eye(len(mean))
        a = solve_positive(moment, standardized.T @ (y - mean_y[None]) / len(y))
        a = a / (scale if y.ndim == 1 else scale[:, None])
        solved = model.put({"a": a, "c": mean_y - mean @ a})
        loss = jnp.mean(example_losses("squared", features @ a + solved.c[None], y))
        return jax.tree.map(lambda leaf: leaf[None], solved), loss[None]
