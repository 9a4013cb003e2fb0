"""Small things that many tests share: a task anyone could write, cheap trials, and records made by hand."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from unlazy.core.random import bernoulli, normal
from unlazy.lab.trials import Instrument, Record, Trial
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.networks.inits import MirroredInit
from unlazy.probes.neurons import Alignment
from unlazy.probes.performance import Performance
from unlazy.tasks.base import Batch, Family, Task


class HalfspaceTask(Task):
    """x ~ N(0, I/d), y = sign⟨u, x⟩."""

    u: jax.Array

    @property
    def dimension(self):
        return len(self.u)

    def draw(self, n, key):
        x = normal(key, (n, len(self.u))) / jnp.sqrt(len(self.u))
        return Batch(x, self.target(x))

    def target(self, x):
        return jnp.where(x @ self.u >= 0, 1.0, -1.0)

    @property
    def features(self):
        return self.u[None]

    @property
    def chance(self):
        return jnp.asarray(0.5)


class Halfspace(Family):
    """A random direction u in d dimensions."""

    d: int = eqx.field(static=True)

    @property
    def dimension(self):
        return self.d

    def task(self, *, key):
        u = normal(key, (self.d,))
        return HalfspaceTask(u / jnp.linalg.norm(u))


class CoinCount(Instrument):
    """The share of heads among so many coins, for each number in `sizes`."""

    sizes: tuple[int, ...] = eqx.field(static=True)
    short: bool = eqx.field(static=True, default=False)

    @property
    def steps(self):
        return self.sizes

    def measure(self, *, key):
        heads = [jnp.mean(bernoulli(key, jnp.full(size, 0.5))) for size in self.sizes]
        return {"heads": np.array(heads[self.short :]), "coins": np.ones((len(self.sizes), 2))}

    @property
    def work(self):
        return 1.0


def small_init(m=4, w_scale=1.0):
    return MirroredInit(m=m, w_scale=w_scale, b_scale=0.3, a_scale=1.0)


def small_learner(rate=0.1, steps=6, batch=8, record=(0, 3), m=4, **options):
    stage = Descent({"w": rate, "b": rate, "a": rate}, steps=steps, batch=batch, **options)
    return GradientDescent(small_init(m), (stage,), record=record)


def toy_trial(seed=0, rate=0.1, d=3, n=32, **options):
    return Trial(Halfspace(d), small_learner(rate, **options), n, seed, (Performance(64), Alignment()))


def hand_record(key="k", *, seed=0, status="ok", steps=(0, 1), arrays=None, source="here", created="2026", **measurements):
    """A record with the given measurements, as no engine would make it."""
    trial = {"family": {"type": "toys.Halfspace"}, "learner": {"type": "toys.None"}, "n": 1, "seed": seed, "probes": []}
    series = {name: tuple(values) if isinstance(values, (tuple, list)) else (values,) * len(steps) for name, values in measurements.items()}
    kept = {name: np.asarray(a) for name, a in (arrays or {}).items()}
    return Record(key, trial, status, tuple(steps), series, kept, 0.5, {"unlazy": "0", "source": source, "device": "cpu"}, created)
