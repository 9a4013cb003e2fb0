"""
Write a probe
=============

Measure a quantity of your own during training. This probe computes the mean norm of the neurons
while a network learns the XOR of two out of twelve coordinates.
"""

import jax.numpy as jnp
import matplotlib.pyplot as plt

from unlazy import LocalEngine, ModelProbe, MultiIndex, Performance, Trial
from unlazy.learners.mean_field import mean_field_sgd


class WeightNorms(ModelProbe):
    """Mean norm of the weight vectors."""

    def look(self, task, model, *, seen, key):
        return {"norm": jnp.mean(jnp.linalg.norm(model.first_layer, axis=1))}


learner = mean_field_sgd(
    width=64, batch=48, radius=0.1, step=0.2, steps=120, record=tuple(range(0, 120, 4))
)
(record,) = LocalEngine().run(
    [Trial(MultiIndex(d=12), learner, 48 * 120, 10, (Performance(2000), WeightNorms()))]
)

# %%
# Neurons first align, then grow: the two phases of glasgow2023.

figure, axes = plt.subplots(figsize=(5, 3), layout="constrained")
axes.plot(record.steps, record.measurements["test_accuracy"], label="test accuracy (%)")
axes.plot(
    record.steps,
    [20 * norm for norm in record.measurements["norm"]],
    label="mean weight norm × 20",
)
axes.set(xlabel="gradient step")
axes.legend()
