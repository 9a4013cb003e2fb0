"""
Compute a Fourier spectrum exactly
==================================

Compute the Fourier weights and influences of the majority of five bits by the Walsh-Hadamard
transform.
"""

import jax.numpy as jnp
import numpy as np

from unlazy.theory.walsh import BooleanFunction

majority = BooleanFunction.of(lambda z: jnp.sign(jnp.sum(z, axis=1)), 5)
by_degree = np.round(majority.weights, 4)
print("weight by degree:", by_degree)
print("influences:", np.round(majority.influences, 4))

# %%
# All weight is on odd degrees, most of it on degree 1: a linear function is a good approximation.

import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(4, 2.6), layout="constrained")
axes.bar(range(6), by_degree)
axes.set(xlabel="degree", ylabel="Fourier weight")
