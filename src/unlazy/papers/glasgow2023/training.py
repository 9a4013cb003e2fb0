"""SGD on XOR watched step by step: the phase portrait, and growth beside theory and beside the reduced dynamics.

Reference: glasgow2023, Section 4, Lemmas 4.1 (C.1) and C.4.
"""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.core.errors import require
from unlazy.lab.power_laws import slope
from unlazy.lab.trials import Instrument
from unlazy.learners.base import Trace
from unlazy.learners.gradient import GradientDescent
from unlazy.learners.mean_field import mean_field_sgd
from unlazy.papers.glasgow2023.gradients import phase1_slope
from unlazy.papers.glasgow2023.probes import ErrorRate, Parts, Portrait, SignalHeavy, WellSpread, cluster_of, parts
from unlazy.papers.glasgow2023.reduced import Neurons, initial, margins, simulate
from unlazy.tasks.multi_index import MultiIndex, MultiIndexTask


class Training(eqx.Module):
    """One training run on XOR: d dimensions, p neurons, radius θ, step size η, minibatches of `ratio`·d."""

    d: int = eqx.field(static=True, kw_only=True)
    width: int = eqx.field(static=True, default=256, kw_only=True)
    radius: float = eqx.field(converter=float, default=0.3, kw_only=True)
    step: float = eqx.field(converter=float, default=0.4, kw_only=True)
    ratio: float = eqx.field(converter=float, default=4.0, kw_only=True)
    rotated: bool = eqx.field(static=True, default=False, kw_only=True)

    @property
    def family(self) -> MultiIndex:
        """The task."""
        return MultiIndex(d=self.d, rotated=self.rotated)

    @property
    def batch(self) -> int:
        """Examples a step."""
        return max(1, round(self.ratio * self.d))

    def learner(self, record: tuple[int, ...], *, freeze_second: bool = False) -> GradientDescent:
        """The learner that stops at the last of the recorded steps."""
        return mean_field_sgd(
            width=self.width,
            batch=self.batch,
            radius=self.radius,
            step=self.step,
            steps=record[-1],
            record=record,
            freeze_second=freeze_second,
        )

    def run(self, record: tuple[int, ...], *, key: PRNGKeyArray) -> tuple[MultiIndexTask, Trace]:
        """Draw the task and train."""
        key_task, key_learner = jax.random.split(key)
        return _run(self.family, self.learner(record), record[-1] * self.batch, key_task, key_learner)

    def work(self, steps: int) -> float:
        """Multiply-adds of so many steps."""
        return 2.0 * steps * self.batch * self.d * self.width


@eqx.filter_jit
def _run(family: MultiIndex, learner: GradientDescent, n: int, key_task: PRNGKeyArray, key_learner: PRNGKeyArray) -> Any:
    task = family.task(key=key_task)
    return task, learner.fit(task.sampler, n, key=key_learner)


@eqx.filter_jit
def looks_at(task: MultiIndexTask, trace: Trace, probes: tuple[Any, ...], key: PRNGKeyArray) -> dict[str, Any]:
    """What probes find in each model of a trace."""
    return {name: value for probe in probes for name, value in probe(task, trace, found={}, key=key).items()}


_path_margins = jax.jit(jax.vmap(margins))
all_parts = eqx.filter_jit(lambda task, trace: jax.vmap(lambda model: parts(task, model))(trace.models))


def strong_at_first(neurons: Parts, radius: float, d: int) -> np.ndarray:
    """Neurons that start with ‖w_sig‖ ≥ θ/√d."""
    return np.asarray(neurons.signal[0]) >= radius / math.sqrt(d)


