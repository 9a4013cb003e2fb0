"""Losses ℓ(score, label): elementwise ones, and softmax over several outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from unlazy.core.errors import require

Loss = Literal["hinge", "logistic", "squared", "softmax"]


def hinge(score: Float[Array, "*n"], y: Float[Array, "*#n"]) -> Float[Array, "*n"]:
    """Return max(0, 1 − y·score)."""
    return jax.nn.relu(1 - y * score)


def logistic(score: Float[Array, "*n"], y: Float[Array, "*#n"]) -> Float[Array, "*n"]:
    """Return log(1 + e^{−y·score})."""
    return jax.nn.softplus(-y * score)


def squared(score: Float[Array, "*n"], y: Float[Array, "*#n"]) -> Float[Array, "*n"]:
    """Return ½·(score − y)²."""
    return 0.5 * jnp.square(score - y)


LOSSES: dict[str, Callable[[Array, Array], Array]] = {
    "hinge": hinge,
    "logistic": logistic,
    "squared": squared,
}


def softmax(score: Float[Array, "n o"], y: Float[Array, "n o"]) -> Float[Array, "n o"]:
    """Return −y·log softmax(score) for one-hot y.

    Its sum over outputs is the cross entropy.
    """
    return -y * jax.nn.log_softmax(score, axis=1)


def example_losses(loss: str, score: Array, y: Array) -> Float[Array, " n"]:
    """Return the loss of each example, summed over outputs."""
    require(score.shape == y.shape, f"Scores have shape {score.shape}, but labels have {y.shape}.")
    if loss == "softmax":
        require(y.ndim == 2, "softmax needs one output per class.")
        return jnp.sum(softmax(score, y), axis=1)
    each = LOSSES[loss](score, y)
    return each if each.ndim == 1 else jnp.sum(each, axis=1)
