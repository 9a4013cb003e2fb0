"""What is computed of XOR without training: the task counted, a step beside its formulas, exact gradients, the reduced dynamics.

Reference: glasgow2023, Sections 2.1, 2.2, Lemmas 4.1 (C.1) and C.4.
"""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.core.threefry import new_key
from unlazy.lab.trials import Instrument
from unlazy.learners.base import keys_of
from unlazy.learners.mean_field import mean_field_sgd, second_layer
from unlazy.networks.inits import SphereInit
from unlazy.papers.glasgow2023.gradients import PHASE1_RATE, phase1_slope, population_gradient
from unlazy.papers.glasgow2023.growth import median_growth
from unlazy.papers.glasgow2023.probes import parts
from unlazy.papers.glasgow2023.reduced import initial, margins, simulate
from unlazy.tasks.base import Batch, Sampler, draw
from unlazy.tasks.multi_index import MultiIndex


def _weights(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """Both layers in double precision, the second in mean-field scaling."""
    return np.asarray(model.first_layer).astype(np.float64), np.asarray(second_layer(model)).astype(np.float64)


def _whole_cube(family: MultiIndex, key: PRNGKeyArray) -> tuple[np.ndarray, np.ndarray]:
    law = family.task(key=key).exact_law
    assert law is not None
    population = law()
    return np.asarray(population.x, np.float64), np.asarray(population.y, np.float64)


class TaskFacts(Instrument):
    """The task counted over the whole cube: what the label correlates with, how often it is +1, its leap and information exponent."""

    d: int = eqx.field(static=True, default=10)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Count over the law that the task offers."""
        family = MultiIndex(d=self.d, where=(0, 1))
        x, y = _whole_cube(family, key)
        pairs = np.array([np.mean(y * x[:, i] * x[:, j]) for i in range(self.d) for j in range(i)])
        return {
            "mean_label": np.mean(y),
            "single_correlation": np.max(np.abs(y @ x)) / len(y),
            "pair_correlation": np.max(np.abs(pairs)),
            "correlated_pairs": float(np.sum(np.abs(pairs) > 0)),
            "leap": float(family.leap),
            "information_exponent": float(family.information_exponent),
        }

    @property
    def work(self) -> float:
        """All points times all pairs."""
        return 2.0**self.d * self.d**2


class _Always(eqx.Module):
    """A draw whose examples are known beforehand: the same at every step."""

    batch: Batch

    def __call__(self, n: int, key: PRNGKeyArray) -> Batch:
        return self.batch


class LiteralStep(Instrument):
    """One step of the learner beside the formulas of Section 2.2 written out; `difference` is relative to the step's length.

    `norm_error` and `balance_error` say how far the initial network is from ‖w‖ = θ and |a| = ‖w‖.
    """

    d: int = eqx.field(static=True, default=24)
    width: int = eqx.field(static=True, default=16)
    batch: int = eqx.field(static=True, default=64)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        eta, theta = 0.5, 0.3
        learner = mean_field_sgd(width=self.width, batch=self.batch, radius=theta, step=eta, record=(0, 1), steps=2)
        task = MultiIndex(d=self.d).task(key=new_key(0))
        x, y = task.draw(self.batch, keys_of(key)[1])
        trace = learner.fit(Sampler(_Always(Batch(x, y)), self.d), 2 * self.batch, key=key)
        before, after = trace.at(0), trace.at(1)
        (w, a), (moved_w, moved_a) = _weights(before), _weights(after)
        points, labels = np.asarray(x), np.asarray(y)
        z = points @ w.T
        f = np.mean(a * np.maximum(z, 0), axis=1)
        slope = -2 * labels * np.exp(-labels * f) / (1 + np.exp(-labels * f))
        dw = -eta * (a[:, None] * ((slope[:, None] * (z > 0)).T @ points)) / self.batch
        da = -eta * (slope @ np.maximum(z, 0)) / self.batch
        moved_w, moved_a = moved_w - w, moved_a - a
        difference = np.sqrt(np.sum((moved_w - dw) ** 2) + np.sum((moved_a - da) ** 2)) / np.sqrt(np.sum(dw**2) + np.sum(da**2))
        norms = np.linalg.norm(w, axis=1)
        return {
            "difference": difference,
            "norm_error": np.max(np.abs(norms / theta - 1)),
            "balance_error": np.max(np.abs(np.abs(a) / norms - 1)),
        }

    @property
    def work(self) -> float:
        """A step."""
        return 4.0 * self.batch * self.d * self.width


class PopulationGradients(Instrument):
    """Exact gradients of L₀ for random neurons, in each of `dimensions`.

    `error`: greatest difference to a reference over the neurons, relative to |a|·‖w‖; the reference is all 2^d points where d ≤ 12,
    otherwise `points` drawn ones.
    `rate_ratio`: median over neurons of −⟨w_sig, ∇⟩/‖w_sig‖², over its limit τ·|a|/‖w‖ with τ = 1/√(2π).
    """

    dimensions: tuple[int, ...] = eqx.field(static=True, default=(8, 12, 32, 256))
    neurons: int = eqx.field(static=True, default=4)
    points: int = eqx.field(static=True, default=100_000)

    @property
    def steps(self) -> tuple[int, ...]:
        return self.dimensions

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        error, rate = [], []
        for d in self.dimensions:
            key_net, key_points = jax.random.split(jax.random.fold_in(key, d))
            family = MultiIndex(d=d, where=(0, 1))
            task = family.task(key=key_net)
            net = SphereInit(p=self.neurons, radius=1.0)(d, key=key_net)
            x, y = _whole_cube(family, key_net) if d <= 12 else map(np.asarray, draw(task.sampler, self.points, key_points))
            w, a = _weights(net)
            split = parts(task, net)
            worst, rates = 0.0, []
            for j in range(self.neurons):
                z = x @ w[j]
                reference = a[j] * np.mean((y * ((z > 0) + 0.5 * (z == 0)))[:, None] * x, axis=0)  # −∇_w L₀
                signal, opposite = float(split.signal[j]), float(split.opposite[j])
                exact = population_gradient(signal, opposite, w[j, 2:], a[j], coordinates=d <= 32)
                own = np.array([w[j, 0] - w[j, 1], w[j, 1] - w[j, 0]]) / 2 if a[j] > 0 else np.full(2, (w[j, 0] + w[j, 1]) / 2)
                terms = [exact.signal - own @ reference[:2], exact.opposite - (w[j, :2] - own) @ reference[:2]]
                terms.append(exact.rest - w[j, 2:] @ reference[2:])
                if d <= 32:
                    terms.extend(exact.coordinates - w[j, 2:] * reference[2:])
                worst = max(worst, float(np.max(np.abs(terms))) / abs(a[j]))
                rates.append(exact.signal / signal**2 / (PHASE1_RATE * abs(a[j])))
            error.append(worst)
            rate.append(float(np.median(rates)))
        return {"error": np.array(error), "rate_ratio": np.array(rate)}

    @property
    def work(self) -> float:
        """The reference."""
        return sum(2.0 * self.neurons * min(2**d, self.points) * d for d in self.dimensions)


_initial = eqx.filter_jit(lambda p, d, radius, key: initial(p, d, radius, key=key))
_path_margins = jax.jit(jax.vmap(margins))
_median_growth = jax.jit(median_growth)


class ReducedPhases(Instrument):
    """The reduced dynamics alone, in as many dimensions as one likes: `growth` of strong neurons, parts and margins at the recorded steps.

    `share` = η·t/log d is the time in the units of Theorem 3.1.
    """

    d: float = eqx.field(converter=float, kw_only=True)
    record: tuple[int, ...] = eqx.field(static=True, kw_only=True)
    width: int = eqx.field(static=True, default=1000, kw_only=True)
    radius: float = eqx.field(converter=float, default=0.3, kw_only=True)
    step: float = eqx.field(converter=float, default=0.4, kw_only=True)
    ratio: float = eqx.field(converter=float, default=4.0, kw_only=True)

    @property
    def steps(self) -> tuple[int, ...]:
        return self.record

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        key_start, key_noise = jax.random.split(key)
        start = _initial(self.width, self.d, self.radius, key_start)
        path = simulate(start, self.record[-1], self.step, ratio=1 / self.ratio, d=self.d, key=key_noise)
        at, signal = list(self.record), np.asarray(path.signal)
        all_margins = np.asarray(_path_margins(path))[at]
        return {
            "growth": np.asarray(_median_growth(signal[at], signal[0] >= self.radius / math.sqrt(self.d))),
            "growth_theory": float(phase1_slope(self.step)) * self.step * np.array(at, float),
            "signal": np.mean(signal[at], axis=1),
            "opposite": np.mean(np.asarray(path.opposite)[at], axis=1),
            "rest": np.mean(np.asarray(path.rest)[at], axis=1),
            "margin_least": np.min(all_margins, axis=1),
            "margin_greatest": np.max(all_margins, axis=1),
            "share": self.step * np.array(at, float) / math.log(self.d),
        }

    @property
    def work(self) -> float:
        """Some hundred operations a neuron and step."""
        return 500.0 * self.width * self.record[-1]
