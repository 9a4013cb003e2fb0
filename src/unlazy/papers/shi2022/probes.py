"""Probes: drift of the weights in the classifier steps, and incoherence of a dictionary.

Reference: shi2022, Lemmas 24 and 25, Appendix F.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from unlazy.core.errors import BadInput, require
from unlazy.core.losses import hinge
from unlazy.core.random import normal
from unlazy.learners.base import Trace
from unlazy.networks.two_layer import TwoLayer
from unlazy.papers.shi2022.constants import lemma_24
from unlazy.probes.base import Probe
from unlazy.tasks.base import Data
from unlazy.tasks.dictionary.incoherent import GeneralPatterns


class Drift(Probe):
    """Drift of a network since step 2, in classifier steps of size `rate` and decay `decay`,
    divided by the bounds of Lemmas 24 and 25.

    `second_ratio`, `weights_ratio`, `biases_ratio`: maximum over neurons and recorded steps so far
    of |a_i|, ‖w_i − w_i⁽²⁾‖ and |b_i − b_i⁽²⁾|, divided by the bounds of Lemma 24. `sharp_ratio`:
    as `weights_ratio`, but a second-layer weight moves by at most η times the largest observed
    feature per step, instead of η. `loss_ratio`: maximum over training examples and two second
    layers (all ones, random) of the change of the hinge loss since step 2, divided by the bound of
    Lemma 25. `norm`: maximum of ‖x‖ over these examples.
    """

    rate: float = eqx.field(converter=float)
    decay: float = eqx.field(converter=float, default=0.0)

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        models = trace.models
        if not isinstance(models, TwoLayer):
            name = type(models).__name__
            raise BadInput(f"`Drift` requires a two-layer network, got {name}.")
        require(
            trace.steps[0] == 2,
            f"`Drift` requires step 2 as the first recorded step, got {trace.steps[0]}.",
        )
        w, a = models.first_layer, jnp.abs(models.a)  # r m d, r m
        weights = jnp.linalg.norm(w - w[:1], axis=2)
        biases = jnp.abs(models.b - models.b[:1])
        taken = jnp.asarray(np.array(trace.steps) - 2, weights.dtype)[:, None]
        bound = lemma_24(
            steps=taken, rate=self.rate, decay=self.decay, a=a[:1], w=jnp.linalg.norm(w[:1], axis=2)
        )
        x, y = trace.seen.x, trace.seen.y
        features = jnp.clip(jnp.einsum("nd,rmd->rnm", x, w) + models.b[:, None], 0, 1)
        largest = jnp.maximum.accumulate(jnp.max(features, axis=(1, 2)))[:, None]
        sharp = bound.w - (self.rate * taken) ** 2 * (1 - largest / 2)
        layers = jnp.stack([jnp.ones_like(a[0]), normal(key, a[0].shape)])  # 2 m
        losses = hinge(jnp.einsum("rnm,lm->lrn", features, layers), y[None, None, :])
        moved = jnp.max(jnp.abs(losses - losses[:, :1]), axis=2)  # 2 r
        allowed = jnp.linalg.norm(layers, axis=1) * jnp.sqrt(a.shape[1])
        farthest = jnp.max(bound.w, axis=1) + jnp.max(bound.b, axis=1)

        def max_ratio(value: Array, limit: Array) -> Array:
            ratio = jnp.where(taken > 0, value / jnp.where(taken > 0, limit, 1.0), 0.0)
            return jnp.maximum.accumulate(jnp.max(ratio, axis=1))

        return {
            "weights": jnp.max(weights, axis=1),
            "bound": jnp.max(bound.w, axis=1),
            "second_ratio": max_ratio(a, bound.a),
            "weights_ratio": max_ratio(weights, bound.w),
            "biases_ratio": max_ratio(biases, bound.b),
            "sharp_ratio": max_ratio(weights, sharp),
            "loss_ratio": max_ratio(
                jnp.max(moved / allowed[:, None], axis=0)[:, None], farthest[:, None]
            ),
            "norm": jnp.full(len(trace.steps), jnp.max(jnp.linalg.norm(x, axis=1))),
        }


class Incoherence(Probe):
    """`mu`: incoherence μ of the dictionary; `crowding`: Dμ/√d, at most 1/16 in Lemma 36."""

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        if not isinstance(task, GeneralPatterns):
            name = type(task).__name__
            raise BadInput(f"`Incoherence` requires a task with a dictionary, got {name}.")
        D, d = task.dictionary.shape
        mu = jnp.full(len(trace.steps), task.mu)
        return {"mu": mu, "crowding": D * mu / d**0.5}
