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
# Norms grow late: neurons first align (not drawn here), then grow, the two phases of glasgow2023.

figure, (above, below) = plt.subplots(2, sharex=True, figsize=(5, 4), layout="constrained")
above.plot(record.steps, record.measurements["test_accuracy"])
above.set(ylabel="test accuracy (%)")
below.plot(record.steps, record.measurements["norm"])
below.set(xlabel="gradient step", ylabel="mean weight norm")
