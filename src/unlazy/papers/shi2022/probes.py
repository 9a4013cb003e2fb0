"""What the lemmas on the classifier steps say of the weights, measured along a training run; and
the incoherence of a dictionary.

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
    """How far a network moves in the classifier steps of size `rate` and decay `decay` after step
    2, beside Lemmas 24 and 25.

    `second_ratio`, `weights_ratio`, `biases_ratio`: |a_i|, ‖w_i − w_i⁽²⁾‖ and |b_i − b_i⁽²⁾| over
    Lemma 24's bounds, the greatest of all neurons so far. `sharp_ratio`: ‖w_i − w_i⁽²⁾‖ over the
    same sum of steps where a second-layer weight moves by at most η times the greatest feature that
    was seen, instead of η. `loss_ratio`: how far the hinge loss at an example seen is from that
    after step 2, with any second layer (all ones, and a random one), over Lemma 25's bound with
    Lemma 24's; `norm`: the greatest ‖x‖ of these examples.
    """

    rate: float = eqx.field(converter=float)
    decay: float = eqx.field(converter=float, default=0.0)

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        models = trace.models
        if not isinstance(models, TwoLayer):
            name = type(models).__name__
            raise BadInput(f"The drift is that of a two-layer network, not of {name}.")
        require(
            trace.steps[0] == 2,
            "The drift is measured from step 2 on, but the first recorded step is "
            f"{trace.steps[0]}.",
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
        feature = jnp.maximum.accumulate(jnp.max(features, axis=(1, 2)))[
            :, None
        ]  # the greatest so far
        sharp = bound.w - (self.rate * taken) ** 2 * (1 - feature / 2)
        layers = jnp.stack([jnp.ones_like(a[0]), normal(key, a[0].shape)])  # 2 m
        losses = hinge(jnp.einsum("rnm,lm->lrn", features, layers), y[None, None, :])
        moved = jnp.max(jnp.abs(losses - losses[:, :1]), axis=2)  # 2 r
        allowed = jnp.linalg.norm(layers, axis=1) * jnp.sqrt(a.shape[1])
        farthest = jnp.max(bound.w, axis=1) + jnp.max(bound.b, axis=1)

        def greatest(value: Array, limit: Array) -> Array:
            ratio = jnp.where(taken > 0, value / jnp.where(taken > 0, limit, 1.0), 0.0)
            return jnp.maximum.accumulate(jnp.max(ratio, axis=1))

        return {
            "weights": jnp.max(weights, axis=1),
            "bound": jnp.max(bound.w, axis=1),
            "second_ratio": greatest(a, bound.a),
            "weights_ratio": greatest(weights, bound.w),
            "biases_ratio": greatest(biases, bound.b),
            "sharp_ratio": greatest(weights, sharp),
            "loss_ratio": greatest(
                jnp.max(moved / allowed[:, None], axis=0)[:, None], farthest[:, None]
            ),
            "norm": jnp.full(len(trace.steps), jnp.max(jnp.linalg.norm(x, axis=1))),
        }


class Incoherence(Probe):
    """`mu`: the dictionary's μ; `crowding`: Dμ/√d, which Lemma 36 bounds by 1/16."""

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        if not isinstance(task, GeneralPatterns):
            raise BadInput(f"Incoherence is that of a dictionary, not of {type(task).__name__}.")
        D, d = task.dictionary.shape
        mu = jnp.full(len(trace.steps), task.mu)
        return {"mu": mu, "crowding": D * mu / d**0.5}
