"""SGD on XOR: growth of the margins, balance of the layers, and the time to a small loss.

Reference: glasgow2023, Theorem 3.1, Lemmas 4.4 (D.3) and B.13.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.lab.trials import Instrument
from unlazy.papers.glasgow2023.gradients import PHASE2_RATE
from unlazy.papers.glasgow2023.probes import ErrorRate, Portrait, SignalHeavy
from unlazy.papers.glasgow2023.training import Training, all_parts, looks_at


class MarginGrowth(Instrument):
    """Phase 2 step by step after `begin`: growth of the least and greatest margin over the stated factors, averaged over `window` steps.

    `least_ratio` = (γ_min'/γ_min − 1)/(2ητ·g_max) should be at least 1 − o(1), `greatest_ratio` = (γ_max'/γ_max − 1)/(2ητ·g_min) at most
    1 + o(1), with τ = √2/4, g_max = 2/(1 + e^{γ_min}), g_min = 2/(1 + e^{γ_max}). `spread` = γ_max/γ_min falls where margins balance.
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
        found = looks_at(task, trace, (Portrait(), SignalHeavy()), key_test)
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


class Balance(Instrument):
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
        full = all_parts(task, trace)
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


class LossTimes(Instrument):
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
            found = looks_at(task, trace, (ErrorRate(self.test),), key_test)
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
