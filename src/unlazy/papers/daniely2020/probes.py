"""Probes: errors and margins by number of ones, the first step, drift of the weights, and regret.

Reference: daniely2020, Section 4.2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.errors import BadInput, require
from unlazy.core.linear_algebra import pseudo_inverse
from unlazy.learners.base import Trace
from unlazy.networks.base import Model
from unlazy.networks.two_layer import TwoLayer
from unlazy.probes.base import ModelProbe, Probe
from unlazy.tasks.base import Batch, Data, Population
from unlazy.tasks.equal_bits import CountedBitsTask


def _distribution(task: Data) -> Population:
    if task.population is None:
        raise BadInput("This probe requires data with an exact population.")
    result: Population = task.population()
    return result


class CountErrors(ModelProbe):
    """On `CountedBits`: `error` on the mixture and `uniform_error` on its uniform part, in percent;
    `margin`: minimum of y·g over all inputs, divided by the maximum of |g|; `scores`: g for each
    number of ones.
    """

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        if not isinstance(task, CountedBitsTask):
            raise BadInput(f"`CountErrors` requires `CountedBits`, got {type(task).__name__}.")
        population, uniform = task.population(), CountedBitsTask(0.0, task.d, task.k).population()
        g = model(population.x)
        wrong = (population.y * g <= 0).astype(g.dtype)
        return {
            "error": 100 * population.weight @ wrong,
            "uniform_error": 100 * uniform.weight @ wrong,
            "margin": jnp.min(population.y * g)
            / jnp.maximum(jnp.max(jnp.abs(g)), jnp.finfo(g.dtype).tiny),
            "least": jnp.min(population.y * g),
            "scores": g,
        }


class FullDecayStep(Probe):
    """`start`: maximum of |g| over all inputs before the first step. `w`, `u`: maximum deviation of
    the weights after it from u·E[x f σ'] and E[f σ], divided by the maximum of these. Requires
    recorded steps 0 and 1 and data that can be enumerated.
    """

    KEY = "ForgettingStep"

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        require(
            trace.steps[:2] == (0, 1),
            f"`FullDecayStep` requires recorded steps 0 and 1, got {trace.steps[:2]}.",
        )
        models, population = _two_layer(trace), _distribution(task)
        before, after = models.at(0), models.at(1)
        height = population.x @ before.first_layer.T + before.b[None, :]  # p m
        rising = jnp.where((height > 0) & (height < 6), 1.0, 0.0)
        signed = population.weight * population.y
        w = before.a[:, None] * ((signed[:, None] * rising).T @ population.x)
        u = signed @ before.hidden(population.x)
        measured = {
            "start": jnp.max(jnp.abs(before(population.x))),
            "w": jnp.max(jnp.abs(after.first_layer - w)) / jnp.max(jnp.abs(w)),
            "u": jnp.max(jnp.abs(after.a - u)) / jnp.max(jnp.abs(u)),
        }
        return {name: jnp.full(len(trace.steps), value) for name, value in measured.items()}


class Solved(Probe):
    """`best`: minimum error so far. `solved`: 1 if all inputs were labeled correctly at some
    recorded step so far, else 0. `flow`: η·t at the first such step (else at the current one),
    divided by the k²/√q of the theorem. Runs after `CountErrors`.
    """

    rate: float = eqx.field(converter=float)
    allowed: float = eqx.field(converter=float)

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        error = jnp.asarray(found["error"])
        right = error <= 0
        steps = jnp.asarray(trace.steps, jnp.result_type(float))
        ever = jnp.cumsum(right) > 0
        first = jnp.where(ever, steps[jnp.argmax(right)], steps)
        best = jax.lax.cummin(error)
        return {
            "best": best,
            "solved": ever.astype(steps.dtype),
            "flow": self.rate * first / self.allowed,
        }


def _two_layer(trace: Trace) -> TwoLayer:
    if not isinstance(trace.models, TwoLayer):
        raise BadInput("LayerDrift is measured of two-layer networks alone.")
    return trace.models


def _hidden(model: Model, population: Population) -> Float[Array, "p m"]:
    assert isinstance(model, TwoLayer)
    return model.hidden(population.x)


class LayerDrift(Probe):
    """Drift of the weights since step 1, divided by the bounds of Lemmas 13 and 14 at each recorded
    step t.

    `u`, `w`, `b`: maximum over neurons of |u_i|, ‖w_i − w_i⁽¹⁾‖, |b_i − b_i⁽¹⁾|, divided by their
    bounds. `loss`: maximum over inputs of the change of the hinge loss of g_{u*}, divided by the
    bound of Lemma 14; u* is the minimum-norm separator on the features after step 1. The first
    record must be after step 1, as step 0 of reduced training is.
    """

    n: int = eqx.field(static=True)
    k: int = eqx.field(static=True)
    rate: float = eqx.field(converter=float)
    penalty: float = eqx.field(converter=float)

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        models, population = _two_layer(trace), _distribution(task)
        t = jnp.asarray(trace.steps, jnp.result_type(float)) - trace.steps[0] + 1
        small, ratio = self.k / math.sqrt(self.n), self.n / self.k
        grown = self.rate * t
        moved = 6 * grown**2 + grown * small
        w = jnp.linalg.norm(models.first_layer - models.first_layer[:1], axis=2)
        features = trace.each(lambda model: _hidden(model, population))  # s p m
        chosen = pseudo_inverse(features[0]) @ population.y
        losses = jnp.maximum(1 - population.y[None, :] * (features @ chosen), 0.0)
        changed = jnp.max(jnp.abs(losses - losses[:1]), axis=1)
        size = jnp.linalg.norm(chosen) * jnp.sqrt(jnp.sum(chosen != 0))
        return {
            "u": jnp.max(jnp.abs(models.a), axis=1) / (6 * grown + small),
            "w": jnp.max(w, axis=1) / (moved + 2 * grown * self.penalty * ratio),
            "b": jnp.max(jnp.abs(models.b - models.b[:1]), axis=1) / moved,
            "loss": changed / (2 * size * (moved + grown * self.penalty * ratio)),
        }


class Regret(Probe):
    """Theorem 11 for the second layer on fixed features, from a trace that records every step.

    f(u) = E max(1 − y·g_u, 0) + λ‖u‖². `regret`: maximum over u* of [mean f(u_t) − f(u*)] /
    [‖u*‖²/(2ηT) + ‖u_1‖·mean‖∇f‖ + η·mean‖∇f‖²] at every number T of steps, at most 1 by the
    theorem. u* runs over multiples of the minimum-norm separator and of the last weights. `towards`
    = −1 (negative control): f has the opposite labels.
    """

    rate: float = eqx.field(converter=float)
    penalty: float = eqx.field(converter=float)
    towards: float = eqx.field(converter=float, default=1.0)

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        models, population = _two_layer(trace), _distribution(task)
        y = self.towards * population.y
        features = models.at(0).hidden(population.x)  # p m

        def f(u: Float[Array, " m"]) -> Float[Array, ""]:
            return population.weight @ jnp.maximum(
                1 - y * (features @ u), 0.0
            ) + self.penalty * jnp.sum(u**2)

        values, gradients = jax.vmap(jax.value_and_grad(f))(models.a)
        sizes = jnp.linalg.norm(gradients, axis=1)
        minimum_norm, last = pseudo_inverse(features) @ y, models.a[-1]
        references = jnp.concatenate(
            [factor * one[None] for one in (minimum_norm, last) for factor in (0.0, 0.3, 1.0, 3.0)]
        )
        T = jnp.arange(1.0, len(trace.steps) + 1)[None, :]

        def mean(series: Float[Array, " r"]) -> Float[Array, "1 r"]:
            return jnp.cumsum(series)[None, :] / T

        bound = jnp.sum(references**2, axis=1)[:, None] / (2 * self.rate * T)
        bound = bound + jnp.linalg.norm(models.a[0]) * mean(sizes) + self.rate * mean(sizes**2)
        return {
            "regret": jnp.max((mean(values) - jax.vmap(f)(references)[:, None]) / bound, axis=0)
        }
