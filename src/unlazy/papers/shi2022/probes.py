"""What the lemmas of two-step feature learning say of the weights, measured along a training run.

Reference: shi2022, Lemmas 18 to 25.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.learners.base import Trace
from unlazy.networks.base import Model
from unlazy.networks.two_layer import TwoLayer
from unlazy.papers.shi2022.constants import drift_bound
from unlazy.probes.base import ModelProbe, Probe
from unlazy.tasks.base import Batch, Data
from unlazy.tasks.dictionary.patterns import HiddenPatterns


class SignalToNoise(ModelProbe):
    """`ratio`: components of the weights on A over those off A, the median over neurons of mean |q_j| over the root mean square of q_j.

    `inside`: the share of fresh examples with the margin y·g < 1 (Lemma 19), where neurons average over noise of deviation `noise`.
    """

    noise: float = eqx.field(converter=float)
    examples: int = eqx.field(static=True, default=16_384)

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        require(isinstance(task, HiddenPatterns), f"Signal and noise are those of hidden patterns, not of {type(task).__name__}.")
        require(isinstance(model, TwoLayer), f"Signal and noise are those of a two-layer network, not of {type(model).__name__}.")
        assert isinstance(task, HiddenPatterns) and isinstance(model, TwoLayer)
        on_patterns = model.enter(task.basis)  # one component a pattern
        w = on_patterns.first_layer
        # After one theorem-sized step, weights are so small that their squares underflow.
        w = w / jnp.max(jnp.abs(w), axis=1, keepdims=True)
        on = jnp.abs(w) @ task.relevant / jnp.sum(task.relevant)
        off = jnp.sqrt(w**2 @ ~task.relevant / jnp.sum(~task.relevant))
        z, y = task.draw(self.examples, key)
        return {"ratio": jnp.median(on / off), "inside": jnp.mean(y * on_patterns(z, smoothing=self.noise) < 1, dtype=y.dtype)}


class Drift(Probe):
    """How far the first layer moves in the classifier steps of size `rate` after step 2, beside Lemma 24's bound.

    `weights`, `biases`: the greatest distance of a neuron's from those after step 2; `ratio`: the greater of both over the `bound`, the
    greatest so far; `relative`: `weights` over the median length of a weight vector after step 2.
    """

    rate: float = eqx.field(converter=float)

    def __call__(self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray) -> dict[str, Array]:
        models = trace.models
        require(isinstance(models, TwoLayer), f"The drift is that of a two-layer network, not of {type(models).__name__}.")
        require(trace.steps[0] == 2, f"The drift is measured from step 2 on, but the first recorded step is {trace.steps[0]}.")
        assert isinstance(models, TwoLayer)
        start = models.first_layer[0]
        weights = jnp.max(jnp.linalg.norm(models.first_layer - start, axis=2), axis=1)
        biases = jnp.max(jnp.abs(models.b - models.b[0]), axis=1)
        taken = jnp.asarray(np.array(trace.steps) - 2, weights.dtype)
        bound = drift_bound(steps=taken, rate=self.rate, a_start=jnp.max(jnp.abs(models.a[0])))
        ratio = jnp.where(taken > 0, jnp.maximum(weights, biases) / jnp.where(taken > 0, bound, 1.0), 0.0)
        return {
            "weights": weights,
            "biases": biases,
            "bound": bound,
            "ratio": jnp.maximum.accumulate(ratio),
            "relative": weights / jnp.median(jnp.linalg.norm(start, axis=1)),
        }
