"""The converged readout: the best linear classifier on the hidden features that a network has right
now.
"""

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
    """Replace the second layer by the ridge regression of the labels on the standardised hidden
    features, with intercept.

    min over (a, c) of mean (a·φ(x) + c − y)² + ridge·‖a‖², where φ is centred and scaled to unit
    variance on the sample. Standardising makes the answer independent of the features' scale, which
    after one tiny step is far below the bias: run such a network in double precision. Counts as one
    step.
    """

    ridge: float = eqx.field(converter=float, default=1e-6)

    def __check_init__(self) -> None:
        require(self.ridge > 0, f"ridge must be positive, but is {self.ridge}.")

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
            raise BadInput("A converged readout needs the hidden features of a two-layer network.")
        require(
            isinstance(material, Batch),
            "A converged readout needs a fixed sample, not fresh draws.",
        )
        x, y = material
        features, middle = model.hidden(x), jnp.mean(y, axis=0)  # n m
        mean, scale = jnp.mean(features, axis=0), jnp.std(features, axis=0)
        # A neuron that is constant on the sample gets no weight. Its mean is rounded, so its spread
        # need not come out as zero.
        rounding = 16 * jnp.finfo(mean.dtype).eps * jnp.abs(mean)
        scale = jnp.where(scale > rounding, scale, jnp.inf)
        centred = (features - mean[None, :]) / scale[None, :]
        moment = centred.T @ centred / len(y) + self.ridge * jnp.eye(len(mean))
        a = solve_positive(moment, centred.T @ (y - middle[None]) / len(y))
        a = a / (scale if y.ndim == 1 else scale[:, None])
        solved = model.put({"a": a, "c": middle - mean @ a})
        loss = jnp.mean(example_losses("squared", features @ a + solved.c[None], y))
        return jax.tree.map(lambda leaf: leaf[None], solved), loss[None]
