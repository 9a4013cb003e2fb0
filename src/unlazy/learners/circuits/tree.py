"""Algorithm 1 exactly as stated: a tree of neural gates trained through its loss, layer by layer.

    B(x)_j = φ(Σ_l v_jl·max(⟨w_jl, (x_{2j−1}, x_{2j})⟩, 0)),   ŷ = mean of the layer's outputs,
    loss = max(1 − yŷ, 0) + λ|1 + ŷ|

Reference: malach2019, Section 3 and Algorithm 1.
"""

from __future__ import annotations

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from unlazy.core.errors import BadInput
from unlazy.core.losses import hinge
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.parts import Resumable
from unlazy.learners.sources import GradientSource, PopulationGradients, SampleGradients
from unlazy.networks.base import Network
from unlazy.networks.tree import TreeInit, TreeNetwork, width_for
from unlazy.tasks.base import Batch, Sampler, WeightedBatch


class LayerDescent(Resumable):
    """Gradient descent of one level on the pooled loss, for `steps` or until gradients are zero.

    `margin` = Δ in λ = |E y| + Δ/4. If the mean label is negative, labels are negated, and so is
    the output gate at the end. `printed_sign` uses the printed regularizer λ|1 − ŷ| instead of
    λ|1 + ŷ|.
    """

    level: int = eqx.field(static=True)
    margin: float = eqx.field(converter=float, kw_only=True)
    steps: int = eqx.field(static=True, kw_only=True)
    printed_sign: bool = eqx.field(static=True, default=False, kw_only=True)

    def length(self, n: int) -> int:
        return self.steps

    def work(self, n: int, r: int, width: int) -> float:
        """Estimate all steps, forward and backward through one level."""
        return float(6.0 * self.steps * n * width * 2**self.level)

    def begin(self, model: Network) -> Network:
        """Return the tree; only recorded models have a negated output gate."""
        return model

    def go_on(
        self,
        state: Any,
        source: GradientSource,
        material: Any,
        spans: Int[Array, "s 2"],
        total: Int[Array, ""],
        key: PRNGKeyArray,
    ) -> tuple[Any, Network, Float[Array, " s"]]:
        model = state
        if not isinstance(model, TreeNetwork) or isinstance(material, Sampler):
            raise BadInput("LayerDescent requires a tree network and a sample or a population.")
        tree, examples = (
            model,
            material if isinstance(material, (Batch, WeightedBatch)) else material.batch,
        )
        x, y = examples.x, examples.y
        weight = examples.weight if isinstance(examples, WeightedBatch) else jnp.ones_like(y)
        below, mean = tree.up_to(self.level + 1, x), jnp.mean(weight * y)
        labels, penalty = jnp.where(mean < 0, -y, y), jnp.abs(mean) + self.margin / 4
        sign = -1.0 if self.printed_sign else 1.0
        size = 2 ** (self.level + 1)
        rate = size / (16 * jnp.sqrt(2.0) * tree.v[self.level].shape[1])  # Lemma 14

        def replaced(w: Array) -> TreeNetwork:
            result: TreeNetwork = eqx.tree_at(lambda net: net.w[self.level], tree, w)
            return result

        def loss(w: Array) -> Array:
            score = jnp.mean(replaced(w).layer(self.level, below), axis=1)
            return jnp.mean(weight * (hinge(score, labels) + penalty * jnp.abs(1 + sign * score)))

        def moves(state: Any) -> Array:
            _, _, left, gradient = state
            result: Array = (left > 0) & jnp.any(gradient != 0)
            return result

        def step(state: Any) -> Any:
            w, total, left, gradient = state
            w = w - rate * gradient
            value, gradient = jax.value_and_grad(loss)(w)
            return w, total + value, left - 1, gradient

        def segment(w: Array, steps: Int[Array, ""]) -> tuple[Array, tuple[Array, Array]]:
            value, gradient = jax.value_and_grad(loss)(w)
            w, total, left, _ = jax.lax.while_loop(moves, step, (w, jnp.zeros(()), steps, gradient))
            done = steps - left
            mean = total / jnp.maximum(done, 1).astype(total.dtype)
            return w, (w, jnp.where(done > 0, mean, value))

        last, (trained, losses) = jax.lax.scan(
            segment, tree.w[self.level], spans[:, 1] - spans[:, 0]
        )
        stacked = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(spans), *leaf.shape)), tree)
        stacked = eqx.tree_at(lambda net: net.w[self.level], stacked, trained)
        if self.level == 0:
            stacked = eqx.tree_at(
                lambda net: net.v[0], stacked, jnp.where(mean < 0, -stacked.v[0], stacked.v[0])
            )
        return replaced(last), stacked, losses


def layerwise_network(
    n: int,
    *,
    margin: float,
    steps: int,
    k: int | None = None,
    printed_sign: bool = False,
    population: bool = False,
    precision: Literal[32, 64] = 32,
) -> GradientDescent:
    """Return Algorithm 1 on the network, with at most `steps` per layer."""
    stages = tuple(
        LayerDescent(i, margin=margin, steps=steps, printed_sign=printed_sign)
        for i in reversed(range(n.bit_length() - 1))
    )
    source = PopulationGradients() if population else SampleGradients()
    return GradientDescent(
        TreeInit(k or width_for(n, 0.001)), stages, source=source, precision=precision
    )


def end_to_end(*, steps: int, batch: int, rate: float) -> GradientDescent:
    """Return end-to-end training of the tree with Adam, logistic loss and minibatches."""
    descent = Descent({"w": rate}, steps=steps, batch=batch, loss="logistic", optimizer="adam")
    k = 16
    # Neurons of unit scale, so that hard-tanh outputs are spread over [−1, 1].
    return GradientDescent(TreeInit(k, scale=4 * 2**0.5 * k / k**0.5), (descent,))
