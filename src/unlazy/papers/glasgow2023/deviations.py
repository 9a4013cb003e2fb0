"""Deviation of gradients from those of the linearized loss L₀, ÷ the bounds of the lemmas.

Reference: glasgow2023, Lemmas C.2, C.3, C.17 (A4).
"""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.errors import BadInput
from unlazy.learners.mean_field import second_layer
from unlazy.networks.base import Model
from unlazy.networks.two_layer import TwoLayer
from unlazy.papers.glasgow2023.gradients import coordinate_deviation_bound, network_deviation_bound
from unlazy.probes.base import ModelProbe
from unlazy.tasks.base import Batch, Data
from unlazy.tasks.multi_index import MultiIndexTask


class GradientDeviations(ModelProbe):
    """Maximum over neurons of the deviation ÷ its bound; `size` = E‖a·w‖.

    `first_ratio`: ‖∇_w L_ρ − ∇_w L₀‖ ÷ 2|a|·E‖a·w‖; `second_ratio`: |∇_a L_ρ − ∇_a L₀| ÷
    2‖w‖·E‖a·w‖ (Lemma C.2). `coordinate_ratio`: maximum over coordinates of |∇_i L_ρ − ∇_i L₀| ÷
    the bound of Lemma C.3. `early_ratio`: |∇_i L_ρ − ∇_i L₀| ÷ ½·θ·B₀, the bound of Lemma C.17 (A4)
    at t = 0; B₀ = θ·log^{3/2}(d)/√d, `radius` = θ. Expectations are means over `points` examples.

    Negative control: `sign` = −1 negates the linearized loss.
    """

    points: int = eqx.field(static=True, default=16_384)
    radius: float = eqx.field(converter=float, default=0.1, kw_only=True)
    sign: float = eqx.field(converter=float, default=1.0, kw_only=True)

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        if not isinstance(task, MultiIndexTask) or task.basis is not None:
            raise BadInput("`GradientDeviations` needs a multi-index task that is not rotated.")
        if not isinstance(model, TwoLayer):
            raise BadInput(f"The model must be a two-layer network, got {type(model).__name__}.")
        x, y = task.draw(self.points, key)
        w, a = model.first_layer, second_layer(model)
        z = x @ w.T
        difference = -2 * y * jax.nn.sigmoid(-y * model(x)) + self.sign * y  # ℓ'_ρ − ℓ'_0
        first = a[:, None] * (((z > 0) * difference[:, None]).T @ x) / self.points
        second = jnp.mean(jax.nn.relu(z) * difference[:, None], axis=0)
        norms = jnp.linalg.norm(w, axis=1)
        size = jnp.mean(jnp.abs(a) * norms)

        def ratio(i: Array) -> Float[Array, ""]:
            """Return the maximum ratio over neurons for coordinate i.

            `near`: probability that this coordinate determines the sign of ⟨w, x⟩.
            """
            w_i = w[None, :, i]
            near = jnp.mean(jnp.abs(z - x[:, i, None] * w_i) <= jnp.abs(w_i), axis=0)
            bound = coordinate_deviation_bound(
                a, size, jnp.mean(jnp.abs(a * w[:, i])), near, task.dimension
            )
            return jnp.max(jnp.abs(first[:, i]) / bound)

        return {
            "first_ratio": jnp.max(
                jnp.linalg.norm(first, axis=1) / network_deviation_bound(a, size)
            ),
            "second_ratio": jnp.max(jnp.abs(second) / (2 * norms * size)),
            "coordinate_ratio": jnp.max(jax.lax.map(ratio, jnp.arange(task.dimension))),
            "early_ratio": jnp.max(jnp.abs(first))
            / (0.5 * self.radius**2 * math.log(task.dimension) ** 1.5 / math.sqrt(task.dimension)),
            "size": size,
        }
