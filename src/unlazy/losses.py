"""Losses ℓ(score, label), elementwise. One place for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Loss = Literal["hinge", "logistic", "squared"]


def hinge(score: Float[Array, " n"], y: Float[Array, " n"]) -> Float[Array, " n"]:
    """max(0, 1 − y·score)."""
    return jax.nn.relu(1 - y * score)


def logistic(score: Float[Array, " n"], y: Float[Array, " n"]) -> Float[Array, " n"]:
    """log(1 + e^{−y·score})."""
    return jax.nn.softplus(-y * score)


def squared(score: Float[Array, " n"], y: Float[Array, " n"]) -> Float[Array, " n"]:
    """½·(score − y)²."""
    return 0.5 * jnp.square(score - y)


LOSSES: dict[str, Callable[[Float[Array, " n"], Float[Array, " n"]], Float[Array, " n"]]] = {
    "hinge": hinge,
    "logistic": logistic,
    "squared": squared,
}
