"""Measurements on parities with two parts (`tasks/equal_bits.py`).

Errors and weights are measured per part, and the score by the number of ones. A linear function
solves the all-equal part; no fixed embedding of moderate size solves the uniform part. Hence the
total error alone is not informative.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.errors import BadInput, require
from unlazy.core.metrics import right
from unlazy.core.random import rademacher
from unlazy.learners.base import Trace
from unlazy.networks import HasNeurons, Model
from unlazy.probes.base import ModelProbe, Probe
from unlazy.tasks.base import Batch, Data
from unlazy.tasks.equal_bits import EqualBitsTask


def _parity(task: Data) -> EqualBitsTask:
    if not isinstance(task, EqualBitsTask):
        raise BadInput(f"This probe needs a task of EqualBits, got {type(task).__name__}.")
    return task


def _require_positive(count: int, name: str) -> None:
    require(count > 0, f"The number of {name} must be positive, got {count}.")


class PartErrors(Probe):
    """Fractions of wrong labels: `uniform_error`, `structured_error` and `whole_error`.

    The first two use `test` fresh examples of their part. The third is their mean, weighted as in
    the task, and is zero only if no label on either part is wrong. A tie counts as half wrong.
    """

    test: int = eqx.field(static=True, default=4000)

    def __check_init__(self) -> None:
        _require_positive(self.test, "test examples")

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        parity = _parity(task)
        keys = jax.random.split(key)
        errors = []
        for fraction, key_part in zip((0.0, 1.0), keys, strict=True):
            x, y = _draw_part(dataclasses.replace(parity, structured=fraction), self.test, key_part)
            errors.append(_wrong(trace.models.scores(x), y))
        uniform, structured = errors
        whole = (1 - parity.structured) * uniform + parity.structured * structured
        return {"uniform_error": uniform, "structured_error": structured, "whole_error": whole}


@eqx.filter_jit
def _draw_part(task: EqualBitsTask, n: int, key: PRNGKeyArray) -> Batch:
    return task.draw_parts(n, key)[0]


@eqx.filter_jit
def _wrong(scores: Float[Array, "s n"], y: Float[Array, " n"]) -> Float[Array, " s"]:
    return jax.vmap(lambda score: jnp.mean(1 - right(score, y)))(scores)


class PartWeights(ModelProbe):
    """Weights of neurons: `neuron_on`, mean on A, and `neuron_off`, root mean square off A.

    Both are given for up to `count` neurons spaced evenly over the layer. `separation`: median over
    nonzero neurons of |mean on A| divided by the root mean square off A. It is about 1/√k for
    i.i.d. weights.
    """

    count: int = eqx.field(static=True, default=400)

    def __check_init__(self) -> None:
        _require_positive(self.count, "neurons")

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        parity = _parity(task)
        require(
            parity.k < parity.d,
            f"All {parity.d} bits are in the parity, so no weights are outside of it.",
        )
        if not isinstance(model, HasNeurons):
            raise BadInput(f"This probe needs a network with neurons, got {type(model).__name__}.")
        w = model.first_layer
        on = jnp.mean(w[:, parity.where], axis=1)
        outside = w.at[:, parity.where].set(0)
        # Squares of weights underflow after a very small step.
        top = jnp.maximum(jnp.max(jnp.abs(outside), axis=1, keepdims=True), jnp.finfo(w.dtype).tiny)
        off = top[:, 0] * jnp.sqrt(
            jnp.sum(jnp.square(outside / top), axis=1) / (parity.d - parity.k)
        )
        ratio = jnp.where(
            jnp.any(w != 0, axis=1),
            jnp.abs(on) / jnp.maximum(off, jnp.finfo(w.dtype).tiny),
            jnp.nan,
        )
        every = -(-len(w) // self.count)
        return {
            "neuron_on": on[::every],
            "neuron_off": off[::every],
            "separation": jnp.nan_to_num(jnp.nanmedian(ratio)),
        }


class ScoreByOnes(Probe):
    """Score as a function of the number of ones among the bits of A; a zigzag for a parity.

    `ones_mean`, `ones_low`, `ones_high`: mean, first and ninth decile of the score for 0, 1, …, k
    ones, over `examples` inputs each with all other bits uniform. `ones_right`: fraction of these
    counts at which the mean score has the sign of the parity.
    """

    examples: int = eqx.field(static=True, default=200)

    def __check_init__(self) -> None:
        _require_positive(self.examples, "inputs")

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        parity = _parity(task)
        x = _with_ones(parity, self.examples, key)
        scores = jnp.asarray(trace.models.scores(x)).reshape(-1, parity.k + 1, self.examples)
        mean = jnp.mean(scores, axis=2)
        low, high = jnp.quantile(scores, jnp.asarray([0.1, 0.9], scores.dtype), axis=2)
        parities = jnp.where((parity.k - jnp.arange(parity.k + 1)) % 2 == 0, 1.0, -1.0)
        agree = jax.vmap(lambda score: jnp.mean(right(score, parities)))(mean)
        return {"ones_mean": mean, "ones_low": low, "ones_high": high, "ones_right": agree}


@eqx.filter_jit
def _with_ones(task: EqualBitsTask, examples: int, key: PRNGKeyArray) -> Float[Array, "n d"]:
    """Return, per number of ones, inputs with that many ones at random positions in A."""
    key_bits, key_positions = jax.random.split(key)
    total = (task.k + 1) * examples
    z = rademacher(key_bits, (total, task.d))
    rank = jnp.argsort(jax.random.uniform(key_positions, (total, task.k)), axis=1)
    ones = jnp.repeat(jnp.arange(task.k + 1), examples)
    inside = jnp.where(rank < ones[:, None], 1.0, -1.0)
    return z.at[:, task.where].set(inside) / math.sqrt(task.d)
