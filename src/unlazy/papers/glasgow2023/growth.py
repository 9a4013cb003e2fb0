"""SGD on XOR along its steps: growth of the signal beside the reduced dynamics and of the margins, balance of layers, time to a small loss.

Reference: glasgow2023, Theorem 3.1, Section 4, Lemmas 4.1 (C.1), C.4, 4.4 (D.3) and B.13.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.learners.base import Trace
from unlazy.networks.base import HasNeurons
from unlazy.papers.glasgow2023.gradients import PHASE2_RATE, phase1_slope
from unlazy.papers.glasgow2023.probes import Parts, cluster_of, parts
from unlazy.papers.glasgow2023.reduced import Neurons, margins, simulate
from unlazy.probes.base import Probe
from unlazy.tasks.base import Data, Task


def along(task: Data, trace: Trace) -> Parts:
    """The parts of all neurons at all recorded steps."""
    return trace.each(lambda model: parts(task, model))


def median_growth(signal: Float[Array, "s p"], among: Bool[Array, " p"]) -> Float[Array, " s"]:
    """The median over the chosen neurons of log(‖w_sig‖ / its start)."""
    return median_of(jnp.log(signal / signal[0]), among)


def median_of(values: Float[Array, "s p"], among: Bool[Array, " p"]) -> Float[Array, " s"]:
    """The median over the chosen neurons."""
    return jnp.nanmedian(jnp.where(among, values, jnp.nan), axis=1)


def slope_until(x: Float[Array, " s"], y: Float[Array, " s"], until: Any) -> Float[Array, ""]:
    """The least-squares slope of the first `until` points, a number that may be known only when it runs."""
    weight = jnp.where(jnp.arange(len(x)) < until, 1.0, 0.0)
    x = x - jnp.sum(weight * x) / jnp.sum(weight)
    y = y - jnp.sum(weight * y) / jnp.sum(weight)
    return jnp.sum(weight * x * y) / jnp.sum(weight * x * x)


class SignalGrowth(Probe):
    """The strong neurons' growth beside theory and beside the reduced dynamics; neurons are strong that start with ‖w_sig‖ ≥ θ/√d.

    `growth` is the median over strong neurons of log(‖w_sig‖ / its start); `growth_reduced` the same in the reduced dynamics from the same
    start, `growth_ratio` their quotient (1 at the start). `slope`: of `growth` in ηt while the median strong neuron has
    ‖w_sig‖ < ½‖w_perp‖; `slope_ratio`: over log(1 + ητ)/η. `strong`: of the four clusters the least share of neurons that start with
    ‖w_sig‖ ≥ θ/√(2d) towards it, of which Lemma C.1 needs a tenth. `time` = ηt.

    `radius` = θ, `step` = η, `ratio` = examples of a minibatch over d.
    """

    radius: float = eqx.field(converter=float, kw_only=True)
    step: float = eqx.field(converter=float, kw_only=True)
    ratio: float = eqx.field(converter=float, kw_only=True)

    def __call__(self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray) -> dict[str, Array]:
        require(len(trace.steps) > 1 and trace.steps[0] == 0, "The recorded steps must begin at 0 and go on.")
        at, d = jnp.array(trace.steps), task.dimension
        time = self.step * at
        neurons, model = along(task, trace), trace.at(0)
        assert isinstance(task, Task) and isinstance(model, HasNeurons)  # or they would have no parts
        at_first: Parts = jax.tree.map(lambda leaf: leaf[0], neurons)
        start = Neurons(model.first_layer @ task.features.T, at_first.rest, at_first.a)
        reduced = simulate(start, trace.steps[-1], self.step, ratio=1 / self.ratio, d=float(d), key=key)
        strong = at_first.signal >= self.radius / math.sqrt(d)
        growth, beside = median_growth(neurons.signal, strong), median_growth(reduced.signal[at], strong)
        small = median_of(neurons.signal / neurons.rest, strong) < 0.5
        until = jnp.where(jnp.all(small), len(at), jnp.maximum(2, jnp.argmin(small)))
        rate, theory = slope_until(time, growth, until), phase1_slope(self.step)
        towards = jnp.mean(cluster_of(at_first) & (at_first.signal >= self.radius / math.sqrt(2 * d)), axis=1)
        ones = jnp.ones(len(at))
        return {
            "growth": growth,
            "growth_reduced": beside,
            "growth_ratio": jnp.where(growth > 0, beside / jnp.where(growth > 0, growth, 1), 1.0),
            "slope": rate * ones,
            "slope_ratio": rate / theory * ones,
            "growth_theory": theory * time,
            "strong": jnp.min(towards) * ones,
            "margin_least_reduced": jnp.min(jax.vmap(margins)(reduced), axis=1)[at],
            "time": time,
        }


class MarginGrowth(Probe):
    """Phase 2 step by step: growth of the least and greatest margin over the stated factors, averaged over the next `window` steps.

    `least_ratio` = (γ_min'/γ_min − 1)/(2ητ·g_max) should be at least 1 − o(1), `greatest_ratio` = (γ_max'/γ_max − 1)/(2ητ·g_min) at most
    1 + o(1), with τ = √2/4, g_max = 2/(1 + e^{γ_min}), g_min = 2/(1 + e^{γ_max}); NaN where the window does not end before the trace does.
    `spread` = γ_max/γ_min falls where margins balance. The margins are those that `Portrait` found, at consecutive steps.

    `step` = η.
    """

    step: float = eqx.field(converter=float, kw_only=True)
    window: int = eqx.field(static=True, default=5, kw_only=True)

    def __call__(self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray) -> dict[str, Array]:
        _require_consecutive(trace, self.window)
        least, greatest = found["margin_least"], found["margin_greatest"]
        return {
            "least_ratio": self._averaged(least),
            "greatest_ratio": self._averaged(greatest),
            "spread": greatest / least,
        }

    def _averaged(self, margin: Float[Array, " s"]) -> Float[Array, " s"]:
        slope = 2 * jax.nn.sigmoid(-margin[:-1])
        ratio = jnp.diff(margin) / margin[:-1] / (2 * self.step * PHASE2_RATE * slope)
        return jnp.pad(jnp.mean(_windows(ratio, self.window), axis=0), (0, self.window), constant_values=jnp.nan)


class LayerBalance(Probe):
    """Balance of the layers: at each step `imbalance` = mean of ‖w‖² − a² and `squared_norm` = mean of ‖w‖².

    Over the last `every` steps `excess` = greatest |a| − ‖w‖ of a neuron, relative to θ; `drift_ratio` = greatest increase of ‖w‖² − a² in
    a step over its bound 4η²a². They are NaN before so many steps were made.

    `radius` = θ, `step` = η.
    """

    radius: float = eqx.field(converter=float, kw_only=True)
    step: float = eqx.field(converter=float, kw_only=True)
    every: int = eqx.field(static=True, default=5, kw_only=True)

    def __call__(self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray) -> dict[str, Array]:
        _require_consecutive(trace, self.every)
        neurons = along(task, trace)
        square = neurons.squared_norm
        gap = square - neurons.a**2
        drift = jnp.max(jnp.diff(gap, axis=0) / (4 * self.step**2 * neurons.a[:-1] ** 2), axis=1)
        excess = jnp.max(jnp.abs(neurons.a) - jnp.sqrt(square), axis=1) / self.radius
        return {
            "excess": self._greatest(excess[1:]),
            "imbalance": jnp.mean(gap, axis=1),
            "drift_ratio": self._greatest(drift),
            "squared_norm": jnp.mean(square, axis=1),
        }

    def _greatest(self, values: Float[Array, " s-1"]) -> Float[Array, " s"]:
        """Of the last `every` of the values that belong to steps 1, 2, …"""
        return jnp.pad(jnp.max(_windows(values, self.every), axis=0), (self.every, 0), constant_values=jnp.nan)


def _require_consecutive(trace: Trace, window: int) -> None:
    first, last = trace.steps[0], trace.steps[-1]
    require(trace.steps == tuple(range(first, last + 1)), "Every step must be recorded.")
    require(0 < window <= last - first, f"A window of {window} steps does not fit into {last - first} of them.")


def _windows(values: Float[Array, " n"], size: int) -> Float[Array, "size k"]:
    """All runs of so many consecutive values, one a column."""
    return jnp.stack([values[i : len(values) - size + 1 + i] for i in range(size)])


class TimeToLoss(Probe):
    """`share` = η·T/log d, where T is the first recorded step with a `test_loss` of at most `target`; infinite until it is reached.

    `step` = η.
    """

    target: float = eqx.field(converter=float)
    step: float = eqx.field(converter=float, kw_only=True)

    def __call__(self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray) -> dict[str, Array]:
        reached = jnp.where(found["test_loss"] <= self.target, jnp.array(trace.steps, jnp.result_type(float)), jnp.inf)
        return {"share": self.step * jax.lax.cummin(reached) / math.log(task.dimension)}