class Phases(Instrument):
    """The phase portrait along training, with the strong neurons' growth beside theory and beside the reduced dynamics.

    `growth` is the median over strong neurons of log(‖w_sig‖ / its start); `growth_reduced` the same in the reduced dynamics from the same
    start, `growth_ratio` their quotient (1 at the start). `slope`: of `growth` in ηt while the median strong neuron has
    ‖w_sig‖ < ½‖w_perp‖; `slope_ratio`: over log(1 + ητ)/η. `strong`: of the four clusters the least share of neurons that start with
    ‖w_sig‖ ≥ θ/√(2d) towards it.
    """

    training: Training
    record: tuple[int, ...] = eqx.field(static=True, kw_only=True)
    test: int = eqx.field(static=True, default=4096, kw_only=True)

    def __check_init__(self) -> None:
        """Refuse a run without a start."""
        require(len(self.record) > 1 and self.record[0] == 0, "The recorded steps must begin at 0 and go on.")

    @property
    def steps(self) -> tuple[int, ...]:
        """The recorded steps."""
        return self.record

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Train, look, and simulate the reduced dynamics from the same start."""
        key_run, key_test, key_reduced = jax.random.split(key, 3)
        run, eta = self.training, self.training.step
        task, trace = run.run(self.record, key=key_run)
        found = dict(looks_at(task, trace, (Portrait(), SignalHeavy(), WellSpread(), ErrorRate(self.test)), key_test))
        full = all_parts(task, trace)
        strong = strong_at_first(full, run.radius, run.d)
        first: Any = trace.at(0)
        start = Neurons(first.first_layer @ task.features.T, full.rest[0], full.a[0])
        reduced = simulate(start, self.record[-1], eta, ratio=1 / run.ratio, d=float(run.d), key=key_reduced)
        growth = _median_growth(np.asarray(full.signal), strong)
        beside = _median_growth(np.asarray(reduced.signal)[list(self.record)], strong)
        small = np.median(np.asarray(full.signal / full.rest)[:, strong], axis=1) < 0.5
        until = len(small) if np.all(small) else max(2, int(np.argmin(small)))
        rate = slope(eta * np.array(self.record[:until], float), growth[:until])
        towards = np.mean(np.asarray(cluster_of(jax.tree.map(lambda leaf: leaf[0], full))) & _strong(full, run), axis=1)
        count = len(self.record)
        return found | {
            "growth": growth,
            "growth_reduced": beside,
            "growth_ratio": np.where(growth > 0, beside / np.where(growth > 0, growth, 1), 1.0),
            "slope": np.full(count, rate),
            "slope_ratio": np.full(count, rate / phase1_slope(eta)),
            "growth_theory": phase1_slope(eta) * eta * np.array(self.record, float),
            "strong": np.full(count, np.min(towards)),
            "margin_least_reduced": np.min(np.asarray(_path_margins(reduced)), axis=1)[list(self.record)],
            "time": eta * np.array(self.record, float),
        }

    @property
    def work(self) -> float:
        """Training and looks."""
        return self.training.work(self.record[-1]) + len(self.record) * self.test * self.training.d * self.training.width


def _strong(full: Parts, run: Training) -> np.ndarray:
    """Neurons that start with ‖w_sig‖ ≥ θ/√(2d), of which Lemma C.1 needs a tenth for each cluster."""
    return np.asarray(full.signal[0]) >= run.radius / math.sqrt(2 * run.d)


def _median_growth(signal: np.ndarray, strong: np.ndarray) -> np.ndarray:
    return np.median(np.log(signal[:, strong] / signal[0, strong]), axis=1)


_initial = eqx.filter_jit(lambda p, d, radius, key: initial(p, d, radius, key=key))


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
        """The recorded steps."""
        return self.record

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Simulate."""
        key_start, key_noise = jax.random.split(key)
        start = _initial(self.width, self.d, self.radius, key_start)
        path = simulate(start, self.record[-1], self.step, ratio=1 / self.ratio, d=self.d, key=key_noise)
        at, signal = list(self.record), np.asarray(path.signal)
        all_margins = np.asarray(_path_margins(path))[at]
        return {
            "growth": _median_growth(signal[at], signal[0] >= self.radius / math.sqrt(self.d)),
            "growth_theory": phase1_slope(self.step) * self.step * np.array(at, float),
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
