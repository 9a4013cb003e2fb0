"""How far the gradients of a network's loss are from those of the linearised loss L₀, over the
lemmas' bounds.

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
    """The greatest ratio of a neuron's deviation to its bound; `size` = E‖a·w‖.

    `first_ratio`, `second_ratio`: ‖∇_w L_ρ − ∇_w L₀‖ over 2·|a|·E‖a·w‖ and its like for a (Lemma
    C.2). `coordinate_ratio`: of
    |∇_i L_ρ − ∇_i L₀| over the bound of Lemma C.3, for each coordinate. Expectations are means over
    `points` examples.

    `early_ratio`: of |∇_i L_ρ − ∇_i L₀| over ½·θ·B₀, the bound of Lemma C.17 (A4) at the first
    step; B₀ = θ·log^{3/2}(d)/√d, `radius` = θ.

    The false world: `sign` = −1 compares with a linearised loss that has the wrong sign.
    """

    points: int = eqx.field(static=True, default=16_384)
    radius: float = eqx.field(converter=float, default=0.1, kw_only=True)
    sign: float = eqx.field(converter=float, default=1.0, kw_only=True)

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        if not isinstance(task, MultiIndexTask) or task.basis is not None:
            raise BadInput("The lemmas speak of the coordinates of a cube that is not rotated.")
        if not isinstance(model, TwoLayer):
            name = type(model).__name__
            raise BadInput(f"Only two-layer networks have these gradients, not {name}.")
        x, y = task.draw(self.points, key)
        w, a = model.first_layer, second_layer(model)
        z = x @ w.T
        difference = -2 * y * jax.nn.sigmoid(-y * model(x)) + self.sign * y  # ℓ'_ρ − ℓ'_0
        first = a[:, None] * (jnp.where(z > 0, difference[:, None], 0).T @ x) / self.points
        second = jnp.mean(jax.nn.relu(z) * difference[:, None], axis=0)
        norms = jnp.linalg.norm(w, axis=1)
        size = jnp.mean(jnp.abs(a) * norms)

        def ratio(i: Array) -> Float[Array, ""]:
            """Of one coordinate, the greatest over neurons; `near` is how often it decides the
            neuron's sign.
            """
            here = w[None, :, i]
            near = jnp.mean(jnp.abs(z - x[:, i, None] * here) <= jnp.abs(here), axis=0)
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
