"""
Own measurements along training
===============================

A probe looks at each recorded model. This one measures how long the neurons of a network are while
it learns the XOR of two out of twelve signs.
"""

import jax.numpy as jnp
import matplotlib.pyplot as plt

from unlazy import LocalEngine, ModelProbe, MultiIndex, Performance, Trial
from unlazy.learners.mean_field import mean_field_sgd


class Lengths(ModelProbe):
    """The mean length of all neurons."""

    def look(self, task, model, *, seen, key):
        return {"length": jnp.mean(jnp.linalg.norm(model.first_layer, axis=1))}


learner = mean_field_sgd(
    width=64, batch=48, radius=0.1, step=0.2, steps=120, record=tuple(range(0, 120, 4))
)
(record,) = LocalEngine().run(
    [Trial(MultiIndex(d=12), learner, 48 * 120, 10, (Performance(2000), Lengths()))]
)

# %%
# First neurons turn, then they grow: the two phases of glasgow2023.

figure, axes = plt.subplots(figsize=(5, 3), layout="constrained")
axes.plot(record.steps, record.measurements["test_accuracy"], label="test accuracy (%)")
axes.plot(
    record.steps,
    [20 * each for each in record.measurements["length"]],
    label="mean length of a neuron, times 20",
)
axes.set(xlabel="gradient step")
axes.legend()
