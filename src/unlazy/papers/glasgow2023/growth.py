"""Probes along SGD on XOR: growth of signal and margins, balance of layers, time to small loss.

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
    """Return the components of all neurons at all recorded steps."""
    result: Parts = trace.each(lambda model: parts(task, model))
    return result


def median_growth(signal: Float[Array, "s p"], among: Bool[Array, " p"]) -> Float[Array, " s"]:
    """Return the median over selected neurons of log(‖w_sig‖ / its initial value)."""
    return median_of(jnp.log(signal / signal[:1]), among)


def median_of(values: Float[Array, "s p"], among: Bool[Array, " p"]) -> Float[Array, " s"]:
    """Return the median over selected neurons."""
    return jnp.nanmedian(jnp.where(among, values, jnp.nan), axis=1)


def slope_until(x: Float[Array, " s"], y: Float[Array, " s"], until: Any) -> Float[Array, ""]:
    """Return the least-squares slope of the first `until` points; `until` may be traced."""
    weight = jnp.where(jnp.arange(len(x)) < until, 1.0, 0.0)
    x = x - jnp.sum(weight * x) / jnp.sum(weight)
    y = y - jnp.sum(weight * y) / jnp.sum(weight)
    return jnp.sum(weight * x * y) / jnp.sum(weight * x * x)


class SignalGrowth(Probe):
    """Growth of strong neurons, ‖w_sig‖ ≥ θ/√d initially, versus theory and reduced dynamics.

    `growth`: median over strong neurons of log(‖w_sig‖ / its initial value). `growth_reduced`: the
    same in the reduced dynamics from the same initialization. `growth_ratio`: `growth_reduced` ÷
    `growth` (1 initially). `slope`: slope of `growth` in ηt while the median strong neuron has
    ‖w_sig‖ < ½‖w_perp‖; `slope_ratio`: `slope` ÷ (log(1 + ητ)/η). `strong`: minimum over clusters
    of the fraction of neurons with initial ‖w_sig‖ ≥ θ/√(2d) toward it. `time` = ηt.

    `radius` = θ, `step` = η, `ratio` = m/d.
    """

    radius: float = eqx.field(converter=float, kw_only=True)
    step: float = eqx.field(converter=float, kw_only=True)
    ratio: float = eqx.field(converter=float, kw_only=True)

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        require(
            len(trace.steps) > 1 and trace.steps[0] == 0,
            "At least two steps must be recorded, and the first must be 0.",
        )
        at, d = jnp.array(trace.steps), task.dimension
        time = self.step * at
        neurons, model = along(task, trace), trace.at(0)
        # `parts` requires both.
        assert isinstance(task, Task) and isinstance(model, HasNeurons)
        at_first: Parts = jax.tree.map(lambda leaf: leaf[0], neurons)
        initial = Neurons(model.first_layer @ task.features.T, at_first.rest, at_first.a)
        reduced = simulate(
            initial, trace.steps[-1], self.step, ratio=1 / self.ratio, d=float(d), key=key
        )
        strong = at_first.signal >= self.radius / math.sqrt(d)
        growth, growth_reduced = (
            median_growth(neurons.signal, strong),
            median_growth(reduced.signal[at], strong),
        )
        small = median_of(neurons.signal / neurons.rest, strong) < 0.5
        until = jnp.where(jnp.all(small), len(at), jnp.maximum(2, jnp.argmin(small)))
        rate, theory = slope_until(time, growth, until), phase1_slope(self.step)
        large = at_first.signal >= self.radius / math.sqrt(2 * d)
        fractions = jnp.mean(cluster_of(at_first) & large[None, :], axis=1)
        ones = jnp.ones(len(at))
        return {
            "growth": growth,
            "growth_reduced": growth_reduced,
            "growth_ratio": jnp.where(
                growth > 0, growth_reduced / jnp.where(growth > 0, growth, 1), 1.0
            ),
            "slope": rate * ones,
            "slope_ratio": rate / theory * ones,
            "growth_theory": theory * time,
            "strong": jnp.min(fractions) * ones,
            "margin_least_reduced": jnp.min(jax.vmap(margins)(reduced), axis=1)[at],
            "time": time,
        }


class MarginGrowth(Probe):
    """Growth of minimum and maximum margin in phase 2, averaged over the next `window` steps.

    `least_ratio` = (γ_min'/γ_min − 1)/(2ητ·g_max), which should be at least 1 − o(1);
    `greatest_ratio` = (γ_max'/γ_max − 1)/(2ητ·g_min), at most 1 + o(1); τ = √2/4, g_max = 2/(1 +
    e^{γ_min}), g_min = 2/(1 + e^{γ_max}). `zeta_rise`: increase of log ζ per step ÷ 10ηζH, which
    the lemma bounds by 1; ζ is `log10_zeta_plain` of `SignalHeavy`. All are NaN if the window ends
    after the trace. `spread` = γ_max/γ_min. `least_ratio_0`, …: the ratios and the rise at the
    numbers of steps after the first in `looks`. `zeta_rise_most`: maximum rise. `zeta_met_least`:
    minimum `zeta_met`. Margins are those of `Portrait`, at consecutive steps. `step` = η.
    """

    step: float = eqx.field(converter=float, kw_only=True)
    window: int = eqx.field(static=True, default=5, kw_only=True)
    looks: tuple[int, ...] = eqx.field(static=True, default=(), kw_only=True)

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        _require_consecutive(trace, self.window)
        minimum, maximum = found["margin_least"], found["margin_greatest"]
        series = {
            "least_ratio": self._averaged(minimum),
            "greatest_ratio": self._averaged(maximum),
            "zeta_rise": self._rise(math.log(10) * found["log10_zeta_plain"], found["H"]),
        }
        ones, last = jnp.ones(len(minimum)), len(minimum) - 1 - self.window
        selected = {
            f"{name}_{look}": values[min(look, last)] * ones
            for name, values in series.items()
            for look in self.looks
        }
        extremes = {
            "zeta_met_least": jnp.min(found["zeta_met"]) * ones,
            "zeta_rise_most": jnp.nanmax(series["zeta_rise"]) * ones,
        }
        return series | selected | extremes | {"spread": maximum / minimum}

    def _rise(self, zeta: Float[Array, " s"], H: Float[Array, " s"]) -> Float[Array, " s"]:
        """Return the rise from log ζ."""
        allowed = 10 * self.step * jnp.exp(zeta) * H
        rise = (zeta[self.window :] - zeta[: -self.window]) / self.window / allowed[: -self.window]
        return jnp.pad(rise, (0, self.window), constant_values=jnp.nan)

    def _averaged(self, margin: Float[Array, " s"]) -> Float[Array, " s"]:
        g = 2 * jax.nn.sigmoid(-margin[:-1])
        ratio = jnp.diff(margin) / margin[:-1] / (2 * self.step * PHASE2_RATE * g)
        return jnp.pad(
            jnp.mean(_windows(ratio, self.window), axis=0),
            (0, self.window),
            constant_values=jnp.nan,
        )


class LayerBalance(Probe):
    """Balance of the layers: maxima over all neurons and all steps so far.

    `excess`: (|a| − ‖w‖)/θ after a step. `drift_ratio`: increase of ‖w‖² − a² in a step ÷ its bound
    4η²a². Both are NaN before the first step. `imbalance`: E[‖w‖² − a²].

    `radius` = θ, `step` = η.
    """

    radius: float = eqx.field(converter=float, kw_only=True)
    step: float = eqx.field(converter=float, kw_only=True)

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        _require_consecutive(trace, 1)
        neurons = along(task, trace)
        square = neurons.squared_norm
        gap = square - neurons.a**2
        drift = jnp.max(jnp.diff(gap, axis=0) / (4 * self.step**2 * neurons.a[:-1] ** 2), axis=1)
        excess = jnp.max(jnp.abs(neurons.a) - jnp.sqrt(square), axis=1)[1:] / self.radius

        def so_far(values: Float[Array, " s"]) -> Float[Array, " s+1"]:
            return jnp.pad(jax.lax.cummax(values), (1, 0), constant_values=jnp.nan)

        return {
            "excess": so_far(excess),
            "drift_ratio": so_far(drift),
            "imbalance": jnp.mean(gap, axis=1),
        }


class EndOfPhaseOne(Probe):
    """Conclusion of Lemma C.1 at T₁, the last recorded step with E‖a·w‖ ≤ 1; constant in time.

    `end_share`: minimum over clusters of the fraction of neurons with ‖w_sig‖ ≥ θ·log^c d toward
    it. `end_rest` = E‖w_perp + w_opp‖²/θ². `end_size` = E‖a·w‖. `end_gap` = (E‖w‖² − E a²)/√η.
    `end_excess`: maximum (|a| − ‖w‖)/θ. `end_time` = η·T₁/log d.

    `radius` = θ, `step` = η, `power` = c.
    """

    radius: float = eqx.field(converter=float, kw_only=True)
    step: float = eqx.field(converter=float, kw_only=True)
    power: float = eqx.field(converter=float, default=1.0, kw_only=True)

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        neurons, d = along(task, trace), task.dimension
        norm = jnp.sqrt(neurons.squared_norm)
        size = jnp.mean(jnp.abs(neurons.a) * norm, axis=1)
        end = len(size) - 1 - jnp.argmax((size <= 1)[::-1])
        at: Parts = jax.tree.map(lambda leaf: leaf[end], neurons)
        large = at.signal >= self.radius * math.log(d) ** self.power
        numbers = {
            "end_share": jnp.min(jnp.mean(cluster_of(at) & large[None, :], axis=1)),
            "end_rest": jnp.mean(at.opposite**2 + at.rest**2) / self.radius**2,
            "end_size": size[end],
            "end_gap": jnp.mean(at.squared_norm - at.a**2) / jnp.sqrt(self.step),
            "end_excess": jnp.max(jnp.abs(at.a) - norm[end]) / self.radius,
            "end_time": self.step * jnp.array(trace.steps)[end] / math.log(d),
        }
        return {name: value * jnp.ones(len(size)) for name, value in numbers.items()}


class GrowthComparison(Probe):
    """Linear versus exponential growth of the neurons of S (Remark 4.3).

    S: neurons with ‖w_perp‖ + ‖w_opp‖ ≤ ¼·‖w_sig‖ at step `since`. s = Σ ητ·g_μ, summed from there
    for the neuron's own cluster. `linear_error`, `exponential_error`: root mean square over S and
    later steps of log‖w_sig‖ − log(‖w_sig‖₀ + |a|₀·s) and of log‖w_sig‖ − log‖w_sig‖₀ − s; nothing
    is fitted. `preference` = log(exponential_error / linear_error). `clock`: maximum s. `members` =
    |S|/p. `outside_growth`: log of the growth factor of E[1(w ∉ S)·‖w‖²]/γ̃_min from `since` to the
    last step. `step` = η.
    """

    KEY = "GrowthLaw"

    since: int = eqx.field(static=True)
    step: float = eqx.field(converter=float, kw_only=True)

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        _require_consecutive(trace, 1)
        start = trace.steps.index(self.since)
        neurons: Parts = jax.tree.map(lambda leaf: leaf[start:], along(task, trace))
        margins = jnp.stack([found[f"margin_{i + 1}"] for i in range(4)], axis=1)[start:]  # s 4
        toward = cluster_of(jax.tree.map(lambda leaf: leaf[0], neurons))
        g = 2 * jax.nn.sigmoid(-margins) @ toward.astype(margins.dtype)  # s p
        clock = jnp.cumsum(self.step * PHASE2_RATE * g, axis=0)[:-1]
        heavy = neurons.rest[:1] + neurons.opposite[:1] <= neurons.signal[:1] / 4  # 1 p
        y, y0, a0 = jnp.log(neurons.signal[1:]), neurons.signal[:1], jnp.abs(neurons.a[:1])

        def error(predicted: Float[Array, "s p"]) -> Float[Array, ""]:
            return jnp.sqrt(
                jnp.sum(jnp.where(heavy, (y - predicted) ** 2, 0)) / (jnp.sum(heavy) * len(y))
            )

        linear, exponential = error(jnp.log(y0 + a0 * clock)), error(jnp.log(y0) + clock)
        own = jnp.abs(neurons.a) * math.sqrt(2) * neurons.signal * heavy
        min_margin = jnp.min(jnp.mean(own[:, None] * toward[None], axis=2), axis=1)
        outside = jnp.mean(neurons.squared_norm * ~heavy, axis=1) / min_margin
        numbers = {
            "linear_error": linear,
            "exponential_error": exponential,
            "preference": jnp.log(exponential / linear),
            "clock": jnp.max(clock),
            "members": jnp.mean(heavy),
            "outside_growth": jnp.log(outside[-1] / outside[0]),
        }
        return {name: value * jnp.ones(len(trace.steps)) for name, value in numbers.items()}


def _require_consecutive(trace: Trace, window: int) -> None:
    first, last = trace.steps[0], trace.steps[-1]
    require(trace.steps == tuple(range(first, last + 1)), "Every step must be recorded.")
    require(
        0 < window <= last - first,
        f"`window` must be between 1 and {last - first} steps, got {window}.",
    )


def _windows(values: Float[Array, " n"], size: int) -> Float[Array, "size k"]:
    """Return all windows of `size` consecutive values, one per column."""
    return jnp.stack([values[i : len(values) - size + 1 + i] for i in range(size)])


class TimeToLoss(Probe):
    """Normalized training time to a target loss.

    `share` = η·T/log d, with T the first recorded step with `test_loss` ≤ `target`; infinite before
    T. `step` = η.
    """

    target: float = eqx.field(converter=float)
    step: float = eqx.field(converter=float, kw_only=True)

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        reached = jnp.where(
            found["test_loss"] <= self.target,
            jnp.array(trace.steps, jnp.result_type(float)),
            jnp.inf,
        )
        return {"share": self.step * jax.lax.cummin(reached) / math.log(task.dimension)}
