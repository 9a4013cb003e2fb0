"""SGD on XOR watched step by step: phases, growth beside the reduced dynamics, growth of the margins, balance of the layers, time to learn.

Reference: glasgow2023, Theorem 3.1, Lemmas 4.1 (C.1), 4.4 (D.3), B.13.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.errors import require
from unlazy.experiments.exponents import slope
from unlazy.lab.trials import Experiment
from unlazy.learners.base import Trace
from unlazy.learners.gradient import GradientDescent
from unlazy.learners.mean_field import mean_field_sgd
from unlazy.tasks.multi_index import MultiIndex, MultiIndexTask
from unlazy.theory.reduced_xor import Neurons, margins, simulate
from unlazy.theory.xor import PHASE2_RATE, phase1_slope
from unlazy.xor_probes import Parts, Portrait, SignalHeavy, TestError, WellSpread, cluster_of, parts


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
def _looks(task: MultiIndexTask, trace: Trace, probes: tuple[Any, ...], key: PRNGKeyArray) -> dict[str, Any]:
    def look(model: Any) -> dict[str, Any]:
        return {name: value for probe in probes for name, value in probe(task, model, seen=trace.seen, key=key).items()}

    return jax.lax.map(look, trace.models)


_all_parts = eqx.filter_jit(lambda task, trace: jax.vmap(lambda model: parts(task, model))(trace.models))


def strong_at_first(neurons: Parts, radius: float, d: int) -> np.ndarray:
    """Neurons that start with ‖w_sig‖ ≥ θ/√d."""
    return np.asarray(neurons.signal[0]) >= radius / math.sqrt(d)


class Phases(Experiment):
    """The phase portrait along training, with the strong neurons' growth beside theory and beside the reduced dynamics.

    `growth` is the median over strong neurons of log(‖w_sig‖ / its start); `growth_reduced` the same in the reduced dynamics from the same
    start, `growth_ratio` their quotient (1 at the start). `slope`: of `growth` in ηt while the median strong neuron has ‖w_sig‖ < ½‖w_perp‖;
    `slope_ratio`: over log(1 + ητ)/η. `strong`: of the four clusters the least share of neurons that start with ‖w_sig‖ ≥ θ/√(2d) towards it.
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
        found = dict(_looks(task, trace, (Portrait(), SignalHeavy(), WellSpread(), TestError(self.test)), key_test))
        full = _all_parts(task, trace)
        strong = strong_at_first(full, run.radius, run.d)
        start = Neurons(trace.at(0).first_layer @ task.features.T, full.rest[0], full.a[0])
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
            "margin_least_reduced": np.asarray(jnp.min(jax.vmap(margins)(reduced), axis=1))[list(self.record)],
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


