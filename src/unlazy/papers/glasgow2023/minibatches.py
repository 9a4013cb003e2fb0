"""Deviation of minibatch gradients from population gradients, and gradient norms, ÷ bounds.

Reference: glasgow2023, Lemmas B.12, B.13 (S1, S2).
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
from unlazy.probes.base import ModelProbe
from unlazy.tasks.base import Batch, Data

#: Fresh examples per chunk of the population mean.
CHUNK = 4096


class MinibatchErrors(ModelProbe):
    """Maxima over neurons, coordinates and `draws` minibatches of m = `batch` examples.

    `whole_ratio` = ‖∇̂_w L − ∇_w L‖ / (|a|·log(d)·√(d/m)). `coordinate_ratio` = |∇̂_i L − ∇_i L| /
    (|a|·log(d)/√m). `second_ratio` = |∇̂_a L − ∇_a L| / (‖w‖·log(d)/√m). `first_length` =
    ‖∇_w L‖/(2|a|), `second_length` = |∇_a L|/(2‖w‖). The population is a mean over `chunks`·4096
    examples.

    Negative control: minibatches of m/`thin` examples, and loss derivatives multiplied by `gain`.
    """

    batch: int = eqx.field(static=True)
    draws: int = eqx.field(static=True, default=10)
    chunks: int = eqx.field(static=True, default=64, metadata={"key": "pieces"})
    thin: int = eqx.field(static=True, default=1, kw_only=True)
    gain: float = eqx.field(converter=float, default=1.0, kw_only=True)

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        if not isinstance(model, TwoLayer):
            raise BadInput(f"The model must be a two-layer network, got {type(model).__name__}.")
        w, a = model.first_layer, second_layer(model)
        key_whole, key_draws = jax.random.split(key)

        def gradients(n: int, key: PRNGKeyArray) -> tuple[Float[Array, "p d"], Float[Array, " p"]]:
            """Return (∇_w L)/a = E ℓ'·σ'·x and ∇_a L = E ℓ'·σ."""
            x, y = task.draw(n, key)
            z = x @ w.T
            derivative = -2 * self.gain * y * jax.nn.sigmoid(-y * model(x))
            return ((z > 0) * derivative[:, None]).T @ x / n, jnp.mean(
                jax.nn.relu(z) * derivative[:, None], axis=0
            )

        def chunk(
            total: tuple[Array, Array], key: PRNGKeyArray
        ) -> tuple[tuple[Array, Array], None]:
            first, second = gradients(CHUNK, key)
            return (total[0] + first / self.chunks, total[1] + second / self.chunks), None

        zero = (jnp.zeros_like(w), jnp.zeros_like(a))
        (first, second), _ = jax.lax.scan(chunk, zero, jax.random.split(key_whole, self.chunks))
        norms, d = jnp.linalg.norm(w, axis=1), task.dimension
        scale = math.log(d) / math.sqrt(self.batch)

        def distance(key: PRNGKeyArray) -> tuple[Array, Array, Array]:
            own_first, own_second = gradients(max(1, self.batch // self.thin), key)
            gap = own_first - first
            return (
                jnp.max(jnp.linalg.norm(gap, axis=1)) / (scale * math.sqrt(d)),
                jnp.max(jnp.abs(gap)) / scale,
                jnp.max(jnp.abs(own_second - second) / norms) / scale,
            )

        whole, coordinate, second_layer_ratio = jax.lax.map(
            distance, jax.random.split(key_draws, self.draws)
        )
        return {
            "whole_ratio": jnp.max(whole),
            "coordinate_ratio": jnp.max(coordinate),
            "second_ratio": jnp.max(second_layer_ratio),
            "first_length": jnp.max(jnp.linalg.norm(first, axis=1)) / 2,
            "second_length": jnp.max(jnp.abs(second) / norms) / 2,
        }