class MarginGrowth(Experiment):
    """Phase 2 step by step after `begin`: growth of the least and the greatest margin over the stated factors, in averages over `window` steps.

    `least_ratio` = (γ_min'/γ_min − 1)/(2ητ·g_max) should be at least 1 − o(1), `greatest_ratio` = (γ_max'/γ_max − 1)/(2ητ·g_min) at most 1 + o(1),
    with τ = √2/4, g_max = 2/(1 + e^{γ_min}), g_min = 2/(1 + e^{γ_max}). `spread` = γ_max/γ_min falls where margins balance.
    """

    training: Training
    begin: int = eqx.field(static=True, kw_only=True)
    window: int = eqx.field(static=True, default=5, kw_only=True)
    windows: int = eqx.field(static=True, default=6, kw_only=True)

    @property
    def steps(self) -> tuple[int, ...]:
        """The first step of each window."""
        return tuple(self.begin + self.window * i for i in range(self.windows))

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Train, and compare consecutive steps."""
        end = self.begin + self.window * self.windows
        key_run, key_test = jax.random.split(key)
        task, trace = self.training.run(tuple(range(self.begin, end + 1)), key=key_run)
        found = _looks(task, trace, (Portrait(), SignalHeavy()), key_test)
        least, greatest = (np.asarray(found[name], float) for name in ("margin_least", "margin_greatest"))
        unit = 2 * self.training.step * PHASE2_RATE
        slopes = {"least": 2 / (1 + np.exp(least)), "greatest": 2 / (1 + np.exp(greatest))}
        at = np.arange(self.windows) * self.window

        def averaged(values: np.ndarray) -> np.ndarray:
            return np.mean(values.reshape(self.windows, self.window), axis=1)

        return {
            "least_ratio": averaged(np.diff(least) / least[:-1] / (unit * slopes["least"][:-1])),
            "greatest_ratio": averaged(np.diff(greatest) / greatest[:-1] / (unit * slopes["greatest"][:-1])),
            "margin_least": least[at],
            "margin_greatest": greatest[at],
            "spread": greatest[at] / least[at],
            "log10_zeta_plain": np.asarray(found["log10_zeta_plain"])[at],
            "log10_zeta": np.asarray(found["log10_zeta"])[at],
            "H": np.asarray(found["H"])[at],
        }

    @property
    def work(self) -> float:
        """Training."""
        return self.training.work(self.begin + self.window * self.windows)


class Balance(Experiment):
    """Balance of the layers over every step: `excess` = greatest |a| − ‖w‖ over neurons, relative to θ; `imbalance` = mean of ‖w‖² − a².

    `drift_ratio` = greatest increase of ‖w‖² − a² in a step, over its bound 4η²a², of any neuron since the last recorded step.
    """

    training: Training
    every: int = eqx.field(static=True, default=5, kw_only=True)
    length: int = eqx.field(static=True, default=60, kw_only=True)

    @property
    def steps(self) -> tuple[int, ...]:
        """Every so many steps."""
        return tuple(range(self.every, self.length + 1, self.every))

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Train with all steps recorded."""
        task, trace = self.training.run(tuple(range(self.length + 1)), key=key)
        full = _all_parts(task, trace)
        a, square = np.asarray(full.a, float), np.asarray(full.squared_norm, float)
        gap = square - a**2
        ratio = np.max(np.diff(gap, axis=0) / (4 * self.training.step**2 * a[:-1] ** 2), axis=1)
        at = np.array(self.steps)
        excess = np.max(np.abs(a) - np.sqrt(square), axis=1) / self.training.radius
        return {
            "excess": np.array([np.max(excess[t - self.every + 1 : t + 1]) for t in at]),
            "imbalance": np.mean(gap, axis=1)[at],
            "drift_ratio": np.array([np.max(ratio[t - self.every : t]) for t in at]),
            "squared_norm": np.mean(square, axis=1)[at],
        }

    @property
    def work(self) -> float:
        """Training."""
        return self.training.work(self.length)


class LossTimes(Experiment):
    """How long training takes: `share` = η·T/log d, where T is the first step with a test loss of at most `target`, for each dimension.

    `final_loss` is the loss at the last step, C·log(d)/η with C = `constant`. The run is looked at `looks` times.
    """

    training: Training
    dimensions: tuple[int, ...] = eqx.field(static=True, kw_only=True)
    target: float = eqx.field(converter=float, default=0.1, kw_only=True)
    constant: float = eqx.field(converter=float, default=8.0, kw_only=True)
    looks: int = eqx.field(static=True, default=64, kw_only=True)
    test: int = eqx.field(static=True, default=2048, kw_only=True)

    @property
    def steps(self) -> tuple[int, ...]:
        """The dimensions."""
        return self.dimensions

    def _runs(self) -> list[tuple[Training, tuple[int, ...]]]:
        lengths = [round(self.constant * math.log(d) / self.training.step) for d in self.dimensions]
        records = [tuple(sorted({round(i * length / self.looks) for i in range(self.looks + 1)})) for length in lengths]
        return [(dataclasses.replace(self.training, d=d), record) for d, record in zip(self.dimensions, records, strict=True)]

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Train in each dimension. A loss that never falls to the target counts with the whole length, doubled."""
        share, final, error = [], [], []
        for run, record in self._runs():
            key_run, key_test = jax.random.split(jax.random.fold_in(key, run.d))
            task, trace = run.run(record, key=key_run)
            found = _looks(task, trace, (TestError(self.test),), key_test)
            loss = np.asarray(found["test_loss"], float)
            below = np.flatnonzero(loss <= self.target)
            time = float(record[below[0]]) if below.size else 2.0 * record[-1]
            share.append(run.step * time / math.log(run.d))
            final.append(loss[-1])
            error.append(float(found["error"][-1]))
        growth = np.full(len(share), share[-1] / share[0])
        return {"share": np.array(share), "final_loss": np.array(final), "final_error": np.array(error), "share_growth": growth}

    @property
    def work(self) -> float:
        """All runs and looks."""
        return sum(run.work(record[-1]) + len(record) * self.test * run.d * run.width for run, record in self._runs())
